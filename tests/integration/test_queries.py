"""A query is streamed over whatever hook its connection has."""

from __future__ import annotations

import socket
from itertools import islice
from typing import Any

import pytest

from airflow_provider_anaplat._airflow.queries import query
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import AnaplatSourceError


def _postgresql_is_there() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", 5432), timeout=2):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not _postgresql_is_there(), reason="there is no PostgreSQL on 127.0.0.1:5432")
def test_rows_come_before_the_database_has_made_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", "postgres://postgres@127.0.0.1:5432/test")
    fails_later = "select i as n, 1 / (i - 5000) as x from generate_series(1, 10000) i where 'a%' like '%'"

    failure = "'hr' failed: division by zero"
    with pytest.raises(AnaplatSourceError, match=failure), query("hr", fails_later) as (names, rows):  # noqa: PT012
        assert names == ["n", "x"]
        numbers = iter(rows)
        assert [row[0] for row in islice(numbers, 1_000)] == list(range(1, 1_001))
        list(numbers)


@pytest.mark.skipif(not _postgresql_is_there(), reason="there is no PostgreSQL on 127.0.0.1:5432")
@pytest.mark.parametrize("cursor", ["dictcursor", "namedtuplecursor"])
def test_rows_come_in_their_order_whatever_cursor_the_connection_asks_for(
    monkeypatch: pytest.MonkeyPatch, cursor: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", f"postgres://postgres@127.0.0.1:5432/test?cursor={cursor}")
    with query("hr", "select i as n, i + 1 as a from generate_series(1, 2000) i") as (names, rows):
        assert names == ["n", "a"]
        assert [tuple(row) for row in rows] == [(i, i + 1) for i in range(1, 2_001)]


class Cursorish:
    """A hook of a database that SQLAlchemy does not know."""

    def get_sqlalchemy_engine(self, engine_kwargs: Any = None) -> Any:
        raise NotImplementedError

    def get_conn(self) -> Any:
        import sqlite3

        return sqlite3.connect(":memory:")


def test_a_database_that_sqlalchemy_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_anaplat._airflow.releases import BaseHook

    monkeypatch.setenv("AIRFLOW_CONN_HR", '{"conn_type": "a database of its own"}')
    monkeypatch.setattr(BaseHook, "get_hook", lambda _: Cursorish())
    with query("hr", "select 1 as a, 2 as b union select 3, 4") as (names, rows):
        assert (names, list(rows)) == (["a", "b"], [(1, 2), (3, 4)])


@pytest.mark.parametrize(
    ("kind", "package"), [("vertica", "vertica"), ("mssql", "microsoft-mssql"), ("mariadb", "mysql")]
)
def test_the_provider_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, kind: str, package: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", f'{{"conn_type": "{kind}", "host": "h", "password": "p"}}')
    said = rf"'hr' is of the type '{kind}'.*Install .*apache-airflow-providers-{package},"
    with pytest.raises(AirflowFailException, match=said), query("hr", "select 1"):
        pass


def test_a_connection_that_is_no_database_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", '{"conn_type": "anaplat", "host": "h", "password": "p"}')
    with pytest.raises(AirflowFailException, match="'hr' is not one of an SQL database"), query("hr", "select 1"):
        pass


@pytest.mark.parametrize("sql", ["select secret from nowhere", "create table t (a)"])
def test_what_the_database_refuses_is_said_without_the_query(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", '{"conn_type": "sqlite", "host": ":memory:"}')
    with pytest.raises(AnaplatSourceError, match="'hr' failed: ") as raised, query("hr", sql):
        pass
    assert sql not in str(raised.value)


def test_a_database_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", "postgres://a:hidden@127.0.0.1:1/test")
    with pytest.raises(AnaplatSourceError, match=r"'hr' failed: .*onnect") as raised, query("hr", "select 1"):
        pass
    assert "hidden" not in str(raised.value)


def test_what_fails_where_the_rows_are_used_is_no_failure_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HR", '{"conn_type": "sqlite", "host": ":memory:"}')
    with pytest.raises(OSError, match="disk"), query("hr", "select 1") as (_, rows):  # noqa: PT012
        for _row in rows:
            raise OSError("the disk is full")
