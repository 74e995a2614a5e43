"""Time and memory of a load into PostgreSQL, beside what users write by hand, in one run and against one server.

``make bench`` runs it where a PostgreSQL server listens on 127.0.0.1. Each figure is the median of several runs,
each in a process of its own; imports of libraries are not counted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from page_server import page_server
from ways import answers, memory

ROWS, PAGE_SIZE = 500_000, 50_000
RUNS = 3
TABLE = "anaplat_benchmark"
TYPES = {"LONG": "BIGINT", "DOUBLE": "DOUBLE PRECISION", "DATE": "DATE", "STRING": "TEXT"}


def hook() -> Any:
    """Return Airflow's hook."""
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    return PostgresHook("database", log_sql=False)


def operator(url: str) -> None:
    """This package's operator."""
    from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator

    connection = {"conn_type": "anaplat", "host": url, "password": "token"}
    os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(connection)
    load = AnaplatToSqlOperator(task_id="load", ds_id="bench", sql_conn_id="database", table=TABLE)
    assert load.execute({})["rows"] == ROWS


def by_hand(**options: Any) -> Any:
    """What users write by hand: requests, json and the hook's ``insert_rows``."""

    def run(url: str) -> None:
        def rows() -> Iterator[list[str | None]]:
            for content in answers(url, ROWS, PAGE_SIZE):
                yield from json.loads(content)["response"]["preview"]

        hook().insert_rows(TABLE, rows(), **options)

    return run


WAYS: dict[str, Any] = {
    "operator": operator,
    "insert_rows": by_hand(),
    "insert_rows(fast_executemany, commit_every=10000)": by_hand(
        executemany=True, fast_executemany=True, commit_every=10_000
    ),
}


def create_table() -> None:
    """Create the table that is loaded, empty."""
    from tables import BENCH_COLUMNS

    columns = ", ".join(f"{column['name']} {TYPES[column['fdType']]}" for column in BENCH_COLUMNS)
    hook().run([f"DROP TABLE IF EXISTS {TABLE}", f"CREATE TABLE {TABLE} ({columns})"])


def child(way: str, url: str) -> None:
    """Load once and print the figures."""
    import logging

    import polars  # noqa: F401
    import requests  # noqa: F401

    import airflow_provider_anaplat.rows.export
    import airflow_provider_anaplat.sql.drivers
    import airflow_provider_anaplat.transfers.anaplat_to_sql  # noqa: F401

    logging.disable(logging.INFO)
    create_table()
    before = memory("VmRSS")
    began = time.perf_counter()
    WAYS[way](url)
    seconds = time.perf_counter() - began
    growth = memory("VmHWM") - before
    with closing(hook().get_conn()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), COUNT(text_0), SUM(int_5) FROM {TABLE}")
        loaded = cursor.fetchone()
    print(f"FIGURES {seconds:.3f} {growth:.0f} {loaded[0]} {loaded[1]} {loaded[2]}")


def measure(way: str, url: str) -> tuple[float, float, tuple[str, ...]]:
    """Return the median seconds, the median growth in MB, and what is in the table afterwards."""
    figures, loaded = [], set()
    for _ in range(RUNS):
        command = [sys.executable, str(Path(__file__)), way, url]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        line = next(line for line in output.splitlines() if line.startswith("FIGURES")).split()
        figures.append((float(line[1]), float(line[2])))
        loaded.add(tuple(line[3:]))
    seconds, growth = zip(*figures, strict=True)
    (same,) = loaded
    return statistics.median(seconds), statistics.median(growth), same


def main() -> None:
    """Compare the ways."""
    server = {"conn_type": "postgres", "host": "127.0.0.1", "login": "root", "schema": "test"}
    os.environ.setdefault("AIRFLOW_CONN_DATABASE", json.dumps(server))
    try:
        hook().get_first("SELECT 1")
    except Exception as error:  # noqa: BLE001 - whatever the driver says
        print(f"No PostgreSQL server, so nothing is loaded: {error}")
        return
    print(f"{ROWS:,} rows × 20 columns in ten pages, into PostgreSQL\n")
    print(f"{'way':<52}{'seconds':>9}{'memory':>10}{'÷ operator':>12}")
    contents = set()
    ours = 0.0  # the operator comes first
    with page_server(ROWS) as url:
        for way in WAYS:
            seconds, growth, loaded = measure(way, url)
            contents.add(loaded)
            ours = ours or seconds
            print(f"{way:<52}{seconds:>9.2f}{growth:>7.0f} MB{seconds / ours:>12.1f}", flush=True)
    hook().run(f"DROP TABLE {TABLE}")
    assert len(contents) == 1, contents


if __name__ == "__main__":
    child(*sys.argv[1:]) if len(sys.argv) > 1 else main()
