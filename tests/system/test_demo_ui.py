"""The demo's Airflow: it says where it is, runs the DAG without a log-in, and ends when it is told to."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import requests
from conftest import LONG
from support.markdown import PROJECT
from support.running import free_port, has_ended, wait_until


@pytest.fixture
def ui(tmp_path: Path) -> Path:
    # In a project of its own, since `make demo` may be running in this one.
    for folder in ("demo", "example_dags"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    return tmp_path / "demo" / "ui.py"


def test_the_demo_can_be_looked_at(ui: Path) -> None:
    port = free_port()
    dags = f"http://127.0.0.1:{port}/api/v2/dags"
    command = [sys.executable, str(ui), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        try:
            for line in process.stdout:
                said += line
                if "Ctrl-C" in line:
                    break
            assert f"http://127.0.0.1:{port}/dags/anaplat_refresh" in said
            active = requests.get(f"{dags}?paused=false", timeout=LONG).json()["dags"]
            run_succeeds(f"{dags}/anaplat_refresh/dagRuns")
            components = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.send_signal(signal.SIGINT)
        said += process.stdout.read()

    assert [dag["dag_id"] for dag in active] == ["anaplat_refresh"]
    assert said.endswith("Stopped.\n")
    assert process.returncode == 0
    assert len(components) > 4
    assert all(map(has_ended, components))


def run_succeeds(runs: str) -> None:
    began = requests.post(runs, json={"logical_date": None}, timeout=LONG).json()
    run = f"{runs}/{began['dag_run_id']}"

    def ended() -> bool:
        return requests.get(run, timeout=LONG).json()["state"] in ("success", "failed")

    wait_until(ended)
    assert requests.get(run, timeout=LONG).json()["state"] == "success"


def test_a_port_that_cannot_be_had_is_said_at_once(ui: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        for port, why in {
            taken: f"Port {taken} cannot be had (Address already in use); name another one",
            "65536": "'65536' is no port; name one from 1 to 65535",
            "": "'' is no port; name one from 1 to 65535",
        }.items():
            ended = subprocess.run(
                [sys.executable, ui, port], capture_output=True, text=True, check=False, timeout=LONG
            )
            assert (ended.returncode, ended.stdout) == (1, f"{why}: make ui PORT=...\n")
