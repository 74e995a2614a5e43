"""Show the demo's Airflow and its runs in a browser, beside the embedded platform: ``python demo/ui.py PORT``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from home import AIRFLOW, HOME, PROJECT, platform, set_environment

LOG = HOME / "ui.log"
LONG = 300.0  # seconds; far more than Airflow takes to start


def main(port: str) -> int:
    """Start Airflow and the platform, say where, and wait until Ctrl-C."""
    HOME.mkdir(exist_ok=True)
    for ends in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ends, signal.default_int_handler)
    try:
        with platform() as simulator:
            set_environment(simulator)
            return show(simulator.url, port)
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0


def show(platform_url: str, port: str) -> int:
    """Run Airflow until it ends by itself, which it should not."""
    address = f"http://127.0.0.1:{port}"
    print("Starting Airflow; this takes about half a minute ...", flush=True)
    with airflow(port) as process:
        if answers(address, process):
            print(f"Airflow's UI:          {address}/dags/anaplat_refresh")
            print(f"The embedded platform: {platform_url}")
            print(
                "The runs of `make demo` are there, and the DAG can be triggered. Ctrl-C stops both.", flush=True
            )
            process.wait()
    print(f"Airflow ended; what happened stands in {LOG.relative_to(PROJECT)}")
    return 1


@contextmanager
def airflow(port: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run all of Airflow's components, without a log-in, for whoever can reach this machine's own address."""
    settings = {
        "PATH": f"{AIRFLOW.parent}{os.pathsep}{os.environ.get('PATH', '')}",  # where it looks for its own command
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    }
    with LOG.open("w") as log:
        # In a session of its own, so that all that it starts ends with it.
        process = subprocess.Popen(
            [AIRFLOW, "standalone"], env={**os.environ, **settings}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until Airflow answers; tell whether it does."""
    end = time.monotonic() + LONG
    while time.monotonic() < end and process.poll() is None:
        try:
            if requests.get(f"{address}/api/v2/dags/anaplat_refresh", timeout=10).ok:
                return True
        except requests.ConnectionError:
            pass
        time.sleep(0.5)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
