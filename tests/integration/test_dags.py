"""DAGs on a real Airflow: its database, its rendering, its XComs, its triggers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import numbers
from support.running import AIRFLOW_2, RELEASE, WarmAirflow, for_this_release

from airflow_provider_anaplat.simulator import Simulator, Table, replies

DAGS = Path(__file__).parent / "dags"
EXAMPLES = Path(__file__).parents[2] / "example_dags"
# An asset is watched by Airflow 3 alone.
ELSEWHERE = ["anaplat_dataset_updated.py"] if AIRFLOW_2 else []
HR_PASSWORD = "s3cret-of-hr"

RUN_DAG = """
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
run = bag.dags[sys.argv[2]].test()
instances = run.get_task_instances()
print("RESULT" + json.dumps([
    {"task": i.task_id, "index": i.map_index, "state": str(i.state),
     "xcom": i.xcom_pull(task_ids=i.task_id, map_indexes=i.map_index),
     "link": i.xcom_pull(task_ids=i.task_id, map_indexes=i.map_index, key="anaplat_dataset_url")}
    for i in sorted(instances, key=lambda i: (i.task_id, i.map_index))]))
"""


@pytest.fixture
def airflow(warm_airflow: WarmAirflow) -> WarmAirflow:
    warm_airflow.begin_anew()
    shutil.copytree(DAGS, warm_airflow.dags, dirs_exist_ok=True)
    for example in EXAMPLES.glob("*.py"):
        if example.name not in ELSEWHERE:
            (warm_airflow.dags / example.name).write_text(for_this_release(example.read_text()))
    return warm_airflow


def run_dag(
    airflow: WarmAirflow, dag_id: str, simulator: Simulator, output: Path, **variables: str
) -> tuple[list[dict[str, Any]], str]:
    """Run a DAG in a process of its own; return each task's end, and all that was printed."""
    variables |= {
        "AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps(
            {"conn_type": "anaplat", "host": simulator.url, "password": simulator.token}
        ),
        "AIRFLOW_CONN_ANAPLAT_TEST_SQL": json.dumps({"conn_type": "sqlite", "host": str(output / "test.db")}),
        "ANAPLAT_TEST_OUTPUT": str(output),
        "ANAPLAT_EXPORT_PATH": str(output),
    }
    process = airflow.run(RUN_DAG, str(airflow.dags), dag_id, **variables)
    printed = process.stdout + process.stderr
    assert process.returncode == 0, printed
    result = next(line for line in process.stdout.splitlines() if line.startswith("RESULT"))
    if RELEASE == (3, 0):  # in ``dag.test()``, it shows what a task tells it to hide
        printed = "".join(line for line in printed.splitlines() if "msg=MaskSecret(" not in line)
    return json.loads(result.removeprefix("RESULT")), printed


beyond_airflow_3_0 = pytest.mark.skipif(
    RELEASE == (3, 0), reason="dag.test() of Airflow 3.0 fails where it reschedules, retries or meets a new asset"
)


@pytest.mark.parametrize("mode", ["poke", pytest.param("reschedule", marks=beyond_airflow_3_0), "deferred"])
def test_create_and_wait(airflow: WarmAirflow, tmp_path: Path, mode: str) -> None:
    with Simulator({"numbers": numbers(3)}, creation_statuses=(None, "处理中", "FINISHED")) as simulator:
        tasks, printed = run_dag(airflow, f"wait_{mode}", simulator, tmp_path)

    assert [(task["task"], task["state"]) for task in tasks] == [("create", "success"), ("wait", "success")]
    assert tasks[0]["xcom"] == {"taskId": "task-ds1", "dsId": "ds1", "status": "已提交", "result": "处理中"}
    assert (tasks[1]["xcom"]["status"], tasks[1]["xcom"]["rowCount"]) == ("FINISHED", 3)
    assert len(simulator.requests("create_dataset")) == 1
    assert len(simulator.requests("list_datasets")) == 1 + 3  # to see whether it is there, and to wait
    assert simulator.token not in printed


def test_mapped_tasks(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator({"numbers": numbers(3)}) as simulator:
        tasks, printed = run_dag(airflow, "mapped", simulator, tmp_path)

    assert {task["state"] for task in tasks} == {"success"}

    links = {(task["task"], task["index"]): task["link"] for task in tasks if task["link"]}
    page = f"{simulator.url}/data-center/data-sets/root/{{}}/details/overview"
    created = {task["index"]: task["xcom"]["dsId"] for task in tasks if task["task"] == "create"}

    assert sorted(created.values()) == ["ds1", "ds2"]  # which of the two came first is chance
    assert links == {
        (task, index): page.format(created[index]) for task in ("create", "export", "wait") for index in (0, 1)
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ds1.csv", "ds2.csv"]
    assert sorted(simulator.platform.users) == ["a", "b"]
    assert simulator.token not in printed


def test_an_export_by_mapped_tasks(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator() as simulator:
        simulator.platform.add_dataset("numbers", numbers(55))
        tasks, _ = run_dag(airflow, "partitioned", simulator, tmp_path)

    assert [(task["task"], task["index"], task["state"]) for task in tasks] == [
        ("export.commit", -1, "success"), ("export.part", 0, "success"), ("export.part", 1, "success"),
        ("export.part", 2, "success"), ("export.plan", -1, "success"), ("users", -1, "success"),
    ]  # fmt: skip

    commit, *parts, plan, _ = [task["xcom"] for task in tasks]
    assert parts == [part["rows"] for part in plan] == [20, 20, 15]

    folder = tmp_path / "partitioned"
    assert (commit["rows"], commit["parts"], commit["path"]) == (55, 3, str(folder))

    names = [f"part-{number:05d}.csv.gz" for number in (1, 2, 3)]
    assert sorted(path.name for path in folder.iterdir()) == ["_manifest.json", *names]
    assert pl.concat(pl.read_csv(folder / name) for name in names)["n"].to_list() == list(range(55))


def test_an_export_by_mapped_tasks_is_not_done_twice(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator() as simulator:
        simulator.platform.add_dataset("numbers", numbers(15))
        first, _ = run_dag(airflow, "unchanged", simulator, tmp_path)
        asked = len(simulator.requests("read_rows"))
        second, _ = run_dag(airflow, "unchanged", simulator, tmp_path)

    assert {task["state"] for task in first} == {"success"}
    assert {task["task"]: task["state"] for task in second} == {
        "return.plan": "success", "return.part": "skipped", "return.commit": "success", "after_return": "success",
        "skip.plan": "skipped", "skip.part": "skipped", "skip.commit": "skipped", "after_skip": "skipped",
    }  # fmt: skip

    returned = [task["xcom"] for tasks in (first, second) for task in tasks if task["task"] == "return.commit"]
    assert returned[1] == {**returned[0], "unchanged": True}
    assert len(simulator.requests("read_rows")) == asked + 2


@beyond_airflow_3_0
def test_airflows_retries_repeat_no_write_whose_answer_was_lost(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator({"numbers": numbers(3)}) as simulator:
        simulator.inject("create_dataset", replies.reset(), after_act=True)
        simulator.inject("create_users", replies.content(b'{"result": "ok", "response": ["s3cret-a"]}'))
        tasks, printed = run_dag(airflow, "retried", simulator, tmp_path)

    assert [(task["task"], task["state"]) for task in tasks] == [("create", "success"), ("users", "failed")]
    assert tasks[0]["xcom"]["dsId"] == "ds1"
    assert len(simulator.requests("create_dataset")) == len(simulator.requests("create_users")) == 1
    assert simulator.token not in printed
    assert "s3cret-a" not in printed


def test_a_table_that_was_appended_to_is_not_appended_to_again(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator() as simulator:
        simulator.platform.add_dataset("numbers", numbers(3))
        tasks, _ = run_dag(airflow, "to_sql", simulator, tmp_path)

    assert [(task["task"], task["index"], task["state"]) for task in tasks] == [
        ("append", -1, "success"), ("mapped", 0, "success"), ("mapped", 1, "success"),
    ]  # fmt: skip
    assert [(task["xcom"]["rows"], task["xcom"]["alreadyLoaded"]) for task in tasks] == [
        (3, True), (3, False), (3, False),
    ]  # fmt: skip

    with closing(sqlite3.connect(tmp_path / "test.db")) as database:
        for table in ("append", "a", "b"):
            assert database.execute(f'SELECT n FROM "{table}" ORDER BY n').fetchall() == [(0,), (1,), (2,)]
        loads = database.execute("SELECT dag_id, task_id, map_index, target FROM anaplat_loads ORDER BY target")
        assert loads.fetchall() == [
            ("to_sql", "mapped", 0, "a"), ("to_sql", "append", -1, "append"), ("to_sql", "mapped", 1, "b"),
        ]  # fmt: skip


def test_the_example(airflow: WarmAirflow, tmp_path: Path) -> None:
    table = Table.of_rows([("carrier", "STRING"), ("distance", "INT")], [["UA", "1400"], [None, None]])
    with Simulator({"flights": table}) as simulator:
        tasks, printed = run_dag(airflow, "anaplat_refresh", simulator, tmp_path)

    assert {task["state"] for task in tasks} == {"success"}
    assert pl.read_parquet(tmp_path / "flights.parquet").rows() == [("UA", 1400), (None, None)]
    assert (tmp_path / "flights.csv").read_text() == "carrier,distance\nUA,1400\n,\n"
    assert sorted(simulator.platform.users) == ["ada", "blaise", "carl"]
    assert simulator.token not in printed


@beyond_airflow_3_0
def test_the_example_of_an_orchestrated_refresh(airflow: WarmAirflow, tmp_path: Path) -> None:
    table = Table.of_rows([("carrier", "STRING"), ("distance", "INT")], [["UA", "1400"]])
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    with Simulator() as simulator:
        for name in ("one", "two", "three"):
            simulator.platform.add_dataset(name, table).utime = long_ago
        tasks, printed = run_dag(airflow, "anaplat_orchestrated_refresh", simulator, tmp_path)

    assert len(tasks) == 13
    assert {task["state"] for task in tasks} == {"success"}
    assert len(simulator.requests("refresh_dataset")) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ds1.parquet", "ds2.parquet", "ds3.parquet"]
    assert simulator.token not in printed


def test_no_secret_is_left_anywhere(airflow: WarmAirflow, tmp_path: Path) -> None:
    with Simulator({"numbers": numbers(3)}) as simulator:
        run_dag(airflow, "mapped", simulator, tmp_path)
        run_dag(airflow, "wait_deferred", simulator, tmp_path)
        token = simulator.token

    assert _files_that_hold(airflow, token) == []

    # The DAG file holds these passwords, and Airflow keeps its source and its structure.
    tables = _tables_that_hold(airflow, "s3cret-a") - {"dag_code", "serialized_dag"}
    assert tables == set()


def _files_that_hold(airflow: WarmAirflow, text: str) -> list[str]:
    files = [path for path in airflow.home.rglob("*") if path.is_file()]
    assert "airflow.db" in {path.name for path in files}
    return [path.name for path in files if text.encode() in path.read_bytes()]


def _tables_that_hold(airflow: WarmAirflow, text: str) -> set[str]:
    with closing(sqlite3.connect(airflow.home / "airflow.db")) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        assert "rendered_task_instance_fields" in tables
        return {table for table in tables if text in str(database.execute(f'select * from "{table}"').fetchall())}


def _postgresql_is_there() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", 5432), timeout=2):
            return True
    except OSError:
        return False


@pytest.fixture
def employees(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cursor on a schema of its own with a table of 2,500 employees."""
    import psycopg2

    schema = f"anaplat_{uuid.uuid4().hex}"
    user = os.environ.get("ANAPLAT_TEST_PGUSER", "postgres")
    connection = psycopg2.connect(host="127.0.0.1", user=user, dbname="test")
    connection.autocommit = True
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(f"create schema {schema}")
        try:
            cursor.execute(f"set search_path to {schema}")
            cursor.execute(
                "create table employees (login text, full_name text, first_password text, work_email text,"
                " teams text, chat_account text, hired_on date, left_on date)"
            )
            cursor.execute(
                "insert into employees select 'user' || i, 'User ' || i, %s, null, 'a,b', 'chat' || i,"
                " date '2020-01-01', case when i = 7 then date '2021-01-01' end from generate_series(1, 2500) i",
                [HR_PASSWORD],
            )
            options = f"options=-c%20search_path%3D{schema}"
            monkeypatch.setenv("AIRFLOW_CONN_HR_DATABASE", f"postgres://{user}@127.0.0.1:5432/test?{options}")
            yield cursor
        finally:
            cursor.execute(f"drop schema {schema} cascade")


@pytest.mark.skipif(not _postgresql_is_there(), reason="there is no PostgreSQL on 127.0.0.1:5432")
def test_the_second_night_creates_who_is_new(airflow: WarmAirflow, tmp_path: Path, employees: Any) -> None:
    with Simulator() as simulator:
        nights = []
        for night in range(3):
            if night == 2:
                employees.execute(
                    "insert into employees values ('new', 'New', null, null, null, null, '2020-01-01')"
                )
            tasks, printed = run_dag(airflow, "anaplat_provision_users", simulator, tmp_path)
            assert HR_PASSWORD not in printed
            assert tasks[0]["state"] == "success", printed
            nights.append((tasks[0]["state"], tasks[0]["xcom"]["created"], tasks[0]["xcom"]["skipped"]))

    assert nights == [("success", 2_499, 0), ("success", 0, 2_499), ("success", 1, 2_499)]
    assert len(simulator.requests("create_users")) == 14
    assert simulator.platform.users["user1"] == {
        "loginId": "user1",
        "name": "User 1",
        "password": HR_PASSWORD,
        "role": "participant",
        "userGroupIds": ["a", "b"],
        "userDefinedProperties": {"chat": "chat1"},
    }
    assert simulator.platform.users["new"] == {"loginId": "new", "name": "New", "role": "participant"}
    assert _tables_that_hold(airflow, HR_PASSWORD) == set()
    assert _files_that_hold(airflow, HR_PASSWORD) == []
