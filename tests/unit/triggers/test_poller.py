"""The shared poller, watched through a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import MagicMock, call

import pytest
from conftest import LONG, TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow import releases
from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.triggers.poller import Watch

Connect = Callable[..., None]


@pytest.fixture(autouse=True)
def connected(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})
    simulator.platform.add_dataset("one", TEXTS, ["处理中"])


def watch(
    interval: float = 60, *ids: str, kind: Any = "find_datasets", connection: str = "anaplat_default"
) -> Watch:
    return Watch(connection, kind, ids or ("ds1",), interval)


async def looks(count: int, interval: float = 0.05, *ids: str, kind: Any = "find_datasets") -> list[Any]:
    with watch(interval, *ids, kind=kind) as watching:
        return [await watching.look() for _ in range(count)]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end, and see that no thread and no task is left."""

    async def main() -> Any:
        result = await asyncio.wait_for(coroutine, LONG)
        assert [
            task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.cancelling()
        ] == []
        return result

    result = asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("anaplat-anaplat_default"):
            thread.join(LONG)
            assert not thread.is_alive()
    return result


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_thousand_who_come_at_once_share_one_request(simulator: Simulator) -> None:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(looks(1, 60) for _ in range(1000)))

    found = run(all_of_them())
    assert {look.get("ds1").status for (look,) in found} == {"处理中"}
    assert len(simulator.requests("list_datasets")) == 1


def test_each_request_is_counted_with_those_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = MagicMock()
    monkeypatch.setattr(releases, "Stats", stats)

    async def two_of_them() -> None:
        with watch() as one, watch() as other:
            await asyncio.gather(one.look(), other.look())

    run(two_of_them())

    tags = {"conn_id": "anaplat_default", "kind": "find_datasets"}
    assert stats.incr.mock_calls.count(call("anaplat.polls", 1, tags=tags)) == 1
    assert stats.gauge.mock_calls[0] == call("anaplat.poll_waiters", 2, tags=tags)


def test_and_each_further_request_too(simulator: Simulator) -> None:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(looks(4, 0.2) for _ in range(100)))

    run(all_of_them())
    assert len(simulator.requests("list_datasets")) == 4


def test_who_comes_later_has_the_last_answer_while_it_is_young(simulator: Simulator) -> None:
    async def one_after_the_other() -> Any:
        with watch(60) as first:
            await first.look()
            return (await looks(1, 60, "ds2"))[0]

    assert run(one_after_the_other()).get("ds2") is None
    assert len(simulator.requests("list_datasets")) == 1


def test_who_needs_a_younger_one_causes_a_request(simulator: Simulator) -> None:
    async def one_after_the_other() -> None:
        with watch(60) as first:
            await first.look()
            await asyncio.sleep(0.05)
            await looks(2, 0.01)

    run(one_after_the_other())
    assert len(simulator.requests("list_datasets")) == 3


def test_an_old_answer_is_not_young_because_the_next_request_is_under_way(simulator: Simulator) -> None:
    async def come_meanwhile() -> Any:
        with watch(0.2) as first:
            await first.look()
            await asyncio.sleep(0.2)
            simulator.platform.datasets["ds1"].statuses = ["FINISHED"]
            go_on = threading.Event()
            simulator.inject("list_datasets", replies.hold(go_on))
            second = asyncio.create_task(first.look())
            await until(lambda: len(simulator.requests("list_datasets")) == 2)
            third = asyncio.create_task(looks(1, 0.1))
            await asyncio.sleep(0.05)
            go_on.set()
            await second
            return (await third)[0]

    assert run(come_meanwhile()).get("ds1").status == "FINISHED"


def test_or_who_must_have_one_from_after_it_came(simulator: Simulator) -> None:
    async def one_after_the_other() -> None:
        with watch(60) as first:
            await first.look()
            with Watch("anaplat_default", "find_datasets", ["ds1"], 60, fresh=True) as second:
                await second.look()

    run(one_after_the_other())
    assert len(simulator.requests("list_datasets")) == 2


def test_the_shortest_interval_counts_for_all(simulator: Simulator) -> None:
    async def patient_and_impatient() -> Any:
        impatient = asyncio.create_task(looks(1000, 0.02))
        patient = await looks(4, 3600)
        impatient.cancel()
        await asyncio.wait([impatient])
        return patient

    assert len(run(patient_and_impatient())) == 4


def test_who_is_cancelled_takes_nobody_along(simulator: Simulator) -> None:
    go_on = threading.Event()
    simulator.inject("list_datasets", replies.hold(go_on))

    async def cancel_the_first() -> Any:
        first, second = (asyncio.create_task(looks(1, 60)) for _ in range(2))
        await until(lambda: bool(simulator.requests("list_datasets")))
        first.cancel()
        await asyncio.wait([first])
        go_on.set()
        return await second

    (found,) = run(cancel_the_first())
    assert found.get("ds1").status == "处理中"
    assert len(simulator.requests("list_datasets")) == 1


def test_a_failure_is_everybodys_and_the_next_look_goes_on(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503))

    async def both() -> list[Any]:
        return await asyncio.gather(looks(2), looks(2))

    for failed, found in run(both()):
        assert isinstance(failed, errors.AnaplatServerError)
        assert isinstance(found, Lookup)


@pytest.mark.parametrize("fault", [replies.http_status(503), replies.http_status(404)])
def test_an_impatient_watch_uses_up_no_failures_of_a_patient_one(
    simulator: Simulator, fault: replies.Fault
) -> None:
    simulator.inject("list_datasets", fault, times=3)

    async def both() -> list[Any]:
        return await asyncio.gather(looks(4, 0.01), looks(2, 60))

    impatient, patient = run(both())
    assert [isinstance(found, Lookup) for found in impatient] == [False, False, False, True]
    assert [isinstance(found, Lookup) for found in patient] == [False, True]


def test_a_failure_that_does_not_pass_is_everybodys_at_once(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503))
    simulator.inject("list_datasets", replies.refusal("no", code=1004), times=None)

    async def both() -> list[Any]:
        return await asyncio.gather(looks(2, 0.01), looks(2, 60))

    for _, refused in run(both()):
        assert isinstance(refused, errors.AnaplatPermissionError)


def test_an_address_that_was_mended_is_read_after_a_failure(simulator: Simulator, connect: Connect) -> None:
    async def mend_it_between_two_looks() -> list[Any]:
        connect(host="http://127.0.0.1:9", password="t", extra={"max_retries": 0})
        with watch(0.05) as watching:
            before = await watching.look()
            connect(simulator, extra={"max_retries": 0})
            return [before, await watching.look()]

    before, after = run(mend_it_between_two_looks())
    assert isinstance(before, errors.AnaplatConnectionError)
    assert isinstance(after, Lookup)


def test_what_airflow_cannot_read_anew_is_used_as_it_was(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose_it_between_two_looks() -> list[Any]:
        with watch(0.05) as watching:
            before = await watching.look()
            monkeypatch.delenv("AIRFLOW_CONN_ANAPLAT_DEFAULT")
            simulator.inject("list_datasets", replies.reset())
            return [before, *[await watching.look() for _ in range(2)]]

    before, outage, after = run(lose_it_between_two_looks())
    assert isinstance(before, Lookup)
    assert isinstance(outage, errors.AnaplatConnectionError)
    assert isinstance(after, Lookup)


def test_unless_it_has_become_unusable(simulator: Simulator, connect: Connect) -> None:
    async def spoil_it_between_two_looks() -> list[Any]:
        with watch(0.05) as watching:
            await watching.look()
            connect(host="", password="t")
            simulator.inject("list_datasets", replies.reset())
            return [await watching.look() for _ in range(2)]

    outage, unusable = run(spoil_it_between_two_looks())
    assert isinstance(outage, errors.AnaplatConnectionError)
    assert isinstance(unusable, errors.AnaplatSettingsError)


def test_what_the_platform_asks_for_is_kept_to_whoever_comes(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(429, retry_after="60"), times=None)

    async def come_meanwhile() -> None:
        with watch(0.01) as first:
            assert isinstance(await first.look(), errors.AnaplatRateLimitedError)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(looks(1, 0.01), 0.3)

    run(come_meanwhile())
    assert len(simulator.requests("list_datasets")) == 1


def test_a_missing_connection_is_everybodys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_ANAPLAT_DEFAULT")

    async def both() -> list[Any]:
        return await asyncio.gather(looks(1), looks(1))

    for (found,) in run(both()):
        assert "anaplat_default" in str(found)


def test_a_token_that_was_changed_is_read_before_anybody_hears_of_it(
    simulator: Simulator, connect: Connect
) -> None:
    async def change_it_between_two_looks() -> list[Any]:
        with watch(0.05) as watching:
            before = await watching.look()
            simulator.token = "another-token"
            connect(simulator, extra={"max_retries": 0})
            return [before, await watching.look()]

    assert all(isinstance(found, Lookup) for found in run(change_it_between_two_looks()))
    tokens = [request.body["token"] for request in simulator.requests("list_datasets")]
    assert tokens == ["simulator-token", "simulator-token", "another-token"]


def test_a_malformed_record_fails_only_who_asks_for_it(simulator: Simulator) -> None:
    records = b'[{"dsId": "ds1", "utime": "noon"}, {"dsId": "ds2", "status": "FINISHED"}, 7]'
    body = b'{"result": "ok", "response": ' + records + b"}"
    simulator.inject("list_datasets", replies.content(body), times=None)
    (found,) = run(looks(1, 60, "ds1", "ds2"))

    assert found.get("ds2").status == "FINISHED"
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"record of 'ds1'.*utime"):
        found.get("ds1")


def test_subscriptions_are_asked_for_together(simulator: Simulator) -> None:
    simulator.platform.subscriptions = {name: {"scId": name, "name": name} for name in "abc"}

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(looks(1, 60, name, kind="find_subscriptions") for name in "abcd"))

    found = run(all_of_them())
    assert [look.get(name) and look.get(name).name for (look,), name in zip(found, "abcd", strict=True)] == [
        "a", "b", "c", None,
    ]  # fmt: skip
    assert [request.body["scIds"] for request in simulator.requests("get_subscriptions")] == [["a", "b", "c", "d"]]


def test_who_needs_another_subscription_causes_a_request_of_all(simulator: Simulator) -> None:
    async def one_after_the_other() -> None:
        with watch(60, "a", kind="find_subscriptions") as first:
            await first.look()
            (found,) = await looks(1, 60, "b", kind="find_subscriptions")
            assert found.covers(["a", "b"])

    run(one_after_the_other())
    assert [request.body["scIds"] for request in simulator.requests("get_subscriptions")] == [["a"], ["a", "b"]]
