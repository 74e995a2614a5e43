"""Every DAG of the documentation runs, on a real Airflow against the embedded platform."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.markdown import PROJECT, blocks, is_written_for_this_airflow
from support.running import WarmAirflow

from airflow_provider_anaplat.simulator import Simulator, Table

pytestmark = is_written_for_this_airflow

SALES = Table.of_rows(
    [("id", "INT"), ("city", "STRING"), ("amount", "DOUBLE")],
    [["1", "Paris", "7.5"], ["2", "Rome", None], ["3", "Paris", "12"]],
)
FILES = {path.stem: path.read_text() for path in (PROJECT / "docs" / "dags").glob("*.py")}
# The tutorial's own DAG runs in the tutorial.
IN_TEXT = {
    re.sub(r"\W", "_", str(block)): block.text
    for block in blocks()
    if block.language == "python" and "with DAG(" in block.text and "tutorial" not in block.document
}
DAG_IDS = sorted(set(re.findall(r'with DAG\(\s*"(\w+)"', "\n".join([*FILES.values(), *IN_TEXT.values()]))))
PLACES = ("/data/", "s3://lake@history/")  # where the documents write

RUN_DAGS = """
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
for dag_id in sys.argv[2:]:
    instances = bag.dags[dag_id].test().get_task_instances()
    ends = {f"{i.task_id}[{i.map_index}]" if i.map_index >= 0 else i.task_id: [
        str(i.state), i.xcom_pull(task_ids=i.task_id, map_indexes=i.map_index)
    ] for i in instances}
    print("RESULT" + json.dumps([dag_id, ends]))
"""

RUN_PYTEST = """
import os, pytest
os.chdir(sys.argv[1])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider"]))
"""


class Run:
    """What became of the DAGs.

    :param folder: what they have for ``/data``
    :param platform: the embedded platform
    """

    def __init__(self, folder: Path, simulator: Simulator) -> None:
        self.folder = folder
        self.platform = simulator
        self.ends: dict[str, dict[str, tuple[str, Any]]] = {}
        self.printed = ""

    def results(self, dag_id: str) -> dict[str, Any]:
        return {task: xcom for task, (_, xcom) in self.ends[dag_id].items()}


@pytest.fixture(scope="module")
def run(warm_airflow: WarmAirflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("data")
    warm_airflow.begin_anew()
    for name, text in (FILES | IN_TEXT).items():
        for place in PLACES:
            text = text.replace(place, f"{folder}/")
        (warm_airflow.dags / f"{name}.py").write_text(text)
    (folder / "people.csv").write_text("loginId,name\nada,Ada\nblaise,Blaise\n")
    with Simulator({"sales": SALES}, creation_statuses=["FINISHED"]) as simulator:
        _fill(simulator)
        run = Run(folder, simulator)
        _run_all(run, warm_airflow)
        yield run


def _fill(simulator: Simulator) -> None:
    platform = simulator.platform
    tomorrow = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    platform.add_dataset("sales", SALES).utime = tomorrow
    platform.cards["sales-by-city"] = platform.add_card("sales", SALES)
    for region in ("north", "south"):
        platform.add_dataset(f"region {region}", SALES)
    platform.refresh_statuses = ["FINISHED"]
    platform.users["blaise"] = {"loginId": "blaise"}
    for plan in ("board-report", "sales-report"):
        sent = {"lastSendTime": int(tomorrow.timestamp() * 1000), "lastSendStatus": "SUCCESS"}
        platform.subscriptions[plan] = {"scId": plan, "name": plan, "enabled": True, **sent}
    platform.authorized_datasets["u1"] = [{"id": "ds1", "isOwner": True, "canExport": True}]


def _run_all(run: Run, airflow: WarmAirflow) -> None:
    connection = {"conn_type": "anaplat", "host": run.platform.url, "password": run.platform.token}
    warehouse = {"conn_type": "sqlite", "host": str(run.folder / "warehouse.db")}
    process = airflow.run(
        RUN_DAGS, str(airflow.dags), *DAG_IDS,
        AIRFLOW_CONN_ANAPLAT_DEFAULT=json.dumps(connection), AIRFLOW_CONN_WAREHOUSE=json.dumps(warehouse),
    )  # fmt: skip
    run.printed = process.stdout + process.stderr
    assert process.returncode == 0, run.printed
    for line in process.stdout.splitlines():
        if line.startswith("RESULT"):
            dag_id, ends = json.loads(line.removeprefix("RESULT"))
            run.ends[dag_id] = ends


def test_there_are_dags() -> None:
    assert len(FILES) >= 14
    assert IN_TEXT


def test_every_dag_file_is_shown_on_a_page() -> None:
    pages = "".join(path.read_text() for path in (PROJECT / "docs").rglob("*.md"))
    shown = set(re.findall(r"literalinclude} \S*dags/(\w+)\.py", pages))
    assert shown == set(FILES)


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_a_documented_dag_succeeds(run: Run, dag_id: str) -> None:
    states = {task: state for task, (state, _) in run.ends[dag_id].items()}
    assert states, run.printed
    assert set(states.values()) == {"success"}, (states, run.printed)


def test_no_token_is_printed(run: Run) -> None:
    assert run.platform.token not in run.printed


def test_what_the_dags_of_datasets_return(run: Run) -> None:
    created = run.results("create_dataset")["create"]
    assert (created["taskId"], created["status"], created["rowCount"]) == (
        f"task-{created['dsId']}",
        "FINISHED",
        3,
    )

    waited = run.results("wait_for_dataset")
    assert waited["wait[0]"]["name"].startswith("sales north")
    assert waited["wait[1]"]["name"].startswith("sales south")
    assert run.results("wait_for_fresh_data")["wait"]["dsId"] == "ds1"
    assert run.results("refresh_dataset")["refresh"]["status"] == "FINISHED"

    refreshed = [request.path.split("/")[-2] for request in run.platform.requests("refresh_dataset")]
    assert sorted(refreshed) == ["ds1", "ds3", "ds4"]
    assert run.results("name_datasets")["export"]["dsId"] == "ds1"
    assert run.results("name_datasets")["regions"] == ["ds3", "ds4"]
    assert run.results("check_schema")["check"] == {"dsId": "ds1", "columns": 3, "extra": []}


def test_what_the_dags_of_rows_write(run: Run) -> None:
    assert pl.read_parquet(run.folder / "sales.parquet").rows() == [
        (1, "Paris", 7.5), (2, "Rome", None), (3, "Paris", 12.0),
    ]  # fmt: skip
    assert pl.read_csv(run.folder / "paris.csv.gz")["id"].to_list() == [1, 3]
    assert run.results("export_card")["export"]["rows"] == 3
    assert json.loads((run.folder / "sales" / "_manifest.json").read_text())["rows"] == 3
    assert run.results("export_by_several_workers")["export.commit"]["rows"] == 3
    assert len(list((run.folder / "updates").iterdir())) == 1
    assert run.results("publish_export")["export"]["rows"] == 3


def test_what_the_dag_of_tables_loads(run: Run) -> None:
    with closing(sqlite3.connect(run.folder / "warehouse.db")) as database:
        for table in ("sales", "sales_history"):
            rows = database.execute(f"select id, city, amount from {table} order by id").fetchall()
            assert rows == [(1, "Paris", 7.5), (2, "Rome", None), (3, "Paris", 12.0)]


def test_what_the_dags_of_people_say(run: Run) -> None:
    result = run.results("provision_users")["create_users"]
    assert (result["created"], result["skipped"]) == (1, 1)
    assert sorted(run.platform.platform.users) == ["ada", "blaise"]
    assert pl.read_parquet(run.folder / "access.parquet").rows()[0][:3] == ("u1", "dataset", "ds1")
    plans = run.results("wait_for_subscriptions")["wait"]["subscriptions"]
    assert [plan["scId"] for plan in plans] == ["board-report", "sales-report"]


def test_the_tests_of_your_own_dags_run(warm_airflow: WarmAirflow) -> None:
    warm_airflow.begin_anew()
    (warm_airflow.dags / "create_dataset.py").write_text(FILES["create_dataset"])
    shutil.copy(PROJECT / "docs" / "samples" / "test_sales_dag.py", warm_airflow.home)
    process = warm_airflow.run(RUN_PYTEST, str(warm_airflow.home))
    assert "3 passed" in process.stdout, process.stdout + process.stderr
