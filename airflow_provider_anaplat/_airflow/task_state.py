"""Where a task of Airflow keeps what its next attempt must know."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from airflow_provider_anaplat._airflow.paths import path_of

if TYPE_CHECKING:
    from airflow_provider_anaplat.state import StateStore


def task_state(context: Mapping[str, Any]) -> StateStore | None:
    """Return Airflow's own store, or None before Airflow 3.3, which has none."""
    return cast("StateStore | None", context.get("task_state_store"))


def folder_state(context: Mapping[str, Any], folder: Any) -> StateStore:
    """Return a store in a folder, apart from those of other tasks and DAG runs.

    :param folder: local path, or the URL of a folder in an object store
    """
    from airflow_provider_anaplat.state import FolderStateStore

    path = path_of(folder)
    if (task := context.get("ti")) is not None:
        for part in (task.dag_id, task.run_id, task.task_id, str(task.map_index)):
            name = quote(part, safe="")
            path = path / (name if name.strip(".") else name.replace(".", "%2E"))  # ".." would lead elsewhere
    return FolderStateStore(path)


def retried_since(context: Mapping[str, Any]) -> datetime | None:
    """Return when this DAG run began, if this attempt is a retry; None in a first attempt."""
    run, ti = context.get("dag_run"), context.get("ti")
    if run is None or ti is None or ti.try_number < 2:
        return None
    return cast("datetime | None", run.start_date)


def run_began(context: Mapping[str, Any]) -> datetime | None:
    """Return the moment since when this DAG run may have done something; None outside of a DAG run."""
    run = context.get("dag_run")
    if run is None:
        return None
    if run.clear_number:  # Airflow forgets when such a run began first
        planned = getattr(run, "run_after", None) or run.data_interval_end or run.logical_date
        return min(filter(None, (planned, run.start_date)), default=None)
    return cast("datetime | None", run.start_date)
