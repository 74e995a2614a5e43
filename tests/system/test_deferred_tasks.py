"""Deferred tasks whose wait ends otherwise than by the platform: nobody goes on asking for them."""

from __future__ import annotations

import pytest
from conftest import TEXTS
from support.production import WORKING, Production
from support.running import wait_until


@pytest.fixture(scope="module", autouse=True)
def deferred(running: Production) -> None:
    """Let the tasks of all tests wait."""
    for fault in ("cleared", "failed_by_hand", "timed_out"):
        running.platforms[fault].platform.add_dataset("awaited", TEXTS, [WORKING])
        running.platforms[fault].platform.creation_statuses = [WORKING]
    running.start("cleared", "failed_by_hand", "timed_out")
    for fault in ("cleared", "failed_by_hand"):
        for task in ("wait", "create"):
            running.until(fault, task, "deferred")
    wait_until(lambda: all(running.platforms[fault].ledger for fault in ("cleared", "failed_by_hand")))
    assert {"anaplat_cleared", "anaplat_failed_by_hand"} <= running.threads()


def test_failed_by_hand(running: Production) -> None:
    for task in ("wait", "create"):
        running.deployment.set_state("failed_by_hand", task, "failed")
    running.deployment.wait_for("failed_by_hand", "failed")

    assert running.states("failed_by_hand") == {"wait": ["failed"], "create": ["failed"]}

    running.nobody_asks("failed_by_hand")
    simulator = running.platforms["failed_by_hand"]

    assert len(simulator.requests("create_dataset")) == 1
    assert len(simulator.platform.datasets) == 2


def test_timed_out(running: Production) -> None:
    running.deployment.wait_for("timed_out", "failed")
    assert running.states("timed_out") == {"wait": ["failed"], "create": ["failed"]}
    assert running.attempts("timed_out") == {"wait": 1, "create": 1}
    assert "AirflowSensorTimeout" in running.deployment.log("timed_out", "wait")
    assert "AirflowTaskTimeout" in running.deployment.log("timed_out", "create")

    running.nobody_asks("timed_out")
    simulator = running.platforms["timed_out"]

    assert len(simulator.requests("create_dataset")) == 1
    assert len(simulator.platform.datasets) == 2


def test_cleared(running: Production) -> None:
    simulator = running.platforms["cleared"]
    running.deployment.clear("cleared", ["wait", "create"])
    wait_until(lambda: min(running.attempts("cleared").values()) == 2)
    for task in ("wait", "create"):
        running.until("cleared", task, "deferred")
    for dataset in simulator.platform.datasets.values():
        dataset.statuses = ["FINISHED"]
    running.deployment.wait_for("cleared", "success")

    assert running.deployment.xcom("cleared", "create")["dsId"] == "ds2"
    assert len(simulator.requests("create_dataset")) == 1
    assert len(simulator.platform.datasets) == 2

    running.nobody_asks("cleared")
