"""The demo's Airflow: it says where it is, shows the DAG without a log-in, and ends when it is told to."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from conftest import LONG
from support.markdown import PROJECT
from support.running import free_port


@pytest.fixture
def ui(tmp_path: Path) -> Path:
    # In a project of its own, since `make demo` may be running in this one.
    for folder in ("demo", "example_dags"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    return tmp_path / "demo" / "ui.py"


def test_the_demo_can_be_looked_at(ui: Path) -> None:
    port = free_port()
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
            dag = requests.get(f"http://127.0.0.1:{port}/api/v2/dags/anaplat_refresh", timeout=LONG)
        finally:
            process.send_signal(signal.SIGINT)
        said += process.stdout.read()

    assert dag.json()["dag_id"] == "anaplat_refresh"
    assert said.endswith("Stopped.\n")
    assert process.returncode == 0


def test_a_port_that_is_taken_is_said_at_once(ui: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = subprocess.run(
            [sys.executable, ui, port], capture_output=True, text=True, check=False, timeout=LONG
        )
    assert ended.returncode == 1
    assert ended.stdout == f"Port {port} is taken; name another one: make ui PORT=...\n"
