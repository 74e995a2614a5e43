"""The ways of getting a dataset's rows into a file that ``benchmarks/rows.py`` compares, one function each.

Run as ``python benchmarks/ways.py WAY URL ROWS PAGE_SIZE CONCURRENCY``, it prints seconds and growth of the peak
memory in MB over the process with everything imported.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from page_server import COLUMNS

DLT_TYPES = {"LONG": "bigint", "DOUBLE": "double", "STRING": "text", "DATE": "date"}
DATA = "/public-api/data-source/bench/data"


def answers(url: str, rows: int, page_size: int) -> Iterator[bytes]:
    """Yield the pages, one after the other."""
    import requests

    session = requests.Session()
    for offset in range(0, rows, page_size):
        answer = session.post(url + DATA, json={"offset": offset, "limit": page_size}, timeout=60)
        yield answer.content


def floor(url: str, rows: int, page_size: int, _concurrency: int, _folder: Path) -> None:
    """Read and parse the same bytes, and keep nothing."""
    import simdjson

    parser = simdjson.Parser()
    for content in answers(url, rows, page_size):
        document: Any = parser.parse(content)
        assert len(document["response"]["preview"])
        del document


def requests_csv(url: str, rows: int, page_size: int, _concurrency: int, folder: Path) -> None:
    """What users write by hand."""
    with (folder / "out.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for content in answers(url, rows, page_size):
            writer.writerows(json.loads(content)["response"]["preview"])


def pandas_parquet(url: str, rows: int, page_size: int, _concurrency: int, folder: Path) -> None:
    """What users write by hand where they want types."""
    import pandas as pd

    frames = []
    for content in answers(url, rows, page_size):
        response = json.loads(content)["response"]
        names = [column["name"] for column in response["columns"]]
        frames.append(pd.DataFrame(response["preview"], columns=names))
    frame = pd.concat(frames, ignore_index=True)
    for column in response["columns"]:
        if column["fdType"] in ("LONG", "DOUBLE"):
            frame[column["name"]] = pd.to_numeric(frame[column["name"]])
        elif column["fdType"] == "DATE":
            frame[column["name"]] = pd.to_datetime(frame[column["name"]])
    frame.to_parquet(folder / "out.parquet")


def dlt_parquet(url: str, rows: int, page_size: int, _concurrency: int, folder: Path) -> None:
    """What a loading tool makes of the same call."""
    import dlt
    from dlt.sources.helpers.rest_client.paginators import OffsetPaginator
    from dlt.sources.rest_api import rest_api_source

    names = [column["name"] for column in COLUMNS]
    paginator = OffsetPaginator(
        limit=page_size,
        offset_body_path="offset",
        limit_body_path="limit",
        total_path="response.rowCount",
    )
    endpoint = {"path": DATA, "method": "POST", "json": {}, "data_selector": "response.preview"}
    resource: Any = {
        "name": "bench",
        "endpoint": endpoint,
        "processing_steps": [{"map": lambda row: dict(zip(names, row, strict=True))}],
        "columns": {column["name"]: {"data_type": DLT_TYPES[column["fdType"]]} for column in COLUMNS},
    }
    source = rest_api_source({"client": {"base_url": url, "paginator": paginator}, "resources": [resource]})
    pipeline = dlt.pipeline(
        "bench", pipelines_dir=str(folder), destination=dlt.destinations.filesystem(str(folder / "out"))
    )
    pipeline.run(source, loader_file_format="parquet")
    trace: Any = pipeline.last_trace
    assert trace.last_normalize_info.row_counts["bench"] == rows


def operator(file_format: str) -> Callable[..., None]:
    """This package's operator."""

    def run(url: str, rows: int, page_size: int, concurrency: int, folder: Path) -> None:
        from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator

        connection = {"conn_type": "anaplat", "host": url, "password": "token"}
        os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(connection)
        result: dict[str, Any] = AnaplatExportRowsOperator(
            task_id="export",
            ds_id="bench",
            output_path=str(folder / f"out.{file_format}"),
            page_size=page_size,
            concurrency=concurrency,
        ).execute({})
        assert result["rows"] == rows

    return run


WAYS: dict[str, Callable[..., None]] = {
    "floor": floor,
    "requests+csv": requests_csv,
    "pandas parquet": pandas_parquet,
    "dlt parquet": dlt_parquet,
    "operator csv": operator("csv"),
    "operator ndjson": operator("ndjson"),
    "operator parquet": operator("parquet"),
}
IMPORTS = {
    "floor": "requests simdjson",
    "requests+csv": "requests",
    "pandas parquet": "requests pandas pyarrow.parquet",
    "dlt parquet": "dlt dlt.sources.rest_api dlt.destinations pyarrow.parquet",
}
# The operator imports the second when it runs, since Polars has no place in a DAG file; the others are Airflow's,
# and every task's process has them.
OPERATOR_IMPORTS = (
    "airflow_provider_anaplat.operators.rows airflow_provider_anaplat.rows.export"
    " airflow.sdk.execution_time.supervisor airflow.sdk.execution_time.task_runner"
)


def memory(key: str) -> float:
    """Return a figure of this process's memory in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(key + ":")[1].split()[0]) / 1024


def main() -> None:
    """Run one way and print its figures."""
    way, url, rows, page_size, concurrency = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    for module in IMPORTS.get(way, OPERATOR_IMPORTS).split():
        __import__(module)
    # What the imports made is looked at no more: whether a collection of it (0.15 s, with Airflow imported) falls
    # into the time is chance, down to the path of this folder.
    gc.collect()
    gc.freeze()
    before = memory("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        WAYS[way](url, rows, page_size, concurrency, Path(folder))
        seconds = time.perf_counter() - began
    print(f"FIGURES {seconds:.4f} {memory('VmHWM') - before:.0f}")


if __name__ == "__main__":
    main()
