"""The columns of a dataset against those that are expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.operators.datasets import AnaplatSchemaCheckOperator
from airflow_provider_anaplat.simulator import Simulator, Table, replies

COLUMNS = {"city": "STRING", "sales": "INT", "day": "DATE"}


def check(columns: Any, **arguments: Any) -> Any:
    given: dict[str, Any] = {"task_id": "check", "ds_id": "ds1", "columns": columns, **arguments}
    return AnaplatSchemaCheckOperator(**given).execute({})


@pytest.fixture(autouse=True)
def dataset(connect: Callable[..., None], simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})
    simulator.platform.add_dataset("sales", Table.of_rows(list(COLUMNS.items()), []))


@pytest.mark.parametrize(
    "columns",
    [
        COLUMNS,
        {"day": None, "sales": "INT", "city": None},
        ["city", "sales", "day"],
        [{"name": name, "fdType": fd_type} for name, fd_type in COLUMNS.items()],
    ],
)
def test_the_same_columns_pass_in_every_notation_and_order(columns: Any) -> None:
    assert check(columns) == {"dsId": "ds1", "columns": 3, "extra": []}


def test_every_difference_is_shown() -> None:
    with pytest.raises(AirflowFailException) as raised:
        check({"city": "STRING", "sales": "DOUBLE", "region": "STRING", "code": None})

    lines = str(raised.value).splitlines()
    assert lines[0] == "Dataset ds1 has other columns than expected:"
    assert lines[1:-1] == [
        "  missing: 'region' (STRING)",
        "  missing: 'code'",
        "  type changed: 'sales' was DOUBLE, is INT",
        "  extra: 'day' (DATE)",
    ]


def test_further_columns_can_be_allowed() -> None:
    assert check({"city": "STRING"}, allow_extra=True)["extra"] == ["sales", "day"]
    with pytest.raises(AirflowFailException, match="missing: 'region'"):
        check(["city", "region"], allow_extra=True)


def test_names_that_come_twice_are_told_apart_as_in_an_export(simulator: Simulator) -> None:
    answer = b'{"result":"ok","response":[{"name":"a","fdType":"INT"},{"name":"a","fdType":"DATE"}]}'
    simulator.inject("get_columns", replies.content(answer), times=None)
    assert check(["a", "a"])["columns"] == 2
    assert check({"a": "INT", "a (2)": "DATE"})["columns"] == 2
    with pytest.raises(AirflowFailException, match=r"extra: 'a \(2\)' \(DATE\)"):
        check(["a"])


@pytest.mark.parametrize(
    "columns",
    [None, {}, [], "city", [{"fdType": "INT"}], [{"name": "city", "type": "INT"}], [1], {"city": 3}],
)
def test_what_describes_no_columns_is_refused_before_any_request(simulator: Simulator, columns: Any) -> None:
    with pytest.raises(AirflowFailException, match="columns is unusable"):
        check(columns)
    assert simulator.ledger == []


def test_a_dataset_that_is_not_there_is_no_difference(simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="no dataset ds7"):
        check(COLUMNS, ds_id="ds7")
    simulator.inject("get_columns", replies.http_status(503))
    with pytest.raises(errors.AnaplatServerError):
        check(COLUMNS)
