"""The ways of getting a dataset's rows into a file that ``benchmarks/rows.py`` compares, one function each.

Run as ``python benchmarks/ways.py WAY URL ROWS PAGE_SIZE CONCURRENCY MEMORY_MB``, it prints seconds and growth of
the peak memory in MB over the process with everything imported.
"""

from __future__ import annotations

import csv
import gc
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tables import BENCH_COLUMNS

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from airflow_provider_anaplat.client.arguments import DataFrameType

DLT_TYPES = {"LONG": "bigint", "DOUBLE": "double", "STRING": "text", "DATE": "date"}
DATA = "/public-api/data-source/bench/data"


@dataclass(frozen=True)
class Job:
    """What a way has to do.

    :param url: of the server
    :param folder: where its files go
    """

    url: str
    rows: int
    page_size: int
    concurrency: int
    memory_mb: int
    folder: Path


def execute(operator: BaseOperator) -> Any:
    """Execute an operator without what Airflow wraps it in, which warns each time that no task runs here."""
    return inspect.unwrap(type(operator).execute)(operator, {})


def answers(url: str, rows: int, page_size: int) -> Iterator[bytes]:
    """Yield the pages, one after the other."""
    import requests

    session = requests.Session()
    for offset in range(0, rows, page_size):
        answer = session.post(url + DATA, json={"offset": offset, "limit": page_size}, timeout=60)
        yield answer.content


def floor(job: Job) -> None:
    """Read and parse the same bytes, and keep nothing."""
    import simdjson

    parser = simdjson.Parser()
    for content in answers(job.url, job.rows, job.page_size):
        document: Any = parser.parse(content)
        assert len(document["response"]["preview"])
        del document


def requests_csv(job: Job) -> None:
    """What users write by hand."""
    with (job.folder / "out.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for content in answers(job.url, job.rows, job.page_size):
            writer.writerows(json.loads(content)["response"]["preview"])


def pandas_frame(job: Job) -> Any:
    """What users write by hand where they want a typed dataframe."""
    import pandas as pd

    frames = []
    for content in answers(job.url, job.rows, job.page_size):
        response = json.loads(content)["response"]
        names = [column["name"] for column in response["columns"]]
        frames.append(pd.DataFrame(response["preview"], columns=names))
    frame = pd.concat(frames, ignore_index=True)
    for column in response["columns"]:
        if column["fdType"] in ("LONG", "DOUBLE"):
            frame[column["name"]] = pd.to_numeric(frame[column["name"]])
        elif column["fdType"] == "DATE":
            frame[column["name"]] = pd.to_datetime(frame[column["name"]])
    return frame


def pandas_parquet(job: Job) -> None:
    """What users write by hand where they want types."""
    pandas_frame(job).to_parquet(job.folder / "out.parquet")


def get_df(df_type: DataFrameType) -> Callable[[Job], None]:
    """This package's dataframes."""

    def run(job: Job) -> None:
        from airflow_provider_anaplat.client import AnaplatClient
        from airflow_provider_anaplat.client.arguments import RowOptions

        query = RowOptions(page_size=job.page_size, concurrency=job.concurrency, memory_mb=job.memory_mb)
        assert len(AnaplatClient(job.url, "token").get_df("bench", df_type, **query)) == job.rows

    return run


def dlt_parquet(job: Job) -> None:
    """What a loading tool makes of the same call."""
    import dlt
    from dlt.sources.helpers.rest_client.paginators import OffsetPaginator
    from dlt.sources.rest_api import rest_api_source

    names = [column["name"] for column in BENCH_COLUMNS]
    paginator = OffsetPaginator(
        limit=job.page_size,
        offset_body_path="offset",
        limit_body_path="limit",
        total_path="response.rowCount",
    )
    endpoint = {"path": DATA, "method": "POST", "json": {}, "data_selector": "response.preview"}
    resource: Any = {
        "name": "bench",
        "endpoint": endpoint,
        "processing_steps": [{"map": lambda row: dict(zip(names, row, strict=True))}],
        "columns": {column["name"]: {"data_type": DLT_TYPES[column["fdType"]]} for column in BENCH_COLUMNS},
    }
    source = rest_api_source({"client": {"base_url": job.url, "paginator": paginator}, "resources": [resource]})
    pipeline = dlt.pipeline(
        "bench", pipelines_dir=str(job.folder), destination=dlt.destinations.filesystem(str(job.folder / "out"))
    )
    pipeline.run(source, loader_file_format="parquet")
    trace: Any = pipeline.last_trace
    assert trace.last_normalize_info.row_counts["bench"] == job.rows


def operator(file_format: str) -> Callable[[Job], None]:
    """This package's operator."""

    def run(job: Job) -> None:
        from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator

        connection = {"conn_type": "anaplat", "host": job.url, "password": "token"}
        os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(connection)
        export = AnaplatExportRowsOperator(
            task_id="export",
            ds_id="bench",
            output_path=str(job.folder / f"out.{file_format}"),
            page_size=job.page_size,
            concurrency=job.concurrency,
            memory_mb=job.memory_mb,
        )
        assert execute(export)["rows"] == job.rows

    return run


WAYS: dict[str, Callable[[Job], object]] = {
    "floor": floor,
    "requests+csv": requests_csv,
    "pandas frame": pandas_frame,
    "pandas parquet": pandas_parquet,
    "dlt parquet": dlt_parquet,
    "operator csv": operator("csv"),
    "operator csv.gz": operator("csv.gz"),
    "operator csv.zst": operator("csv.zst"),
    "operator ndjson": operator("ndjson"),
    "operator parquet": operator("parquet"),
    "get_df pandas": get_df("pandas"),
    "get_df arrow": get_df("arrow"),
    "get_df polars": get_df("polars"),
}
IMPORTS = {
    "floor": "requests simdjson",
    "requests+csv": "requests",
    "pandas frame": "requests pandas",
    "pandas parquet": "requests pandas pyarrow.parquet",
    "dlt parquet": "dlt dlt.sources.rest_api dlt.destinations pyarrow.parquet",
    "get_df pandas": "airflow_provider_anaplat.rows.stream pandas pyarrow",
    "get_df arrow": "airflow_provider_anaplat.rows.stream pyarrow",
    "get_df polars": "airflow_provider_anaplat.rows.stream",
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
    way, url = sys.argv[1:3]
    rows, page_size, concurrency, memory_mb = map(int, sys.argv[3:])
    for module in IMPORTS.get(way, OPERATOR_IMPORTS).split():
        __import__(module)
    # What the imports made is looked at no more: whether a collection of it (0.15 s, with Airflow imported) falls
    # into the time is chance, down to the path of this folder.
    gc.collect()
    gc.freeze()
    before = memory("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        WAYS[way](Job(url, rows, page_size, concurrency, memory_mb, Path(folder)))
        seconds = time.perf_counter() - began
    print(f"FIGURES {seconds:.4f} {memory('VmHWM') - before:.0f}")


if __name__ == "__main__":
    main()
