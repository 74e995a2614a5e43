"""Whatever a platform answers, to any operation: a record of the contract's type, or an error of this package."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from airflow_provider_anaplat.client import AnaplatClient, errors
from airflow_provider_anaplat.client.models import (
    AuthorizedResource,
    Column,
    CreateDatasetRequest,
    CreationTask,
    Dataset,
    DatasetData,
    ExistingUsers,
    NewUser,
    Page,
    SubscriptionPlan,
    TableQuery,
    TaskStatus,
)
from airflow_provider_anaplat.client.operations import EXTENSIONS, OPERATIONS
from airflow_provider_anaplat.rows.decode import read_head
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.replies import Fault, Reply
from airflow_provider_anaplat.simulator.server import DEFAULT_TOKEN

REQUEST = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))


def summaries(found: Any, ids: list[str]) -> list[Any]:
    """Ask a lookup for every record, as those who wait do."""
    asked = []
    for record_id in ids:
        try:
            record = found.get(record_id)
        except errors.AnaplatError as error:
            asked.append(error)
        else:
            asked.append(record.summary() if record else None)
    return asked


# operation · what calls it · the records that its answer holds
CALLS: list[tuple[str, Callable[[AnaplatClient], Any], type[BaseModel] | None]] = [
    ("get_columns", lambda client: client.get_columns("ds1"), Column),
    ("list_datasets", lambda client: client.list_datasets(), Dataset),
    ("list_datasets", lambda client: summaries(client.find_datasets(["ds1"]), ["ds1", "x"]), Dataset),
    ("read_rows", lambda client: client.read_rows("ds1"), DatasetData),
    ("read_rows", lambda client: client.read_rows_with(lambda a: read_head(a).page(), "ds1"), DatasetData),
    ("create_dataset", lambda client: client.create_dataset(REQUEST), CreationTask),
    ("list_authorized_datasets", lambda client: client.list_authorized_datasets("u1"), AuthorizedResource),
    ("list_authorized_pages", lambda client: client.list_authorized_pages("u1"), AuthorizedResource),
    ("list_pages", lambda client: client.list_pages(), Page),
    ("create_users", lambda client: client.create_users([NewUser(login_id="a")]), None),
    ("get_subscriptions", lambda client: client.get_subscriptions(["sc1"]), SubscriptionPlan),
    (
        "get_subscriptions",
        lambda client: summaries(client.find_subscriptions(["sc1"]), ["sc1", "x"]),
        SubscriptionPlan,
    ),
    ("get_users", lambda client: client.find_users(["a"]), ExistingUsers),
    ("get_task", lambda client: client.find_task(["task-1"]).get("task-1"), TaskStatus),
    ("refresh_dataset", lambda client: client.call("/public-api/data-source/ds1/refresh"), None),
]

TEXTS = st.sampled_from(
    ["ds1", "sc1", "", "处理中", "\ud800", "\0", DEFAULT_TOKEN, "9" * 5000, "2026-01-31T10:00:00+0800",
     "2026-01-01 00:00:00+0000", "0001-01-01T00:00:00+1400", "9999-12-31 23:59:59-1400", "STRING", "12 users"]
) | st.text(max_size=5)  # fmt: skip
NUMBERS = st.sampled_from([0, -1, 2**63, 10**40, 1e308, float("nan"), float("inf"), 253402300800000, -(10**17)])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def records(kind: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects under the contract's names, well formed in some fields."""
    names = [field.alias or name for name, field in kind.model_fields.items()]
    ids = {"dsId": "ds1", "scId": "sc1", "id": "u1", "pgId": "p1", "name": "n", "fdType": "INT", "userExist": []}
    known = {name: st.just(value) for name, value in ids.items() if name in names}
    if kind is DatasetData:
        known["columns"] = st.lists(records(Column), max_size=2)
        known["preview"] = st.lists(st.lists(TEXTS | st.none(), max_size=2), max_size=3) | ANYTHING
        known["rowCount"] = st.integers(0, 5)
    others = {name: ANYTHING | TEXTS for name in names if name not in known}
    return st.fixed_dictionaries(known, optional=others)


def payloads(kind: type[BaseModel] | None) -> st.SearchStrategy[Any]:
    if kind is None:
        return ANYTHING | TEXTS
    return ANYTHING | records(kind) | st.lists(records(kind), max_size=3)


ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "result": st.sampled_from(["ok", "fail"]) | ANYTHING,
        "error": st.dictionaries(st.sampled_from(["status", "message", "detail"]), ANYTHING) | ANYTHING,
        "error_code": ANYTHING,
        "error_message": ANYTHING,
        "response": ANYTHING,
    },
)


def bodies(kind: type[BaseModel] | None) -> st.SearchStrategy[bytes]:
    envelopes = payloads(kind).map(lambda payload: {"result": "ok", "response": payload}) | ERRORS | ANYTHING
    return (
        envelopes.map(lambda envelope: json.dumps(envelope).encode())
        | st.binary(max_size=20)
        | st.sampled_from([b"[" * 100_000, b'{"result":"ok","response":' + b"9" * 5000 + b"}", b'{"result":"ok"'])
    )


@pytest.fixture(scope="module")
def platform() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


def test_every_operation_is_called() -> None:
    assert {name for name, _, _ in CALLS} == {operation.name for operation in OPERATIONS + EXTENSIONS}


@pytest.mark.parametrize(("operation", "call", "kind"), CALLS)
@settings(max_examples=25, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_answer_is_a_record_or_an_error(
    platform: Simulator,
    operation: str,
    call: Callable[[AnaplatClient], Any],
    kind: type[BaseModel] | None,
    data: st.DataObject,
) -> None:
    body = data.draw(bodies(kind))
    status = data.draw(st.sampled_from([200, 200, 200, 200, 201, 400, 401, 403, 404, 407, 429, 500, 503]))
    platform.inject(operation, Fault(lambda _: Reply(status, body)))
    client = AnaplatClient(platform.url, platform.token, max_retries=0)
    error = error_of(lambda: call(client))
    if error is not None:
        assert not isinstance(error, errors.AnaplatRequestError)
        assert str(error).encode()  # a log can hold it
        assert DEFAULT_TOKEN not in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert str(errors.from_json(json.loads(json.dumps(errors.to_json(error))))) == str(error)


def test_half_a_character_in_the_platforms_words_is_replaced(platform: Simulator) -> None:
    platform.inject("list_pages", replies.content(rb'{"result": "fail", "error": {"message": "x\ud800y"}}'))
    client = AnaplatClient(platform.url, platform.token, max_retries=0)
    with pytest.raises(errors.AnaplatRefusedError, match=r"x\?y") as raised:
        client.list_pages()
    assert raised.value.platform_message == "x?y"


@pytest.mark.parametrize(("said", "count"), [("1,200 users", 1200), ("9" * 5000, None), ("none", None)])
def test_a_number_that_counts_no_users_is_none(platform: Simulator, said: str, count: int | None) -> None:
    platform.inject("create_users", replies.content(json.dumps({"result": "ok", "response": said}).encode()))
    created = AnaplatClient(platform.url, platform.token).create_users([NewUser(login_id="a")])
    assert (created.count, created.message) == (count, said)


def error_of(call: Callable[[], Any]) -> errors.AnaplatError | None:
    try:
        call()
    except errors.AnaplatError as error:
        return error
    return None
