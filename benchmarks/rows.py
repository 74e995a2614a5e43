"""Time and memory of the row export, beside what users write by hand, in one run and against one server.

``make bench`` runs it. Each figure is the median of several runs, in turns, each in a process of its own;
imports of libraries are not counted, and files are written to memory, where the machine has such a folder, since
a disk's moods are larger than the differences. Ratios hold on a noisy machine, seconds do not.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import zstandard
from page_server import page_server
from tables import bench_row

from airflow_provider_anaplat.output.streams import ZSTD_LEVEL

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
RUNS = 5


def measure(
    way: str, url: str, rows: int, page_size: int, concurrency: int = 4, memory_mb: int = 256
) -> tuple[float, float]:
    """Return the seconds and the growth in MB of one run."""
    environment = {**os.environ, **({"TMPDIR": str(MEMORY)} if MEMORY.is_dir() else {})}
    command = [
        sys.executable,
        str(HERE / "ways.py"),
        way,
        url,
        *map(str, (rows, page_size, concurrency, memory_mb)),
    ]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("FIGURES"))
    seconds, growth = map(float, line.split()[1:])
    return seconds, growth


def speed() -> None:
    """500,000 rows of 20 columns in ten pages."""
    print("500,000 rows × 20 columns in ten pages\n")
    ways = (
        "floor", "requests+csv", "operator csv", "operator ndjson", "pandas parquet", "operator parquet",
    )  # fmt: skip
    runs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    with page_server(500_000) as url:
        for _ in range(RUNS):  # in turns, since a machine's speed changes with the minutes
            for way in ways:
                runs[way].append(measure(way, url, 500_000, 50_000))
        runs["dlt parquet"] = [measure("dlt parquet", url, 500_000, 50_000)]
    seconds = {way: statistics.median(time for time, _ in figures) for way, figures in runs.items()}
    growth = {way: statistics.median(memory for _, memory in figures) for way, figures in runs.items()}
    print(f"{'way':<18}{'seconds':>9}{'memory':>10}{'× floor':>9}{'requests+csv ÷':>16}")
    for way, time in seconds.items():
        by_hand = seconds["requests+csv"] / time
        print(f"{way:<18}{time:>9.2f}{growth[way]:>7.0f} MB{time / seconds['floor']:>9.1f}{by_hand:>16.1f}")
    for peer in ("pandas", "dlt"):
        ratio = seconds[f"{peer} parquet"] / seconds["operator parquet"]
        print(f"Parquet: {ratio:.1f} times as fast as {peer}", flush=True)


def compression() -> None:
    """The same rows as compressed CSV, beside the compressors alone, which take one core."""
    print("\nThe same rows as compressed CSV\n")
    text = io.StringIO()
    csv.writer(text).writerows(map(bench_row, range(500_000)))
    lines = text.getvalue().encode()
    compressors: dict[str, Callable[[], Any]] = {
        "gz": lambda: gzip.GzipFile(fileobj=io.BytesIO(), mode="wb", compresslevel=6),
        "zst": lambda: zstandard.ZstdCompressor(ZSTD_LEVEL).stream_writer(io.BytesIO()),
    }
    with page_server(500_000) as url:
        for suffix, compressor in compressors.items():
            alone, operator = [], []
            for _ in range(RUNS):
                began = perf_counter()
                with compressor() as file:
                    for start in range(0, len(lines), 1 << 20):
                        file.write(lines[start : start + (1 << 20)])
                alone.append(perf_counter() - began)
                operator.append(measure(f"operator csv.{suffix}", url, 500_000, 50_000))
            seconds, growth = map(statistics.median, zip(*operator, strict=True))
            print(
                f"csv.{suffix:<14}{seconds:>9.2f}{growth:>7.0f} MB{statistics.median(alone):>9.2f} alone",
                flush=True,
            )


def frames() -> None:
    """The same rows as dataframes."""
    print("\nThe same rows as dataframes\n")
    ways = "pandas frame", "get_df pandas", "get_df arrow", "get_df polars", "operator parquet"
    with page_server(500_000) as url:
        runs = [[measure(way, url, 500_000, 50_000) for way in ways] for _ in range(RUNS)]
    for number, way in enumerate(ways):
        seconds, growth = (statistics.median(run[number][figure] for run in runs) for figure in range(2))
        print(f"{way:<18}{seconds:>9.2f}{growth:>7.0f} MB", flush=True)


def memory() -> None:
    """The same memory at ten times the rows, and less of it with smaller pages."""
    print("\nGrowth of memory, operator\n")
    for rows, page_size in ((500_000, 50_000), (5_000_000, 50_000), (500_000, 10_000), (5_000_000, 10_000)):
        with page_server(rows) as url:
            for way in ("operator csv", "operator parquet"):
                _, growth = measure(way, url, rows, page_size)
                print(f"{way:<18}{rows:>10,} rows, pages of {page_size:>6,}: {growth:>5.0f} MB", flush=True)


def concurrency() -> None:
    """A platform that takes half a second for a page, and 40 pages."""
    print("\n40 pages of 1,000 rows, half a second each\n")
    seconds = {}
    with page_server(40_000, 0.5) as url:
        for requests_at_a_time in (1, 8):
            seconds[requests_at_a_time], _ = measure("operator csv", url, 40_000, 1_000, requests_at_a_time)
            print(f"concurrency={requests_at_a_time}: {seconds[requests_at_a_time]:.2f} s", flush=True)
    print(f"ratio {seconds[1] / seconds[8]:.1f}")


if __name__ == "__main__":
    speed()
    compression()
    frames()
    memory()
    concurrency()
