"""Tests of a DAG against the embedded platform."""

import json

import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_provider_anaplat import AnaplatExportRowsOperator
from airflow_provider_anaplat.simulator import Simulator, Table, replies

SALES = Table.of_rows([("id", "INT"), ("city", "STRING")], [["1", "Paris"], ["2", "Rome"]])


@pytest.fixture
def platform(monkeypatch):
    """Start an embedded platform that creates datasets at once, and name it in the connection."""
    with Simulator({"sales": SALES}, creation_statuses=["FINISHED"]) as simulator:
        connection = {"conn_type": "anaplat", "host": simulator.url, "password": simulator.token}
        monkeypatch.setenv("AIRFLOW_CONN_ANAPLAT_DEFAULT", json.dumps(connection))
        yield simulator


def test_one_operator_without_airflows_machinery(platform, tmp_path):
    dataset = platform.platform.add_dataset("sales", SALES)
    platform.inject("read_rows", replies.http_status(503, retry_after="0"), times=2)
    export = AnaplatExportRowsOperator(task_id="t", ds_id=dataset.ds_id, output_path=str(tmp_path / "sales.csv"))
    assert export.execute({})["rows"] == 2
    assert (tmp_path / "sales.csv").read_text() == "id,city\n1,Paris\n2,Rome\n"


def test_a_whole_dag(platform):
    run = DagBag("dags").dags["create_dataset"].test()
    assert run.state == "success"
    assert len(platform.requests("create_dataset")) == 1


def test_a_creation_that_fails_fails_the_dag(platform):
    platform.platform.creation_statuses = ["处理中", "FAILED"]
    dag = DagBag("dags").dags["create_dataset"]
    dag.get_task("create").poll_interval = 0.1
    assert dag.test().state == "failed"
