"""Assets: the names of datasets, and the events of tasks that write their rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import numbers
from support.running import AIRFLOW_2

from airflow_provider_anaplat._airflow.releases import Asset, AssetAlias
from airflow_provider_anaplat.assets import create_asset, sanitize_uri
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator

if AIRFLOW_2:
    from airflow.utils.context import OutletEventAccessors
else:
    from airflow.sdk.execution_time.context import OutletEventAccessors  # type: ignore[assignment]  # the other's

Connect = Callable[..., None]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("anaplat://bi.example.com/datasets/ds1", "anaplat://bi.example.com/datasets/ds1"),
        ("anaplat://BI.Example.com:8443/datasets/Ds1/", "anaplat://bi.example.com:8443/datasets/Ds1"),
        ("anaplat://bi.example.com/prefix/datasets/d%20s", "anaplat://bi.example.com/prefix/datasets/d%20s"),
        ("anaplat://bi.example.com/datasets/d s", "anaplat://bi.example.com/datasets/d%20s"),
    ],
)
def test_a_uri_has_one_form(given: str, kept: str) -> None:
    assert Asset(uri=given).uri == kept


@pytest.mark.parametrize(
    "uri",
    [
        "anaplat:///datasets/ds1",
        "anaplat://bi.example.com/pages/ds1",
        "anaplat://bi.example.com/datasets/",
        "anaplat://bi.example.com/datasets",
        "anaplat://bi.example.com",
        "anaplat://bi.example.com/datasets/ds1?x=y",
        "anaplat://me:secret@bi.example.com/datasets/ds1",
        "anaplat://bi.example.com//datasets/ds1",
    ],
)
def test_a_uri_that_names_no_dataset_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="<dsId>") as refused:
        sanitize_uri(urlsplit(uri))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "uri"),
    [
        ("bi.example.com", "anaplat://bi.example.com/datasets/d%2F1"),
        ("https://bi.example.com:8443/prefix/", "anaplat://bi.example.com:8443/prefix/datasets/d%2F1"),
    ],
)
def test_an_asset_of_a_connections_host(host: str, uri: str) -> None:
    asset = create_asset(host=host, ds_id="d/1", extra={"a": 1})
    assert (asset.uri, asset.extra) == (uri, {"a": 1})


def events_of(operator: Any) -> Any:
    events = OutletEventAccessors()
    operator.execute({"outlet_events": events})
    return events


def test_an_export_describes_its_event(connect: Connect, simulator: Simulator, tmp_path: Path) -> None:
    connect(simulator)
    dataset = simulator.platform.add_dataset("numbers", numbers(3))
    asset, alias = Asset(uri="file:///sales.csv"), AssetAlias("later")
    export = AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path=str(tmp_path / "x.csv"), outlets=[asset, alias]
    )
    events = events_of(export)
    utime = dataset.fields()["utime"]

    assert events[asset].extra == {"dsId": "ds1", "rows": 3, "version": 1, "utime": utime}
    assert list(events) in ([asset], [asset.uri])


def test_a_load_describes_its_event(
    connect: Connect, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(simulator)
    monkeypatch.setenv("AIRFLOW_CONN_DB", f'{{"conn_type": "sqlite", "host": "{tmp_path}/x.db"}}')
    simulator.platform.add_dataset("numbers", numbers(3))
    asset = Asset(uri="x-table://numbers")
    load = AnaplatToSqlOperator(task_id="l", ds_id="ds1", sql_conn_id="db", table="numbers", outlets=[asset])
    assert events_of(load)[asset].extra["rows"] == 3


def test_no_outlet_no_event(connect: Connect, simulator: Simulator, tmp_path: Path) -> None:
    connect(simulator)
    simulator.platform.add_dataset("numbers", numbers(3))
    export = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=str(tmp_path / "x.csv"))
    assert len(events_of(export)) == 0
    assert export.execute({})["rows"] == 3  # without Airflow's machinery there are no events at all
