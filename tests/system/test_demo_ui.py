"""The demo's Airflow: it says where it is, shows the DAG without a log-in, and ends when it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys

import requests
from support.markdown import PROJECT
from support.running import free_port


def test_the_demo_can_be_looked_at() -> None:
    port = free_port()
    command = [sys.executable, str(PROJECT / "demo" / "ui.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        dag = requests.get(f"http://127.0.0.1:{port}/api/v2/dags/anaplat_refresh", timeout=60)
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()

    assert f"http://127.0.0.1:{port}/dags/anaplat_refresh" in said
    assert dag.json()["dag_id"] == "anaplat_refresh"
    assert said.endswith("Stopped.\n")
    assert process.returncode == 0
