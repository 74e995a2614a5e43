"""Cards through a real socket: what is sent, which shapes are read, and what is said of all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.cards import CardData
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError, AnaplatNotFoundError, AnaplatRequestError
from airflow_provider_anaplat.simulator import Simulator, Table, replies

SALES = Table.of_rows(
    [("city", "STRING"), ("amount", "DOUBLE"), ("sold", "INT")],
    [["Paris", "7.50", "1"], ["Rome", None, "2"], ["", "1e-7", "12345678901234567890"]],
)
CITY, AMOUNT = {"title": "city", "fdType": "STRING"}, {"title": "amount", "fdType": "DOUBLE"}
BESIDE = {"column": {"meta": [AMOUNT]}, "data": [[{"v": 1}]]}


def answers(simulator: Simulator, chart: Any, operation: str = "read_card") -> None:
    response = {"chartMain": chart} if operation == "read_card" else chart
    body = json.dumps({"result": "ok", "response": response}, ensure_ascii=True).encode()
    simulator.inject(operation, replies.content(body), times=None)


def read(data: CardData) -> tuple[list[tuple[str, str]], list[list[str | None]]]:
    return [(column.name, column.fd_type) for column in data.columns], data.rows


def test_a_request_sends_what_it_is_given(client: AnaplatClient, simulator: Simulator) -> None:
    card = simulator.platform.add_card("sales", SALES)
    condition = {"name": "city", "filterType": "EQ", "filterValue": ["Rome"]}
    data = client.read_card(
        card.cd_id, view="GRAPH", limit=7, filters=[condition], dynamic_params=[{"name": "p", "value": 1}]
    )

    assert [row[0] for row in data.rows] == ["Rome"]

    (request,) = simulator.requests("read_card")
    assert request.headers["x-auth-token"] == simulator.token
    assert request.body == {
        "view": "GRAPH",
        "offset": 0,
        "limit": 7,
        "filters": [condition],
        "dynamicParams": [{"name": "p", "value": 1}],
    }


@pytest.mark.parametrize("view", ["GRID", "GRAPH"])
def test_both_views_give_the_same_rows(client: AnaplatClient, simulator: Simulator, view: Any) -> None:
    card = simulator.platform.add_card("sales", SALES)
    titles, rows = read(client.read_card(card.cd_id, view=view))
    assert titles == [("city", "STRING"), ("amount", "DOUBLE"), ("sold", "INT")]
    assert rows == [["Paris", "7.5", "1"], ["Rome", None, "2"], ["", "1e-07", "12345678901234567890"]]


def test_a_number_keeps_the_text_that_the_platform_wrote(client: AnaplatClient, simulator: Simulator) -> None:
    body = (
        b'{"result":"ok","response":{"chartMain":{"column":{"meta":["n"]},"data":[[{"v":1.50}],[{"v":1E+30}]]}}}'
    )
    simulator.inject("read_card", replies.content(body))
    assert client.read_card("cd1").rows == [["1.50"], ["1E+30"]]


@pytest.mark.parametrize(
    "chart",
    [
        {"row": {"meta": [CITY]}, "column": {"meta": [AMOUNT]}, "data": [[{"v": "Rome"}, {"v": 1}]]},
        {"row": {"meta": []}, "column": {"meta": [CITY, AMOUNT]}, "data": [[{"v": "Rome"}, {"v": 1}]]},
        {"column": {"meta": [CITY, AMOUNT]}, "data": [[{"v": "Rome"}, {"v": 1}]]},
        {
            "row": {"meta": [CITY], "values": [[{"title": "Rome"}]]},
            "column": {"meta": [AMOUNT]},
            "data": [[{"v": 1}]],
        },
        {
            "row": {"meta": [CITY], "values": [[{"title": "Rome"}]]},
            "column": {"meta": [{"title": "measures"}, {"title": "more"}], "values": [[AMOUNT]]},
            "data": [[{"v": 1}]],
        },
        {
            "row": {"meta": [CITY], "values": []},
            "column": {"meta": [AMOUNT], "values": []},
            "data": [[{"v": "Rome"}, {"v": 1}]],
        },
    ],
)
def test_titles_and_cells_find_each_other(client: AnaplatClient, simulator: Simulator, chart: Any) -> None:
    answers(simulator, chart)
    assert read(client.read_card("cd1")) == ([("city", "STRING"), ("amount", "DOUBLE")], [["Rome", "1"]])


def test_titles_of_several_levels_are_joined(client: AnaplatClient, simulator: Simulator) -> None:
    levels = [[{"title": "2025"}, AMOUNT], [{"title": "2026"}, AMOUNT]]
    answers(simulator, {"column": {"meta": [AMOUNT], "values": levels}, "data": [[{"v": True}, None]]})
    titles = [("2025 / amount", "DOUBLE"), ("2026 / amount", "DOUBLE")]
    assert read(client.read_card("cd1")) == (titles, [["true", None]])


@pytest.mark.parametrize(("title", "text"), [("", ""), (None, None), (True, "true"), (7, "7")])
def test_what_stands_beside_the_cells_is_a_text_or_null(
    client: AnaplatClient, simulator: Simulator, title: Any, text: str | None
) -> None:
    for item in (title, {"title": title}):
        answers(simulator, {**BESIDE, "row": {"meta": [CITY], "values": [[item]]}})
        assert client.read_card("cd1").rows == [[text, "1"]]


@pytest.mark.parametrize(
    ("chart", "named"),
    [
        (None, "no object `chartMain`"),
        ([], "no object `chartMain`"),
        ({"column": {"meta": [CITY]}}, "`chartMain.data` is no list of rows"),
        ({"column": {"meta": [CITY]}, "data": {"Rome": 1}}, "`chartMain.data` is no list of rows"),
        ({"column": {"meta": [CITY]}, "data": [{"v": 1}]}, "`chartMain.data` is no list of rows"),
        ({"column": {"meta": {"a": 1}}, "data": []}, "`chartMain.column.meta` is no list"),
        ({"row": "x", "data": []}, "`chartMain.row.values` is no list"),
        ({"column": {"meta": [CITY]}, "data": [[{"v": 1}, {"v": 2}]]}, "2 cells, and the titles"),
        ({"column": {"meta": [{"fdType": "INT"}]}, "data": [[{"v": 1}]]}, "1 cells, and the titles"),
        ({"data": [[{"v": 1}]]}, r"`chartMain.row.meta` \(0\), `chartMain.column.meta` \(0\)"),
        ({"column": {"meta": [CITY]}, "data": [[{"v": 1}], []]}, "row 2 .* has 0 cells, and the first has 1"),
        ({"column": {"meta": [CITY]}, "data": [[{"v": 1}], [7]]}, "cell 1 of row 2 .* no value under `v`"),
        ({"column": {"meta": [CITY]}, "data": [[{"d": 1}]]}, "cell 1 of row 1 .* no value under `v`"),
        ({"column": {"meta": [CITY]}, "data": [[{"v": "\ud800"}]]}, "an unpaired surrogate"),
        ({"column": {"meta": [{"title": "\ud800"}]}, "data": []}, "an unpaired surrogate"),
        ({"column": {"meta": [CITY]}, "data": [[{"v": [1]}]]}, "cell 1 of row 1 .* no value under `v`"),
        ({**BESIDE, "row": {"meta": [CITY], "values": [[{"label": "Rome"}]]}}, "beside row 1 has no title"),
        ({**BESIDE, "row": {"meta": [CITY], "values": [[["Rome"]]]}}, "beside row 1 has no title"),
    ],
)
def test_another_shape_says_what_was_looked_for(
    client: AnaplatClient, simulator: Simulator, chart: Any, named: str
) -> None:
    answers(simulator, chart)
    with pytest.raises(AnaplatInvalidAnswerError, match=named) as raised:
        client.read_card("cd1")
    assert "raw=True" in str(raised.value)
    assert json.dumps(client.read_card("cd1", raw=True)) == json.dumps({"chartMain": chart}).replace(
        "\\ud800", "?"
    )


def test_the_raw_answer_shows_no_token(client: AnaplatClient, simulator: Simulator) -> None:
    answers(simulator, {"said": simulator.token})
    assert client.read_card("cd1", raw=True) == {"chartMain": {"said": "***"}}


@pytest.mark.parametrize("given", ["[]", {"name": "city"}, 7])
@pytest.mark.parametrize("name", ["filters", "dynamic_params"])
def test_what_is_no_list_is_refused_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, name: str, given: Any
) -> None:
    with pytest.raises(AnaplatRequestError, match=f"{name} is a .* must be a list of objects"):
        client.read_card("cd1", **{name: given})
    assert simulator.ledger == []


@pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0)])
def test_an_impossible_page_is_refused(
    client: AnaplatClient, simulator: Simulator, offset: int, limit: int
) -> None:
    with pytest.raises(AnaplatRequestError, match="refused"):
        client.read_card("cd1", offset=offset, limit=limit)
    assert simulator.ledger == []


def test_a_page_lists_its_cards_with_the_application_token(simulator: Simulator) -> None:
    simulator.user_token = "a-user-token"
    cards = [simulator.platform.add_card(name, SALES, "p1") for name in ("sales", "costs")]
    simulator.platform.add_card("elsewhere", SALES, "p2")
    client = AnaplatClient(simulator.url, simulator.token, user_token="a-user-token")

    assert [(card.cd_id, card.name) for card in client.list_cards("p1")] == [
        (card.cd_id, card.name) for card in cards
    ]

    (request,) = simulator.requests("list_cards")
    assert request.headers["token"] == simulator.token
    assert (request.query, request.body) == ("", {})
    assert "x-auth-token" not in request.headers
    with pytest.raises(AnaplatNotFoundError):
        client.list_cards("p3")


def test_cards_are_found_wherever_a_page_has_them_and_each_once(
    client: AnaplatClient, simulator: Simulator
) -> None:
    layout = {
        "doms": [{"cdId": "c1", "x": 0}, {"card": {"cdId": "c3", "name": "third", "linked": {"cdId": "c9"}}}]
    }
    tabs = [{"title": "tab", "cards": [{"cdId": "c2", "name": "second"}]}, {"doms": [{"cdId": "c2", "x": 1}]}]
    page = {"pgId": "p1", **layout, "cards": [{"cdId": "c1", "name": "first \ud800"}], "tabs": tabs}
    answers(simulator, page, "list_cards")
    found = [(card.cd_id, card.name) for card in client.list_cards("p1")]

    assert found == [("c1", "first ?"), ("c3", "third"), ("c2", "second")]


def test_what_is_no_page_says_so(client: AnaplatClient, simulator: Simulator) -> None:
    answers(simulator, ["no page"], "list_cards")
    with pytest.raises(AnaplatInvalidAnswerError, match=r"those of a page .* AnaplatCallOperator"):
        client.list_cards("p1")
