"""What Airflow's OpenLineage provider emits of these tasks, on a real scheduler, triggerer and task runner."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import LONG
from support.databases import Database, database
from support.running import WarmAirflow
from support.scheduled import ScheduledAirflow, until

from airflow_provider_anaplat.simulator import Simulator, Table
from airflow_provider_anaplat.simulator.platform import StoredDataset

pytest.importorskip(
    "airflow.providers.openlineage", reason="apache-airflow-providers-openlineage is not installed"
)

DAG_FILE = Path(__file__).parent / "dags" / "anaplat_lineage.py"
DB_PASSWORD = "s3cret-of-the-warehouse"
SALES = Table.of_rows([("id", "INT"), ("city", "STRING"), ("city", "STRING")], [["1", "Rome", None]] * 3)
ENDED = {"COMPLETE", "FAIL"}
DEFERRED = "event with state success for task instance TaskInstanceKey(dag_id='lineage', task_id='create'"


class Annotated(StoredDataset):
    """A dataset whose columns have comments."""

    def columns(self) -> list[dict[str, Any]]:
        return [{**column, "annotation": f"the {column['name']}"} for column in super().columns()]


@dataclass
class Run:
    """A finished run of the DAG.

    :param events: the last event of each task
    :param text: all events, as they were emitted
    """

    airflow: ScheduledAirflow
    platform: Simulator
    warehouse: Database
    output: Path
    events: dict[str, dict[str, Any]]
    text: str

    @property
    def namespace(self) -> str:
        return f"anaplat://{urlsplit(self.platform.url).netloc}"

    def only(self, task: str, way: str) -> dict[str, Any]:
        (dataset,) = self.events[task][way]
        found: dict[str, Any] = dataset
        return found


@pytest.fixture(scope="module")
def run(warm_airflow: WarmAirflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    output = tmp_path_factory.mktemp("output")
    emitted = tmp_path_factory.mktemp("events") / "events.ndjson"
    with Simulator({"sales": SALES}) as simulator, database("postgres", output) as warehouse:
        simulator.platform.add_dataset("sales", SALES)
        original = simulator.platform.datasets["ds1"]
        simulator.platform.datasets["ds1"] = Annotated(**vars(original))
        simulator.platform.creation_statuses = ["处理中"]
        airflow = ScheduledAirflow(warm_airflow)
        transport = {"type": "file", "log_file_path": str(emitted), "append": True}
        airflow.environment |= {
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": str(LONG),  # an event that takes longer is dropped
            "ANAPLAT_TEST_OUTPUT": str(output),
        }
        shutil.copy(DAG_FILE, airflow.home / "dags")
        connections = {
            "anaplat_default": {
                "conn_type": "anaplat", "host": simulator.url, "password": simulator.token,
                "extra": {"max_retries": 0},
            },
            "database": {**warehouse.fields, "password": DB_PASSWORD},
            "sqlite": {"conn_type": "sqlite", "host": str(output / "sales.db")},
        }  # fmt: skip
        (airflow.home / "connections.json").write_text(json.dumps(connections))
        airflow.command("connections", "import", str(airflow.home / "connections.json"))
        try:
            airflow.begin("lineage")
            airflow.command("dags", "trigger", "lineage")
            # Before, the end of the wait would overtake it: Airflow fails a task that is queued by then.
            until(lambda: DEFERRED in airflow.component_log("scheduler"), airflow)
            simulator.platform.datasets["ds2"].statuses = ["FINISHED"]
            until(
                lambda: airflow.query("select 1 from dag_run where state in ('success', 'failed')") != [], airflow
            )
            tasks = {task for (task,) in airflow.query("select task_id from task_instance")}
            until(lambda: tasks <= _ended(emitted).keys(), airflow)
        finally:
            airflow.stop()
        yield Run(airflow, simulator, warehouse, output, _ended(emitted), emitted.read_text())


def _ended(emitted: Path) -> dict[str, dict[str, Any]]:
    if not emitted.exists():
        return {}
    events = [json.loads(line) for line in emitted.read_text().splitlines() if line.endswith("}")]
    return {
        event["job"]["name"].removeprefix("lineage."): event for event in events if event["eventType"] in ENDED
    }


def test_a_dataset_that_is_created(run: Run) -> None:
    created = run.only("create", "outputs")
    assert run.events["create"]["eventType"] == "COMPLETE"
    assert (created["namespace"], created["name"]) == (run.namespace, "datasets/ds2")
    assert created["facets"]["documentation"]["description"] == "lineage of sales"
    assert created["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert run.events["create"]["job"]["facets"]["sql"]["query"] == "SELECT * FROM sales"

    source = run.only("create", "inputs")
    assert (source["namespace"], source["name"]) == ("postgres://warehouse:5432", "erp.public.sales")


def test_a_dataset_that_is_updated(run: Run) -> None:
    updated = run.only("refresh", "outputs")
    assert (updated["namespace"], updated["name"]) == (run.namespace, "datasets/ds2")
    assert list(updated["facets"]) == ["documentation"]


@pytest.mark.parametrize("task", ["export", "load", "load_sqlite"])
def test_a_dataset_whose_rows_are_read(run: Run, task: str) -> None:
    read = run.only(task, "inputs")
    assert (read["namespace"], read["name"]) == (run.namespace, "datasets/ds1")
    fields = [(each["name"], each["type"], each["description"]) for each in read["facets"]["schema"]["fields"]]
    assert fields == [("id", "INT", "the id"), ("city", "STRING", "the city"), ("city", "STRING", "the city")]
    assert read["facets"]["version"]["datasetVersion"] == "1"


def statistics(dataset: dict[str, Any]) -> tuple[int | None, int | None]:
    found = dataset["outputFacets"]["outputStatistics"]
    return found.get("rowCount"), found.get("size")


def test_a_file(run: Run) -> None:
    written, path = run.only("export", "outputs"), run.output / "lineage.csv"
    assert (written["namespace"], written["name"]) == ("file", str(path))
    assert statistics(written) == (3, path.stat().st_size)
    assert [field["name"] for field in written["facets"]["schema"]["fields"]] == ["id", "city", "city (2)"]

    origins = written["facets"]["columnLineage"]["fields"]
    assert {name: origin["inputFields"][0]["field"] for name, origin in origins.items()} == {
        "id": "id", "city": "city", "city (2)": "city",
    }  # fmt: skip
    assert {origin["inputFields"][0]["name"] for origin in origins.values()} == {"datasets/ds1"}


def test_a_folder_of_several_workers(run: Run) -> None:
    written, folder = run.only("parts.commit", "outputs"), run.output / "parts"
    assert (written["namespace"], written["name"]) == ("file", str(folder))

    parts = list(folder.glob("part-*"))
    assert len(parts) == 2
    assert statistics(written) == (3, sum(part.stat().st_size for part in parts))
    assert [field["type"] for field in run.only("parts.commit", "inputs")["facets"]["schema"]["fields"]] == [
        "INT", "STRING", "STRING",
    ]  # fmt: skip
    assert run.events["parts.plan"]["outputs"] == run.events["parts.part"]["outputs"] == []


def test_a_table(run: Run) -> None:
    written = run.only("load", "outputs")
    assert (written["namespace"], written["name"]) == (
        "postgres://127.0.0.1:5432", f"test.{run.warehouse.schema}.sales",
    )  # fmt: skip
    assert statistics(written) == (3, None)
    assert run.warehouse.rows("SELECT count(*) FROM sales") == [(3,)]


def test_a_table_that_openlineage_has_no_name_for_is_what_the_author_calls_it(run: Run) -> None:
    written = run.only("load_sqlite", "outputs")
    assert (written["namespace"], written["name"]) == ("file", f"{run.output}/sales.db")


def test_a_task_that_fails_has_written_nothing(run: Run) -> None:
    failed = run.events["fails"]
    assert (failed["eventType"], failed["inputs"], failed["outputs"]) == ("FAIL", [], [])


def test_no_secret_is_in_an_event(run: Run) -> None:
    assert run.text.count('"eventType"') >= 16
    assert run.platform.token not in run.text
    assert DB_PASSWORD not in run.text


def test_the_platform_is_asked_for_nothing_more(run: Run) -> None:
    reads = [request for request in run.platform.requests("read_rows") if "/ds1/" in request.path]
    whole = [request for request in reads if request.body["limit"] == 1_000]
    of_parts = [request for request in reads if request.body["limit"] <= 2]
    # The last part is as long as it could be, so one row behind it is asked for.
    assert (len(whole), len(of_parts), len(reads)) == (3, 4, 7)
    assert run.platform.requests("get_columns") == []
