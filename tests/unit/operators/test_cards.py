"""The export of a card, through a real socket, in every format, and where the platform goes wrong amid it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import numbers
from support.exports import FORMATS, read_back
from support.thrift import rows_of_groups

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import (
    AnaplatCellError,
    AnaplatDatasetChangedError,
    AnaplatExportError,
    AnaplatInvalidAnswerError,
    AnaplatRowCountError,
)
from airflow_provider_anaplat.operators.cards import AnaplatExportCardOperator
from airflow_provider_anaplat.simulator import Simulator, Table, replies
from airflow_provider_anaplat.simulator.replies import Fault, Reply, success

Connect = Callable[..., None]
SALES = Table.of_rows(
    [("city", "STRING"), ("amount", "DOUBLE"), ("sold", "INT"), ("city", "STRING")],
    [["Paris", "7.5", "1", ""], ["Rome", None, "2", None], ["=1+1", "12", "3", 'quo"te,\n中']],
)


def export(path: Path, card_id: str = "card1", **arguments: Any) -> Any:
    operator = AnaplatExportCardOperator(task_id="card", card_id=card_id, output_path=str(path), **arguments)
    return operator.execute({})


@pytest.fixture(autouse=True)
def connected(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})


def changed(change: Callable[[dict[str, Any]], Any], simulator: Simulator, **when: Any) -> None:
    """Let the platform change each answer before it sends it."""

    def spoil(reply: Reply) -> Reply:
        response = json.loads(reply.body)["response"]
        change(response)
        return success(response)

    simulator.inject("read_card", Fault(spoil, needs_answer=True), times=None, **when)


def without_more(response: dict[str, Any]) -> None:
    del response["chartMain"]["hasMoreData"]


@pytest.mark.parametrize("view", ["GRID", "GRAPH"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_holds_every_row(simulator: Simulator, tmp_path: Path, suffix: str, view: Any) -> None:
    simulator.platform.add_card("sales", SALES)
    path = tmp_path / f"card.{suffix}"
    result = export(path, view=view)

    assert result == {
        "cdId": "card1",
        "path": str(path),
        "format": suffix,
        "rows": 3,
        "columns": 4,
        "bytes": path.stat().st_size,
    }

    rows = read_back(path)
    assert [row["sold"] for row in rows] == ([1, 2, 3] if suffix != "csv" else ["1", "2", "3"])
    assert [row["amount"] for row in rows] == ([7.5, None, 12.0] if suffix != "csv" else ["7.5", None, "12"])
    assert [row["city"] for row in rows] == ["Paris", "Rome", "=1+1"]
    assert [row["city (2)"] for row in rows] == ["", None, 'quo"te,\n中']


@pytest.mark.parametrize("spoil", [None, without_more])
@pytest.mark.parametrize("count", [0, 1, 6, 7, 20])
def test_pages_make_one_file(simulator: Simulator, tmp_path: Path, count: int, spoil: Any) -> None:
    if spoil:
        changed(spoil, simulator)
    simulator.platform.add_card("numbers", numbers(count))
    result = export(tmp_path / "card.parquet", page_size=3)

    assert result["rows"] == count
    assert pl.read_parquet(tmp_path / "card.parquet").rows() == [(i, i / 2) for i in range(count)]
    assert {request.body["limit"] for request in simulator.requests("read_card")} == {3}


def test_a_page_shorter_than_asked_for_leaves_no_gap(simulator: Simulator, tmp_path: Path) -> None:
    def cap(response: dict[str, Any]) -> None:
        without_more(response)
        response["chartMain"]["data"] = response["chartMain"]["data"][:4]

    changed(cap, simulator)
    simulator.platform.add_card("numbers", numbers(10))
    export(tmp_path / "card.parquet", page_size=7)
    assert pl.read_parquet(tmp_path / "card.parquet")["n"].to_list() == list(range(10))


def test_rows_that_come_again_are_not_published(simulator: Simulator, tmp_path: Path) -> None:
    stored = simulator.platform.add_card("numbers", numbers(10))

    def ignore_the_offset(response: dict[str, Any]) -> None:
        response["chartMain"] = stored.data({"limit": 3})["chartMain"]

    changed(ignore_the_offset, simulator)
    with pytest.raises(AnaplatInvalidAnswerError, match=r"Card card1: .* ignores the offset"):
        export(tmp_path / "card.csv", page_size=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [None, True])
@pytest.mark.parametrize("rows", [1, 4])
def test_equal_rows_that_come_again_have_an_end(
    simulator: Simulator, tmp_path: Path, rows: int, more: bool | None
) -> None:
    stored = simulator.platform.add_card("total", Table.of_rows([("n", "INT")], [["7"]] * rows))
    data = stored.data

    def ignore_the_offset(body: dict[str, Any]) -> dict[str, Any]:
        assert len(simulator.ledger) < 20
        answer = data({**body, "offset": 0})
        answer["chartMain"]["hasMoreData"] = more
        return answer

    stored.data = ignore_the_offset  # type: ignore[method-assign, assignment]
    with pytest.raises(AnaplatInvalidAnswerError, match=r"Card card1: .* ignores the offset"):
        export(tmp_path / "card.csv")
    assert list(tmp_path.iterdir()) == []


def test_equal_rows_are_no_reason_to_doubt(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_card("total", Table.of_rows([("n", "INT")], [["7"]] * 7))
    changed(without_more, simulator)
    assert export(tmp_path / "card.csv", page_size=3)["rows"] == 7


def test_nor_are_those_of_a_rounded_offset(simulator: Simulator, tmp_path: Path) -> None:
    texts = ["x"] * 550 + ["y" * 20_000] * 400
    rows = [[str(number), text] for number, text in enumerate(texts)]
    stored = simulator.platform.add_card("heavier", Table.of_rows([("n", "INT"), ("text", "STRING")], rows))
    data = stored.data

    def counting_in_pages(body: dict[str, Any]) -> dict[str, Any]:
        return data({**body, "offset": body["offset"] - body["offset"] % body["limit"]})

    export(tmp_path / "card.parquet", memory_mb=64)
    assert pl.read_parquet(tmp_path / "card.parquet")["n"].to_list() == list(range(950))

    stored.data = counting_in_pages  # type: ignore[method-assign, assignment]
    with pytest.raises(AnaplatInvalidAnswerError, match="offset, or rounds it"):
        export(tmp_path / "card.csv", memory_mb=64)
    assert not (tmp_path / "card.csv").exists()


def test_rows_that_were_promised_and_do_not_come_are_missed(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_card("numbers", numbers(6))
    changed(lambda response: response["chartMain"].update(hasMoreData=True), simulator)
    with pytest.raises(AnaplatRowCountError, match="more than 6 rows"):
        export(tmp_path / "card.csv", page_size=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("said", [(True, False), (None, True)])
def test_a_page_without_rows_is_no_end_if_the_platform_says_so(
    simulator: Simulator, tmp_path: Path, said: tuple[bool | None, bool]
) -> None:
    """Whether the page before it said that there are more, or it says so itself."""
    simulator.platform.add_card("numbers", numbers(6))
    more = iter(said)

    def change(response: dict[str, Any]) -> None:
        response["chartMain"]["hasMoreData"] = next(more)
        if response["chartMain"]["hasMoreData"] is None:
            without_more(response)

    changed(change, simulator)

    with pytest.raises(AnaplatRowCountError, match="more than 6 rows"):
        export(tmp_path / "card.csv", page_size=6)


def test_columns_that_change_in_between_publish_nothing(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_card("numbers", numbers(6))
    (tmp_path / "card.csv").write_text("old")

    def rename(response: dict[str, Any]) -> None:
        response["chartMain"]["column"]["meta"][1]["title"] = "double"

    changed(rename, simulator, when=lambda body: body["offset"] > 0)
    with pytest.raises(AnaplatDatasetChangedError, match="other columns from row 4 on"):
        export(tmp_path / "card.csv", page_size=3)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("card.csv", "old")]


def test_a_page_that_is_too_large_is_asked_for_in_parts(
    simulator: Simulator, connect: Connect, tmp_path: Path
) -> None:
    connect(simulator, extra={"max_answer_mb": 1})
    long = Table.of_rows([("n", "INT"), ("text", "STRING")], [[str(i), str(i % 10) * 100_000] for i in range(20)])
    simulator.platform.add_card("long", long)
    export(tmp_path / "card.parquet", page_size=16)

    assert pl.read_parquet(tmp_path / "card.parquet")["n"].to_list() == list(range(20))

    asked = [request.body["limit"] for request in simulator.requests("read_card")]
    assert asked[0] == 16
    assert asked[-1] < 10


def test_pages_are_as_large_as_the_memory_allows_by_what_rows_weigh(
    simulator: Simulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["x"] * 600 + ["y" * 200_000] * 20 + ["z" * 3_000_000] + ["x"] * 300
    rows = [[str(number), text] for number, text in enumerate(texts)]
    simulator.platform.add_card("long", Table.of_rows([("n", "INT"), ("text", "STRING")], rows))
    caplog.set_level("INFO")
    export(tmp_path / "card.parquet", memory_mb=64)

    assert pl.read_parquet(tmp_path / "card.parquet")["n"].to_list() == list(range(921))

    asked = [(request.body["offset"], request.body["limit"]) for request in simulator.requests("read_card")]
    assert asked[:2] == [(0, 500), (500, 500)]  # the second is broken off
    read_to_the_end = [page for page, following in pairwise(asked) if following[0] != page[0]]
    assert max(limit for offset, limit in read_to_the_end if 600 <= offset < 620) < 10
    assert (620, 1) in asked
    assert "row 621 alone has 2.9 MB, more than the memory_mb=64" in caplog.text
    assert asked[-1][1] > 20  # the heavy one is forgotten


def test_a_row_that_is_larger_than_an_answer_may_be_ends_the_export(
    simulator: Simulator, connect: Connect, tmp_path: Path
) -> None:
    connect(simulator, extra={"max_answer_mb": 1})
    simulator.platform.add_card("long", Table.of_rows([("text", "STRING")], [["x"], ["y" * 2_000_000]]))
    with pytest.raises(AirflowFailException, match="max_answer_mb"):
        export(tmp_path / "card.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_budget_for_a_card_that_is_too_small_is_refused(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_card("sales", SALES)
    with pytest.raises(AirflowFailException, match="memory_mb is 63; it must be at least 64"):
        export(tmp_path / "card.csv", memory_mb=63)
    assert simulator.requests("read_card") == []


def test_a_cell_that_its_type_cannot_hold_is_named_or_null(
    simulator: Simulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.platform.add_card("average", Table.of_rows([("n", "INT")], [["1"], ["1.5"]]))
    with pytest.raises(AnaplatCellError, match=r"'n', row 2 .* '1.5' is not a INT"):
        export(tmp_path / "card.parquet")

    export(tmp_path / "card.parquet", on_cast_error="null")
    assert pl.read_parquet(tmp_path / "card.parquet")["n"].to_list() == [1, None]
    assert "1 cells did not fit" in caplog.text

    caplog.clear()
    export(tmp_path / "card.csv")
    assert (tmp_path / "card.csv").read_text() == "n\n1\n1.5\n"
    assert "did not fit" not in caplog.text


def test_csv_as_people_want_it(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_card("sales", Table.of_rows([("city", "STRING"), ("n", "INT")], [["=1+1", "1"]]))
    export(tmp_path / "a.csv", csv_formulas="escape", delimiter=";", header=False, encoding="utf-8-sig")
    assert (tmp_path / "a.csv").read_bytes() == b"\xef\xbb\xbf'=1+1;1\n"


def test_another_shape_fails_and_can_be_looked_at(simulator: Simulator, tmp_path: Path) -> None:
    body = json.dumps({"result": "ok", "response": {"gridMain": {"rows": [["x", 1.0]]}}}).encode()
    simulator.inject("read_card", replies.content(body), times=None)

    with pytest.raises(AnaplatInvalidAnswerError, match="no object `chartMain`"):
        export(tmp_path / "card.csv")

    result = export(tmp_path / "card.json", raw=True, page_size=7)
    assert json.loads((tmp_path / "card.json").read_text()) == {"gridMain": {"rows": [["x", 1.0]]}}

    size = (tmp_path / "card.json").stat().st_size
    assert (result["format"], result["rows"], result["columns"], result["bytes"]) == ("json", None, None, size)
    assert simulator.requests("read_card")[-1].body["limit"] == 7


def test_an_answer_with_nothing_in_it_writes_no_file(simulator: Simulator, tmp_path: Path) -> None:
    changed(lambda response: response.update(chartMain={"data": []}), simulator)
    simulator.platform.add_card("numbers", numbers(0))
    with pytest.raises(AnaplatExportError, match="names no column and gives no row"):
        export(tmp_path / "card.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mistake", [{"page_size": 0}, {"filters": "[]"}, {"view": "grid"}, {"card_id": "a/b"}])
def test_a_mistake_is_told_before_anything_is_sent(simulator: Simulator, tmp_path: Path, mistake: Any) -> None:
    with pytest.raises(AirflowFailException, match=next(iter(mistake))):
        export(tmp_path / "card.csv", **mistake)
    assert simulator.ledger == []


def test_a_card_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="no card card1"):
        export(tmp_path / "card.csv")


def test_with_less_memory_row_groups_are_smaller(simulator: Simulator, tmp_path: Path) -> None:
    names, row = [f"c{number}" for number in range(100)], ["12345678"] * 100
    simulator.platform.add_card("wide", Table.of_rows([(name, "STRING") for name in names], [row] * 5_000))
    usual, small = (tmp_path / "usual.parquet", tmp_path / "small.parquet")
    export(usual)
    export(small, memory_mb=64)

    assert rows_of_groups(usual.read_bytes())[0] > rows_of_groups(small.read_bytes())[0]
    assert pl.read_parquet(small).equals(pl.read_parquet(usual))
