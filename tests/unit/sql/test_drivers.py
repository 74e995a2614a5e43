"""Sessions on connections that no hook of Airflow gives here: the older PostgreSQL driver, unknown databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from conftest import TEXTS, numbers
from support.databases import Database, database

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatLoadError, AnaplatPermissionError, AnaplatRequestError
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table, replies
from airflow_provider_anaplat.sql.drivers import open_session
from airflow_provider_anaplat.sql.ledger import LoadKey
from airflow_provider_anaplat.sql.target import SqlTarget

QUERY = RowQuery("ds1", page_size=10, concurrency=1)
KEY = LoadKey("dag", "run", "task", -1)


class Unknown:
    """A connection of a driver that the package has never heard of, to a database that happens to be SQLite."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Database]:
    with database("postgres", tmp_path) as found:
        yield found


def connect(postgres: Database, **options: Any) -> Any:
    return closing(
        psycopg2.connect(
            host="127.0.0.1", user="root", dbname="test", options=f"-c search_path={postgres.schema}", **options
        )
    )


@pytest.mark.parametrize("rows", ["tuples", "mappings"])
def test_psycopg2(client: AnaplatClient, simulator: Simulator, postgres: Database, rows: str) -> None:
    import psycopg2.extras

    dataset = simulator.platform.add_dataset("texts", TEXTS)
    factory = None if rows == "tuples" else psycopg2.extras.RealDictCursor
    with connect(postgres, cursor_factory=factory) as connection:
        target = SqlTarget(open_session(connection), "t", mode="append", load_key=KEY)
        assert target.recorded() is None
        assert export_rows(client, ExportPlan(QUERY, target)).rows == 4
        recorded = target.recorded()
        assert recorded is not None
        assert (recorded.rows, recorded.columns, recorded.version) == (4, 2, 1)
        stored = postgres.rows("SELECT text FROM t ORDER BY id")
        assert [text for (text,) in stored] == [None, "", "null", 'quo"te, back\\slash\nand 😀 中']
        dataset.table = Table.of_rows([("id", "INT"), ("text", "STRING")], [["1", "\\."], ["2", "a\0b"]])
        with pytest.raises(AnaplatLoadError, match=r"PostgreSQL says: .*0x00"):
            export_rows(client, ExportPlan(QUERY, SqlTarget(open_session(connection), "t")))
        assert postgres.rows("SELECT text FROM t ORDER BY id") == stored
        upsert = SqlTarget(open_session(connection), "u", mode="upsert", key_columns=["id"])
        dataset.table = TEXTS
        export_rows(client, ExportPlan(QUERY, upsert))
        dataset.table = Table.of_rows([("id", "INT"), ("text", "STRING")], [["1", "a"], ["1", "b"]])
        with pytest.raises(AnaplatLoadError, match=r'several rows with the key "id" = 1,'):
            export_rows(client, ExportPlan(QUERY, upsert))
    assert postgres.rows("SELECT text FROM u ORDER BY id") == stored


def test_what_is_not_said_by_the_database_is_no_refusal_of_it(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        session = open_session(connection)
        with pytest.raises(AnaplatLoadError), session.refusals("Cannot count"):
            connection.execute("SELECT COUNT(*) FROM nothing")
        with pytest.raises(ZeroDivisionError), session.refusals("Cannot count"):
            raise ZeroDivisionError


def test_an_unknown_database(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    with closing(Unknown(tmp_path / "x.db")) as connection, closing(sqlite3.connect(tmp_path / "x.db")) as reader:
        session = open_session(connection, placeholder="?", quotes="[]")
        with pytest.raises(AnaplatLoadError, match=r"no such table: sales"):
            export_rows(client, ExportPlan(QUERY, SqlTarget(session, "sales")))
        reader.execute("CREATE TABLE sales (N BIGINT, HALF FLOAT)")
        reader.execute("INSERT INTO sales VALUES (99, 9)")
        reader.commit()
        simulator.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)
        with pytest.raises(AnaplatPermissionError):
            export_rows(client, ExportPlan(QUERY, SqlTarget(session, "sales")))
        assert reader.execute("SELECT * FROM sales").fetchall() == [(99, 9)]
        for _ in "twice":
            export_rows(client, ExportPlan(QUERY, SqlTarget(session, "sales")))
        assert reader.execute("SELECT N FROM sales ORDER BY N").fetchall() == [(n,) for n in range(30)]
        append = SqlTarget(session, "sales", mode="append", load_key=KEY)
        export_rows(client, ExportPlan(QUERY, append))
        assert reader.execute("SELECT COUNT(*) FROM sales").fetchone() == (60,)
        recorded = append.recorded()
        assert recorded is not None
        assert recorded.rows == 30
        with pytest.raises(AnaplatRequestError, match="merge it with a task that runs SQL"):
            SqlTarget(session, "sales", mode="upsert", key_columns=["n"])
