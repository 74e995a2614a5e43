"""Show the demo's Airflow and its runs in a browser, beside the embedded platform: ``python demo/ui.py PORT``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from home import AIRFLOW, HOME, PROJECT, platform, set_environment

LOG = HOME / "ui.log"
LONG = 60.0  # seconds


def main(port: str) -> int:
    """Start Airflow and the platform, say where, and wait until Ctrl-C."""
    if refused := refusal(port):
        print(f"{refused}: make ui PORT=...")
        return 1
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


def refusal(port: str) -> str | None:
    """Return what is wrong with a port, if something is; Airflow would not end for that, and never answer."""
    if not port.isdecimal() or not 0 < int(port) < 65536:
        return f"{port!r} is no port; name one from 1 to 65535"
    try:
        socket.create_server(("127.0.0.1", int(port))).close()
    except OSError as error:
        return f"Port {port} cannot be had ({os.strerror(error.errno or 0)}); name another one"
    return None


def show(platform_url: str, port: str) -> int:
    """Run Airflow until it ends by itself, which it should not."""
    address = f"http://127.0.0.1:{port}"
    log = LOG.relative_to(PROJECT)
    print(f"Starting Airflow; this takes about half a minute, and {log} says how far it is ...", flush=True)
    with airflow(port) as process:
        if answers(address, process):
            let_runs_begin(address)
            print(f"Airflow's UI:          {address}/dags/anaplat_refresh")
            print(f"The embedded platform: {platform_url}")
            print(
                "The runs of `make demo` are there, and the DAG can be triggered. Ctrl-C stops both.", flush=True
            )
            process.wait()
    print(f"Airflow ended; what happened stands in {log}")
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
    }
    with LOG.open("w") as log:
        # In a session of its own, so that all that it starts ends with it.
        process = subprocess.Popen(
            [AIRFLOW, "standalone"], env={**os.environ, **settings}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End Airflow and all that it has started, and wait until the last of them has ended."""
    latest = time.monotonic() + LONG
    try:
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < latest:
            process.poll()  # or it would be there for ever, as a zombie
            os.killpg(process.pid, 0)
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def let_runs_begin(address: str) -> None:
    """Unpause the demo's DAG, and no other one of the examples: theirs would begin by themselves."""
    dag = f"{address}/api/v2/dags/anaplat_refresh"
    requests.patch(dag, json={"is_paused": False}, timeout=LONG).raise_for_status()


def answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until Airflow answers, however slow the machine; tell whether it does."""
    while process.poll() is None:
        try:
            if requests.get(f"{address}/api/v2/dags/anaplat_refresh", timeout=10).ok:
                return True
        except (requests.ConnectionError, requests.Timeout):
            pass  # it does not listen yet, or is still busy with its start
        time.sleep(0.5)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
