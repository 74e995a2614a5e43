"""A replacement changes no row of another table, whatever refers to the one that is loaded."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import numbers
from support.databases import Database

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.sql.drivers import open_session
from airflow_provider_anaplat.sql.target import SqlTarget

SALES = "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)"
KEPT = [(1,), (2,)]
LOADED = [(0,), (1,), (2,)]


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("sales", numbers(3))


def items(action: str, table: str = "items", parent: str = "sales") -> str:
    column = "n BIGINT DEFAULT 7" if "DEFAULT" in action else "n BIGINT"
    return (
        f"CREATE TABLE {table} ({column}, CONSTRAINT {table}_fk FOREIGN KEY (n) REFERENCES {parent} (n) {action})"
    )


def fill(*tables: str) -> list[str]:
    return [f"INSERT INTO {table} (n) VALUES (1), (2)" for table in tables]


def stored(db: Database, table: str) -> list[tuple[Any, ...]]:
    return db.rows(f"SELECT n FROM {table} ORDER BY n")


@pytest.fixture(params=["postgres", "mysql"])
def servers(request: pytest.FixtureRequest) -> Database:
    """SQLite enforces no foreign keys but where the connection says so; its tests are below."""
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("action", ["ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE SET DEFAULT"])
@pytest.mark.parametrize("filled", [True, False])
def test_a_table_whose_rows_would_go_along_is_named(
    servers: Database, load: Any, action: str, filled: bool
) -> None:
    if servers.name == "mysql" and "DEFAULT" in action:
        pytest.skip("InnoDB has no such action")
    servers.run(SALES, items(action), *fill("sales", *(["items"] if filled else [])))

    with pytest.raises(AnaplatLoadError, match=rf"items \(foreign key items_fk, {action}\).*upsert"):
        load()
    assert stored(servers, "sales") == KEPT
    assert stored(servers, "items") == (KEPT if filled else [])

    load(mode="upsert", key_columns=["n"])
    assert stored(servers, "items") == (KEPT if filled else [])


@pytest.mark.parametrize("action", ["", "ON DELETE NO ACTION", "ON DELETE RESTRICT"])
def test_rows_that_are_referred_to_are_not_replaced(servers: Database, load: Any, action: str) -> None:
    servers.run(SALES, items(action), *fill("sales"))
    load()

    assert stored(servers, "sales") == LOADED

    servers.run(*fill("items"))
    with pytest.raises(AnaplatLoadError, match=r"(?i)says: .*foreign key constraint.*items_fk"):
        load()
    assert stored(servers, "sales") == LOADED
    assert stored(servers, "items") == KEPT


def test_a_table_may_refer_to_itself_and_to_others(servers: Database, load: Any) -> None:
    servers.run(
        "CREATE TABLE boss (n BIGINT PRIMARY KEY)",
        "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION, up BIGINT, "
        "FOREIGN KEY (up) REFERENCES sales (n) ON DELETE CASCADE, "
        "FOREIGN KEY (n) REFERENCES boss (n) ON DELETE CASCADE)",
        "INSERT INTO boss VALUES (0), (1), (2)",
        "INSERT INTO sales (n, up) VALUES (1, NULL), (2, 1)",
    )
    load()

    assert stored(servers, "sales") == stored(servers, "boss") == LOADED


def test_a_table_of_another_schema_and_with_odd_names(servers: Database, load: Any) -> None:
    table, child = "odd % \"ta`ble'", "li%s \"n`es'"
    other = f"{servers.schema}_other"
    create, drop = ("DATABASE", "") if servers.name == "mysql" else ("SCHEMA", " CASCADE")
    servers.run(f"CREATE {create} {other}")
    try:
        child_name, parent = (f"{servers.quote(s)}.{servers.quote(t)}" for s, t in
                              ((other, child), (servers.schema or "", table)))  # fmt: skip
        servers.run(
            f"CREATE TABLE {parent} (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)",
            f"CREATE TABLE {child_name} (n BIGINT, FOREIGN KEY (n) REFERENCES {parent} (n) ON DELETE CASCADE)",
            *fill(parent, child_name),
        )
        for schema in (servers.schema, None):
            with pytest.raises(AnaplatLoadError, match=rf"{other}\.") as raised:
                load(table=table, schema=schema)
            assert "li%s" in str(raised.value)
        assert stored(servers, child_name) == KEPT
    finally:
        servers.run(f"DROP {create} {other}{drop}")


def test_tables_whose_names_differ_by_case_are_two(servers: Database, load: Any) -> None:
    upper = servers.quote("SALES")
    servers.run(
        SALES,
        f"CREATE TABLE {upper} (n BIGINT, FOREIGN KEY (n) REFERENCES sales (n) ON DELETE CASCADE)",
        *fill("sales", upper),
    )

    with pytest.raises(AnaplatLoadError, match="SALES"):
        load()
    assert stored(servers, upper) == KEPT


def test_many_such_tables_are_counted(postgres: Database, load: Any) -> None:
    postgres.run(SALES, *[items("ON DELETE CASCADE", f"items{number}") for number in range(8)])
    with pytest.raises(AnaplatLoadError, match=r"items0 .*items4 \([^)]*\); and 3 more"):
        load()


def test_a_rule_that_is_checked_at_the_commit(postgres: Database, load: Any) -> None:
    postgres.run(SALES, items("DEFERRABLE INITIALLY DEFERRED"), *fill("sales", "items"))
    load()
    postgres.run("INSERT INTO sales (n) VALUES (9)", "INSERT INTO items VALUES (9)")
    with pytest.raises(AnaplatLoadError, match=r"says: .*violates foreign key constraint .items_fk.*rolled back"):
        load()
    assert stored(postgres, "items") == [*KEPT, (9,)]


def test_a_connection_that_breaks_during_the_commit(
    postgres: Database, load: Any, caplog: pytest.LogCaptureFixture
) -> None:
    end = "BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END"
    postgres.run(
        SALES,
        f"CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS $$ {end} $$",
        "CREATE CONSTRAINT TRIGGER hang_up AFTER INSERT ON sales DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION hang_up()",
    )
    with pytest.raises(AnaplatLoadError, match=r"not known whether the rows are there: .*Run the task again"):
        load()
    assert "The roll-back failed, so it is left to the database" in caplog.text


@pytest.mark.parametrize("referred", ["sales", "sales_low"])
@pytest.mark.parametrize("target", ["sales", "sales_low"])
def test_foreign_keys_to_a_partitioned_table_or_a_partition(
    postgres: Database, load: Any, referred: str, target: str
) -> None:
    postgres.run(
        f"{SALES} PARTITION BY RANGE (n)",
        "CREATE TABLE sales_low PARTITION OF sales FOR VALUES FROM (0) TO (100)",
    )
    load(table=target)
    postgres.run(items("ON DELETE CASCADE", parent=referred), *fill("items"))

    with pytest.raises(AnaplatLoadError, match=r": items \(foreign key items_fk, ON DELETE CASCADE\)\. Use"):
        load(table=target)
    assert stored(postgres, "items") == KEPT


def test_a_table_that_others_inherit_from(postgres: Database, load: Any) -> None:
    postgres.run(SALES, "CREATE TABLE heirs () INHERITS (sales)", *fill("heirs"))
    with pytest.raises(AnaplatLoadError, match=r"heirs \(inherits from it\)"):
        load()
    assert stored(postgres, "heirs") == KEPT
    load(table="heirs")
    assert stored(postgres, "heirs") == LOADED


def test_a_view(servers: Database, load: Any) -> None:
    servers.run(
        SALES, "CREATE VIEW seen AS SELECT * FROM sales", items("ON DELETE CASCADE"), *fill("sales", "items")
    )
    with pytest.raises(AnaplatLoadError, match=r"the table behind it \(it is a view\)"):
        load(table="seen")
    assert stored(servers, "sales") == stored(servers, "items") == KEPT


def test_a_foreign_key_that_comes_while_rows_are_deleted(mysql: Database, load: Any) -> None:
    mysql.run(SALES, "CREATE TABLE log (n INT)", *fill("sales"))
    mysql.run("CREATE TRIGGER slow BEFORE DELETE ON sales FOR EACH ROW INSERT INTO log SELECT SLEEP(1)")
    failures: list[Exception] = []

    def replace() -> None:
        try:
            load()
        except AnaplatLoadError as error:
            failures.append(error)

    loading = threading.Thread(target=replace)
    loading.start()
    with closing(mysql.connect()) as connection:
        cursor = connection.cursor()
        for _ in range(400):
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'")
            if cursor.fetchone()[0]:
                break
        cursor.execute(items("ON DELETE CASCADE"))
    loading.join()
    assert "items_fk" in str(failures[0])
    assert stored(mysql, "sales") == KEPT


@pytest.fixture
def enforcing(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to SQLite that enforces foreign keys, with an attached database."""
    with closing(sqlite3.connect(tmp_path / "main.db")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("ATTACH ? AS other", [str(tmp_path / "other.db")])
        yield connection


def load_into(connection: sqlite3.Connection, client: AnaplatClient, **arguments: Any) -> None:
    target = SqlTarget(open_session(connection), **{"table": "sales", **arguments})
    export_rows(client, ExportPlan(RowQuery("ds1"), target))


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
@pytest.mark.parametrize("schema", [None, "main", "other"])
def test_sqlite_where_foreign_keys_are_enforced(
    enforcing: sqlite3.Connection, client: AnaplatClient, action: str, schema: str | None
) -> None:
    place = "other." if schema == "other" else ""
    create = [f"CREATE TABLE {place}Sales (n INTEGER PRIMARY KEY, half REAL)", *fill(f"{place}Sales")]
    child = f'CREATE TABLE {place}"li\'%s" (n INT DEFAULT 7 REFERENCES SALES (n) ON DELETE {action})'
    for statement in (*create, child, *fill(f'{place}"li\'%s"')):
        enforcing.execute(statement)
    enforcing.commit()

    with pytest.raises(AnaplatLoadError, match=re.escape(f"li'%s (a foreign key, ON DELETE {action})")):
        load_into(enforcing, client, schema=schema)
    assert enforcing.execute(f'SELECT n FROM {place}"li\'%s"').fetchall() == KEPT
    assert enforcing.execute(f"SELECT n FROM {place}Sales").fetchall() == KEPT

    enforcing.execute("PRAGMA foreign_keys = OFF")
    load_into(enforcing, client, schema=schema)

    assert enforcing.execute(f'SELECT n FROM {place}"li\'%s"').fetchall() == KEPT


@pytest.mark.parametrize("when", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_sqlite_where_rows_are_referred_to(
    enforcing: sqlite3.Connection, client: AnaplatClient, when: str
) -> None:
    enforcing.execute(
        "CREATE TABLE sales (n INTEGER PRIMARY KEY, half REAL, up INT REFERENCES sales ON DELETE CASCADE)"
    )
    enforcing.execute(f"CREATE TABLE items (n INT REFERENCES sales (n) {when})")
    load_into(enforcing, client)
    for statement in ("INSERT INTO sales (n) VALUES (9)", "INSERT INTO items (n) VALUES (9)"):
        enforcing.execute(statement)

    with pytest.raises(AnaplatLoadError, match=r"SQLite says: FOREIGN KEY constraint failed.*rolled back"):
        load_into(enforcing, client)
    assert enforcing.execute("SELECT n FROM sales").fetchall() == [*LOADED, (9,)]
