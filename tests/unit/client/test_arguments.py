"""An argument of another kind than it says: named before anything is sent, alike in every method."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser, TableQuery
from airflow_provider_anaplat.client.tasks import RefreshCall
from airflow_provider_anaplat.errors import AnaplatRequestError, AnaplatSettingsError
from airflow_provider_anaplat.simulator import Simulator

REQUEST = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))
NO_TEXT: tuple[Any, ...] = (None, 5, b"ds1", ["ds1"], {"ds1": 1}, object())
NO_NUMBER: tuple[Any, ...] = (None, "5", 1.5, True, [5], object())
NO_OBJECT: tuple[Any, ...] = ("{}", 5, [], ["a"], [("a", 1)], b"{}", object())
NO_TEXTS: tuple[Any, ...] = (None, "ds1", b"ds1", 5, [5], [b"a"], [None], {"a": 1}, object())
NO_OBJECTS: tuple[Any, ...] = ("[]", "", 5, {}, {"a": 1}, ["a"], [[]], object())
NO_WORD: tuple[Any, ...] = ("", "else", None, 5, [], {}, object())

# method · what it needs · what is wrong, by argument
METHODS: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "find_datasets": ({"ds_ids": ["ds1"]}, {"ds_ids": NO_TEXTS, "known": ({}, "a", object())}),
    "find_dataset": ({"name": "n"}, {"name": NO_TEXT}),
    "get_columns": ({"ds_id": "ds1"}, {"ds_id": NO_TEXT}),
    "read_rows": (
        {"ds_id": "ds1"},
        {
            "ds_id": NO_TEXT, "offset": NO_NUMBER, "limit": NO_NUMBER, "sort_by": NO_TEXT[1:],
            "sort_type": NO_WORD, "filter": NO_OBJECT,
        },
    ),
    "read_rows_with": (
        {"read": len, "ds_id": "ds1"},
        {
            "read": (None, 5, "len"), "ds_id": NO_TEXT, "offset": NO_NUMBER, "limit": NO_NUMBER,
            "sort_by": NO_TEXT[1:], "sort_type": NO_WORD, "filter": NO_OBJECT, "most": NO_NUMBER[1:],
        },
    ),
    "rows": (
        {"ds_id": "ds1"},
        {"ds_id": NO_TEXT, "on_cast_error": NO_TEXT, "offset": NO_NUMBER, "page_size": NO_NUMBER,
         "concurrency": NO_NUMBER, "memory_mb": NO_NUMBER, "max_rows": NO_NUMBER[1:], "filter": NO_OBJECT},
    ),
    "get_df": ({"ds_id": "ds1"}, {"ds_id": NO_TEXT, "df_type": NO_TEXT, "on_cast_error": NO_TEXT}),
    "create_dataset": ({"request": REQUEST}, {"request": (None, {}, "a", {"acId": "a"}, NewUser(login_id="a"))}),
    "list_authorized_datasets": ({"user_id": "u1"}, {"user_id": NO_TEXT}),
    "list_authorized_pages": ({"user_id": "u1"}, {"user_id": NO_TEXT, "page_type": NO_TEXT[1:]}),
    "create_users": (
        {"users": [NewUser(login_id="a")]},
        {
            "users": (None, "a", NewUser(login_id="a"), ["a"], [{"loginId": "a"}], [None], 5),
            "user_property_type": NO_NUMBER[1:], "password_encoding": NO_WORD,
        },
    ),
    "get_subscriptions": ({"ids": ["s1"]}, {"ids": NO_TEXTS}),
    "find_subscriptions": ({"ids": ["s1"]}, {"ids": NO_TEXTS, "known": ({}, object())}),
    "find_users": ({"login_ids": ["a"]}, {"login_ids": NO_TEXTS}),
    "refresh_dataset": ({"ds_id": "ds1"}, {"ds_id": NO_TEXT, "call": ({}, "post", object()), "body": NO_OBJECT}),
    "find_task": (
        {"ids": ["t1"]},
        {"ids": (*NO_TEXTS, [], ["t1", "t2"]), "known": ({}, object()), "call": NO_OBJECT},
    ),
    "read_card": (
        {"card_id": "cd1"},
        {
            "card_id": NO_TEXT, "view": NO_WORD, "offset": NO_NUMBER, "limit": NO_NUMBER, "filters": NO_OBJECTS,
            "dynamic_params": NO_OBJECTS, "raw": (None, 1, "yes"), "most": NO_NUMBER[1:],
        },
    ),
    "list_cards": ({"page": "p1"}, {"page": NO_TEXT}),
    "call": (
        {"path": "/public-api/page/list"},
        {
            "path": NO_TEXT, "method": (*NO_TEXT, ""), "json": NO_OBJECT, "token_in": ("", "else", 5, []),
            "params": (*NO_OBJECT, {5: "a"}, {"a": {}}, {"a": [[]]}, {"a": b"b"}), "repeatable": (None, 1, "yes"),
        },
    ),
}  # fmt: skip
OF_QUERY = {"offset", "page_size", "concurrency", "memory_mb", "max_rows", "filter"}
SEND_NOTHING = {"without_retries", "earliest_platform_time", "observe", "masked", "close"}
WRONG = [(method, name, values) for method, (_, wrong) in METHODS.items() for name, values in wrong.items()]


def test_every_argument_of_every_method_is_tried() -> None:
    public = dict(inspect.getmembers(AnaplatClient, inspect.isfunction))
    arguments = {
        name: [argument for argument in inspect.signature(method).parameters if argument not in ("self", "query")]
        for name, method in public.items()
        if not name.startswith("_") and name not in SEND_NOTHING
    }
    assert {name: set(all_of) for name, all_of in arguments.items() if all_of} == {
        name: set(wrong) - {*(OF_QUERY if name == "rows" else ())} for name, (_, wrong) in METHODS.items()
    }


@pytest.mark.parametrize(("method", "name", "values"), WRONG)
def test_an_argument_of_another_kind_is_named_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, method: str, name: str, values: tuple[Any, ...]
) -> None:
    for value in values:
        with pytest.raises(AnaplatRequestError, match=rf"{method}: .*{name}|the method ''|read_rows: filter"):
            getattr(client, method)(**{**METHODS[method][0], name: value})
    assert simulator.ledger == []


@pytest.mark.parametrize("method", METHODS)
def test_without_it_the_request_leaves(client: AnaplatClient, simulator: Simulator, method: str) -> None:
    try:
        result = getattr(client, method)(**METHODS[method][0])
        if method == "rows":
            next(iter(result))
    except Exception:  # noqa: BLE001 - whatever the platform says to that
        pass
    assert simulator.ledger


def circle() -> dict[str, Any]:
    itself: dict[str, Any] = {}
    itself["itself"] = itself
    return itself


def deep() -> dict[str, Any]:
    top = part = {}  # type: dict[str, Any]
    for _ in range(100_000):
        part["a"] = part = {}
    return top


@pytest.fixture(params=[circle, deep])
def endless(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """An object that JSON cannot hold, taken apart in the end: Python does not free a deep one by itself."""
    made = request.param()
    yield made
    while made:
        made = made.popitem()[1]


@pytest.mark.parametrize(
    "send",
    [
        lambda client, value: client.call("/public-api/x", json={"a": value}),
        lambda client, value: client.refresh_dataset("ds1", body=value),
        lambda client, value: client.read_rows("ds1", filter=value),
        lambda client, value: client.read_card("cd1", filters=[value]),
        lambda client, value: client.create_dataset(CreateDatasetRequest(**{**dict(REQUEST), "more": value})),
    ],
)
def test_what_has_no_end_is_not_sent(
    client: AnaplatClient, simulator: Simulator, send: Callable[..., Any], endless: dict[str, Any]
) -> None:
    with pytest.raises(AnaplatRequestError, match="nested too deep; nothing was sent"):
        send(client, endless)
    assert simulator.ledger == []


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "base_url": NO_TEXT,
        "token": NO_TEXT,
        **dict.fromkeys(("user_token", "login", "user_password"), NO_TEXT[1:]),
        "sign_in_path": NO_TEXT,
        **dict.fromkeys(("connect_timeout", "read_timeout"), (None, "5", True, math.nan, math.inf, 1e300)),
        **dict.fromkeys(("max_retries", "max_answer_mb"), NO_NUMBER),
        "max_connections": NO_NUMBER[1:],
        "verify": (None, 5, b"/x", ["/x"], ""),  # with the last one, no certificate would be checked
        "cert": (5, b"/x", ("/x", 5), ""),
        "proxies": (*NO_OBJECT, {"http": 5}, {"HTTPS": "http://127.0.0.1:1"}, {5: "http://127.0.0.1:1"}),
        "task_status": NO_OBJECT,
        "sign_in_body": (None, *NO_OBJECT),
        "observer": (5, "print"),
    }.items(),
)
def test_a_client_is_made_of_what_it_takes(name: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(AnaplatSettingsError):
            AnaplatClient(**{"base_url": "http://127.0.0.1", "token": "t", name: value})


def test_a_path_is_a_file_too(tmp_path: Path) -> None:
    AnaplatClient("https://127.0.0.1", "t", verify=tmp_path, cert=(tmp_path, tmp_path))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"path": 5}, {"path": None}, {"method": b"GET"}, {"auth_in": 5}])
def test_a_refresh_is_described_in_texts(wrong: dict[str, Any]) -> None:
    with pytest.raises(AnaplatRequestError):
        RefreshCall(**wrong)
