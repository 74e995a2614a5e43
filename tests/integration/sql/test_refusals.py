"""What cannot be loaded, and what the person who reads the log is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import numbers
from support.databases import Database

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import AnaplatCellError, AnaplatLoadError, AnaplatRequestError
from airflow_provider_anaplat.simulator import Simulator, Table

UPSERT: dict[str, Any] = {"mode": "upsert", "key_columns": ["n"]}


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("sales", numbers(3))


def text(value: str | None) -> Table:
    return Table.of_rows([("n", "INT"), ("text", "STRING")], [["1", "good"], ["2", value]])


def pages(simulator: Simulator) -> int:
    return len(simulator.requests("read_rows"))


@contextmanager
def loading_by(postgres: Database, monkeypatch: pytest.MonkeyPatch, *rights: str) -> Iterator[None]:
    """Let a user load who has some rights, and a password."""
    role = f"{postgres.schema}_loader"
    postgres.run(
        f"CREATE ROLE {role} LOGIN PASSWORD 's3cret-pass'",
        *[f"GRANT {right} TO {role}" for right in rights],
    )
    fields = {**postgres.fields, "login": role, "password": "s3cret-pass"}
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps(fields))
    try:
        yield
    finally:
        postgres.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_columns_that_the_table_lacks(each: Database, load: Any, simulator: Simulator) -> None:
    each.run("CREATE TABLE sales (a INT, b INT)", "INSERT INTO sales VALUES (1, 2)")
    with pytest.raises(AnaplatLoadError, match=r"lacks the columns 'n', 'half' of dataset ds1; it has 'a', 'b'"):
        load(page_size=1, concurrency=1)
    assert each.rows("SELECT * FROM sales") == [(1, 2)]
    assert pages(simulator) == 1


def test_two_columns_that_are_one_to_the_database(each: Database, load: Any, dataset: Any) -> None:
    dataset.table = Table.of_rows([("a", "INT"), ("A", "INT")], [["1", "2"]])
    each.run("CREATE TABLE sales (a INT)")
    with pytest.raises(AnaplatLoadError, match="'A'"):
        load()


def test_a_dataset_without_columns(db: Database, load: Any, dataset: Any) -> None:
    dataset.table = Table.of_rows([], [])
    db.run("CREATE TABLE sales (a INT)", "INSERT INTO sales VALUES (1)")
    with pytest.raises(AnaplatLoadError, match="has no columns, so there is nothing to load"):
        load()
    assert db.rows("SELECT * FROM sales") == [(1,)]


def test_a_column_of_other_case_is_found_where_case_makes_no_difference(db: Database, load: Any) -> None:
    db.run(f"CREATE TABLE sales ({db.quote('N')} INT PRIMARY KEY, {db.quote('HALF')} FLOAT)")
    if db.name == "postgres":
        with pytest.raises(AnaplatLoadError, match="lacks the columns 'n', 'half'"):
            load()
        return
    load(**UPSERT)
    load()

    assert db.rows("SELECT N FROM sales ORDER BY N") == [(0,), (1,), (2,)]


def test_a_table_without_a_unique_index(each: Database, load: Any, simulator: Simulator) -> None:
    each.run("CREATE TABLE sales (n INT, half FLOAT, other INT, PRIMARY KEY (n, half))")
    with pytest.raises(
        AnaplatLoadError, match=r"key_columns .n.: .*(no unique|not match|no such).*CREATE UNIQUE INDEX"
    ):
        load(**UPSERT, page_size=1, concurrency=1)
    assert pages(simulator) == 1


def test_a_key_twice(each: Database, load: Any, dataset: Any) -> None:
    load(**UPSERT)
    dataset.table = Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [["1", "7"], ["2", None], ["1", "8"]])
    with pytest.raises(AnaplatLoadError, match=r"several rows with the key .n. = 1,"):
        load(**UPSERT)
    assert each.rows("SELECT n, half FROM sales ORDER BY n") == [(0, 0), (1, 0.5), (2, 1)]


def test_a_key_twice_in_a_table_of_keys_alone(each: Database, load: Any, dataset: Any) -> None:
    each.run("CREATE TABLE sales (n BIGINT PRIMARY KEY)")
    dataset.table = Table.of_rows([("n", "LONG")], [["1"], ["2"], ["1"]])
    with pytest.raises(AnaplatLoadError, match=r"several rows with the key .n. = 1,"):
        load(**UPSERT)
    assert each.rows("SELECT n FROM sales") == []


def test_a_null_in_a_key(each: Database, load: Any, dataset: Any) -> None:
    load(**UPSERT)
    dataset.table = Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [["5", "7"], [None, "8"]])
    with pytest.raises(AnaplatLoadError, match=r"Row 2 of the dataset .* null in the key column 'n'"):
        load(**UPSERT, page_size=1)
    assert each.rows("SELECT COUNT(*) FROM sales") == [(3,)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "truncate"}, "replace, append, upsert"),
        ({"mode": "upsert"}, "key_columns must be a list"),
        ({"mode": "upsert", "key_columns": "n"}, "key_columns must be a list"),
        ({"key_columns": ["n"]}, "only then"),
        ({"mode": "upsert", "key_columns": ["n", "x"]}, "has no column 'x'; it has 'n', 'half'"),
        ({"table": "public.sales"}, "into the argument schema"),
        ({"table": ""}, "bare name"),
        ({"table": "Anaplat_Stage", **UPSERT}, "its own temporary table"),
        ({"hook_params": "local_infile"}, "hook_params must be a mapping .* of the type str"),
        ({"hook_params": {1: True}}, "hook_params must be a mapping .* by their names"),
    ],
)
def test_arguments_that_cannot_work(db: Database, load: Any, arguments: Any, words: str) -> None:
    with pytest.raises((AnaplatRequestError, AirflowFailException), match=words):
        load(**arguments)
    assert db.tables() == []


def test_names_that_the_database_would_cut(each: Database, load: Any, dataset: Any) -> None:
    long = "é" * 32 if each.name == "postgres" else "x" * 65
    dataset.table = Table.of_rows([(long, "INT")], [["1"]])
    if each.name == "sqlite":
        load(table=long)
        return

    with pytest.raises(AnaplatLoadError, match=rf"{long}' is longer than the 6[34]"):
        load()
    with pytest.raises(AnaplatLoadError, match=rf"{long}' is longer than the 6[34]"):
        load(table=long)
    assert each.tables() == []


def test_a_text_too_long_for_its_column(each: Database, load: Any, dataset: Any) -> None:
    if each.name == "sqlite":
        pytest.skip("SQLite limits no text")
    each.run("CREATE TABLE sales (n INT, text VARCHAR(5))", "INSERT INTO sales VALUES (9, 'old')")
    dataset.table = text("too long")

    with pytest.raises(AnaplatLoadError, match=r"into table .sales.: .* says: .*(too long|truncated)"):
        load()
    assert each.rows("SELECT * FROM sales") == [(9, "old")]


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("INT", ["1", "3000000000"]),
        ("INT NOT NULL", ["1", None]),
        ("INT UNIQUE", ["1", "2", "1"]),
        ("INT", ["1", "word"]),
        ("DATE", ["2026-01-01", "no day"]),
        ("DATE", ["2026-01-01", "2026-02-30"]),
    ],
)
def test_what_its_column_cannot_hold(
    each: Database, load: Any, dataset: Any, column: str, cells: list[str | None]
) -> None:
    if each.name == "sqlite":
        pytest.skip("SQLite's columns hold anything")
    each.run(f"CREATE TABLE sales (c {column}, n INT)", f"INSERT INTO sales VALUES ('{cells[0]}', 9)")
    before = each.rows("SELECT * FROM sales")
    dataset.table = Table.of_rows([("c", "STRING")], [[cell] for cell in cells])

    with pytest.raises(AnaplatLoadError, match=r"Cannot load dataset ds1 into table .sales.: .* says: "):
        load()
    assert each.rows("SELECT * FROM sales") == before


@pytest.mark.parametrize("mode", [{}, UPSERT], ids=["replace", "upsert"])
@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_a_column_that_the_table_computes(each: Database, load: Any, mode: Any, kind: str) -> None:
    if (each.name, kind) == ("postgres", "VIRTUAL"):
        pytest.skip("PostgreSQL before 18 has none")
    each.run(
        f"CREATE TABLE sales (n BIGINT PRIMARY KEY, half BIGINT GENERATED ALWAYS AS (n * 2) {kind})",
        "INSERT INTO sales (n) VALUES (0), (1), (2)",
    )
    with pytest.raises(AnaplatLoadError, match=r"computes the columns 'half'|generated column"):
        load(**mode)
    assert each.rows("SELECT n, half FROM sales") == [(0, 0), (1, 2), (2, 4)]


@pytest.mark.parametrize("setting", ["", "SET SESSION max_error_count = 0"])
def test_no_warning_of_mysql_is_lost(
    mysql: Database, load: Any, dataset: Any, hook_params: dict[str, Any], setting: str
) -> None:
    hook_params.update({"local_infile": True}, init_command=setting)
    mysql.run("CREATE TABLE sales (c DATE)", "INSERT INTO sales VALUES ('2020-01-01')")
    before = mysql.rows("SELECT * FROM sales")
    # Of a time that a date has no room for the server only notes, and of what it says, it keeps 64 lines.
    cells = ["2026-01-01 10:00:00"] * 100 + ["no day"]
    dataset.table = Table.of_rows([("c", "STRING")], [[cell] for cell in cells])

    with pytest.raises(AnaplatLoadError, match=r"says: .*'c' at row 101"):
        load()
    assert mysql.rows("SELECT * FROM sales") == before


def test_nul_in_postgresql(postgres: Database, load: Any, dataset: Any) -> None:
    postgres.run("CREATE TABLE sales (n INT, text TEXT)", "INSERT INTO sales VALUES (9, 'old')")
    dataset.table = text("a\0b")

    with pytest.raises(
        AnaplatLoadError, match=r"dataset ds1 into table .* PostgreSQL says: invalid byte sequence.*0x00"
    ):
        load()
    assert postgres.rows("SELECT * FROM sales") == [(9, "old")]


def test_a_trigger_that_keeps_rows_away(postgres: Database, load: Any) -> None:
    postgres.run(
        "CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)",
        "CREATE FUNCTION keep_away() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER none BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION keep_away()",
    )

    with pytest.raises(AnaplatLoadError, match="took 0 of 3 rows"):
        load()


KEPT = {
    "sqlite": {
        "a trigger that cancels": ["CREATE TRIGGER keep BEFORE DELETE ON sales BEGIN SELECT RAISE(IGNORE); END"],
        "a trigger that restores": [
            "CREATE TRIGGER keep AFTER DELETE ON sales BEGIN INSERT INTO sales VALUES (old.n, old.half); END"
        ],
    },
    "postgres": {
        "a trigger that cancels": [
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN IF old.n = 9 THEN RETURN NULL; END IF; RETURN old; END'",
            "CREATE TRIGGER keep BEFORE DELETE ON sales FOR EACH ROW EXECUTE FUNCTION keep()",
        ],
        "a trigger that restores": [
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN INSERT INTO sales VALUES (9, 0); RETURN NULL; END'",
            "CREATE TRIGGER keep AFTER DELETE ON sales EXECUTE FUNCTION keep()",
        ],
        "a rule": ["CREATE RULE keep AS ON DELETE TO sales DO INSTEAD NOTHING"],
        "a rule for some": ["CREATE RULE keep AS ON DELETE TO sales WHERE old.n = 9 DO INSTEAD NOTHING"],
    },
}


@pytest.mark.parametrize(("database", "by"), [(name, by) for name, ways in KEPT.items() for by in ways])
def test_rows_that_are_kept_by(database: str, by: str, request: pytest.FixtureRequest, load: Any) -> None:
    db: Database = request.getfixturevalue(database)
    db.run(
        "CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)",
        "INSERT INTO sales VALUES (8, 0), (9, 0)",
        *KEPT[database][by],
    )

    with pytest.raises(AnaplatLoadError, match=r"[12] rows of table .sales. were not deleted.*rolled back"):
        load()

    assert db.rows("SELECT n FROM sales ORDER BY n") == [(8,), (9,)]
    load(mode="append")
    assert db.rows("SELECT COUNT(*) FROM sales") == [(5,)]


def test_a_trigger_that_refuses_a_delete(mysql: Database, load: Any) -> None:
    """It is all that a trigger can do against it here."""
    mysql.run(
        "CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)",
        "INSERT INTO sales VALUES (9, 0)",
        "CREATE TRIGGER keep BEFORE DELETE ON sales FOR EACH ROW SIGNAL SQLSTATE '45000'",
    )

    with pytest.raises(AnaplatLoadError, match=r"says: .*45000"):
        load()

    assert mysql.rows("SELECT n FROM sales") == [(9,)]


@pytest.mark.parametrize(
    "policies",
    [
        ["FOR ALL USING (n <> 9) WITH CHECK (true)"],
        ["FOR SELECT USING (true)", "FOR INSERT WITH CHECK (true)", "FOR DELETE USING (n <> 9)"],
        ["FOR INSERT WITH CHECK (true)"],
    ],
    ids=str,
)
def test_rows_that_a_policy_protects_from_the_user_who_loads(
    postgres: Database, load: Any, monkeypatch: pytest.MonkeyPatch, policies: list[str]
) -> None:
    postgres.run(
        "CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)",
        "INSERT INTO sales VALUES (8, 0), (9, 0)",
        "ALTER TABLE sales ENABLE ROW LEVEL SECURITY",
        *[f"CREATE POLICY p{number} ON sales {policy}" for number, policy in enumerate(policies)],
    )
    # If it hides them, too, the database takes no COPY into the table.
    refused = r"(?i)1 rows .* not deleted.*row-level|COPY .* row-level"
    with (
        loading_by(postgres, monkeypatch, f"USAGE, CREATE ON SCHEMA {postgres.schema}", "ALL ON sales"),
        pytest.raises(AnaplatLoadError, match=refused),
    ):
        load()

    assert postgres.rows("SELECT n FROM sales ORDER BY n") == [(8,), (9,)]


@pytest.mark.parametrize("cell", ["NaN", "inf"])
def test_numbers_that_are_none(each: Database, load: Any, dataset: Any, cell: str) -> None:
    dataset.table = Table.of_rows([("d", "DOUBLE")], [[cell]])
    if each.name == "postgres":
        load()
        assert each.rows("SELECT d::text FROM sales") == [({"NaN": "NaN", "inf": "Infinity"}[cell],)]
        return

    with pytest.raises(AnaplatCellError, match="not a DOUBLE"):
        load()


def test_no_rights(postgres: Database, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.run("CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)")
    with (
        loading_by(postgres, monkeypatch, f"USAGE ON SCHEMA {postgres.schema}", "SELECT ON sales"),
        pytest.raises(AnaplatLoadError, match='into table "sales": PostgreSQL says: permission denied') as caught,
    ):
        load()
    assert "s3cret-pass" not in str(caught.value)


def test_an_engine_without_transactions(mysql: Database, load: Any) -> None:
    mysql.run("CREATE TABLE sales (n BIGINT, half DOUBLE) ENGINE=MyISAM", "INSERT INTO sales VALUES (9, 9)")
    with pytest.raises(AnaplatLoadError, match=re.escape("ALTER TABLE `sales` ENGINE=InnoDB")):
        load()
    assert mysql.rows("SELECT * FROM sales") == [(9, 9)]


def test_nothing_is_cut_where_the_server_is_lenient(mysql: Database, load: Any, dataset: Any) -> None:
    mysql.run("CREATE TABLE sales (n INT, text VARCHAR(5))")
    (mode,) = mysql.rows("SELECT @@GLOBAL.sql_mode")
    mysql.run("SET GLOBAL sql_mode = ''")
    try:
        dataset.table = text("too long")
        with pytest.raises(AnaplatLoadError, match="Data too long for column 'text'"):
            load()
    finally:
        mysql.run(f"SET GLOBAL sql_mode = '{mode[0]}'")


def test_a_connection_that_is_no_database(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps({"conn_type": "anaplat", "host": "h", "password": "p"}))
    with pytest.raises(AirflowFailException, match="AnaplatHook"):
        load()


@pytest.mark.parametrize(
    ("kind", "package"),
    [("vertica", "vertica"), ("mssql", "microsoft-mssql"), ("hiveserver2", "apache-hive"), ("", "common-sql")],
)
def test_a_database_whose_provider_is_not_installed(
    load: Any, monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps({"conn_type": kind, "host": "h", "password": "p"}))
    with pytest.raises(AirflowFailException, match=rf"'database' is of the type .*-providers-{package},"):
        load()


def test_a_server_that_is_not_there(db: Database, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if db.name == "sqlite":
        fields = {**db.fields, "host": "/nowhere/at/all.db"}
    else:
        fields = {**db.fields, "port": 1, "password": "s3cret-pass"}
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps(fields))

    with pytest.raises(AnaplatLoadError, match="cannot connect to the database of 'database': ") as caught:
        load()
    assert "s3cret-pass" not in repr(caught.value)


def test_rows_that_a_table_keeps_away_at_an_upsert(postgres: Database, load: Any) -> None:
    postgres.run(
        "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)",
        "CREATE FUNCTION keep_away() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF new.n = 1 THEN RETURN NULL; END IF; RETURN new; END'",
        "CREATE TRIGGER one BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION keep_away()",
    )

    with pytest.raises(AnaplatLoadError, match="1 rows of the dataset did not arrive"):
        load(**UPSERT)
    assert postgres.rows("SELECT * FROM sales") == []


_KEEPING = {
    "postgres": [
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER keep BEFORE UPDATE ON sales FOR EACH ROW EXECUTE FUNCTION keep()",
    ],
    "sqlite": ["CREATE TRIGGER keep BEFORE UPDATE ON sales BEGIN SELECT RAISE(IGNORE); END"],
}


@pytest.mark.parametrize("name", _KEEPING)
def test_rows_that_a_table_keeps_as_they_were_at_an_upsert(
    request: pytest.FixtureRequest, load: Any, dataset: Any, name: str
) -> None:
    db: Database = request.getfixturevalue(name)
    table = "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)"
    db.run(table, "INSERT INTO sales VALUES (1, 9), (2, 1)", *_KEEPING[name])

    with pytest.raises(AnaplatLoadError, match=r"1 rows of .* are not what the dataset has"):
        load(**UPSERT)
    assert db.rows("SELECT * FROM sales ORDER BY n") == [(1, 9), (2, 1)]

    db.run("DELETE FROM sales WHERE n = 1")
    assert load(**UPSERT)["rows"] == 3  # the trigger passes over a row that is the same

    dataset.table = Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [["2", "1"], ["2", "7"]])
    with pytest.raises(AnaplatLoadError, match=r"several rows with the key .n. = 2,"):
        load(**UPSERT)


@pytest.mark.parametrize("clause", ["IGNORE", "REPLACE"])
@pytest.mark.parametrize("mode", ["replace", "append"])
def test_a_table_that_settles_conflicts_itself(
    sqlite: Database, load: Any, dataset: Any, clause: str, mode: str
) -> None:
    sqlite.run(f"CREATE TABLE sales (n INT UNIQUE ON CONFLICT {clause})", "INSERT INTO sales VALUES (9)")
    dataset.table = Table.of_rows([("n", "INT")], [["1"], ["1"], ["2"]])
    with pytest.raises(AnaplatLoadError, match="took 2 of 3 rows"):
        load(mode=mode)
    assert sqlite.rows("SELECT n FROM sales") == [(9,)]


def test_keys_that_are_one_by_the_collation_of_the_table(sqlite: Database, load: Any, dataset: Any) -> None:
    sqlite.run("CREATE TABLE sales (k TEXT COLLATE NOCASE PRIMARY KEY, v INT)")
    dataset.table = Table.of_rows([("k", "STRING"), ("v", "INT")], [["Ada", "1"], ["ada", "2"]])
    with pytest.raises(AnaplatLoadError, match="several rows with the key"):
        load(mode="upsert", key_columns=["k"])
