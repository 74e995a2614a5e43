"""Tells which threads the package has in the triggerer."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import pendulum
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_anaplat._airflow.releases import DAG, BaseOperator


class ThreadsTrigger(BaseTrigger):
    """Looks once."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "anaplat_threads.ThreadsTrigger", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent([thread.name for thread in threading.enumerate() if "anaplat" in thread.name])


class ThreadsOperator(BaseOperator):
    """Returns what the trigger saw."""

    def execute(self, context: Any) -> None:
        self.defer(trigger=ThreadsTrigger(), method_name="told")

    def told(self, context: Any, event: list[str]) -> list[str]:
        return event


with DAG(dag_id="threads", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False):
    ThreadsOperator(task_id="look")
