"""Whatever a platform answers, to any operation: a record of the contract's type, or an error of this package."""

from __future__ import annotations

import gzip
import json
import pickle
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.servers import read_request, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import (
    AuthorizedResource,
    Card,
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
from airflow_provider_anaplat.simulator.server import DEFAULT_TOKEN

REQUEST = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))


def summaries(found: Any, ids: list[str]) -> list[Any]:
    """Ask a lookup for every record, as those who wait do."""
    asked: list[Any] = []
    for record_id in ids:
        try:
            record = found.get(record_id)
        except errors.AnaplatError as error:
            asked.append(error)
        else:
            asked.append(record.summary() if record else None)
    return asked


# operation · what calls it · the records that its answer holds
class SignedIn(BaseModel):
    """What a sign-in is answered with."""

    token: str | None = None
    expireAt: str | float | None = None  # noqa: N815 - the platform's name


class CardAnswer(BaseModel):
    """What a card is answered with."""

    chartMain: dict[str, Any] | None = None  # noqa: N815 - the platform's name


class CardPage(BaseModel):
    """What the cards of a page are found in."""

    cards: list[Card] | None = None


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
    ("read_card", lambda client: client.read_card("cd1"), CardAnswer),
    ("read_card", lambda client: client.read_card("cd1", raw=True), None),
    ("list_cards", lambda client: client.list_cards("p1"), CardPage),
    ("refresh_dataset", lambda client: client.call("/public-api/data-source/ds1/refresh"), None),
    (
        "sign_in",
        lambda client: AnaplatClient(client.base_url, DEFAULT_TOKEN, login="a", max_retries=0).sign_in(),
        SignedIn,
    ),
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
    known: dict[str, st.SearchStrategy[Any]] = {
        name: st.just(value) for name, value in ids.items() if name in names
    }
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


TOKEN_IN_ADDRESS = f"http://{DEFAULT_TOKEN}:{DEFAULT_TOKEN}@elsewhere/?token={DEFAULT_TOKEN}"
# Of a header's value, all but what ends it.
VALUES = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=8)
MOMENTS = st.sampled_from(
    ["Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359",
     "Wed, 21 Oct 99999 07:28:00 GMT", "1 Jan 1 1:1:1 +99999999999", "21 Oct 2015 07:28:00"]
)  # fmt: skip
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Retry-After": MOMENTS | VALUES | st.sampled_from(["0", "-1", "1.5", "9" * 400, "9" * 5000, "²", "1e3"]),
        "Date": MOMENTS | VALUES,
        "Location": VALUES
        | st.sampled_from(
            [TOKEN_IN_ADDRESS, "http://[", "http://[::1", "//h:99999999/", "http://\xff.\xff/", "http:"]
        ),
        "Content-Encoding": VALUES
        | st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", ",".join(["gzip"] * 50)]),
        "Content-Type": VALUES
        | st.sampled_from(["text/html", "application/json; charset=no-such", "a/b; charset"]),
        "Content-Length": VALUES
        | st.sampled_from(["0", "1", "-1", "+5", "1e3", "3, 3", "3, 4", "9" * 30, "9" * 5000, "²", "99999999999"]),
        "Transfer-Encoding": st.sampled_from(["chunked", "gzip, chunked", "Chunked ", "identity"]),
    },
)
STATUSES = st.sampled_from([200] * 8 + [400, 401, 403, 404, 407, 408, 429, 500, 503]) | st.sampled_from(
    [100, 101, 199, 201, 204, 205, 299, 300, 301, 302, 303, 304, 307, 308, 399, 418, 499, 599, 600, 999]
)


@dataclass
class Anything:
    """A server that gives every request the same answer.

    :ivar answer: its bytes
    """

    url: str
    answer: bytes = b""

    def serve(self, connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(self.answer)


@pytest.fixture(scope="module")
def server() -> Iterator[Anything]:
    anything = Anything("")
    with serving(anything.serve) as port:
        anything.url = f"http://127.0.0.1:{port}"
        yield anything


@st.composite
def answers(draw: st.DrawFn, kind: type[BaseModel] | None) -> bytes:
    """Draw an answer; one in two has headers that a platform would send."""
    body, headers = draw(bodies(kind)), draw(st.just({}) | HEADERS)
    if draw(st.booleans()) and "gzip" in headers.get("Content-Encoding", ""):
        body = gzip.compress(body)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {draw(STATUSES)} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


def test_every_operation_is_called() -> None:
    assert {name for name, _, _ in CALLS} == {operation.name for operation in OPERATIONS + EXTENSIONS}


@pytest.mark.parametrize(("operation", "call", "kind"), CALLS)
@settings(max_examples=settings.default.max_examples // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_answer_is_a_record_or_an_error(
    server: Anything,
    operation: str,
    call: Callable[[AnaplatClient], Any],
    kind: type[BaseModel] | None,
    data: st.DataObject,
) -> None:
    server.answer = data.draw(answers(kind))
    client = AnaplatClient(server.url, DEFAULT_TOKEN, max_retries=0, read_timeout=5)
    found = found_or_error(call, client)
    client.close()
    if isinstance(found, errors.AnaplatError):
        assert not isinstance(found, errors.AnaplatRequestError)
        assert str(found).encode()  # a log can hold it
        assert DEFAULT_TOKEN not in str(found)
        assert str(pickle.loads(pickle.dumps(found))) == str(found)
        assert str(errors.from_json(json.loads(json.dumps(errors.to_json(found))))) == str(found)
    for record in found if isinstance(found, list) else [found]:
        if isinstance(record, BaseModel):  # a DAG can hand it on
            assert json.dumps(record.model_dump(mode="json", by_alias=True))


def found_or_error(call: Callable[[AnaplatClient], Any], client: AnaplatClient) -> Any:
    try:
        return call(client)
    except errors.AnaplatError as error:
        return error


def test_half_a_character_in_the_platforms_words_is_replaced(simulator: Simulator) -> None:
    simulator.inject("list_pages", replies.content(rb'{"result": "fail", "error": {"message": "x\ud800y"}}'))
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    with pytest.raises(errors.AnaplatRefusedError, match=r"x\?y") as raised:
        client.list_pages()
    assert raised.value.platform_message == "x?y"


def test_half_a_character_beside_the_contracts_fields_is_replaced(simulator: Simulator) -> None:
    created = rb'{"dsId": "ds1", "result": {"x\ud800": "\ud83d\ude00"}, "more": ["y\udc00"]}'
    simulator.inject("create_dataset", replies.content(b'{"result": "ok", "response": %b}' % created))
    task = AnaplatClient(simulator.url, simulator.token).create_dataset(REQUEST)
    shown = json.loads(task.model_dump_json(by_alias=True))
    assert (shown["result"], shown["more"]) == ({"x?": "😀"}, ["y?"])


def test_half_a_character_that_is_not_escaped_is_replaced_too(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.content(b'{"result": "ok", "response": "x\xed\xa0\x80y"}'))
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    assert client.call("/public-api/data-source/ds1/refresh") == "x?y"


def test_half_a_character_beside_the_rows_does_no_harm(simulator: Simulator) -> None:
    rows = {"columns": [{"name": "a", "fdType": "STRING"}], "rowCount": 1, "preview": [["x"]]}
    answered = json.dumps(
        {"result": "ok", "response": {"dsId": "ds1", "name": "n", **rows, "more": {"\ud800": 1}}}
    )
    simulator.inject("read_rows", replies.content(answered.encode()))
    client = AnaplatClient(simulator.url, simulator.token)

    assert client.read_rows_with(lambda a: read_head(a).page(), "ds1").frame.rows() == [("x",)]


@pytest.mark.parametrize("look", [AnaplatClient.list_datasets, lambda client: client.find_datasets([]).get("ds1")])
def test_a_moment_that_is_none_is_not_repeated(simulator: Simulator, look: Callable[[AnaplatClient], Any]) -> None:
    dataset = {"dsId": "ds1", "name": "n", "utime": f"2026 {DEFAULT_TOKEN}"}
    simulator.inject(
        "list_datasets", replies.content(json.dumps({"result": "ok", "response": [dataset]}).encode())
    )

    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"utime.*no timestamp such as") as raised:
        look(AnaplatClient(simulator.url, simulator.token))
    assert DEFAULT_TOKEN not in str(raised.value)


@pytest.mark.parametrize(("said", "count"), [("1,200 users", 1200), ("9" * 5000, None), ("none", None)])
def test_a_number_that_counts_no_users_is_none(simulator: Simulator, said: str, count: int | None) -> None:
    simulator.inject("create_users", replies.content(json.dumps({"result": "ok", "response": said}).encode()))
    created = AnaplatClient(simulator.url, simulator.token).create_users([NewUser(login_id="a")])
    assert created.count == count
    assert said.startswith(created.message.removesuffix("…"))
