"""Time and memory of the row export, beside what users write by hand, in one run and against one server.

``make bench`` runs it. Each figure is the median of several runs, each in a process of its own; imports of
libraries are not counted, and files are written to memory, where the machine has such a folder, since a disk's
moods are larger than the differences. Ratios hold on a noisy machine, seconds do not.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
RUNS = 3


@contextmanager
def page_server(rows: int, page_size: int, latency: float = 0) -> Iterator[str]:
    """Start the server and yield its address."""
    command = [sys.executable, str(HERE / "page_server.py"), str(rows), str(page_size), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def measure(
    way: str, url: str, rows: int, page_size: int, concurrency: int = 4, runs: int = RUNS
) -> tuple[float, float]:
    """Return the median seconds and the median growth in MB."""
    figures = []
    environment = {**os.environ, **({"TMPDIR": str(MEMORY)} if MEMORY.is_dir() else {})}
    for _ in range(runs):
        command = [sys.executable, str(HERE / "ways.py"), way, url, str(rows), str(page_size), str(concurrency)]
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        line = next(line for line in output.splitlines() if line.startswith("FIGURES"))
        figures.append(tuple(map(float, line.split()[1:])))
    seconds, growth = zip(*figures, strict=True)
    return statistics.median(seconds), statistics.median(growth)


def speed() -> None:
    """500,000 rows of 20 columns in ten pages."""
    print("500,000 rows × 20 columns in ten pages\n")
    print(f"{'way':<18}{'seconds':>9}{'memory':>10}{'× floor':>9}{'requests+csv ÷':>16}")
    ways = (
        "floor", "requests+csv", "operator csv", "operator ndjson",
        "pandas parquet", "operator parquet", "dlt parquet",
    )  # fmt: skip
    figures = {}
    with page_server(500_000, 50_000) as url:
        for way in ways:
            figures[way] = measure(way, url, 500_000, 50_000, runs=1 if way == "dlt parquet" else RUNS)
            seconds, growth = figures[way]
            by_hand = figures.get("requests+csv", (seconds, 0))[0]
            print(
                f"{way:<18}{seconds:>9.2f}{growth:>7.0f} MB{seconds / figures['floor'][0]:>9.1f}"
                f"{by_hand / seconds:>16.1f}",
                flush=True,
            )
    for peer in ("pandas", "dlt"):
        ratio = figures[f"{peer} parquet"][0] / figures["operator parquet"][0]
        print(f"Parquet: {ratio:.1f} times as fast as {peer}")


def memory() -> None:
    """The same memory at ten times the rows, and less of it with smaller pages."""
    print("\nGrowth of memory, operator\n")
    for rows, page_size in ((500_000, 50_000), (5_000_000, 50_000), (500_000, 10_000), (5_000_000, 10_000)):
        with page_server(rows, page_size) as url:
            for way in ("operator csv", "operator parquet"):
                _, growth = measure(way, url, rows, page_size, runs=1)
                print(f"{way:<18}{rows:>10,} rows, pages of {page_size:>6,}: {growth:>5.0f} MB", flush=True)


def concurrency() -> None:
    """A platform that takes half a second for a page, and 40 pages."""
    print("\n40 pages of 1,000 rows, half a second each\n")
    seconds = {}
    with page_server(40_000, 1_000, 0.5) as url:
        for requests_at_a_time in (1, 8):
            seconds[requests_at_a_time], _ = measure(
                "operator csv", url, 40_000, 1_000, requests_at_a_time, runs=1
            )
            print(f"concurrency={requests_at_a_time}: {seconds[requests_at_a_time]:.2f} s", flush=True)
    print(f"ratio {seconds[1] / seconds[8]:.1f}")


if __name__ == "__main__":
    speed()
    memory()
    concurrency()
