"""A connection's limit on requests at the same time: kept, shared, given back, and never waited for in vain."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import LONG, numbers

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.metrics import RETRIES
from airflow_provider_anaplat.output.formats import NdjsonSink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.replies import Fault


def limited(simulator: Simulator, most: int, **settings: object) -> AnaplatClient:
    return AnaplatClient(simulator.url, simulator.token, max_connections=most, **settings)  # type: ignore[arg-type]


def when_together(simulator: Simulator, operation: str, count: int) -> None:
    """Answer nobody before so many have asked, and then with a delay, so that more would meet them."""
    together = threading.Event()
    asked: list[None] = []

    def arrive(_: object) -> bool:
        asked.append(None)
        if len(asked) >= count:
            together.set()
        return True

    simulator.inject(
        operation,
        Fault(lambda reply: replace(reply, held_by=together, delay=0.05), needs_answer=True),
        times=None,
        when=arrive,
    )


def test_the_clients_of_a_connection_share_its_places(simulator: Simulator) -> None:
    when_together(simulator, "list_datasets", 3)
    clients = [limited(simulator, 3), limited(simulator, 3), limited(simulator, 3).without_retries()]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda number: clients[number % 3].list_datasets(), range(12)))
    assert answers == [[]] * 12
    assert simulator.most_at_once == 3


def test_without_a_limit_there_is_none(simulator: Simulator, client: AnaplatClient) -> None:
    when_together(simulator, "list_datasets", 12)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: client.list_datasets(), range(12)))
    assert simulator.most_at_once == 12


@pytest.mark.parametrize("limit", [1, 2])
def test_an_export_keeps_to_the_limit_whatever_its_concurrency(
    simulator: Simulator, tmp_path: Path, limit: int
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(300))
    when_together(simulator, "read_rows", 1)
    path = tmp_path / "numbers.ndjson"
    query = RowQuery(dataset.ds_id, page_size=10, concurrency=8)
    client = limited(simulator, limit)

    assert export_rows(client, ExportPlan(query, FileTarget(Place(path, NdjsonSink())))).rows == 300
    assert simulator.most_at_once == limit
    assert [line.split(",")[0] for line in path.read_text().splitlines()] == [f'{{"n":{n}' for n in range(300)]


def test_who_waits_for_another_attempt_holds_no_place(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(429, retry_after="100"))
    waits = threading.Event()
    patient = limited(simulator, 1, observer=lambda metric, *_: waits.set() if metric is RETRIES else None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(patient.list_datasets)
        assert waits.wait(LONG)
        assert limited(simulator, 1).list_pages() == []
        assert not waiting.done()
        patient.close()


def test_closing_a_client_ends_its_wait_and_nobody_elses(simulator: Simulator) -> None:
    asked, until = threading.Event(), threading.Event()
    simulator.inject("list_datasets", replies.hold(until), when=lambda _: asked.set() or True)
    first, second, third = (limited(simulator, 1) for _ in range(3))
    with ThreadPoolExecutor(3) as pool:
        held = pool.submit(first.list_datasets)
        try:
            assert asked.wait(LONG)
            waiting, patient = pool.submit(second.list_datasets), pool.submit(third.list_datasets)
            second.close()
            with pytest.raises(errors.AnaplatClosedError, match="max_connections"):
                waiting.result(30)
            assert len(simulator.ledger) == 1
            assert not patient.done()
        finally:
            until.set()
        assert held.result(30) == patient.result(30) == []


def test_a_request_that_fails_gives_its_place_back(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.reset())
    simulator.inject("list_datasets", replies.cut())
    client = limited(simulator, 1, max_retries=0)

    for _ in range(2):
        with pytest.raises(errors.AnaplatError):
            client.list_datasets()
    assert client.list_datasets() == []
