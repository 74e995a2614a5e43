"""Exports of rows to a file, and the file read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.output import formats
from airflow_provider_anaplat.output.formats import FileFormat, Sink, WriteOptions
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary
from airflow_provider_anaplat.rows.export import export_rows as export_plan
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget

FORMATS: list[FileFormat] = list(formats.FORMATS)
SINKS: dict[str, Sink] = {name: of.sink(WriteOptions()) for name, of in formats.FORMATS.items()}


def export_rows(
    client: AnaplatClient, query: RowQuery, path: Any, file_format: FileFormat, **options: Any
) -> ExportSummary:
    place, rows_per_file = Place(path, SINKS[file_format]), options.pop("rows_per_file", None)
    target = FileTarget(place) if rows_per_file is None else PartsTarget(place, rows_per_file)
    return export_plan(client, ExportPlan(query, target, **options))


def read_back(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return pl.read_csv(path, infer_schema=False).to_dicts()
