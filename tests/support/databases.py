"""The databases of the tests: real servers where they run on loopback, and SQLite everywhere."""

from __future__ import annotations

import importlib
import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Database:
    """A database with a schema of its own for one test.

    :param name: ``postgres``, ``mysql`` or ``sqlite``
    :param fields: of its Airflow connection, whose default schema is the test's own
    :param hook_params: further arguments of its hook
    """

    name: str
    fields: dict[str, Any]
    schema: str | None
    hook_params: dict[str, Any] = field(default_factory=dict)

    def connect(self) -> Any:
        """Open a connection that is not the package's."""
        if self.name == "postgres":
            return importlib.import_module("psycopg").connect(
                host="127.0.0.1", user="root", dbname="test", options=f"-c search_path={self.schema}"
            )
        if self.name == "mysql":
            connector = importlib.import_module("mysql.connector")
            return connector.connect(host="127.0.0.1", user="root", password="", database=self.schema)
        return sqlite3.connect(self.fields["host"])

    def run(self, *statements: str) -> None:
        with closing(self.connect()) as connection:
            for statement in statements:
                connection.cursor().execute(statement)
            connection.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def tables(self) -> list[str]:
        query = (
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if self.name == "sqlite"
            else f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{self.schema}'"
        )
        return sorted(name for (name,) in self.rows(query))

    def quote(self, name: str) -> str:
        mark = "`" if self.name == "mysql" else '"'
        return mark + name.replace(mark, 2 * mark) + mark


_FILES = "-local-files"
# What a test may ask for: the databases, each through every driver that Airflow's hooks use, and these also where
# they may send files.
DRIVERS = [
    "postgres", "mysql-connector", f"mysql-connector{_FILES}", "mysqlclient", f"mysqlclient{_FILES}", "sqlite",
]  # fmt: skip
# And each database once, through the driver that is always there.
DATABASES = ["postgres", "mysql-connector", "sqlite"]


@contextmanager
def database(driver: str, folder: Path) -> Iterator[Database]:
    """Give a test a database, or skip it where there is none."""
    if driver == "sqlite":
        yield Database("sqlite", {"conn_type": "sqlite", "host": str(folder / "test.db")}, None)
        return
    schema = f"anaplat_test_{secrets.token_hex(6)}"
    server = {"host": "127.0.0.1", "login": "root"}
    if driver == "postgres":
        extra = {"options": f"-c search_path={schema}"}
        found = Database("postgres", {"conn_type": "postgres", **server, "schema": "test", "extra": extra}, schema)
        create, drop = f"CREATE SCHEMA {schema}", f"DROP SCHEMA {schema} CASCADE"
    else:
        name = driver.removesuffix(_FILES)
        client = {"mysql-connector": "mysql-connector-python", "mysqlclient": "mysqlclient"}[name]
        if name == "mysqlclient":
            pytest.importorskip("MySQLdb", reason="mysqlclient is not installed; it has to be compiled")
        fields = {"conn_type": "mysql", **server, "schema": schema, "extra": {"client": client}}
        found = Database("mysql", fields, schema, {"local_infile": True} if driver.endswith(_FILES) else {})
        create, drop = f"CREATE DATABASE {schema}", f"DROP DATABASE {schema}"
    outside = Database(found.name, found.fields, "test" if found.name == "mysql" else schema)
    try:
        outside.run(create)
    except Exception as error:  # noqa: BLE001 - whatever the driver says
        pytest.skip(f"no {found.name} server on 127.0.0.1: {error}")
    try:
        yield found
    finally:
        outside.run(drop)


def set_connection(monkeypatch: pytest.MonkeyPatch, found: Database) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps(found.fields))
