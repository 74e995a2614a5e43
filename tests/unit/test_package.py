"""What the package promises to Airflow."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import airflow
import jsonschema
from support.running import AIRFLOW_2, RELEASE

import airflow_provider_anaplat
from airflow_provider_anaplat.provider_info import get_provider_info

PACKAGE = Path(airflow_provider_anaplat.__file__).parent


# Modules that hold no hook, operator, sensor or trigger that a DAG uses.
HELPERS = {"__init__", "base", "layers", "poller", "settings", "waiting"}


def test_provider_info_follows_airflows_schema() -> None:
    schema = next(Path(airflow.__path__[0]).glob("provider.yaml.schema.json"))
    strict = {**json.loads(schema.read_text()), "required": []}
    info = get_provider_info()
    if AIRFLOW_2:  # which calls them datasets
        del info["asset-uris"]
    if RELEASE < (3, 2):  # which take no commands from providers
        del info["cli"]
    known = set(strict["properties"])

    assert set(info) <= known

    jsonschema.validate(info, strict)


def test_what_the_metadata_names_is_there() -> None:
    info = get_provider_info()
    uris = [
        entry[key]
        for name in ("asset-uris", "dataset-uris")
        for entry in info[name]
        for key in ("handler", "factory", "to_openlineage_converter")
    ]
    for kind in ("hooks", "operators", "sensors", "triggers"):
        (entry,) = info[kind]
        assert entry["integration-name"] == info["integrations"][0]["integration-name"]
        there = {path.stem for path in (PACKAGE / kind).glob("*.py")} - HELPERS
        assert set(entry["python-modules"]) == {f"airflow_provider_anaplat.{kind}.{name}" for name in there}
    for transfer in info["transfers"]:
        importlib.import_module(transfer["python-module"])
    for path in [*info["extra-links"], *uris]:
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_the_entry_point_names_the_distribution() -> None:
    distribution = importlib.metadata.distribution("airflow-provider-anaplat")
    (entry_point,) = distribution.entry_points.select(group="apache_airflow_provider")
    assert entry_point.load()()["package-name"] == distribution.metadata["Name"]
    assert distribution.version == airflow_provider_anaplat.__version__


def test_constructing_needs_no_platform_and_no_connection() -> None:
    from airflow_provider_anaplat.operators.access import AnaplatAccessReportOperator
    from airflow_provider_anaplat.operators.call import AnaplatCallOperator
    from airflow_provider_anaplat.operators.cards import AnaplatExportCardOperator
    from airflow_provider_anaplat.operators.datasets import (
        AnaplatCreateDatasetOperator,
        AnaplatSchemaCheckOperator,
    )
    from airflow_provider_anaplat.operators.listing import AnaplatListDatasetsOperator
    from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
    from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
    from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
    from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
    from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor
    from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator

    template: Any = "{{ not_rendered_yet }}"  # it stands for anything
    operators = [
        AnaplatCreateDatasetOperator(task_id="c", account_id=template, name=template, table_query=template),
        AnaplatExportRowsOperator(task_id="e", ds_id=template, output_path=template, file_format=template),
        AnaplatExportCardOperator(task_id="x", card_id=template, output_path=template, filters=template),
        AnaplatCreateUsersOperator(task_id="u", users=template),
        AnaplatToSqlOperator(task_id="l", ds_id=template, sql_conn_id=template, table=template, schema=template),
        AnaplatRefreshDatasetOperator(task_id="r", ds_id=template, path=template),
        AnaplatAccessReportOperator(task_id="a", user_ids=template, output_path=template, page_types=template),
        AnaplatSchemaCheckOperator(task_id="k", ds_id=template, columns=template),
        AnaplatListDatasetsOperator(task_id="n", name_pattern=template, states=template, newer_than=template),
        AnaplatCallOperator(task_id="o", path=template, json=template, query=template),
        AnaplatDatasetTaskSensor(task_id="s", ds_id=template, deferrable=True, start_from_trigger=True),
        AnaplatDatasetFreshnessSensor(task_id="f", ds_id=template, newer_than=template),
        AnaplatSubscriptionSensor(task_id="d", subscription_ids=template, sent_after=template),
    ]
    for operator in operators:
        assert set(operator.template_fields) <= set(vars(operator))
        assert "anaplat_conn_id" in operator.template_fields
