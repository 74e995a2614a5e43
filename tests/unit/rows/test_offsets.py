"""A platform that gives other rows than those that were asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import numbers
from support.exports import export_rows

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatExportError, AnaplatRowCountError
from airflow_provider_anaplat.output.whole import MANY_COLUMNS
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table
from airflow_provider_anaplat.simulator.replies import Fault, Reply, http_status, refusal

Change = Callable[[dict[str, Any]], dict[str, Any]]
FILTER = {
    "combineType": "AND",
    "conditions": [{"type": "condition", "value": {"name": "n", "filterType": "LT", "filterValue": [25]}}],
}

EVERYTHING = {
    "combineType": "AND",
    "conditions": [{"type": "condition", "value": {"name": "n", "filterType": "GE", "filterValue": [0]}}],
}


def read(client: AnaplatClient, **query: Any) -> list[int]:
    reader = PageReader(client, RowQuery("ds1", **query))
    return [int(row[0]) for page in reader.pages() for row in page.frame.rows()]


def misread(simulator: Simulator, change: Change) -> None:
    """Let the platform answer each request for rows as if it had been another one."""
    answer = simulator.platform.answer

    def misreading(operation: str, ids: Any, body: Any, query: Any) -> Reply:
        return answer(operation, ids, change(body) if operation == "read_rows" else body, query)

    simulator.platform.answer = misreading  # type: ignore[method-assign]


def ignored(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "offset": 0}


def mixed_up(offset: int, with_offset: int) -> Change:
    """Give the answer to another request once, as a proxy may that mixes answers up."""
    done: list[int] = []

    def change(body: dict[str, Any]) -> dict[str, Any]:
        if body["offset"] != offset or done:
            return body
        done.append(offset)
        return {**body, "offset": with_offset}

    return change


def ignored_up_to_the_end(body: dict[str, Any]) -> dict[str, Any]:
    """Give as many rows as there are from the offset on, and always the first ones."""
    return {**body, "offset": 0, "limit": max(0, min(body["limit"], 1000 - body["offset"]))}


def at_most(offset: int) -> Change:
    return lambda body: {**body, "offset": min(body["offset"], offset)}


def never_beyond_a_full_page(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "offset": min(body["offset"], 1000 - body["limit"])}


def one_page_twice(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "offset": 300} if body["offset"] == 400 else body


@pytest.mark.parametrize(("page_size", "rows_per_answer"), [(20, 50_000), (100, 20), (300, 50_000), (500, 20)])
@pytest.mark.parametrize("change", [ignored, at_most(850), at_most(100), at_most(500), never_beyond_a_full_page])
def test_rows_that_come_again_are_not_published(
    client: AnaplatClient, simulator: Simulator, change: Change, page_size: int, rows_per_answer: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(1000))
    simulator.platform.rows_per_answer = rows_per_answer
    misread(simulator, change)
    with pytest.raises((AnaplatExportError, errors.AnaplatInvalidAnswerError), match="Nothing was published"):
        read(client, page_size=page_size)


@pytest.mark.parametrize("page_size", [300, 500, 600])
@pytest.mark.parametrize("change", [ignored_up_to_the_end, one_page_twice])
def test_nor_where_as_many_come_as_are_counted(
    client: AnaplatClient, simulator: Simulator, change: Change, page_size: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(1000))
    misread(simulator, change)
    if change is one_page_twice:
        page_size = 100
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"at offset \d+ begins like .*Nothing"):
        read(client, page_size=page_size)


@pytest.mark.parametrize("change", [ignored, at_most(10), at_most(500)])
@pytest.mark.parametrize("page_size", [10, 25, 40, 500])
def test_a_filtered_export_ends(
    client: AnaplatClient, simulator: Simulator, change: Change, page_size: int
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(1000))
    dataset.row_count = 1000
    misread(simulator, change)

    for condition in (FILTER, EVERYTHING) if change is ignored else (EVERYTHING,):
        with pytest.raises((AnaplatExportError, errors.AnaplatInvalidAnswerError), match="Nothing was published"):
            read(client, page_size=page_size, filter=condition)
    assert len(simulator.requests("read_rows")) < 250


@pytest.mark.parametrize("filter_", [None, FILTER])
def test_nor_are_the_first_rows_if_they_come_again(
    client: AnaplatClient, simulator: Simulator, filter_: Any
) -> None:
    simulator.platform.add_dataset("numbers", numbers(1000))
    misread(simulator, ignored)
    with pytest.raises((AnaplatExportError, errors.AnaplatInvalidAnswerError)):
        read(client, page_size=10, max_rows=20, filter=filter_)


def rounded(body: dict[str, Any]) -> dict[str, Any]:
    """Count in pages, as a platform does that makes a page's number of the offset."""
    return {**body, "offset": body["offset"] - body["offset"] % body["limit"]}


def rounded_to(unit: int) -> Change:
    return lambda body: {**body, "offset": body["offset"] - body["offset"] % unit}


@pytest.mark.parametrize(
    ("query", "distinct"), [({}, 12_000), ({"max_rows": 8_000}, 700), ({"offset": 3_000, "max_rows": 7_000}, 700)]
)
@pytest.mark.parametrize("change", [rounded, rounded_to(500), rounded_to(7), rounded_to(1000)])
def test_rows_of_a_rounded_offset_are_not_published(
    client: AnaplatClient, simulator: Simulator, change: Change, query: dict[str, int], distinct: int
) -> None:
    """The rows grow heavier, so that a smaller page could begin within the one before it."""
    rows = [[str(number % distinct), "x" * (20 if number < 4_000 else 900)] for number in range(12_000)]
    simulator.platform.add_dataset("heavier", Table.of_rows([("n", "INT"), ("text", "STRING")], rows))
    expected = [int(row[0]) for row in rows[query.get("offset", 0) :][: query.get("max_rows")]]
    assert read(client, memory_mb=64, **query) == expected

    misread(simulator, change)
    with pytest.raises((AnaplatExportError, errors.AnaplatInvalidAnswerError), match="Nothing was published"):
        read(client, memory_mb=64, **query)


@pytest.mark.parametrize("page_size", range(2, 12))
@pytest.mark.parametrize("offset", [1, 14, 27])
def test_nor_is_a_small_page_between_two_others(
    client: AnaplatClient, simulator: Simulator, page_size: int, offset: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(200))
    wanted = list(range(offset, offset + 20))
    assert read(client, page_size=page_size, offset=offset, max_rows=20) == wanted

    misread(simulator, rounded)
    try:
        rows = read(client, page_size=page_size, offset=offset, max_rows=20)
    except (AnaplatExportError, errors.AnaplatInvalidAnswerError):
        rows = wanted
    assert rows == wanted


@pytest.mark.parametrize("page_size", range(2, 12))
@pytest.mark.parametrize("offset", [1, 14, 27])
def test_nor_up_to_the_end(client: AnaplatClient, simulator: Simulator, page_size: int, offset: int) -> None:
    simulator.platform.add_dataset("numbers", numbers(offset + 3 * page_size))
    misread(simulator, rounded)
    try:
        rows = read(client, page_size=page_size, offset=offset)
    except (AnaplatExportError, errors.AnaplatInvalidAnswerError):
        return
    assert rows == list(range(offset, offset + 3 * page_size))


@pytest.mark.parametrize("filter_", [None, FILTER])
@pytest.mark.parametrize("extra", [1, 30])
def test_more_rows_than_were_asked_for_are_refused(
    client: AnaplatClient, simulator: Simulator, filter_: Any, extra: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    misread(simulator, lambda body: {**body, "limit": body["limit"] + extra})
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"10 rows were asked for at offset \d+, and"):
        read(client, page_size=10, filter=filter_)
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="more than"):
        client.read_rows("ds1", limit=10)


@pytest.mark.parametrize("page_size", [1, 3, 25, 49, 50, 51])
@pytest.mark.parametrize("rows_per_answer", [2, 7, 50_000])
@pytest.mark.parametrize("distinct", [1, 2])
def test_rows_that_are_equal_are_all_read(
    client: AnaplatClient, simulator: Simulator, page_size: int, rows_per_answer: int, distinct: int
) -> None:
    cells = [str(number % distinct) for number in range(50)]
    simulator.platform.add_dataset("same", Table.of_rows([("n", "INT")], [[cell] for cell in cells]))
    simulator.platform.rows_per_answer = rows_per_answer
    assert read(client, page_size=page_size) == [int(cell) for cell in cells]


@pytest.mark.parametrize("distinct", [1, 100])
def test_so_it_is_with_rows_of_many_columns(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, distinct: int
) -> None:
    rows = [[str(number % distinct)] * MANY_COLUMNS for number in range(100)]
    simulator.platform.add_dataset("wide", Table.of_rows([("n", "INT")] * MANY_COLUMNS, rows))
    query = RowQuery("ds1", page_size=50)
    assert export_rows(client, query, tmp_path / "rows.csv", "csv").rows == 100

    misread(simulator, ignored)
    with pytest.raises((AnaplatExportError, errors.AnaplatInvalidAnswerError), match="Nothing was published"):
        export_rows(client, query, tmp_path / "rows.csv", "csv")


@pytest.mark.parametrize(("rows", "offsets"), [(35, [0, 10, 20, 30]), (40, [0, 10, 20, 30, 40]), (10, [0])])
def test_the_end_is_asked_for_where_no_page_shows_it(
    client: AnaplatClient, simulator: Simulator, rows: int, offsets: list[int]
) -> None:
    simulator.platform.add_dataset("numbers", numbers(rows))
    read(client, page_size=10)
    assert sorted(request.body["offset"] for request in simulator.requests("read_rows")) == offsets


def test_a_platform_may_refuse_an_offset_without_rows(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    for fault in (refusal("offset", code=1012), http_status(500)):
        simulator.inject("read_rows", fault, when=lambda body: body["offset"] == 40)
        assert read(client, page_size=10) == list(range(40))
    simulator.inject("read_rows", refusal("who?", code=1017), when=lambda body: body["offset"] == 40)

    with pytest.raises(errors.AnaplatAuthenticationError):
        read(client, page_size=10)


def in_steps(step: int) -> Change:
    return lambda body: {**body, "offset": body["offset"] - body["offset"] % step}


@pytest.mark.parametrize("max_rows", [None, 2400])
@pytest.mark.parametrize(("page_size", "step"), [(750, 100), (701, 100), (990, 500), (333, 100)])
def test_offsets_that_are_rounded_in_steps_are_found(
    client: AnaplatClient, simulator: Simulator, page_size: int, step: int, max_rows: int | None
) -> None:
    simulator.platform.add_dataset("numbers", numbers(2600))
    assert read(client, page_size=page_size, max_rows=max_rows) == list(range(2600))[:max_rows]
    misread(simulator, in_steps(step))
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="rounds it"):
        read(client, page_size=page_size, max_rows=max_rows)


def test_a_row_that_is_asked_for_again_makes_no_page_smaller(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(60_000))
    assert len(read(client, page_size=11_111, memory_mb=64, concurrency=1)) == 60_000

    asked = [(request.body["offset"], request.body["limit"]) for request in simulator.requests("read_rows")]
    assert [limit for _, limit in asked].count(1) == 1
    assert min(limit for offset, limit in asked if offset >= 1000 and limit > 1) > 10_000


def test_offsets_that_are_rounded_to_where_pages_begin_do_no_harm(
    client: AnaplatClient, simulator: Simulator
) -> None:
    simulator.platform.add_dataset("numbers", numbers(2600))
    misread(simulator, lambda body: {**body, "offset": body["offset"] - body["offset"] % body["limit"]})
    assert read(client, page_size=650) == list(range(2600))


@pytest.mark.parametrize(("offset", "with_offset"), [(0, 20), (10, 20), (20, 10), (10, 30)])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_page_that_is_the_answer_to_another_request_is_found(
    client: AnaplatClient, simulator: Simulator, offset: int, with_offset: int, concurrency: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    misread(simulator, mixed_up(offset, with_offset))
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"at offset {offset} begins like another"):
        read(client, page_size=10, concurrency=concurrency)


def said_instead(**fields: Any) -> Fault:
    """Let the platform say something else of the dataset than is true."""

    def spoil(reply: Reply) -> Reply:
        envelope = json.loads(reply.body)
        envelope["response"].update(fields)
        return Reply(body=json.dumps(envelope).encode())

    return Fault(spoil, needs_answer=True)


@pytest.mark.parametrize("count", [-1, -(2**40)])
@pytest.mark.parametrize("name", ["rowCount", "colCount"])
def test_a_count_below_zero_is_no_answer(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, name: str, count: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    (tmp_path / "rows.csv").write_text("before")
    simulator.inject("read_rows", said_instead(**{name: count}), times=2)

    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"{name}: .*greater than or equal to 0"):
        export_rows(client, RowQuery("ds1"), tmp_path / "rows.csv", "csv")
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=name):
        client.read_rows("ds1")
    assert (tmp_path / "rows.csv").read_text() == "before"


@pytest.mark.parametrize("name", ["rowCount", "version"])
def test_a_number_that_64_bits_cannot_hold_is_no_answer(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, name: str
) -> None:
    """Whoever computes with it, or keeps it, would end with an error of its own, in the middle of the rows."""
    simulator.platform.add_dataset("numbers", numbers(40))
    simulator.inject("read_rows", said_instead(**{name: 10**400}))

    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"{name}: .*less than or equal to"):
        export_rows(client, RowQuery("ds1"), tmp_path / "rows.csv", "csv")


@pytest.mark.parametrize("count", [True, False, 1.5, "many"])
def test_what_is_no_number_is_no_count(client: AnaplatClient, simulator: Simulator, count: Any) -> None:
    simulator.platform.add_dataset("numbers", numbers(1))
    simulator.inject("read_rows", said_instead(rowCount=count))
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="rowCount"):
        read(client)


@pytest.mark.parametrize("offset", [0, 20])
def test_rows_of_another_dataset_are_refused(client: AnaplatClient, simulator: Simulator, offset: int) -> None:
    simulator.platform.add_dataset("numbers", numbers(40))
    other = said_instead(dsId="ds2")
    simulator.inject("read_rows", other, when=lambda body: body["offset"] == offset, times=2)

    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"dataset ds1 was asked for, and .* of ds2"):
        read(client, page_size=10)
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="ds1"):
        client.read_rows("ds1", offset=offset, limit=10)


def test_a_count_that_is_too_low_is_found(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(40))
    dataset.row_count = 20
    with pytest.raises(AnaplatRowCountError):
        read(client, page_size=10)
