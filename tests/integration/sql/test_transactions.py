"""All or nothing, once: readers beside a load, loads beside each other, failures in the middle, dead workers."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from conftest import LONG, numbers
from support.databases import Database
from support.running import WarmAirflow, wait_until

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import (
    AnaplatCellError,
    AnaplatDatasetChangedError,
    AnaplatLoadError,
    AnaplatServerError,
)
from airflow_provider_anaplat.simulator import Simulator, Table, replies
from airflow_provider_anaplat.sql.target import SqlTarget

MODES: list[dict[str, Any]] = [{"mode": "replace"}, {"mode": "append"}, {"mode": "upsert", "key_columns": ["n"]}]
OLD = [(100,), (101,)]
LOADED = [(n,) for n in range(30)]
# Pages of ten rows, one request at a time: the second is asked for when the first is in the table.
SLOWLY: dict[str, Any] = {"page_size": 10, "concurrency": 1}


def third_page(body: Any) -> bool:
    return bool(body["offset"] == 20)


def asked_for_third_page(simulator: Simulator, times: int = 1) -> Callable[[], bool]:
    return lambda: sum(third_page(request.body) for request in simulator.requests("read_rows")) >= times


@contextmanager
def held_in_the_middle(simulator: Simulator, load: Any, **arguments: Any) -> Iterator[tuple[Future[Any], Any]]:
    """Start a load that stands still when two of three pages are in the table; the block may let it go on."""
    go_on = threading.Event()
    simulator.inject("read_rows", replies.hold(go_on), when=third_page)
    with ThreadPoolExecutor(2) as pool:
        loading = pool.submit(load, **SLOWLY, **arguments)
        try:
            asked = asked_for_third_page(simulator)
            wait_until(lambda: asked() or loading.done())
            if not asked():
                loading.result()
            yield loading, (go_on, pool)
        finally:
            go_on.set()


def old_table(db: Database) -> None:
    db.run(
        "CREATE TABLE sales (n BIGINT PRIMARY KEY, half DOUBLE PRECISION)",
        "INSERT INTO sales (n) VALUES (100), (101)",
    )


def expected(mode: str) -> list[tuple[int]]:
    return LOADED if mode == "replace" else LOADED + OLD


def stored(db: Database) -> list[tuple[Any, ...]]:
    return db.rows("SELECT n FROM sales ORDER BY n")


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("sales", numbers(30))


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_readers_see_the_old_table_or_the_new_one(
    each: Database, load: Any, simulator: Simulator, arguments: dict[str, Any]
) -> None:
    old_table(each)
    with held_in_the_middle(simulator, load, **arguments) as (loading, (go_on, _)):
        assert stored(each) == OLD
        go_on.set()
        assert loading.result()["rows"] == 30
    assert stored(each) == expected(arguments["mode"])


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_new_table_is_seen_when_it_is_complete(
    each: Database, load: Any, simulator: Simulator, arguments: dict[str, Any]
) -> None:
    with held_in_the_middle(simulator, load, **arguments) as (loading, _):
        if "sales" in each.tables():  # to append is the one mode, and MySQL the one database, with an empty one
            assert (each.name, arguments["mode"], stored(each)) == ("mysql", "append", [])
    assert loading.result()["rows"] == 30
    assert stored(each) == LOADED
    assert each.tables() == ["sales"]


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_failure_in_the_middle_leaves_the_old_table(
    each: Database, load: Any, simulator: Simulator, arguments: dict[str, Any]
) -> None:
    old_table(each)
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=third_page)

    with pytest.raises(AirflowFailException, match="1004"):
        load("run", **SLOWLY, **arguments)
    assert stored(each) == OLD
    assert load("run", **arguments)["alreadyLoaded"] is False
    assert stored(each) == expected(arguments["mode"])


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_failure_in_the_middle_leaves_no_new_table(
    each: Database, load: Any, simulator: Simulator, arguments: dict[str, Any]
) -> None:
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=third_page)
    with pytest.raises(AirflowFailException, match="1004"):
        load(**SLOWLY, **arguments)

    if each.name == "mysql" and arguments["mode"] == "append":
        assert stored(each) == []
    else:
        assert each.tables() == []


def test_a_cell_that_fits_no_type_leaves_the_old_table(db: Database, load: Any, dataset: Any) -> None:
    old_table(db)
    dataset.table = Table.of_rows([("n", "LONG")], [["1"], ["2"], ["x"]])
    with pytest.raises(AnaplatCellError, match="'x' is not a LONG"):
        load(page_size=1)
    assert stored(db) == OLD


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_dataset_that_changes_in_the_middle_is_loaded_anew(
    each: Database, load: Any, simulator: Simulator, arguments: dict[str, Any]
) -> None:
    old_table(each)

    def refreshed(body: Any) -> bool:
        if third_page(body):
            simulator.platform.refresh("ds1", numbers(12))
        return False

    simulator.inject("read_rows", replies.reset(), when=refreshed, times=None)
    result = load("run", **SLOWLY, **arguments)
    assert (result["rows"], result["version"]) == (12, 2)
    kept = [] if arguments["mode"] == "replace" else OLD
    assert stored(each) == [(n,) for n in range(12)] + kept


def test_or_is_not_loaded_at_all(db: Database, load: Any, simulator: Simulator) -> None:
    old_table(db)

    def refreshed(body: Any) -> bool:
        if third_page(body):
            simulator.platform.refresh("ds1")
        return False

    simulator.inject("read_rows", replies.reset(), when=refreshed, times=None)
    with pytest.raises(AnaplatDatasetChangedError, match="version 1 became 2"):
        load(on_change="fail", **SLOWLY)
    assert stored(db) == OLD


@pytest.mark.parametrize("offset", [0, 10, 20])
@pytest.mark.parametrize("fault", [replies.reset(), replies.cut(), replies.http_status(503)])
def test_faults_of_a_page_are_ridden_out(
    db: Database, load: Any, simulator: Simulator, offset: int, fault: Any
) -> None:
    simulator.inject("read_rows", fault, when=lambda body: bool(body["offset"] == offset))
    assert load(page_size=10)["rows"] == 30
    assert stored(db) == LOADED


def test_what_was_appended_is_not_appended_again(each: Database, load: Any, simulator: Simulator) -> None:
    first = load("run", mode="append")
    asked = len(simulator.ledger)

    assert load("run", mode="append") == {**first, "alreadyLoaded": True}
    assert len(simulator.ledger) == asked
    assert stored(each) == LOADED

    ((dag, run, task, index, target, ds_id, rows),) = each.rows(
        "SELECT dag_id, run_id, task_id, map_index, target, ds_id, row_count FROM anaplat_loads"
    )

    assert (dag, run, task, index, target, ds_id, int(rows)) == ("dag", "run", "load", -1, "sales", "ds1", 30)


@pytest.mark.parametrize("damaged", ["row_count", "column_count"])
def test_where_its_line_is_damaged_nothing_is_appended(db: Database, load: Any, damaged: str) -> None:
    load("run", mode="append")
    db.run(f"UPDATE anaplat_loads SET {damaged} = NULL")

    with pytest.raises(AirflowFailException, match=r"anaplat_loads.* cannot be read.*Nothing was loaded"):
        load("run", mode="append")

    assert stored(db) == LOADED


def test_until_its_line_is_deleted_or_its_table_dropped(each: Database, load: Any) -> None:
    load("run", mode="append")
    each.run("DELETE FROM anaplat_loads")

    assert load("run", mode="append")["alreadyLoaded"] is False
    assert len(stored(each)) == 60

    each.run("DROP TABLE sales")
    assert load("run", mode="append")["alreadyLoaded"] is False
    assert stored(each) == LOADED
    assert load("run", mode="append")["alreadyLoaded"] is True


def test_what_other_runs_have_appended_to_a_table_that_was_dropped_is_appended_again(
    each: Database, load: Any
) -> None:
    load("first", mode="append")
    load("second", mode="append")
    each.run("DROP TABLE sales")

    assert [load(run, mode="append")["alreadyLoaded"] for run in ("first", "second")] == [False, False]
    assert len(stored(each)) == 60


@pytest.mark.parametrize("table_is_there", [True, False], ids=["there", "dropped"])
def test_what_was_appended_to_a_table_that_was_replaced_is_appended_again(
    each: Database, load: Any, table_is_there: bool
) -> None:
    """Of a DAG that replaces the rows of a table and then appends to it, both tasks may be cleared."""
    load("run", mode="append", table="other")
    for _ in range(2):
        load("run", mode="replace", max_rows=10)
        assert load("run", mode="append")["alreadyLoaded"] is False
        assert len(stored(each)) == 40
        assert load("run", mode="append")["alreadyLoaded"] is True
        if not table_is_there:
            each.run("DROP TABLE sales")

    assert load("run", mode="append", table="other")["alreadyLoaded"] is True


def test_what_was_appended_stays_where_a_replacement_failed(
    each: Database, load: Any, simulator: Simulator
) -> None:
    load("run", mode="append")
    simulator.inject("read_rows", replies.http_status(500), when=third_page)
    with pytest.raises(AnaplatServerError):
        load("run", mode="replace", **SLOWLY)

    assert load("run", mode="append")["alreadyLoaded"] is True
    assert stored(each) == LOADED


def test_a_worker_that_dies_when_it_has_created_the_table_again(
    each: Database, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("run", mode="append")
    each.run("DROP TABLE sales")
    with monkeypatch.context() as dying:
        dying.setattr(SqlTarget, "_load", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            load("run", mode="append")

    assert load("run", mode="append")["alreadyLoaded"] is False
    assert stored(each) == LOADED


def test_two_attempts_at_once_append_once(each: Database, load: Any, simulator: Simulator) -> None:
    """The worker that Airflow takes for dead may go on."""
    each.run("CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)", "INSERT INTO sales (n) VALUES (100), (101)")
    load("before", mode="append", max_rows=0)  # so that the table of loads is there
    with held_in_the_middle(simulator, load, run="run", mode="append") as (loading, (go_on, pool)):
        second = pool.submit(load, "run", mode="append")
        wait_until(lambda: simulator.requests("read_rows")[-1].body["offset"] == 0)
        go_on.set()
        assert loading.result()["alreadyLoaded"] is False
        with pytest.raises(AnaplatLoadError, match=r"anaplat_loads|Duplicate entry|duplicate key"):
            second.result()

    assert stored(each) == LOADED + OLD
    assert load("run", mode="append")["alreadyLoaded"] is True


@pytest.mark.parametrize("mode", [{"mode": "replace"}, {"mode": "upsert", "key_columns": ["n"]}])
def test_two_loads_at_once_of_a_table_that_is_missing(
    mysql: Database, load: Any, simulator: Simulator, mode: dict[str, Any]
) -> None:
    with held_in_the_middle(simulator, load, **mode) as (first, (go_on, pool)):
        second = pool.submit(load, **mode)
        wait_until(
            lambda: (
                "GET_LOCK"
                in str(mysql.rows("SELECT info FROM information_schema.processlist WHERE state = 'User lock'"))
            )
        )
        go_on.set()
        assert (first.result()["rows"], second.result()["rows"]) == (30, 30)

    assert mysql.rows("SELECT n FROM sales ORDER BY n") == LOADED
    assert mysql.tables() == ["sales"]


def test_two_replacements_at_once_leave_the_rows_of_one(each: Database, load: Any, simulator: Simulator) -> None:
    each.run("CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)", "INSERT INTO sales (n) VALUES (100)")
    with held_in_the_middle(simulator, load) as (loading, (go_on, pool)):
        second = pool.submit(load)
        wait_until(lambda: simulator.requests("read_rows")[-1].body["offset"] == 0)
        assert stored(each) == [(100,)]
        go_on.set()
        assert loading.result()["rows"] == second.result()["rows"] == 30

    assert stored(each) == LOADED


@pytest.mark.parametrize("db", ["postgres", "mysql-connector"], indirect=True)
def test_a_load_that_began_before_there_were_notes_is_seen(db: Database, load: Any, simulator: Simulator) -> None:
    db.run("CREATE TABLE sales (n BIGINT, half DOUBLE PRECISION)")
    with held_in_the_middle(simulator, load, mode="append") as (loading, (go_on, _)):
        load("monday", mode="append", if_unchanged="return")
        go_on.set()
        loading.result()

    assert "unchanged" not in load("tuesday", mode="append", if_unchanged="return")
    assert "unchanged" in load("wednesday", mode="append", if_unchanged="return")


# A worker that dies as soon as the rows are committed, before it could say so.
WORKER = """
import os, signal
from types import SimpleNamespace
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator
instance = SimpleNamespace(dag_id="dag", run_id="run", task_id="load", map_index=-1)
AnaplatToSqlOperator(task_id="load", ds_id="ds1", sql_conn_id="database", table="sales", page_size=10,
                     concurrency=1, **json.loads(sys.argv[1])).execute({"ti": instance})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_worker_that_dies_after_the_commit(
    db: Database, load: Any, warm_airflow: WarmAirflow, arguments: dict[str, Any]
) -> None:
    old_table(db)
    assert warm_airflow.start(WORKER, json.dumps(arguments)).wait() == -signal.SIGKILL
    assert stored(db) == expected(arguments["mode"])
    result = load("run", **arguments)
    assert (result["rows"], result["alreadyLoaded"]) == (30, arguments["mode"] == "append")
    assert stored(db) == expected(arguments["mode"])


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("arguments", MODES, ids=lambda arguments: arguments["mode"])
def test_a_worker_that_dies_in_the_middle(
    db: Database,
    load: Any,
    simulator: Simulator,
    warm_airflow: WarmAirflow,
    arguments: dict[str, Any],
    existing: bool,
) -> None:
    if existing:
        old_table(db)
    go_on = threading.Event()
    simulator.inject("read_rows", replies.hold(go_on), when=third_page)
    worker = warm_airflow.start(WORKER, json.dumps(arguments))
    wait_until(asked_for_third_page(simulator))
    os.kill(worker.pid, signal.SIGKILL)

    assert worker.wait() == -signal.SIGKILL

    go_on.set()
    if existing:
        assert stored(db) == OLD

    assert load("run", **arguments)["alreadyLoaded"] is False
    assert stored(db) == (expected(arguments["mode"]) if existing else LOADED)
    assert set(db.tables()) <= {"sales", "anaplat_loads"}


@pytest.mark.parametrize("db", ["postgres", "mysql-connector"], indirect=True)
def test_rows_that_another_transaction_brings_meanwhile_have_arrived(db: Database, load: Any) -> None:
    """Two DAG runs may update one table from one dataset."""
    by_key = {"mode": "upsert", "key_columns": ["n"]}
    load(**by_key)
    db.run("CREATE TABLE same AS SELECT * FROM sales", "DELETE FROM sales")
    with closing(db.connect()) as other, ThreadPoolExecutor(1) as pool:
        other.cursor().execute("INSERT INTO sales SELECT * FROM same")
        loading = pool.submit(load, **by_key)
        wait_until(lambda: loading.done() or waits_for_a_lock(db))
        other.commit()
        assert loading.result()["rows"] == 30

    assert stored(db) == LOADED


@pytest.mark.parametrize("db", ["postgres", "mysql-connector"], indirect=True)
@pytest.mark.parametrize(
    "change", ["DELETE FROM sales", "UPDATE sales SET half = 7", "UPDATE sales SET n = n + 100"]
)
def test_rows_that_another_transaction_changes_meanwhile_are_those_of_the_load(
    db: Database, load: Any, change: str
) -> None:
    by_key = {"mode": "upsert", "key_columns": ["n"]}
    load(**by_key)
    loaded = db.rows("SELECT n, half FROM sales ORDER BY n")
    db.run("UPDATE sales SET half = 9 WHERE n = 29")  # the others are the same already
    with closing(db.connect()) as other, ThreadPoolExecutor(1) as pool:
        other.cursor().execute(change)
        loading = pool.submit(load, **by_key)
        wait_until(lambda: loading.done() or waits_for_a_lock(db))
        other.commit()
        assert loading.result()["rows"] == 30

    assert db.rows("SELECT n, half FROM sales WHERE n < 100 ORDER BY n") == loaded


def test_a_load_that_fails_does_not_wait_for_a_lock(postgres: Database, load: Any, simulator: Simulator) -> None:
    """Rows wait for it in a thread, while the task fails or its time-out ends it."""
    old_table(postgres)
    go_on = threading.Event()
    refused = replies.Fault(lambda _: replace(replies.failure("gone"), held_by=go_on))
    simulator.inject("read_rows", refused, when=third_page)
    with ThreadPoolExecutor(1) as pool, closing(postgres.connect()) as other:
        other.cursor().execute("LOCK TABLE sales IN SHARE MODE")
        loading = pool.submit(load, **SLOWLY, mode="append")
        wait_until(lambda: loading.done() or (waits_for_a_lock(postgres) and asked_for_third_page(simulator)()))
        go_on.set()
        with pytest.raises(AnaplatServerError, match="gone"):
            loading.result(LONG)

    assert stored(postgres) == OLD


def waits_for_a_lock(db: Database) -> bool:
    waits = {
        "postgres": "SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()",
        "mysql": "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    }
    return bool(db.rows(waits[db.name]))
