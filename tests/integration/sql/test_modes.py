"""Each mode on each database: what stands in the table, and what the task returns."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from conftest import numbers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.databases import Database

from airflow_provider_anaplat.simulator import Simulator, Table

TEXTS = [
    None, "", "null", "NULL", "\\N", "\\.", "a\nb", "a\n\\.\nb", "a\r\nb", "\r", "\t", 'quo"te', "it's", "`",
    "back\\slash\\",
    "%s", "%", "?", ":x", "{}", "中", "😀", " spaces ", "x" * 100_000,
]  # fmt: skip


def keyed(*rows: tuple[int, str | None]) -> Table:
    return Table.of_rows([("id", "INT"), ("name", "STRING")], [[str(key), name] for key, name in rows])


def test_replace(each: Database, load: Any, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("sales", numbers(25))
    result = load(page_size=10)

    assert result == {
        "dsId": "ds1", "table": "sales", "mode": "replace", "rows": 25, "columns": 2, "version": 1,
        "utime": dataset.fields()["utime"], "alreadyLoaded": False,
    }  # fmt: skip
    assert each.rows("SELECT n, half FROM sales ORDER BY n") == [(i, i / 2) for i in range(25)]

    dataset.table = numbers(7)
    assert load(page_size=10)["rows"] == 7
    assert each.rows("SELECT n, half FROM sales ORDER BY n") == [(i, i / 2) for i in range(7)]
    assert each.tables() == ["sales"]


def test_append(each: Database, load: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", numbers(25))
    assert load("first", mode="append", page_size=10)["alreadyLoaded"] is False
    assert load("second", mode="append", page_size=10)["rows"] == 25
    assert each.rows("SELECT n, COUNT(*) FROM sales GROUP BY n ORDER BY n") == [(i, 2) for i in range(25)]


def test_upsert(each: Database, load: Any, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("sales", keyed((1, "one"), (2, "two"), (3, None)))
    load(mode="upsert", key_columns=["id"], page_size=2)
    each.run("INSERT INTO sales (id, name) VALUES (9, 'kept')")
    dataset.table = keyed((2, "zwei"), (3, ""), (4, "four"))

    assert load(mode="upsert", key_columns=["id"], page_size=2)["rows"] == 3
    assert each.rows("SELECT id, name FROM sales ORDER BY id") == [
        (1, "one"), (2, "zwei"), (3, ""), (4, "four"), (9, "kept"),
    ]  # fmt: skip
    assert each.tables() == ["sales"]


def test_upsert_by_several_keys_and_nothing_else(each: Database, load: Any, simulator: Simulator) -> None:
    columns = [("day", "DATE"), ("shop", "STRING")]
    dataset = simulator.platform.add_dataset(
        "s", Table.of_rows(columns, [["2024-01-01", "a"], ["2024-01-01", "b"]])
    )
    load(mode="upsert", key_columns=["shop", "day"])
    dataset.table = Table.of_rows(columns, [["2024-01-01", "b"], ["2024-01-02", "b"]])
    load(mode="upsert", key_columns=["shop", "day"])

    assert [(str(day), shop) for day, shop in each.rows("SELECT day, shop FROM sales ORDER BY day, shop")] == [
        ("2024-01-01", "a"), ("2024-01-01", "b"), ("2024-01-02", "b"),
    ]  # fmt: skip


def test_types(each: Database, load: Any, simulator: Simulator) -> None:
    columns = [("i", "INT"), ("l", "LONG"), ("d", "DOUBLE"), ("s", "STRING"), ("day", "DATE"), ("o", "TIMESTAMP")]
    rows: list[list[str | None]] = [
        ["-1", "9223372036854775807", "1.7976931348623157e308", "1", "0001-01-01", "2024-01-01 12:00:00"],
        ["007", "-9223372036854775808", "5e-324", "1.0", "9999-12-31", ""],
        [None] * 6,
    ]
    simulator.platform.add_dataset("types", Table.of_rows(columns, rows))
    load()
    first, last = ("0001-01-01", "9999-12-31") if each.name == "sqlite" else (date(1, 1, 1), date(9999, 12, 31))

    assert each.rows("SELECT * FROM sales ORDER BY i IS NULL, i") == [
        (-1, 2**63 - 1, 1.7976931348623157e308, "1", first, "2024-01-01 12:00:00"),
        (7, -(2**63), 5e-324, "1.0", last, ""),
        (None,) * 6,
    ]


def test_years_of_two_digits(each: Database, load: Any, simulator: Simulator) -> None:
    days = ["0010-03-04", "0069-01-01", "0070-01-01", "0099-12-31", "0100-01-01", "0999-09-09"]
    simulator.platform.add_dataset("days", Table.of_rows([("day", "DATE")], [[day] for day in days]))
    load()
    assert [str(day) for (day,) in each.rows("SELECT day FROM sales ORDER BY day")] == days


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_texts_survive(each: Database, load: Any, simulator: Simulator, mode: str) -> None:
    rows = [[str(number), text] for number, text in enumerate(TEXTS)]
    simulator.platform.add_dataset("texts", Table.of_rows([("id", "INT"), ("text", "STRING")], rows))
    load(mode=mode, key_columns=["id"] if mode == "upsert" else None, page_size=1)  # each is written alone
    assert [text for _, text in each.rows("SELECT id, text FROM sales ORDER BY id")] == TEXTS


@pytest.mark.parametrize("local_infile", [False, True])
def test_texts_survive_a_connection_of_another_encoding(
    mysql: Database, load: Any, simulator: Simulator, hook_params: dict[str, Any], local_infile: bool
) -> None:
    hook_params.update(local_infile=local_infile, init_command="SET NAMES latin1")
    simulator.platform.add_dataset("texts", keyed(*enumerate(TEXTS)))
    load()
    assert mysql.rows("SELECT name FROM sales ORDER BY id") == [(text,) for text in TEXTS]


@pytest.mark.parametrize("local_infile", [False, True])
def test_an_empty_text_stays_one_where_a_server_would_make_it_null(
    mysql: Database, load: Any, simulator: Simulator, hook_params: dict[str, Any], local_infile: bool
) -> None:
    """MariaDB has a mode for those who come from Oracle."""
    if "MariaDB" not in mysql.rows("SELECT VERSION()")[0][0]:
        pytest.skip("MySQL has no such mode")
    mode = "SET sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL'"
    hook_params.update(local_infile=local_infile, init_command=mode)
    simulator.platform.add_dataset("texts", keyed((1, ""), (2, None)))
    load()
    assert mysql.rows("SELECT name FROM sales ORDER BY id") == [("",), (None,)]


def test_texts_that_are_the_only_column(each: Database, load: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", Table.of_rows([("text", "STRING")], [[text] for text in TEXTS]))
    load()
    assert sorted(map(repr, each.rows("SELECT text FROM sales"))) == sorted(repr((text,)) for text in TEXTS)


def test_names(each: Database, load: Any, simulator: Simulator) -> None:
    names = [
        "select",
        "a b",
        'quo"te',
        "back`tick",
        "100%",
        "a?b",
        "中文",
        "line\nbreak",
        "{x}",
        "VALUES (--/*",
        "a",
        "a",
    ]
    simulator.platform.add_dataset("n", Table.of_rows([(n, "STRING") for n in names], [[*map(str, range(12))]]))
    table = "odd % \"ta`ble'"
    quoted = each.quote(table)
    for _ in "create", "replace":
        load(table=table)
        assert each.rows(f"SELECT * FROM {quoted}") == [tuple(map(str, range(12)))]
    each.run(f"DROP TABLE {quoted}")
    for _ in "create", "update":
        load(table=table, mode="upsert", key_columns=["100%", "a?b"])
        assert each.rows(f"SELECT {each.quote('a (2)')} FROM {quoted}") == [("11",)]


@pytest.mark.parametrize("mode", [{"mode": "append"}, {"mode": "upsert", "key_columns": ["id"]}], ids=str)
@pytest.mark.parametrize(
    "name", ["%s", "%(0)s", "%(x)s", "%%", "a%sb;%s", "VALUES (%s)", "x) VALUES (%s, '", ":1"]
)
def test_names_that_a_driver_could_take_for_a_value(
    each: Database, load: Any, simulator: Simulator, name: str, mode: dict[str, Any]
) -> None:
    columns = [("id", "LONG"), (name, "STRING"), ("plain", "STRING")]
    rows: list[list[str | None]] = [[str(number), f"{name}{number}", f"%s{number}"] for number in range(3)]
    simulator.platform.add_dataset("named", Table.of_rows(columns, rows))
    load(table=f"t{name}", **mode)

    assert each.rows(f"SELECT {each.quote(name)}, plain FROM {each.quote('t' + name)} ORDER BY id") == [
        (f"{name}{number}", f"%s{number}") for number in range(3)
    ]


def test_another_schema(db: Database, load: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", numbers(3))
    schema = db.schema or "main"
    if db.name == "postgres":
        db.fields["extra"] = {}

    assert load("run", schema=schema, mode="append")["table"] == f"{schema}.sales"
    assert load("run", schema=schema, mode="append")["alreadyLoaded"] is True

    load(schema=schema, table="keyed", mode="upsert", key_columns=["n"])
    assert len(db.rows("SELECT * FROM sales")) == len(db.rows("SELECT * FROM keyed")) == 3
    assert db.tables() == ["anaplat_loads", "keyed", "sales"]


def test_an_existing_table_has_its_own_types_order_and_further_columns(
    db: Database, load: Any, simulator: Simulator
) -> None:
    db.run("CREATE TABLE sales (half NUMERIC(10, 2), source VARCHAR(9) DEFAULT 'anaplat', n VARCHAR(5))")
    simulator.platform.add_dataset("sales", numbers(2))
    load()
    rows = [(float(half), source, n) for half, source, n in db.rows("SELECT * FROM sales ORDER BY n")]
    assert rows == [(0.0, "anaplat", "0"), (0.5, "anaplat", "1")]


def test_a_dataset_without_rows(db: Database, load: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", numbers(0))
    assert load()["rows"] == 0
    assert db.rows("SELECT n, half FROM sales") == []


def test_replace_keeps_what_belongs_to_the_table(postgres: Database, load: Any, simulator: Simulator) -> None:
    postgres.run(
        "CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)",
        "CREATE INDEX by_n ON sales (n)",
        "CREATE VIEW totals AS SELECT SUM(n) AS total FROM sales",
        "GRANT SELECT ON sales TO PUBLIC",
    )
    simulator.platform.add_dataset("sales", numbers(4))
    load()

    assert postgres.rows("SELECT total FROM totals") == [(6,)]

    of_ours = f"tablename = 'sales' AND schemaname = '{postgres.schema}'"
    assert postgres.rows(f"SELECT indexname FROM pg_indexes WHERE {of_ours}") == [("by_n",)]
    assert postgres.rows(
        "SELECT privilege_type FROM information_schema.role_table_grants "
        f"WHERE table_name = 'sales' AND table_schema = '{postgres.schema}' AND grantee = 'PUBLIC'"
    ) == [("SELECT",)]


def test_a_mysql_table_made_by_upsert_is_found_by_its_keys_alone(
    mysql: Database, load: Any, simulator: Simulator
) -> None:
    mysql.run(
        "CREATE TABLE sales (k INT AUTO_INCREMENT UNIQUE, id INT, name VARCHAR(9), UNIQUE (id), UNIQUE (name))",
        "INSERT INTO sales (id, name) VALUES (1, 'one'), (2, 'two')",
    )
    simulator.platform.add_dataset("sales", keyed((3, "one")))

    with pytest.raises(Exception, match="Duplicate entry 'one'"):
        load(mode="upsert", key_columns=["id"])
    assert mysql.rows("SELECT id, name FROM sales ORDER BY id") == [(1, "one"), (2, "two")]


def test_mysql_numbers_no_row_whose_value_is_0(mysql: Database, load: Any, simulator: Simulator) -> None:
    mysql.run("CREATE TABLE sales (n INT AUTO_INCREMENT PRIMARY KEY, half DOUBLE)")
    simulator.platform.add_dataset("sales", numbers(2))
    load()
    assert mysql.rows("SELECT n, half FROM sales ORDER BY n") == [(0, 0.0), (1, 0.5)]


CELLS = st.tuples(
    st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.dates(),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(CELLS, max_size=5))
def test_whatever_is_loaded_is_read_back(each: Database, load: Any, simulator: Simulator, rows: list[Any]) -> None:
    columns = [("place", "INT"), ("text", "STRING"), ("whole", "LONG"), ("number", "DOUBLE"), ("day", "DATE")]
    cells = [
        [str(place), text, *(None if cell is None else str(cell) for cell in typed)]
        for place, (text, *typed) in enumerate(rows)
    ]
    simulator.platform.datasets.clear()
    dataset = simulator.platform.add_dataset("any", Table.of_rows(columns, cells))
    load(ds_id=dataset.ds_id, page_size=2)
    stored = each.rows("SELECT text, whole, number, day FROM sales ORDER BY place")

    assert [(*row[:3], None if row[3] is None else str(row[3])) for row in stored] == [
        (*row[:3], None if row[3] is None else str(row[3])) for row in rows
    ]


@pytest.mark.parametrize("fd_type", ["boolean", "BOOLEAN", "true", "TIMESTAMP"])
def test_a_type_outside_the_contract_is_text(db: Database, load: Any, simulator: Simulator, fd_type: str) -> None:
    simulator.platform.add_dataset("odd", Table.of_rows([("odd", fd_type)], [["true"], ["1"], [None]]))
    load()
    assert sorted(map(str, db.rows("SELECT odd FROM sales"))) == ["('1',)", "('true',)", "(None,)"]


def test_keys_of_a_created_table_are_told_apart_exactly(each: Database, load: Any, simulator: Simulator) -> None:
    keys = ["a", "A", "ä", "Ä", "ss", "ß"]
    table = Table.of_rows([("id", "STRING"), ("n", "INT")], [[key, str(n)] for n, key in enumerate(keys)])
    simulator.platform.add_dataset("keys", table)
    for _ in "create", "update":
        load(mode="upsert", key_columns=["id"])
        assert each.rows("SELECT id, n FROM sales ORDER BY n") == [(key, n) for n, key in enumerate(keys)]
