"""All rows of a query into one file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.rows.files import atomic_file
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.sinks import SINKS
from airflow_provider_anaplat.rows.types import Caster, schema_of

log = logging.getLogger(__name__)

FileFormat = Literal["csv", "ndjson", "parquet"]
OnCastError = Literal["fail", "null"]


@dataclass(frozen=True)
class ExportSummary:
    """What was exported.

    :param columns: number of columns
    :param bytes: size of the file
    """

    rows: int
    columns: int
    version: int | None
    utime: str | None
    bytes: int


def export_rows(
    client: AnaplatClient,
    query: RowQuery,
    path: Any,
    file_format: FileFormat,
    on_cast_error: OnCastError = "fail",
) -> ExportSummary:
    """Write the rows of a query to a file, which appears when it is complete.

    :param client: the platform
    :param query: which rows
    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param file_format: ``csv``, ``ndjson`` or ``parquet``
    :param on_cast_error: what becomes of a cell that its column's type cannot hold
    :raises ExportError: the rows are not whole, or the file cannot be written; the path is as it was
    :raises AnaplatError: the platform does not answer with success
    """
    sink = SINKS[file_format]()
    reader = PageReader(client, query)
    columns = reader.first.columns
    caster = Caster(columns, nulls_for_errors=on_cast_error == "null", finite=sink.finite)
    rows = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal rows
        for page in reader.pages():
            yield caster.cast(page.frame, rows) if sink.typed else page.frame
            rows += page.frame.height

    with atomic_file(path) as file:
        sink.write(frames(), schema_of(columns, typed=sink.typed), file)
        size = file.tell()
    if caster.lost_cells:
        log.warning("%d cells did not fit their column's type and were exported as null", caster.lost_cells)
    log.info("Exported %d rows and %d columns, %d bytes, to %s", rows, len(columns), size, path)
    return ExportSummary(rows, len(columns), reader.snapshot.version, reader.snapshot.utime, size)
