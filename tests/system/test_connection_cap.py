"""Exports by two workers of several processes: ``max_connections`` holds in each, and so for all together."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from conftest import numbers
from support.production import Production

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.simulator.replies import Fault

DAG_FILE = Path(__file__).parent / "dags" / "anaplat_connection_cap.py"
ROWS = 800  # of eight pages, of which an export reads four at a time


def test_a_fleet_sends_as_many_requests_as_its_processes_times_the_limit(running: Production) -> None:
    deployment = running.deployment
    processes = len(deployment.workers) * deployment.concurrency
    deployment.add([DAG_FILE])
    assert most_at_once(running, "capped", processes, max_connections=1) == processes
    assert most_at_once(running, "uncapped", processes + 1) > processes


def most_at_once(running: Production, name: str, together: int, **extra: int) -> int:
    """Run the exports, and return how many requests there were at the same time at most.

    Pages after the first are not sent before so many are asked for, and then with a delay: were more asked for,
    they would meet.
    """
    enough = threading.Event()
    asked: list[int] = []

    def gather(body: Mapping[str, Any]) -> bool:
        if body.get("offset"):
            asked.append(body["offset"])
            if len(asked) == together:
                enough.set()
        return bool(body.get("offset"))

    with Simulator() as simulator:
        simulator.platform.add_dataset("numbers", numbers(ROWS))
        meet = Fault(lambda reply: replace(reply, held_by=enough, delay=0.1), needs_answer=True)
        simulator.inject("read_rows", meet, times=None, when=gather)
        running.deployment.connect(
            f"anaplat_{name}",
            conn_type="anaplat",
            host=simulator.url,
            password=simulator.token,
            extra=json.dumps(extra),
        )
        running.deployment.trigger(f"{name}_exports")
        running.deployment.wait_for(f"{name}_exports", "success")
    for task in running.deployment.tasks(f"{name}_exports"):
        assert pl.read_csv(running.output / f"{name}-{task.map_index}.csv")["n"].to_list() == list(range(ROWS))
    return simulator.most_at_once
