"""Rows that an upsert finds in the table already, and tables that it takes as they are."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import numbers
from support.databases import Database

from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.simulator import Simulator, Table

UPSERT: dict[str, Any] = {"mode": "upsert", "key_columns": ["n"]}
TABLE = "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)"
LOADED = [(0, 0), (1, 0.5), (2, 1)]


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("sales", numbers(3))


def test_rows_that_are_the_same_already_are_not_written_again(postgres: Database, load: Any) -> None:
    postgres.run(TABLE, "INSERT INTO sales VALUES (0, 0), (1, 9), (8, 8)")
    places = dict(postgres.rows("SELECT n, ctid::text FROM sales"))

    assert load(**UPSERT)["rows"] == 3

    assert postgres.rows("SELECT n, half FROM sales ORDER BY n") == [*LOADED, (8, 8)]
    after = dict(postgres.rows("SELECT n, ctid::text FROM sales"))
    assert {n for n, place in places.items() if after[n] == place} == {0, 8}


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        ("NUMERIC", "1.0", "1.00"),
        ("DOUBLE PRECISION", "0", "-0"),
        ("JSON", '{"a": 1}', '{"a":1}'),
        ("INTERVAL", "24:00:00", "1 day"),
        ("TEXT", None, ""),
        ("TEXT", "", None),
        ("TEXT", "x" * 5_000, "x" * 4_999 + "y"),
    ],
)
def test_rows_that_are_equal_but_not_the_same_are_updated(
    postgres: Database, load: Any, dataset: Any, column: str, old: str | None, new: str | None
) -> None:
    postgres.run(f"CREATE TABLE sales (n BIGINT PRIMARY KEY, value {column})")
    for value in (old, new):
        dataset.table = Table.of_rows([("n", "LONG"), ("value", "STRING")], [["1", value]])
        load(**UPSERT)

    assert postgres.rows("SELECT value::text FROM sales") == [(new,)]


def test_a_key_twice_with_a_row_that_is_the_same_already(each: Database, load: Any, dataset: Any) -> None:
    load(**UPSERT)
    dataset.table = Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [["1", "0.5"], ["1", "8"]])
    with pytest.raises(AnaplatLoadError, match=r"several rows with the key .n. = 1,"):
        load(**UPSERT)
    assert each.rows("SELECT n, half FROM sales ORDER BY n") == LOADED


def test_a_trigger_of_a_partition_that_keeps_a_row_as_it_was(postgres: Database, load: Any) -> None:
    postgres.run(
        f"{TABLE} PARTITION BY RANGE (n)",
        "CREATE TABLE rest PARTITION OF sales DEFAULT",
        "INSERT INTO sales VALUES (0, 0), (1, 9)",
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER keep BEFORE UPDATE ON rest FOR EACH ROW EXECUTE FUNCTION keep()",
    )

    with pytest.raises(AnaplatLoadError, match=r"1 rows of .* are not what the dataset has"):
        load(**UPSERT)

    assert postgres.rows("SELECT n, half FROM sales ORDER BY n") == [(0, 0), (1, 9)]


def test_a_view(postgres: Database, load: Any) -> None:
    postgres.run(
        TABLE, "ALTER TABLE sales RENAME TO behind", "CREATE VIEW sales AS SELECT * FROM behind",
        "INSERT INTO behind VALUES (0, 0), (1, 9)",
    )  # fmt: skip

    load(**UPSERT)

    assert postgres.rows("SELECT n, half FROM behind ORDER BY n") == LOADED


def test_rows_of_a_table_that_inherits_from_it_stay(postgres: Database, load: Any) -> None:
    postgres.run(TABLE, "CREATE TABLE heir () INHERITS (sales)", "INSERT INTO heir VALUES (1, 9)")

    load(**UPSERT)

    assert postgres.rows("SELECT n, half FROM ONLY sales ORDER BY n") == LOADED
    assert postgres.rows("SELECT n, half FROM heir") == [(1, 9)]


def test_a_trigger_sees_each_row(postgres: Database, load: Any) -> None:
    postgres.run(
        TABLE,
        "INSERT INTO sales VALUES (0, 0), (1, 9)",
        "CREATE TABLE seen (n BIGINT)",
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO seen VALUES (new.n); RETURN new; END'",
        "CREATE TRIGGER see BEFORE UPDATE ON sales FOR EACH ROW EXECUTE FUNCTION see()",
    )

    load(**UPSERT)

    assert postgres.rows("SELECT n FROM seen ORDER BY n") == [(0,), (1,)]


def test_a_server_that_allows_one_engine_alone(mysql: Database, load: Any, hook_params: dict[str, Any]) -> None:
    hook_params["init_command"] = "SET SESSION enforce_storage_engine = InnoDB"
    if not mysql.rows("SHOW VARIABLES LIKE 'enforce_storage_engine'"):
        pytest.skip("MySQL has no such setting")
    mysql.run("CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE)", "INSERT INTO sales VALUES (1, 9)")

    load(**UPSERT)

    assert mysql.rows("SELECT n, half FROM sales ORDER BY n") == LOADED


@pytest.mark.parametrize("rows", ["", "INSERT INTO sales VALUES (9, 9)"])
def test_a_trigger_of_statements_that_update(postgres: Database, load: Any, rows: str) -> None:
    """PostgreSQL runs it for each upsert, whatever rows there were."""
    postgres.run(
        TABLE,
        rows or "SELECT 1",
        "CREATE TABLE seen (at TIMESTAMP DEFAULT now())",
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO seen DEFAULT VALUES; RETURN NULL; END'",
        "CREATE TRIGGER see AFTER UPDATE ON sales EXECUTE FUNCTION see()",
    )

    load(**UPSERT)

    assert postgres.rows("SELECT COUNT(*) FROM seen") == [(1,)]


def test_a_key_that_is_checked_at_the_commit_is_refused_for_a_table_without_rows_too(
    postgres: Database, load: Any
) -> None:
    postgres.run("CREATE TABLE sales (n BIGINT PRIMARY KEY DEFERRABLE, half DOUBLE PRECISION)")
    with pytest.raises(Exception, match="deferrable"):
        load(**UPSERT)
    assert postgres.rows("SELECT n FROM sales") == []
