"""Every operation against a real socket: what is sent, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pendulum
import pytest
from conftest import TEXTS, numbers

from airflow_provider_anaplat import client as client_package
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.client.models import CreateDatasetRequest, Dataset, NewUser, TableQuery, TaskStatus
from airflow_provider_anaplat.client.operations import EXTENSIONS, OPERATIONS
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError, AnaplatRequestError
from airflow_provider_anaplat.rows.decode import read_head
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.replies import Fault, Reply

CALLS: dict[str, Callable[[AnaplatClient], Any]] = {
    "get_columns": lambda client: client.get_columns("ds1"),
    "list_datasets": lambda client: client.list_datasets(),
    "read_rows": lambda client: client.read_rows("ds1"),
    "create_dataset": lambda client: client.create_dataset(
        CreateDatasetRequest(ac_id="account", name="new", table_query=TableQuery(table="t"))
    ),
    "list_authorized_datasets": lambda client: client.list_authorized_datasets("u1"),
    "list_authorized_pages": lambda client: client.list_authorized_pages("u1"),
    "list_pages": lambda client: client.list_pages(),
    "create_users": lambda client: client.create_users([NewUser(login_id="ada")]),
    "get_subscriptions": lambda client: client.get_subscriptions(["s1"]),
}
IN_HEADER = {"get_columns", "read_rows"}


def test_the_table_is_the_contracts() -> None:
    assert {operation.name for operation in OPERATIONS} == set(CALLS)
    assert {operation.name for operation in OPERATIONS if operation.token_in == "header"} == IN_HEADER
    assert {op.name for op in OPERATIONS if not op.repeatable} == {"create_dataset", "create_users"}


@pytest.mark.parametrize("name", CALLS)
def test_the_token_goes_where_the_contract_says(name: str) -> None:
    with Simulator(user_token="a-user-token") as simulator:
        simulator.platform.add_dataset("texts", TEXTS)
        CALLS[name](AnaplatClient(simulator.url, simulator.token))
        simulator.platform.users.clear()
        CALLS[name](AnaplatClient(simulator.url, simulator.token, user_token="a-user-token"))
    as_application, as_user = simulator.requests(name)
    header, body = "x-auth-token", "token"
    if name in IN_HEADER:
        assert as_application.headers[header] == simulator.token
        assert as_user.headers[header] == "a-user-token"
        assert body not in as_application.body
    else:
        assert header not in as_application.headers
        assert as_application.body[body] == as_user.body[body] == simulator.token


def test_rows_come_with_their_columns_and_version(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("texts", TEXTS)
    data = client.read_rows(dataset.ds_id, offset=1, limit=2, sort_by="id", sort_type="desc")

    assert data.preview == [["3", "null"], ["2", ""]]
    assert [(column.name, column.fd_type) for column in data.columns] == [("id", "INT"), ("text", "STRING")]
    assert (data.version, data.row_count) == (1, 4)
    assert simulator.requests("read_rows")[0].body == {
        "offset": 1,
        "limit": 2,
        "sortFactor": {"name": "id", "sortType": "desc"},
    }


def test_a_filter_is_sent_as_it_is(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(10))
    condition = {"type": "condition", "value": {"name": "n", "filterType": "GE", "filterValue": [7]}}
    data = client.read_rows("ds1", filter={"combineType": "AND", "conditions": [condition]})
    assert [row[0] for row in data.preview] == ["7", "8", "9"]


@pytest.mark.parametrize("rendered", ["", "{}", "None", [], ["a"], 0])
def test_a_filter_that_is_no_object_is_refused_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, rendered: Any
) -> None:
    with pytest.raises(AnaplatRequestError, match=r"filter is a \w+ and must be an object"):
        client.read_rows("ds1", filter=rendered)
    assert simulator.ledger == []


def test_columns_need_a_body_that_is_not_empty(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    assert [column.seq_no for column in client.get_columns("ds1")] == [0, 1]
    assert simulator.requests("get_columns")[0].body == {}


def test_timestamps_become_aware(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("texts", TEXTS)
    (listed,) = client.list_datasets()
    assert isinstance(listed.utime, pendulum.DateTime)
    assert listed.utime == dataset.utime


def test_a_timestamp_keeps_its_offset(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"pgId": "p", "ctime": "2024-02-29 08:00:00+0830"}]
    (page,) = client.list_pages()
    assert page.ctime == pendulum.datetime(2024, 2, 28, 23, 30, tz="UTC")
    assert page.model_dump(mode="json", by_alias=True)["ctime"] == "2024-02-29 08:00:00+0830"


@pytest.mark.parametrize("given", ["2024-01-01 00:00:00.250000+0800", "0001-01-01 00:00:00+0000"])
def test_a_fraction_of_a_second_and_an_early_year_are_kept(given: str) -> None:
    assert Dataset.model_validate({"dsId": "ds1", "utime": given}).summary()["utime"] == given


def test_unknown_fields_are_kept_and_missing_ones_are_none(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"pgId": "p", "settings": {"authorizedOnPC": True}, "newInRelease9": [1]}]
    (page,) = client.list_pages()
    assert page.name is None
    assert page.settings is not None
    assert page.settings.authorized_on_pc is True
    assert page.model_extra == {"newInRelease9": [1]}


def test_a_subscriptions_last_send_is_a_moment(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.subscriptions["s1"] = {"scId": "s1", "lastSendTime": 1700000000123}
    (plan,) = client.get_subscriptions(["s1", "s2"])
    assert plan.last_send_time == pendulum.from_timestamp(1700000000.123)
    assert plan.model_dump(mode="json", by_alias=True)["lastSendTime"] == 1700000000123
    assert plan.summary()["lastSendTime"] == 1700000000123


def test_pages_of_a_type(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.authorized_pages["u"] = [
        {"id": "p", "pgType": "PAGE", "sources": [{"id": "g", "name": "Group", "isSelf": False}]},
        {"id": "s", "pgType": "LARGE_SCREEN"},
    ]
    (page,) = client.list_authorized_pages("u", page_type="PAGE")

    assert page.sources is not None
    assert (page.id, page.sources[0].name, page.can_export) == ("p", "Group", None)
    assert len(client.list_authorized_pages("u")) == 2


def test_a_page_whose_id_has_the_other_name(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"id": "p1"}, {"pgId": "p2", "id": "another"}]
    assert [page.model_dump(by_alias=True)["pgId"] for page in client.list_pages()] == ["p1", "p2"]


def test_rows_that_have_the_other_name(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("texts", TEXTS)

    def renamed(reply: Reply) -> Reply:
        return replace(reply, body=reply.body.replace(b'"preview"', b'"data"'))

    simulator.inject("read_rows", Fault(renamed, needs_answer=True), times=None)
    assert client.read_rows(dataset.ds_id).preview == [list(row) for row in TEXTS.frame.rows()]
    page = client.read_rows_with(lambda answer: read_head(answer).page(), dataset.ds_id)
    assert page.frame.rows() == TEXTS.frame.rows()


def test_a_call_with_the_token_in_a_header_of_that_name(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"pgId": "p1"}]
    page = client.call("/public-api/page/p1", method="get", token_in="token_header", repeatable=True)
    assert page == {"pgId": "p1", "cards": []}
    (request,) = simulator.requests("list_cards")
    assert (request.headers["token"], request.query) == (simulator.token, "")


def test_a_record_without_its_id_is_an_invalid_answer(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"pgId": "p"}, {"name": "without an id"}]
    with pytest.raises(AnaplatInvalidAnswerError, match=r"1\.pgId: Field required"):
        client.list_pages()


def test_a_creation_sends_what_is_given_and_nothing_else(client: AnaplatClient, simulator: Simulator) -> None:
    request = CreateDatasetRequest.model_validate(
        {"acId": "a", "name": "n", "tableQuery": {"queryType": "query", "query": "select 1"}, "type": "Index"}
    )
    task = client.create_dataset(request)

    assert (task.status, task.result) == ("已提交", "处理中")

    (sent,) = simulator.requests("create_dataset")
    assert sent.body == {
        "token": simulator.token,
        "acId": "a",
        "name": "n",
        "tableQuery": {"queryType": "query", "query": "select 1"},
        "sourceType": "DIRECT_CONNECT_DATABASE",
        "type": "Index",
    }


def test_the_number_of_created_users_is_read_from_the_message(client: AnaplatClient, simulator: Simulator) -> None:
    created = client.create_users([NewUser(login_id="a"), NewUser(login_id="b")], user_property_type=1)
    assert (created.count, created.message) == (2, "2 users created")
    assert simulator.requests("create_users")[0].body["userPropertyType"] == 1


def test_the_number_may_have_separators(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("create_users", replies.content(b'{"result": "ok", "response": "1,000 users"}'))
    assert client.create_users([NewUser(login_id="a")]).count == 1000


def test_a_message_without_a_number_has_no_count(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("create_users", replies.content(b'{"result": "ok", "response": "done"}'))
    assert client.create_users([NewUser(login_id="a")]).count is None


@pytest.mark.parametrize("ds_id", ["", " ", "a/b", ".", "..", "/"])
def test_an_impossible_id_is_refused_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, ds_id: str
) -> None:
    with pytest.raises(AnaplatRequestError, match="ds_id"):
        client.get_columns(ds_id)
    assert simulator.ledger == []


def test_ids_are_percent_encoded(client: AnaplatClient, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("odd", TEXTS)
    odd = "ä b?c#d&"
    simulator.platform.datasets[odd] = dataset
    assert len(client.get_columns(odd)) == 2


IN_PATH: dict[str, Callable[[AnaplatClient, str], Any]] = {
    "get_columns": lambda client, given: client.get_columns(given),
    "read_rows": lambda client, given: client.read_rows(given),
    "list_authorized_datasets": lambda client, given: client.list_authorized_datasets(given),
    "list_authorized_pages": lambda client, given: client.list_authorized_pages(given),
    "refresh_dataset": lambda client, given: client.refresh_dataset(given),
    "find_task": lambda client, given: client.find_task(
        [given], call={"path": "/public-api/task/{taskId}", "params": {}}
    ),
    "read_card": lambda client, given: client.read_card(given),
    "list_cards": lambda client, given: client.list_cards(given),
    "call": lambda client, given: client.call(f"/public-api/x/{given}"),
}


@pytest.mark.parametrize("ask", IN_PATH.values(), ids=IN_PATH)
def test_a_control_character_in_an_id_is_refused_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, ask: Callable[[AnaplatClient, str], Any]
) -> None:
    for control in "\0\t\n\r\x1b\x1f\x7f\x80\x85\x9f\u2028":
        for given in (f"ds{control}1", f"ds1{control}", f"{control}ds1"):
            with pytest.raises(AnaplatRequestError, match=r"refused|cannot be an id") as raised:
                ask(client, given)
            assert str(raised.value).isprintable()
    assert simulator.ledger == []


@pytest.mark.parametrize(("offset", "limit"), [(0, 50_001), (0, 0), (-1, 10)])
def test_an_impossible_page_is_refused_before_anything_is_sent(
    client: AnaplatClient, simulator: Simulator, offset: int, limit: int
) -> None:
    with pytest.raises(AnaplatRequestError, match="50,000"):
        client.read_rows("ds1", offset=offset, limit=limit)
    assert simulator.ledger == []


def test_call_reaches_operations_that_the_contract_only_names(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    columns = client.call("/public-api/data-source/ds1/columns", token_in="header", repeatable=True)
    assert [column["name"] for column in columns] == ["id", "text"]
    pages = client.call("/public-api/user/u/get-authorized-pages", json={"a": 1}, params={"pgType": "PAGE"})
    assert pages == []
    assert simulator.requests("list_authorized_pages")[0].body == {"a": 1, "token": simulator.token}


@pytest.mark.parametrize(
    "path",
    [
        "/other",
        "public-api/x",
        "http://elsewhere/public-api/x",
        "/public-api/../admin",
        "/public-api/%2e%2e/admin",
        "/public-api/x?token=1",
        "/public-api/x#y",
        "/public-api/a b",
        "/public-api/a\\b",
        "/public-api/..;/admin",
        "/public-api/%2e%2e;/admin",
        "/public-api/..%5cadmin",
        "/public-api/..%2fadmin",
        "/public-api/%252e%252e/admin",
        "/public-api/%c0%ae%c0%ae/admin",
        "/public-api/\uff0e\uff0e/admin",
        "/public-api/a%0d%0ab",
        "/public-api/a%00b",
    ],
)
def test_call_refuses_paths_outside_the_public_api(client: AnaplatClient, simulator: Simulator, path: str) -> None:
    with pytest.raises(AnaplatRequestError, match="refused"):
        client.call(path)
    assert simulator.ledger == []


@pytest.mark.parametrize("path", ["/public-api/x?token=hunter2", "/public-api/x#hunter2"])
def test_a_path_that_is_refused_shows_nothing_of_its_query(client: AnaplatClient, path: str) -> None:
    with pytest.raises(AnaplatRequestError, match="'/public-api/x' is refused") as raised:
        client.call(path)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_columns("half \ud83d"),
        lambda client: client.call("/public-api/half-\ud83d"),
        lambda client: client.call("/public-api/x", params={"id": "half \ud83d"}),
    ],
)
def test_half_a_character_never_leaves(client: AnaplatClient, simulator: Simulator, ask: Any) -> None:
    with pytest.raises(AnaplatRequestError):
        ask(client)
    assert simulator.ledger == []


@pytest.mark.parametrize(
    ("base_url", "token"),
    [
        ("bi.example.com", "t"),
        ("ftp://bi.example.com", "t"),
        ("http://[bi.example.com", "t"),
        ("http://user:word@bi.example.com", "t"),
        ("http://@bi.example.com", "t"),
        ("http://bi.example.com?x=1", "t"),
        ("http://bi.example.com:99999", "t"),
        ("http://bi.example.com:port", "t"),
        ("http://bi\t.example.com", "t"),
        ("http://bi.example.com/a b", "t"),
        ("http://bi.example.com/a\n", "t"),
        ("http://bi.example.com/\ud800", "t"),
        ("http://bi.example.com", ""),
        ("http://bi.example.com", "line\nbreak"),
        ("http://bi.example.com", "中"),
    ],
)
def test_an_unusable_address_or_token_is_refused(base_url: str, token: str) -> None:
    with pytest.raises(AnaplatRequestError) as raised:
        AnaplatClient(base_url, token)
    assert "word" not in str(raised.value)
    assert "break" not in str(raised.value).replace("line break", "")


def test_credentials_of_a_netrc_file_are_not_sent(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    client.list_datasets()
    assert "authorization" not in simulator.ledger[0].headers


def test_the_token_is_in_no_repr(client: AnaplatClient, simulator: Simulator) -> None:
    assert simulator.token not in repr(client) + repr(vars(client)) + repr(client._transport._settings)
    assert "secret" not in repr(NewUser(login_id="a", password="secret"))
    assert "of-proxy" not in repr(Answer("list_datasets", 200, b"", ("of-proxy",)))
    request = client._transport._request(OPERATIONS[0], "/", {}, None, None)
    assert simulator.token not in repr(request)


def test_the_extension_tells_who_exists(client: AnaplatClient, simulator: Simulator) -> None:
    assert all(operation.extension for operation in EXTENSIONS)
    assert not any(operation.extension for operation in OPERATIONS)

    simulator.platform.users |= {"a": {}, "b": {}}
    assert client.find_users(["b", "c"]) == ["b"]

    (request,) = simulator.requests("get_users")
    assert (request.path, request.body) == (
        "/public-api/users/get",
        {"users": ["b", "c"], "token": simulator.token},
    )


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"error": "no space"}, "no space"),
        ({"error": 7}, "7"),
        ({"error": ""}, None),
        ({"ok": 1}, None),
        ("x", None),
    ],
)
def test_the_result_of_a_task_may_hold_an_error(result: str | dict[str, Any], error: str | None) -> None:
    assert TaskStatus(result=result).error == error


@pytest.mark.parametrize("seconds", [-7200, 0, 7200])
def test_the_platforms_clock_is_known_by_its_answers(
    client: AnaplatClient, simulator: Simulator, seconds: int
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert client.earliest_platform_time(moment) == moment

    simulator.platform.clock_ahead = timedelta(seconds=seconds)
    client.list_pages()
    difference = (client.earliest_platform_time(moment) - moment).total_seconds()

    assert seconds - 10 < difference <= seconds

    found = client.find_datasets([]).clock_ahead.total_seconds()
    assert abs(found) <= abs(seconds) < abs(found) + 10


def test_what_is_left_of_the_platforms_second_is_all_that_its_clock_may_be_ahead(
    client: AnaplatClient, simulator: Simulator
) -> None:
    date = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    headers = {"content-type": "application/json", "date": format_datetime(date, usegmt=True)}
    answer = Reply(200, b'{"result": "ok", "response": []}', headers)
    simulator.inject("list_datasets", Fault(lambda _: answer))

    before = datetime.now(UTC)
    found = client.find_datasets([]).clock_ahead

    assert date - datetime.now(UTC) < found <= date + timedelta(seconds=1) - before


NO_CLOCKS = ["Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"]


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT", *NO_CLOCKS])
def test_a_date_that_is_none_says_nothing(client: AnaplatClient, simulator: Simulator, date: str) -> None:
    answer = Reply(200, b'{"result": "ok", "response": []}', {"content-type": "application/json", "date": date})
    simulator.inject("list_pages", Fault(lambda _: answer))
    client.list_pages()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert client.earliest_platform_time(moment) == moment


def test_the_package_has_no_other_name() -> None:
    with pytest.raises(AttributeError, match="AnaplatDashboard"):
        getattr(client_package, "AnaplatDashboard")  # noqa: B009 - mypy knows that it is not there
