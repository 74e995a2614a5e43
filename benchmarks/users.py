"""What provisioning costs beyond its requests: 50,000 users of a CSV file, in time and in memory.

``make bench`` runs it. The platform is a server in a process of its own that answers at once. The overhead is the
time of the operator less that of the same requests, their bodies made beforehand, sent with ``requests``.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USERS = 50_000
BATCH = 200
RUNS = 3


class Answers(BaseHTTPRequestHandler):
    """Counts the users of each request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer at once."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps({"result": "ok", "response": f"{body.count(b'loginId')} users created"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def serve() -> None:
    """Serve until killed; the first line printed is the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


def write_users(path: Path, count: int) -> None:
    """Write a file of users with every field but the properties."""
    lines = ["loginId,name,password,role,email,mobile,enabled,userGroupIds"]
    lines += [
        f"user{i},User Number {i},first password! {i},participant,user{i}@example.com,{i:011d},true,group1;group2"
        for i in range(count)
    ]
    path.write_text("\n".join(lines))


def operator(url: str, path: Path, progress: Path | None) -> Callable[[], object]:
    """Return the operator's run."""
    from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator

    connection = {"conn_type": "anaplat", "host": url, "password": "t0ken"}
    os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(connection)
    task = AnaplatCreateUsersOperator(
        task_id="users", users_path=str(path), batch_size=BATCH, progress_path=str(progress) if progress else None
    )
    return lambda: task.execute({})


def bare_requests(url: str, path: Path) -> Callable[[], object]:
    """Return the same requests, made beforehand."""
    import csv

    import requests

    with path.open() as file:
        users = [
            {**row, "enabled": True, "userGroupIds": row["userGroupIds"].split(";")}
            for row in csv.DictReader(file)
        ]
    bodies = [
        json.dumps({"users": users[start : start + BATCH], "token": "t0ken"}).encode()
        for start in range(0, len(users), BATCH)
    ]
    session = requests.Session()
    target = f"{url}/public-api/users/add"
    headers = {"Content-Type": "application/json"}
    return lambda: [session.post(target, data=body, headers=headers, timeout=10).json() for body in bodies]


def one(way: str, url: str, path: str) -> None:
    """Run one way in this process and print its seconds and its growth in MB."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(path)
        warm = file.with_name("warm.csv")
        if way == "requests":
            run = bare_requests(url, file)
        else:
            progress = Path(folder) if way == "operator with progress" else None
            operator(url, warm, progress and progress / "warm")()  # imports are not counted
            run = operator(url, file, progress and progress / "run")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started, cpu = time.perf_counter(), time.process_time()
        run()
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"FIGURES {seconds} {cpu} {growth}")


def measure(way: str, url: str, path: Path) -> tuple[float, float, float]:
    """Return the median seconds, CPU seconds and growth of several runs, each in a process of its own."""
    figures = []
    for _ in range(RUNS):
        command = [sys.executable, __file__, way, url, str(path)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = next(line for line in output.splitlines() if line.startswith("FIGURES"))
        figures.append(tuple(map(float, line.split()[1:])))
    seconds, cpu, growth = map(statistics.median, zip(*figures, strict=True))
    return seconds, cpu, growth


def main() -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        write_users(Path(folder) / "warm.csv", 10)
        print(f"{'way':<24}{'users':>8}{'seconds':>9}{'CPU':>9}{'memory':>10}  beyond the requests, a user; CPU")
        for count in (USERS // 10, USERS):
            path = Path(folder) / f"{count}.csv"
            write_users(path, count)
            floor, floor_cpu, _ = measure("requests", url, path)
            print(f"{'requests':<24}{count:>8,}{floor:>9.2f}{floor_cpu:>9.2f}", flush=True)
            for way in ("operator", "operator with progress"):
                seconds, cpu, growth = measure(way, url, path)
                wall, own = (1e6 * (end - start) / count for start, end in ((floor, seconds), (floor_cpu, cpu)))
                figures = f"{seconds:>9.2f}{cpu:>9.2f}{growth:>7.1f} MB{wall:>8.1f} µs{own:>8.1f} µs"
                print(f"{way:<24}{count:>8,}{figures}", flush=True)
        server.terminate()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif len(sys.argv) == 4:
        one(*sys.argv[1:])
    else:
        main()
