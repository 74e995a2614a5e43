"""The same mistake ends alike in every operator: at once, without a retry, and with nothing done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import numbers

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat._airflow.words import WORDS
from airflow_provider_anaplat.client.operations import EXTENSIONS, OPERATIONS
from airflow_provider_anaplat.operators.access import AnaplatAccessReportOperator
from airflow_provider_anaplat.operators.call import AnaplatCallOperator
from airflow_provider_anaplat.operators.cards import AnaplatExportCardOperator
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator, AnaplatSchemaCheckOperator
from airflow_provider_anaplat.operators.listing import AnaplatListDatasetsOperator
from airflow_provider_anaplat.operators.partitioned import _CommitOperator, _PartOperator, _PlanOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator

CONTEXT: Any = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="g.t", map_index=-1, start_date=None)}
# Each operator with what it cannot do without, and the words that it takes.
OPERATORS: dict[Any, tuple[dict[str, Any], tuple[str, ...]]] = {
    AnaplatAccessReportOperator: (
        {"user_ids": ["ada"], "output_path": "{folder}/a.csv"},
        ("csv_formulas", "on_changes", "on_user_error"),
    ),
    AnaplatCallOperator: ({"path": "/public-api/data-source/ds1/refresh"}, ("token_in",)),
    AnaplatExportCardOperator: (
        {"card_id": "card2", "output_path": "{folder}/card.csv"},
        ("csv_formulas", "encoding", "on_cast_error", "view"),
    ),
    AnaplatCreateDatasetOperator: (
        {"account_id": "a", "name": "n", "table_query": {"table": "t"}},
        ("if_exists", "in_doubt", "unknown_state"),
    ),
    AnaplatListDatasetsOperator: ({}, ()),
    AnaplatSchemaCheckOperator: ({"ds_id": "ds1", "columns": {"n": "INT"}}, ()),
    AnaplatRefreshDatasetOperator: (
        {"ds_id": "ds1", "deferrable": False}, ("if_running", "in_doubt", "probe", "token_in", "unknown_state"),
    ),
    AnaplatExportRowsOperator: (
        {"ds_id": "ds1", "output_path": "{folder}/out.csv"},
        ("csv_formulas", "encoding", "on_cast_error", "on_change", "sort_type"),
    ),
    _PlanOperator: (
        {"ds_id": "ds1", "output_path": "{folder}/out.csv", "partitions": 2},
        ("if_unchanged", "sort_type"),
    ),
    _PartOperator: (
        {
            "ds_id": "ds1",
            "output_path": "{folder}/out.csv",
            "partitions": 2,
            "partition": {"number": 1, "offset": 0, "rows": 1},
        },
        ("csv_formulas", "encoding", "on_cast_error", "sort_type"),
    ),
    _CommitOperator: (
        {"ds_id": "ds1", "output_path": "{folder}/out.csv", "partitions": 2},
        ("csv_formulas", "encoding", "if_unchanged"),
    ),
    AnaplatCreateUsersOperator: (
        {"users": [{"loginId": "ada", "password": "s3cret-word"}]},
        ("existing_users", "in_doubt", "on_rejected", "password_encoding"),
    ),
    AnaplatToSqlOperator: (
        {"ds_id": "ds1", "sql_conn_id": "database", "table": "t"},
        ("mode", "on_cast_error", "on_change", "sort_type"),
    ),
}  # fmt: skip
SENSORS: dict[Any, tuple[dict[str, Any], tuple[str, ...]]] = {
    AnaplatDatasetTaskSensor: ({"ds_id": "ds1"}, ("probe", "unknown_state")),
    AnaplatDatasetFreshnessSensor: (
        {"ds_id": "ds1", "newer_than": "2026-01-01T00:00:00+00:00"},
        ("unknown_state",),
    ),
    AnaplatSubscriptionSensor: (
        {"subscription_ids": ["sc1"], "sent_after": "2026-01-01T00:00:00+00:00"},
        ("unknown_state",),
    ),
}
ASKING = [kind for kind in OPERATORS if kind is not _CommitOperator]  # which needs no platform
Run = Callable[..., Any]


@pytest.fixture
def run(
    simulator: Simulator, connect: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    simulator.platform.add_dataset("numbers", numbers(10))
    simulator.platform.add_card("numbers", numbers(10))
    connect(simulator)
    database = {"conn_type": "sqlite", "host": str(tmp_path / "db.sqlite")}
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps(database))

    def run(kind: Any, **arguments: Any) -> Any:
        given = {**OPERATORS, **SENSORS}[kind][0]
        given = {name: _in(tmp_path, value) for name, value in given.items()}
        return kind(**{"task_id": "t", **given, **arguments}).execute(CONTEXT)

    return run


def _in(folder: Path, value: Any) -> Any:
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


TAKING = [(kind, name) for kind, (_, names) in {**OPERATORS, **SENSORS}.items() for name in names]
# That the token goes where the connection, or the contract, says may be left out.
MISTAKEN = [
    (kind, name, word)
    for kind, name in TAKING
    for word in ("Fail", "", None, 7, ["fail"])
    if (name, word) != ("token_in", None)
]


@pytest.mark.parametrize(("kind", "name", "word"), MISTAKEN)
def test_a_word_that_nobody_knows(run: Run, simulator: Simulator, kind: Any, name: str, word: Any) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} is .*{WORDS[name][0]}"):
        run(kind, **{name: word})
    assert simulator.ledger == []


NO_TEXT = [7, 7.5, True, b"x", ["x"], {"a": 1}, "\ud800"]
NO_NUMBER = ["5", "", 7.5, True, b"5", [5], {}]
NO_FLAG = ["False", "", 0, 1, None, b"", ["x"]]
NO_LIST = ["x", "[]", 7, True, None, [7], ["u1", None], [["x"]]]
NO_OBJECT = ["", "None", 7, True, ["x"], [], {1: 2}]
OF_ANOTHER_KIND: list[tuple[Any, str, list[Any]]] = [
    *[
        (AnaplatToSqlOperator, name, NO_TEXT)
        for name in ("anaplat_conn_id", "ds_id", "schema", "sort_by", "sql_conn_id", "table")
    ],
    *[
        (AnaplatToSqlOperator, name, NO_NUMBER)
        for name in ("concurrency", "max_restarts", "max_rows", "memory_mb", "page_size")
    ],
    (AnaplatToSqlOperator, "key_columns", [7, True, b"n", "n", {"n": 1}, [1], [["n"]]]),
    *[(_PlanOperator, name, NO_TEXT) for name in ("anaplat_conn_id", "ds_id", "file_format", "sort_by")],
    *[(_PlanOperator, name, [*NO_NUMBER, None]) for name in ("page_size", "partitions")],
    (_PartOperator, "page_size", [*NO_NUMBER, None]),
    (
        _PartOperator,
        "partition",
        [7, None, "x", [], {}, {"number": 1}, {"number": 1, "offset": 0, "rows": 1, "x": 1}],
    ),
    (AnaplatCreateUsersOperator, "anaplat_conn_id", [*NO_TEXT, None]),
    (AnaplatCreateUsersOperator, "batch_size", [*NO_NUMBER, None]),
    (AnaplatCreateUsersOperator, "user_property_type", ["x", "", "1.5", 7.5, True, b"1", [1], {}]),
    *[
        (kind, name, NO_FLAG)
        for kind, name in [
            (AnaplatCallOperator, "repeatable"),
            (AnaplatCreateDatasetOperator, "wait_for_completion"),
            (AnaplatCreateUsersOperator, "isolate_rejected"),
            (AnaplatExportCardOperator, "header"),
            (AnaplatExportCardOperator, "raw"),
            (AnaplatExportRowsOperator, "header"),
            (AnaplatRefreshDatasetOperator, "wait_for_completion"),
            (_PlanOperator, "header"),
        ]
    ],
    (AnaplatExportRowsOperator, "output_path", ["nowhere://x.csv", "http://127.0.0.1:1/x.csv"]),
    (AnaplatCreateUsersOperator, "progress_path", [7, True, b"x", ["x"], [], {}]),
    *[(AnaplatCreateDatasetOperator, name, NO_TEXT) for name in ("account_id", "name", "parent_dir_id")],
    (AnaplatCreateDatasetOperator, "extra_fields", NO_OBJECT),
    (AnaplatCreateDatasetOperator, "success_states", NO_LIST),
    (AnaplatCreateDatasetOperator, "reconcile_timeout", ["60", None, -1, float("nan"), float("inf")]),
    *[(AnaplatListDatasetsOperator, name, NO_TEXT) for name in ("name_pattern", "folder")],
    *[
        (kind, name, NO_LIST)
        for kind, name in [
            (AnaplatAccessReportOperator, "user_ids"),
            (AnaplatAccessReportOperator, "page_types"),
            (AnaplatSubscriptionSensor, "subscription_ids"),
        ]
    ],
    (AnaplatRefreshDatasetOperator, "body", NO_OBJECT),
    *[(AnaplatRefreshDatasetOperator, name, [*NO_TEXT, 0, False, [], {}]) for name in ("path", "method")],
    *[(AnaplatCallOperator, name, NO_OBJECT) for name in ("json", "query")],
    *[(AnaplatCallOperator, name, NO_TEXT) for name in ("path", "method")],
    (AnaplatSchemaCheckOperator, "allow_extra", NO_FLAG),
    (AnaplatListDatasetsOperator, "states", ["FINISHED", 7, True, [7], [None], [["x"]]]),
    (AnaplatDatasetTaskSensor, "task_status", NO_OBJECT),
    *[(sensor, f"{name}_states", [*NO_LIST, [""]]) for sensor in SENSORS for name in ("success", "failure")],
    *[(sensor, "ds_id", NO_TEXT) for sensor in (AnaplatDatasetTaskSensor, AnaplatDatasetFreshnessSensor)],
]


@pytest.mark.parametrize(("kind", "name", "values"), OF_ANOTHER_KIND)
def test_an_argument_of_another_kind(
    run: Run, simulator: Simulator, kind: Any, name: str, values: list[Any]
) -> None:
    mode = {"mode": "upsert"} if name == "key_columns" else {}
    called = "no path" if name in ("output_path", "progress_path") else name
    for value in values:
        with pytest.raises(AirflowFailException, match=rf"(?s){called}.* must be"):
            run(kind, **{name: value}, **mode)
    assert simulator.ledger == []


def test_a_query_for_users_that_is_none(run: Run, simulator: Simulator) -> None:
    for value in (*NO_TEXT, "", " "):
        with pytest.raises(AirflowFailException, match=r"users_sql .* must be"):
            run(AnaplatCreateUsersOperator, users=None, users_sql=value, sql_conn_id="database")
    assert simulator.ledger == []


@pytest.mark.parametrize("kind", [AnaplatToSqlOperator, _PlanOperator])
def test_a_name_of_a_dataset_that_is_none(run: Run, simulator: Simulator, kind: Any) -> None:
    for value in NO_TEXT:
        with pytest.raises(AirflowFailException, match=r"dataset .* must be a text"):
            run(kind, ds_id=None, dataset=value)
    assert simulator.ledger == []


@pytest.mark.parametrize("given", [7, None, "", "tomorrow", [], True])
@pytest.mark.parametrize(
    ("kind", "name"), [(AnaplatDatasetFreshnessSensor, "newer_than"), (AnaplatSubscriptionSensor, "sent_after")]
)
def test_a_moment_that_is_none(run: Run, simulator: Simulator, kind: Any, name: str, given: Any) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} is .*no moment"):
        run(kind, **{name: given})
    assert simulator.ledger == []


def test_a_wait_for_no_subscription(run: Run, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="subscription_ids is empty"):
        run(AnaplatSubscriptionSensor, subscription_ids=[])
    assert simulator.ledger == []


@pytest.mark.parametrize("name", ["table", "schema"])
def test_a_name_of_a_table_that_holds_a_null_character(run: Run, simulator: Simulator, name: str) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} is "):
        run(AnaplatToSqlOperator, **{name: "a\0b"})
    assert simulator.ledger == []


@pytest.mark.parametrize("pace", [0, -1, "60", None, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["poll_interval", "timeout"])
@pytest.mark.parametrize("kind", [AnaplatCreateDatasetOperator, AnaplatRefreshDatasetOperator])
def test_a_pace_at_which_nobody_can_wait(run: Run, simulator: Simulator, kind: Any, name: str, pace: Any) -> None:
    with pytest.raises(AirflowFailException, match=f"{name} is .*above 0"):
        run(kind, **{name: pace})
    assert simulator.ledger == []


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("kind", SENSORS)
def test_a_sensor_that_would_never_pause(run: Run, simulator: Simulator, kind: Any, deferrable: bool) -> None:
    with pytest.raises(AirflowFailException, match=r"poke_interval is 0.0; .*above 0"):
        run(kind, poke_interval=0, deferrable=deferrable)
    assert simulator.ledger == []


# A part needs its plan.
@pytest.mark.parametrize("kind", [*(kind for kind in ASKING if kind is not _PartOperator), *SENSORS])
def test_a_token_that_is_refused(run: Run, simulator: Simulator, kind: Any, tmp_path: Path) -> None:
    for operation in (*OPERATIONS, *EXTENSIONS):
        simulator.inject(operation.name, replies.refusal("expired", code=1018, status=401), times=None)
    with pytest.raises(AirflowFailException, match="expired"):
        run(kind)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".sqlite"] == []


UNUSABLE: list[dict[str, Any]] = [
    {"max_retries": -1},
    {"verify": "/nowhere"},
    {"max_answer_mb": 0},
    {"task_status": {"url": "/public-api/task"}},
    {"task_status": {"path": "/task"}},
    {"task_status": {"method": "G T"}},
]


@pytest.mark.parametrize("extra", UNUSABLE)
@pytest.mark.parametrize("kind", [*ASKING, *SENSORS])
def test_a_connection_that_cannot_work(
    run: Run, simulator: Simulator, connect: Callable[..., None], kind: Any, extra: dict[str, Any]
) -> None:
    connect(simulator, extra=extra)
    with pytest.raises(AirflowFailException, match=next(iter(extra))):
        run(kind)
    assert simulator.ledger == []


@pytest.mark.parametrize("kind", [AnaplatExportRowsOperator, _PartOperator, AnaplatToSqlOperator])
@pytest.mark.parametrize("mistake", [{"page_size": 0}, {"concurrency": 0}, {"ds_id": ""}, {"filter": ""}])
def test_a_query_that_cannot_be_right(run: Run, kind: Any, mistake: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException):
        run(kind, **mistake)


@pytest.mark.parametrize(
    "mistake", [{"path": "/data-source"}, {"path": "/public-api/../x"}, {"method": "P S"}], ids=str
)
@pytest.mark.parametrize("names", ["arguments", "connection"])
def test_a_request_for_a_refresh_that_cannot_be_right(
    run: Run, simulator: Simulator, connect: Callable[..., None], names: str, mistake: dict[str, str]
) -> None:
    if names == "connection":
        connect(simulator, extra={f"refresh_{name}": value for name, value in mistake.items()})
        mistake = {}
    with pytest.raises(AirflowFailException, match=r"The path|the method"):
        run(AnaplatRefreshDatasetOperator, **mistake)
    assert simulator.ledger == []


@pytest.mark.parametrize("kind", [AnaplatExportRowsOperator, _PartOperator, _CommitOperator])
def test_a_delimiter_that_is_none(run: Run, simulator: Simulator, kind: Any) -> None:
    with pytest.raises(AirflowFailException, match="delimiter"):
        run(kind, delimiter=";;")
    assert simulator.ledger == []


# What a trigger of another release, or of none, may leave behind.
EVENTS: list[Any] = [
    None,
    "x",
    {"carried": "x"},
    {"carried": {"condition": None}},
    {"carried": {"condition": {}}, "outcome": "done"},
    {"carried": {"condition": {"ds_id": "ds1", "noted_utime": None, "later": 1}}, "outcome": "done", "result": {}},
    {"outcome": "done", "result": {"subscriptions": [7]}},
]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("kind", [AnaplatCreateDatasetOperator, AnaplatRefreshDatasetOperator, *SENSORS])
def test_an_event_of_another_release(
    simulator: Simulator, connect: Callable[..., None], kind: Any, event: Any
) -> None:
    connect(simulator)
    task = kind(task_id="t", **{**OPERATORS, **SENSORS}[kind][0])
    with pytest.raises(AirflowFailException, match="not understood"):
        task.resume_execution("execute_complete", {"event": event}, CONTEXT)
