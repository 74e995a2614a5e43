"""Deferred tasks whose wait ends otherwise than by the platform: nobody goes on asking for them."""

from __future__ import annotations

import pytest
from conftest import TEXTS
from running import wait_until
from system.production import Production

WORKING = "处理中"


@pytest.fixture(scope="module", autouse=True)
def deferred(running: Production) -> None:
    """Let the tasks of all tests wait."""
    for fault in ("cleared", "failed_by_hand"):
        running.platforms[fault].platform.add_dataset("awaited", TEXTS, [WORKING])
        running.platforms[fault].platform.creation_statuses = [WORKING]
    running.platforms["timed_out"].platform.add_dataset("awaited", TEXTS, [WORKING])
    running.start("cleared", "failed_by_hand", "timed_out")
    for fault in ("cleared", "failed_by_hand"):
        for task in ("wait", "create"):
            running.until(fault, task, "deferred")
    wait_until(lambda: all(running.platforms[fault].ledger for fault in ("cleared", "failed_by_hand")))
    threads = running.threads()
    assert "anaplat_cleared" in threads
    assert "anaplat_failed_by_hand" in threads


def test_failed_by_hand(running: Production) -> None:
    for task in ("wait", "create"):
        running.deployment.set_state("failed_by_hand", task, "failed")
    running.deployment.wait_for("failed_by_hand", "failed")
    nobody_asks(running, "failed_by_hand")
    platform = running.platforms["failed_by_hand"]
    assert len(platform.requests("create_dataset")) == 1
    assert len(platform.platform.datasets) == 2


def test_timed_out(running: Production) -> None:
    running.deployment.wait_for("timed_out", "failed")
    assert running.attempts("timed_out") == {"wait": 1}
    assert "AirflowSensorTimeout" in running.deployment.log("timed_out", "wait")
    nobody_asks(running, "timed_out")


def test_cleared(running: Production) -> None:
    platform = running.platforms["cleared"]
    running.deployment.clear("cleared", ["wait", "create"])
    wait_until(lambda: min(running.attempts("cleared").values()) == 2)
    for task in ("wait", "create"):
        running.until("cleared", task, "deferred")
    for dataset in platform.platform.datasets.values():
        dataset.statuses = ["FINISHED"]
    running.deployment.wait_for("cleared", "success")
    assert running.deployment.xcom("cleared", "create")["dsId"] == "ds2"
    assert len(platform.requests("create_dataset")) == 1
    assert len(platform.platform.datasets) == 2
    nothing_is_left(running, "cleared")


def nobody_asks(running: Production, fault: str) -> None:
    """See that nobody does, once the triggerer has heard of it, while somebody else asks at the same interval."""
    platform, others = running.platforms[fault], running.platforms["cleared"]

    def nobody_did() -> bool:
        asked, asked_by_others = len(platform.ledger), len(others.ledger)
        wait_until(lambda: len(others.ledger) > asked_by_others + 3)
        return len(platform.ledger) == asked

    wait_until(nobody_did)
    nothing_is_left(running, fault)


def nothing_is_left(running: Production, fault: str) -> None:
    """See that no process has a connection to the platform, and the triggerer no thread for it."""
    wait_until(lambda: running.is_left_alone(fault))
    assert f"anaplat_{fault}" not in running.threads()
