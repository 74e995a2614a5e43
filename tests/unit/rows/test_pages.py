"""The stream of pages: order, gaps, changes, counts."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import polars as pl
import pytest
from conftest import numbers
from support.running import wait_until

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatDatasetChangedError, AnaplatRowCountError
from airflow_provider_anaplat.output.lines import Lines, Shape, is_lines, line_texts
from airflow_provider_anaplat.output.whole import is_whole
from airflow_provider_anaplat.rows.decode import Head, RowPage
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table, replies

EVEN_ROWS = {
    "combineType": "AND",
    "conditions": [{"type": "condition", "value": {"name": "n", "filterType": "LT", "filterValue": [25]}}],
}


def read(client: AnaplatClient, **query: object) -> list[int]:
    reader = PageReader(client, RowQuery("ds1", **query))  # type: ignore[arg-type]  # keywords of the tests
    return [int(row[0]) for page in reader.pages() for row in page.frame.rows()]


@pytest.mark.parametrize("concurrency", [1, 3, 8])
@pytest.mark.parametrize("page_size", [1, 7, 10, 100, 101])
def test_all_rows_once_and_in_order(
    client: AnaplatClient, simulator: Simulator, page_size: int, concurrency: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(100))
    assert read(client, page_size=page_size, concurrency=concurrency) == list(range(100))


def test_the_platforms_order_is_kept_where_later_pages_come_first(
    client: AnaplatClient, simulator: Simulator
) -> None:
    simulator.platform.add_dataset("numbers", numbers(60))
    simulator.inject("read_rows", replies.slow(0.4), when=lambda body: body["offset"] == 10)
    assert read(client, page_size=10, concurrency=4) == list(range(60))


@pytest.mark.parametrize("rows_per_answer", [1, 3, 7])
def test_a_page_shorter_than_asked_for_leaves_no_gap(
    client: AnaplatClient, simulator: Simulator, rows_per_answer: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(50))
    simulator.platform.rows_per_answer = rows_per_answer
    assert read(client, page_size=10, concurrency=3) == list(range(50))


def test_what_short_pages_lack_is_asked_for_at_the_same_time(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(80))
    simulator.platform.rows_per_answer = 5
    held, lacking = threading.Event(), {25, 35, 45, 55}
    simulator.inject("read_rows", replies.hold(held), times=4, when=lambda body: body["offset"] in lacking)
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(read, client, page_size=10, concurrency=4)
        try:
            wait_until(
                lambda: lacking <= {request.body.get("offset") for request in simulator.requests("read_rows")}
            )
        finally:
            held.set()
        assert rows.result() == list(range(80))


@pytest.mark.parametrize(
    ("columns", "shape", "decoded"),
    [
        pytest.param(1, "columns", 2, id="a column"),
        pytest.param(2_000, "columns", 1, id="columns"),
        pytest.param(2_000, "whole", 2, id="whole rows"),
        pytest.param(2_000, Lines(","), 2, id="lines"),
    ],
)
def test_two_pages_are_decoded_while_more_are_there_or_one_of_very_many_columns(
    client: AnaplatClient, simulator: Simulator, columns: int, shape: Shape, decoded: int
) -> None:
    rows = [[str(number)] * columns for number in range(80)]
    table = Table.of_rows([(f"c{number}", "STRING") for number in range(columns)], rows)
    simulator.platform.add_dataset("numbers", table)
    reader = PageReader(client, RowQuery("ds1", page_size=10, concurrency=8), shape=lambda _: shape)
    with closing(reader.pages()) as pages:
        first = next(pages)
        wait_until(lambda: len(alive(Head)) + len(alive(RowPage)) == 8)
        wait_until(lambda: len(alive(RowPage)) == decoded)
        reader._decoder.submit(int).result()  # behind all that would be decoded now
        assert len(alive(RowPage)) == decoded
        frames = [page.frame for page in (first, *pages)]
    assert {is_whole(frame) for frame in frames} == {shape == "whole"}
    assert {is_lines(frame) for frame in frames} == {isinstance(shape, Lines)}
    assert [str(number) for frame in frames for number in first_cells(frame)] == [row[0] for row in rows]


def first_cells(frame: pl.DataFrame) -> Iterator[str]:
    if is_lines(frame):
        return (line.decode().partition(",")[0] for text in line_texts(frame) for line in text.splitlines())
    return (row[0][0] if is_whole(frame) else row[0] for row in frame.rows())


def alive(kind: type) -> list[object]:
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is kind]  # which asks no lazy proxy what it is


@pytest.mark.parametrize("max_rows", [0, 1, 10, 15, 50, 99])
def test_max_rows(client: AnaplatClient, simulator: Simulator, max_rows: int) -> None:
    simulator.platform.add_dataset("numbers", numbers(50))
    assert read(client, page_size=10, max_rows=max_rows) == list(range(min(50, max_rows)))


def test_a_dataset_without_rows(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(0))
    assert read(client) == []


def test_an_update_between_two_pages_is_found(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    pages = PageReader(client, RowQuery("ds1", page_size=10, concurrency=1)).pages()
    next(pages)
    simulator.platform.refresh("ds1")
    with pytest.raises(AnaplatDatasetChangedError, match="version 1 became 2"):
        list(pages)


def test_columns_that_change_between_two_pages_are_found(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    pages = PageReader(client, RowQuery("ds1", page_size=10, concurrency=1)).pages()
    next(pages)
    dataset.table = Table(dataset.table.frame, ("n", "renamed"), dataset.table.fd_types)
    with pytest.raises(AnaplatDatasetChangedError, match="renamed"):
        list(pages)


def test_names_without_an_end_are_cut_in_what_is_said_of_them(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    pages = PageReader(client, RowQuery("ds1", page_size=10, concurrency=1)).pages()
    next(pages)
    dataset.table = Table(dataset.table.frame, ("n", "x" * 100_000), ("LONG", "DATE"))
    with pytest.raises(AnaplatDatasetChangedError, match="xxx") as changed:
        list(pages)
    with pytest.raises(errors.AnaplatRequestError, match="xxx") as unknown:
        PageReader(client, RowQuery("ds1", sort_by="m"))
    with pytest.raises(errors.AnaplatCellError, match="xxx") as misfit:
        client.get_df("ds1")
    assert max(len(str(error.value)) for error in (changed, unknown, misfit)) < 2_500


def test_missing_rows_are_counted(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    full = PageReader(client, RowQuery("ds1", page_size=10, concurrency=1))
    pages = full.pages()
    next(pages)
    simulator.inject(
        "read_rows",
        replies.content(_page_without_rows(dataset.fields(), dataset.columns())),
        times=None,
        when=lambda body: body["offset"] >= 20,
    )

    with pytest.raises(AnaplatRowCountError, match="20 rows, but counts 30; 10 are missing"):
        list(pages)


@pytest.mark.parametrize(("row_count", "given"), [(5, 10), (25, 30), (29, 30)])
def test_more_rows_than_are_counted_are_an_error(
    client: AnaplatClient, simulator: Simulator, row_count: int, given: int
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    dataset.row_count = row_count
    with pytest.raises(AnaplatRowCountError, match=f"{given} rows, but counts {row_count}; .* too many"):
        read(client, page_size=10)


def _page_without_rows(fields: dict[str, object], columns: list[dict[str, object]]) -> bytes:
    from airflow_provider_anaplat.simulator.tables import with_rows

    return with_rows({**fields, "columns": columns, "version": 1}, b"[]")


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("page_size", [5, 10, 30])
def test_a_filter_is_read_to_its_end(
    client: AnaplatClient, simulator: Simulator, page_size: int, concurrency: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(50))
    assert read(client, filter=EVEN_ROWS, page_size=page_size, concurrency=concurrency) == list(range(25))


@pytest.mark.parametrize("offset", [30, 40, 70, 90])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_empty_page_in_the_middle_loses_no_row(
    client: AnaplatClient, simulator: Simulator, offset: int, concurrency: int
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(100))
    simulator.platform.rows_per_answer = 10
    fields = {**dataset.fields(), "rowCount": 100}
    empty = replies.content(_page_without_rows(fields, dataset.columns()))
    simulator.inject("read_rows", empty, when=lambda body: body["offset"] == offset)
    all_rows = {
        "combineType": "AND",
        "conditions": [{"type": "condition", "value": {"name": "n", "filterType": "GE", "filterValue": [0]}}],
    }
    read_rows = read(client, filter=all_rows, page_size=30, concurrency=concurrency)

    assert read_rows == list(range(100))


def test_sorting(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    assert read(client, sort_by="n", sort_type="desc", page_size=7) == list(range(29, -1, -1))


def test_a_sort_column_that_does_not_exist_is_refused_before_the_first_page(
    client: AnaplatClient, simulator: Simulator
) -> None:
    simulator.platform.add_dataset("numbers", numbers(3))
    with pytest.raises(errors.AnaplatRequestError, match="no column 'm'; it has 'n', 'half'"):
        PageReader(client, RowQuery("ds1", sort_by="m"))
    assert simulator.requests("read_rows") == []


def test_no_more_requests_than_pages(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(39))
    read(client, page_size=10, concurrency=4)
    assert sorted(request.body["offset"] for request in simulator.requests("read_rows")) == [0, 10, 20, 30]


@pytest.mark.parametrize("fault", [replies.reset(), replies.cut(), replies.http_status(503)])
def test_a_broken_page_is_read_again(client: AnaplatClient, simulator: Simulator, fault: replies.Fault) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    simulator.inject("read_rows", fault, when=lambda body: body["offset"] == 20)
    assert read(client, page_size=10) == list(range(40))


@pytest.mark.parametrize("query", [{"page_size": 0}, {"concurrency": 0}, {"max_rows": -1}, {"page_size": 50_001}])
def test_impossible_queries_are_refused(
    client: AnaplatClient, simulator: Simulator, query: dict[str, int]
) -> None:
    simulator.platform.add_dataset("numbers", numbers(3))
    with pytest.raises(errors.AnaplatRequestError):
        read(client, **query)
    assert simulator.requests("read_rows") == []


@pytest.mark.parametrize("filter_", [None, {}])
def test_rows_too_heavy_for_one_answer_are_asked_for_in_several(
    simulator: Simulator, filter_: dict[str, str] | None
) -> None:
    heavy = Table.of_rows([("n", "INT"), ("text", "STRING")], [[str(n), "x" * 100_000] for n in range(100)])
    simulator.platform.add_dataset("heavy", heavy)
    client = AnaplatClient(simulator.url, simulator.token, max_answer_mb=1)
    reader = PageReader(client, RowQuery("ds1", page_size=100, concurrency=2, filter=filter_))

    assert [row[0] for page in reader.pages() for row in page.frame.rows()] == [str(n) for n in range(100)]

    limits = [request.body["limit"] for request in simulator.requests("read_rows")]
    assert limits[0] == 100
    assert len(limits) < 40  # it learns what a row weighs


def test_a_row_too_heavy_for_any_answer_ends_the_export(simulator: Simulator) -> None:
    simulator.platform.add_dataset("heavy", Table.of_rows([("text", "STRING")], [["x" * 2_000_000]] * 3))
    client = AnaplatClient(simulator.url, simulator.token, max_answer_mb=1)
    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        PageReader(client, RowQuery("ds1", page_size=4))
