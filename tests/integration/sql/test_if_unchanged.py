"""A load whose dataset, query, mode and table are those of the last one is not done again; any other is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import numbers
from support.databases import Database
from support.unchanged import BELOW_7, asked, name_no_state

from airflow_provider_anaplat._airflow.releases import AirflowFailException, AirflowSkipException
from airflow_provider_anaplat.simulator import Simulator, Table, replies

MODES: list[dict[str, Any]] = [
    {"mode": "replace"}, {"mode": "append"}, {"mode": "upsert", "key_columns": ["n"]},
]  # fmt: skip


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("sales", numbers(25))


@pytest.fixture
def once(load: Any) -> Any:
    """Load, unless nothing has changed."""

    def once(run: str | None = None, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = load(run, **{"if_unchanged": "return", **arguments})
        return result

    return once


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_nothing_is_loaded_twice(each: Database, once: Any, simulator: Simulator, mode: dict[str, Any]) -> None:
    first = once("monday", **mode)
    before = len(asked(simulator))

    second = once("tuesday", **mode)

    assert asked(simulator)[before:] == [(0, 1)]
    assert second == {**first, "unchanged": True}
    assert "unchanged" not in first
    assert each.rows("SELECT n, half FROM sales ORDER BY n") == [(i, i / 2) for i in range(25)]
    with pytest.raises(AirflowSkipException, match="ds1 has not changed since it was written to table"):
        once("wednesday", if_unchanged="skip", **mode)


@pytest.mark.parametrize("mode", [MODES[0], MODES[2]], ids=lambda mode: mode["mode"])
def test_what_a_task_has_loaded_in_its_run_is_loaded_again(db: Database, once: Any, mode: dict[str, Any]) -> None:
    """As a retry or a cleared task: were it skipped, what follows it would never see what was loaded."""
    once("monday", **mode)

    assert "unchanged" not in once("monday", **mode)
    assert "unchanged" in once("tuesday", **mode)
    assert "unchanged" in once("tuesday", **mode)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_an_updated_dataset_is_loaded(
    each: Database, once: Any, simulator: Simulator, mode: dict[str, Any]
) -> None:
    once("monday", **mode)
    simulator.platform.refresh("ds1", numbers(26))

    assert "unchanged" not in once("tuesday", **mode)

    assert len(each.rows("SELECT * FROM sales")) == (25 + 26 if mode["mode"] == "append" else 26)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM sales WHERE n = 7",
        "DROP TABLE sales",
        "DELETE FROM anaplat_loads",
        "UPDATE anaplat_loads SET row_count = NULL",
    ],
)
def test_a_table_that_has_lost_rows_is_loaded(db: Database, once: Any, mode: dict[str, Any], change: str) -> None:
    once("monday", **mode)
    db.run(change)

    assert "unchanged" not in once("tuesday", **mode)
    assert "unchanged" in once("wednesday", **mode)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_a_table_that_has_gained_rows_is_loaded_where_they_have_no_place(
    db: Database, once: Any, mode: dict[str, Any]
) -> None:
    once("monday", **mode)
    db.run("INSERT INTO sales (n, half) VALUES (99, 0)")

    assert ("unchanged" in once("tuesday", **mode)) == (mode["mode"] != "replace")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_what_another_load_has_put_into_the_table_is_seen(
    db: Database, load: Any, once: Any, simulator: Simulator, mode: dict[str, Any]
) -> None:
    """The other one has as many rows, and is not told to note what it does."""
    simulator.platform.add_dataset("others", numbers(25))
    once("monday", **mode)
    load("tuesday", ds_id="ds2", **mode)

    assert "unchanged" not in once("wednesday", **mode)


@pytest.mark.parametrize(
    "other",
    [
        {"sort_by": "n"},
        {"filter": BELOW_7},
        {"max_rows": 7},
        {"on_cast_error": "null"},
        {"mode": "append"},
        {"mode": "upsert", "key_columns": ["n"]},
    ],
    ids=str,
)
def test_another_query_or_mode_is_loaded(sqlite: Database, once: Any, other: dict[str, Any]) -> None:
    sqlite.run("CREATE TABLE sales (n BIGINT PRIMARY KEY, half REAL)")
    once("monday")
    if other.get("mode") == "append":
        sqlite.run("DELETE FROM sales")

    assert "unchanged" not in once("tuesday", **other)
    assert once("wednesday", **other)["unchanged"]


def test_another_table_is_loaded(db: Database, once: Any) -> None:
    once()

    assert "unchanged" not in once(table="others")
    assert once()["unchanged"]
    assert once(table="others")["unchanged"]


def test_another_way_to_ask_is_not_another_query(sqlite: Database, once: Any) -> None:
    once()

    assert once(concurrency=1, memory_mb=512, page_size=10)["unchanged"]


def test_by_default_nothing_is_noted(each: Database, load: Any, once: Any) -> None:
    load()

    assert each.tables() == ["sales"]
    assert "unchanged" not in once()


def test_a_load_that_fails_leaves_the_note_of_what_is_there(db: Database, once: Any, simulator: Simulator) -> None:
    once()
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)
    with pytest.raises(AirflowFailException, match="The platform says: no"):
        once(page_size=10, max_rows=24)

    assert once()["unchanged"]
    assert len(db.rows("SELECT * FROM sales")) == 25


def test_a_platform_that_names_neither_version_nor_time_is_never_taken_for_unchanged(
    sqlite: Database, once: Any, simulator: Simulator
) -> None:
    name_no_state(simulator)

    assert once() == once()
    assert "unchanged" not in once()


def test_a_task_that_has_appended_says_so_first(db: Database, once: Any, simulator: Simulator) -> None:
    once("monday", mode="append")
    simulator.platform.refresh("ds1", numbers(26))

    again = once("monday", mode="append")

    assert (again["alreadyLoaded"], again["rows"]) == (True, 25)
    assert len(db.rows("SELECT * FROM sales")) == 25


def test_loads_of_several_tables_at_once_are_all_noted(db: Database, once: Any) -> None:
    tables = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(len(tables)) as pool:
        first = list(pool.map(lambda table: once(table=table), tables))

    assert ["unchanged" in result for result in first] == [False] * 4
    assert all(once(table=table)["unchanged"] for table in tables)


def test_of_two_loads_at_once_the_one_is_noted_whose_rows_are_there(
    db: Database, once: Any, simulator: Simulator
) -> None:
    columns = [("n", "LONG"), ("half", "DOUBLE")]
    simulator.platform.add_dataset("others", Table.of_rows(columns, [[str(100 + n), "0"] for n in range(25)]))
    once()
    simulator.platform.refresh("ds1", numbers(25))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda ds_id: once(ds_id=ds_id), ["ds1", "ds2"]))

    there, other = ("ds2", "ds1") if db.rows("SELECT n FROM sales WHERE n = 100") else ("ds1", "ds2")
    assert once(ds_id=there)["unchanged"]
    assert "unchanged" not in once(ds_id=other)
