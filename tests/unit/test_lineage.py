"""OpenLineage: names, what counts where a name is missing, and that it costs nothing where it is off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import numbers

from airflow_provider_anaplat._airflow.releases import AirflowFailException, BaseHook
from airflow_provider_anaplat.assets import create_asset
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.lineage import (
    Name,
    lineage_of_rows,
    name_of_dataset,
    name_of_file,
    name_of_table,
)
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.simulator import Simulator

Connect = Callable[..., None]

WITHOUT_OPENLINEAGE = """
import sys
for name in sys.argv[2:]:
    sys.modules[name] = None  # cannot be imported
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator
create = AnaplatCreateDatasetOperator(task_id="c", account_id="a", name="new", table_query={"table": "numbers"})
ds_id = create.execute({})["dsId"]
AnaplatRefreshDatasetOperator(task_id="r", ds_id=ds_id, wait_for_completion=False).execute({})
AnaplatExportRowsOperator(task_id="e", ds_id="ds1", output_path=sys.argv[1] + "/x.csv").execute({})
AnaplatToSqlOperator(task_id="l", ds_id="ds1", sql_conn_id="db", table="numbers").execute({})
print(sorted({"airflow_provider_anaplat.lineage", "openlineage.client"} & set(sys.modules)))
"""


@pytest.mark.parametrize("missing", [["openlineage", "airflow.providers.openlineage.extractors"], []])
def test_nothing_is_done_for_openlineage_where_nobody_asks(
    simulator: Simulator, tmp_path: Path, missing: list[str]
) -> None:
    simulator.platform.tables["numbers"] = numbers(3)
    simulator.platform.add_dataset("numbers", numbers(3))
    connection = {"conn_type": "anaplat", "host": simulator.url, "password": simulator.token}
    environment = {
        **os.environ,
        "AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_DB": json.dumps({"conn_type": "sqlite", "host": f"{tmp_path}/x.db"}),
    }
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_OPENLINEAGE, str(tmp_path), *missing],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://bi.example.com", Name("anaplat://bi.example.com", "datasets/d%2F1")),
        ("http://BI.example.com:8080/prefix", Name("anaplat://bi.example.com:8080", "prefix/datasets/d%2F1")),
        ("https://me:secret@bi.example.com", Name("anaplat://bi.example.com", "datasets/d%2F1")),
    ],
)
def test_a_dataset_has_the_name_of_its_asset(base_url: str, name: Name) -> None:
    assert name_of_dataset(base_url, "d/1") == name
    if "@" not in base_url:
        assert create_asset(host=base_url, ds_id="d/1").uri == "/".join(name)


def test_airflow_translates_the_asset_to_the_same_name() -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="it translates assets")
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    asset = create_asset(host="https://bi.example.com:8443/prefix", ds_id="d 1")
    translated = translate_airflow_asset(asset, None)
    assert translated is not None
    assert (translated.namespace, translated.name) == name_of_dataset("https://bi.example.com:8443/prefix", "d 1")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/x.csv", ("file", "/data/x.csv")),
        ("file:///data/x.csv", ("file", "/data/x.csv")),
        ("file://localhost/data/x.csv", ("file", "/data/x.csv")),
        ("x.csv", ("file", f"{Path.cwd()}/x.csv")),
        ("s3://bucket/a/b #1?.parquet", ("s3://bucket", "a/b #1?.parquet")),
        ("s3://my_connection@bucket/folder/", ("s3://bucket", "folder")),
        ("gcs://bucket/a.csv", ("gs://bucket", "a.csv")),
        ("abfss://my_connection@container/a.csv", ("abfss://container", "a.csv")),
    ],
)
def test_a_file_has_openlineages_name(path: str, name: tuple[str, str]) -> None:
    assert name_of_file(path) == name


MYSQL = {"conn_type": "mysql", "host": "db", "schema": "erp", "extra": {"client": "mysql-connector-python"}}


@pytest.mark.parametrize(
    ("fields", "schema", "name"),
    [
        ({"conn_type": "postgres", "host": "db", "schema": "erp"}, "hr", ("postgres://db:5432", "erp.hr.staff")),
        (MYSQL, None, ("mysql://db:3306", "erp.staff")),
        ({**MYSQL, "port": 3307}, "hr", ("mysql://db:3307", "hr.staff")),
        ({"conn_type": "sqlite", "host": "/x.db"}, None, None),
    ],
)
def test_a_table_has_openlineages_name(
    fields: dict[str, Any], schema: str | None, name: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "airflow.providers.openlineage", reason="databases' hooks describe themselves in its types"
    )
    if fields["conn_type"] == "mysql":
        pytest.importorskip("mysql.connector", reason="mysql-connector-python is not installed")
    monkeypatch.setenv("AIRFLOW_CONN_DB", json.dumps({**fields, "login": "me", "password": "s3cret"}))
    connection: Any = BaseHook.get_connection("db")

    assert name_of_table(connection.get_hook(), connection, schema, "staff") == name


def test_rows_that_an_earlier_attempt_has_loaded_are_not_counted_again() -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the listener is its own")
    source, target = Name("anaplat://bi", "datasets/ds1"), Name("postgres://db:5432", "erp.hr.staff")
    result = {"rows": 3, "version": 7, "utime": None}
    first = lineage_of_rows(source, target, result, [Column(name="n", fd_type="INT")], [])
    again = lineage_of_rows(source, target, result, [], [])

    assert first.outputs[0].outputFacets["outputStatistics"].rowCount == 3
    assert (again.inputs[0].name, again.outputs[0].name) == ("datasets/ds1", "erp.hr.staff")
    assert again.outputs[0].outputFacets == again.outputs[0].facets == {}
    assert again.inputs[0].facets["version"].datasetVersion == "7"


def test_a_task_that_has_written_nothing_says_nothing(
    connect: Connect, simulator: Simulator, tmp_path: Path
) -> None:
    connect(simulator)
    export = AnaplatExportRowsOperator(task_id="e", ds_id="gone", output_path=str(tmp_path / "x.csv"))
    with pytest.raises(AirflowFailException):
        export.execute({})
    assert export.get_openlineage_facets_on_complete(None) is None


def test_a_dataset_that_is_reused_was_not_created(connect: Connect, simulator: Simulator) -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the listener is its own")
    connect(simulator)
    simulator.platform.add_dataset("sales", numbers(3))
    create = AnaplatCreateDatasetOperator(task_id="c", account_id="a", name="sales", table_query={"table": "t"})
    create.execute({})
    lineage = create.get_openlineage_facets_on_complete(None)

    assert lineage is not None
    assert (lineage.outputs[0].name, list(lineage.outputs[0].facets)) == ("datasets/ds1", ["documentation"])
    assert lineage.job_facets == {}
