"""Rows in code: frames, an Arrow stream that others read, dataframes; of one version, exact, or an error."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import TEXTS, numbers
from support.exports import export_rows

from airflow_provider_anaplat import AnaplatHook
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.arguments import DataFrameType
from airflow_provider_anaplat.errors import (
    AnaplatCellError,
    AnaplatDatasetChangedError,
    AnaplatError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.stream import RowStream
from airflow_provider_anaplat.simulator import Simulator, Table, replies

MIXED = Table.of_rows(
    [("n", "LONG"), ("x", "DOUBLE"), ("day", "DATE"), ("text", "STRING")],
    [
        ["9007199254740993", "0.1", "2026-02-28", "中 😀"],
        [None, None, None, None],
        ["-1", "1e300", "0001-01-01", ""],
    ],
)
EXPECTED = [
    (9007199254740993, 0.1, datetime.date(2026, 2, 28), "中 😀"),
    (None, None, None, None),
    (-1, 1e300, datetime.date(1, 1, 1), ""),
]


def test_frames_are_typed_and_of_bounded_size(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(100))

    frames = list(client.rows("ds1", page_size=30))

    assert [frame.height for frame in frames] == [30, 30, 30, 10]
    assert pl.concat(frames).rows() == [(n, n / 2) for n in range(100)]


def test_what_is_read_is_known_before_it_is_read(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("mixed", MIXED)

    rows = client.rows("ds1")

    assert [column.name for column in rows.columns] == ["n", "x", "day", "text"]
    assert (rows.expected_rows, rows.snapshot.version) == (3, dataset.version)


def test_whoever_reads_arrow_reads_the_rows(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("mixed", MIXED)
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")

    table = pyarrow.RecordBatchReader.from_stream(client.rows("ds1", page_size=2)).read_all()
    rows = client.rows("ds1", page_size=2)  # noqa: F841 - which DuckDB finds by its name

    assert [tuple(row.values()) for row in table.to_pylist()] == EXPECTED
    assert table.schema.field("n").metadata == {b"fdType": b"LONG", b"metaType": b"METRIC"}
    assert duckdb.sql("select * from rows").fetchall() == EXPECTED
    assert pl.DataFrame(client.rows("ds1", page_size=2)).rows() == EXPECTED


@pytest.mark.parametrize("df_type", ["polars", "pandas", "arrow"])
def test_a_dataframe_has_all_rows(client: AnaplatClient, simulator: Simulator, df_type: DataFrameType) -> None:
    simulator.platform.add_dataset("mixed", MIXED)
    if df_type != "polars":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")

    frame = client.get_df("ds1", df_type, page_size=2)

    assert type(frame).__module__.split(".")[0] == {"arrow": "pyarrow"}.get(df_type, df_type)
    assert (frame if df_type == "polars" else pl.DataFrame(frame)).rows() == EXPECTED


@pytest.mark.parametrize("df_type", ["polars", "pandas", "arrow"])
def test_a_dataset_without_rows_keeps_its_types(
    client: AnaplatClient, simulator: Simulator, df_type: DataFrameType
) -> None:
    simulator.platform.add_dataset("mixed", Table.of_rows([("n", "LONG"), ("text", "STRING")], []))
    if df_type != "polars":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")

    frame = client.get_df("ds1", df_type)

    assert (len(frame), dict(pl.DataFrame(frame).schema)) == (0, {"n": pl.Int64(), "text": pl.String()})


def refreshed_at_60(simulator: Simulator) -> Callable[[Any], bool]:
    """Refresh the dataset when its rows from 60 on are asked for, which are then asked for again."""

    def refresh(body: Any) -> bool:
        if body["offset"] == 60:
            simulator.platform.refresh("ds1")
        return bool(body["offset"] == 60)

    return refresh


@pytest.mark.parametrize("read", [list, pl.DataFrame], ids=["frames", "arrow"])
def test_an_update_in_the_middle_is_an_error(
    client: AnaplatClient, simulator: Simulator, read: Callable[[Any], Any]
) -> None:
    simulator.platform.add_dataset("numbers", numbers(100))
    simulator.inject("read_rows", replies.reset(), when=refreshed_at_60(simulator))
    rows = client.rows("ds1", page_size=20, concurrency=1)

    with pytest.raises(Exception, match="was updated while its rows were being read") as raised:
        read(rows)

    if read is list:
        assert raised.type is AnaplatDatasetChangedError
    assert len(client.get_df("ds1")) == 100


@pytest.mark.parametrize("df_type", ["polars", "pandas", "arrow"])
def test_a_dataframe_fails_with_the_errors_of_an_export(
    client: AnaplatClient, simulator: Simulator, df_type: DataFrameType
) -> None:
    simulator.platform.add_dataset("numbers", numbers(100))
    simulator.platform.add_dataset("odd", Table.of_rows([("n", "LONG")], [["1"], ["two"]]))
    simulator.inject("read_rows", replies.reset(), when=refreshed_at_60(simulator))
    if df_type != "polars":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas")

    with pytest.raises(AnaplatDatasetChangedError):
        client.get_df("ds1", df_type, page_size=20, concurrency=1)
    with pytest.raises(AnaplatCellError, match="two"):
        client.get_df("ds2", df_type)


def test_a_cell_that_does_not_fit_is_an_error_or_null(
    client: AnaplatClient, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.platform.add_dataset("odd", Table.of_rows([("n", "LONG")], [["1"], ["two"]]))

    with pytest.raises(AnaplatCellError, match="two"):
        client.get_df("ds1")

    assert client.get_df("ds1", on_cast_error="null").rows() == [(1,), (None,)]
    assert "Dataset ds1: 1 cells did not fit their column's type and were read as null" in caplog.text


@pytest.mark.parametrize("to", ["a file", "code"])
def test_the_cell_of_a_later_page_has_its_row_in_the_dataset(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, to: str
) -> None:
    cells = [[str(n)] for n in range(25)]
    cells[14] = ["fourteen"]
    simulator.platform.add_dataset("odd", Table.of_rows([("n", "LONG")], cells))

    query = RowQuery("ds1", offset=3, page_size=10)

    with pytest.raises(AnaplatCellError, match="row 15 "):
        list(RowStream(client, query)) if to == "code" else export_rows(client, query, tmp_path / "x", "parquet")


@pytest.mark.parametrize("word", ["Polars", "csv", ""])
def test_another_word_is_refused(client: AnaplatClient, simulator: Simulator, word: Any) -> None:
    simulator.platform.add_dataset("mixed", MIXED)

    with pytest.raises(AnaplatRequestError, match="df_type"):
        client.get_df("ds1", word)
    with pytest.raises(AnaplatRequestError, match="on_cast_error"):
        client.rows("ds1", on_cast_error=word)


def test_what_is_none_is_as_if_not_given(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("mixed", MIXED)

    assert client.get_df("ds1", sort_by=None, filter=None, max_rows=None).rows() == EXPECTED


def test_a_stream_is_read_once(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    rows = client.rows("ds1")
    list(rows)

    with pytest.raises(AnaplatRequestError, match="once"):
        list(rows)


def test_a_hook_reads_by_id_or_by_name(simulator: Simulator, connect: Callable[..., None]) -> None:
    simulator.platform.add_dataset("numbers", numbers(5))
    connect(simulator)

    assert len(AnaplatHook().get_df("ds1")) == 5
    assert len(AnaplatHook().get_df(dataset="numbers", max_rows=3)) == 3
    assert sum(frame.height for frame in AnaplatHook().rows(dataset="numbers")) == 5
    with pytest.raises(AnaplatRequestError, match="give one of the two"):
        AnaplatHook().rows()
    with pytest.raises(AnaplatError, match="No dataset is named"):
        AnaplatHook().get_df(dataset="letters")
