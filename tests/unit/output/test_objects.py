"""Rows of very many columns as NDJSON, whose values are made type by type."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.exports import export_rows, read_back

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatCellError
from airflow_provider_anaplat.output import formats
from airflow_provider_anaplat.output.formats import NdjsonSink
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.splitter import weight_of
from airflow_provider_anaplat.output.whole import in_columns, whole
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table

KINDS = {"LONG": "-{}", "STRING": 'text "{}"\n', "DOUBLE": "{}.5e200", "DATE": "2026-01-{:02}", "MAP": "{{{}}}"}
COLUMNS = tuple(Column(name=f"c{number}", fd_type=[*KINDS][number % 5]) for number in range(600))
NAMES = [column.name for column in COLUMNS]
MANY = formats._OBJECT_COLUMNS


def cells(rows: int) -> pl.Series:
    """Return whole rows, some of whose cells are null or empty, and some numbers none that JSON knows."""
    table: list[list[str | None]] = [
        [KINDS[column.fd_type].format(row % 28 + 1) for column in COLUMNS] for row in range(rows)
    ]
    for row in range(0, rows, 3):
        table[row][row % 500] = None
        table[row][500 + 1], table[row][500 + 2] = "", "NaN"
    return pl.Series(table, dtype=pl.List(pl.String))


def written(frames: list[pl.DataFrame], caster: Caster) -> bytes:
    file = BytesIO()
    NdjsonSink().write(iter(frames), caster, file)
    return file.getvalue()


def test_whole_rows_are_written_as_columns_are() -> None:
    rows, caster = cells(40), Caster(COLUMNS, nulls_for_errors=True)
    from_columns = written([in_columns(rows, NAMES)], Caster(COLUMNS, nulls_for_errors=True))
    assert written([whole(rows[:15]), whole(rows[15:])], caster) == from_columns
    assert caster.lost_cells == len(range(0, 40, 3))  # NaN is no number of JSON
    assert [*json.loads(from_columns.splitlines()[7])] == NAMES


def test_many_rows_are_written_some_after_the_others() -> None:
    rows = cells(2_000)
    assert weight_of(whole(rows)) > 5 * formats._OBJECT_BYTES
    lines = written([whole(rows)], Caster(COLUMNS, nulls_for_errors=True)).splitlines()
    assert [json.loads(line)["c595"] for line in lines] == [-(row % 28 + 1) for row in range(2_000)]


@pytest.mark.parametrize(
    ("first_page", "named"),
    [(40, "c0', row 1,023"), (22, "c3', row 1,022"), (21, "c595', row 1,021"), (20, "c0', row 1,023")],
)
def test_of_cells_that_do_not_fit_the_first_columns_is_named(first_page: int, named: str) -> None:
    table = [[KINDS[column.fd_type].format(1) for column in COLUMNS] for _ in range(40)]
    table[22][0], table[20][595], table[21][3], table[24][3] = "first", "lots", "second", "third"
    rows = pl.Series(table)
    with pytest.raises(AnaplatCellError, match=re.escape(named)):
        written([whole(rows[:first_page]), whole(rows[first_page:])], Caster(COLUMNS, 1000))


@pytest.mark.parametrize("columns", [MANY - 1, MANY])
@pytest.mark.parametrize("rows", [0, 25])
def test_an_export_of_many_columns(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, columns: int, rows: int
) -> None:
    schema = [(f"c{number}", ("STRING", "LONG")[number % 2]) for number in range(columns)]
    table: list[list[Any]] = [[str(row + number) for number in range(columns)] for row in range(rows)]
    simulator.platform.add_dataset("wide", Table.of_rows(schema, table))
    path = tmp_path / "wide.ndjson"

    assert export_rows(client, RowQuery("ds1", page_size=10), path, "ndjson").rows == rows

    assert read_back(path) == [
        {f"c{number}": int(cell) if number % 2 else cell for number, cell in enumerate(row)} for row in table
    ]
