"""A user token that the triggers of an event loop share: one sign-in for all, asked for on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import LONG, TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.shared_token import AskedOnLoop
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http import user_tokens
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN

TRIGGERS = 16


@pytest.fixture
def anaplat_deployment() -> str:
    return "user-token"


class Kept:
    """What a deployment shares; it notes which threads have asked."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}
        self.threads: set[int] = set()

    def get(self, key: str) -> Mapping[str, Any] | None:
        self.threads.add(threading.get_ident())
        return self.kept.get(key)

    def set(self, key: str, kept: Mapping[str, Any]) -> None:
        self.threads.add(threading.get_ident())
        self.kept[key] = kept


async def read_side_by_side(clients: list[AnaplatClient], threads: set[int]) -> None:
    def read(client: AnaplatClient) -> int:
        threads.add(threading.get_ident())
        return len(client.get_columns("ds1"))

    async with asyncio.timeout(LONG):
        assert await asyncio.gather(*(asyncio.to_thread(read, client) for client in clients)) == [2] * TRIGGERS


@pytest.mark.parametrize("displaces", [True, False])
def test_the_triggers_of_a_loop_sign_in_once_for_each_end_of_their_token(
    simulator: Simulator, displaces: bool
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    simulator.platform.sign_ins.displaces = displaces
    simulator.inject("sign_in", replies.slow(0.2))  # all of them come while it is under way
    store, threads = Kept(), set[int]()

    async def triggerer() -> None:
        clients = [
            AnaplatClient(
                simulator.url, simulator.token, login=DEFAULT_LOGIN, token_store=AskedOnLoop(store), max_retries=0
            )
            for _ in range(TRIGGERS)
        ]
        await read_side_by_side(clients, threads)
        assert len(simulator.requests("sign_in")) == 1
        simulator.platform.sign_ins.expire()
        await read_side_by_side(clients, threads)
        user_tokens._held.clear()  # as in a process that comes later
        later = AnaplatClient(
            simulator.url, simulator.token, login=DEFAULT_LOGIN, token_store=AskedOnLoop(store), max_retries=0
        )
        assert len(await asyncio.to_thread(later.get_columns, "ds1")) == 2

    asyncio.run(triggerer())
    assert len(simulator.requests("sign_in")) == 2
    (kept,) = store.kept.values()
    assert kept["token"] == simulator.platform.sign_ins.issued[-1].value
    assert store.threads
    assert not store.threads & threads  # what is of Airflow is touched by none of them


def test_a_loop_that_has_ended_shares_nothing_and_holds_nobody_up(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    store = Kept()

    async def triggerer() -> AnaplatClient:
        return AnaplatClient(simulator.url, simulator.token, login=DEFAULT_LOGIN, token_store=AskedOnLoop(store))

    assert len(asyncio.run(triggerer()).get_columns("ds1")) == 2
    assert store.kept == {}


def test_a_store_that_fails_shares_nothing_and_spoils_nothing(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)

    class Broken(Kept):
        def get(self, key: str) -> Mapping[str, Any] | None:
            raise OSError("no database")

        def set(self, key: str, kept: Mapping[str, Any]) -> None:
            raise OSError("no database")

    async def triggerer() -> int:
        client = AnaplatClient(
            simulator.url, simulator.token, login=DEFAULT_LOGIN, token_store=AskedOnLoop(Broken()), max_retries=0
        )
        simulator.inject("sign_in", replies.refusal("no such user", code=1002))
        with pytest.raises(errors.AnaplatSignInError):
            await asyncio.to_thread(client.get_columns, "ds1")
        return len(await asyncio.to_thread(client.get_columns, "ds1"))

    assert asyncio.run(triggerer()) == 2
