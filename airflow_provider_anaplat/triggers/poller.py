"""One request for all who wait: the triggers of a connection share their looks at the platform.

In one event loop (a triggerer process has one), there is one :class:`Poller` for each connection and kind of
request. It starts with the first watch and ends with the last.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from importlib import import_module
from json import dumps
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from airflow_provider_anaplat.client.metrics import POLL_WAITERS, POLLS
from airflow_provider_anaplat.errors import (
    PASSING_ERRORS,
    AnaplatAuthenticationError,
    AnaplatConnectionError,
    AnaplatError,
    AnaplatPermissionError,
)
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.waiting.wait import backoff, may_pass

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.waiting.conditions import Request

    Look = Lookup[Any] | Exception

__all__ = [
    "Poller",
    "Watch",
]

_log = logging.getLogger(__name__)

_JITTER = 0.1  # share of an interval by which it is lengthened at random
_SOONEST = 1.0  # seconds between two requests, however many come to watch
_WOKEN_AT_A_TIME = 50  # watches between which the event loop turns once

_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Poller]] = WeakKeyDictionary()


class Watch:
    """One waiter's place at the poller, for the length of a ``with`` block inside a coroutine.

    :param anaplat_conn_id: id of the Airflow connection
    :param kind: the method of the client that finds the records
    :param ids: ids of the records to look at
    :param interval: seconds between two looks at most; the shortest of all watches counts
    :param fresh: give it no look that was asked for before it came
    :param arguments: what the method takes besides the ids; plain JSON. With any, only those who ask for the same
        ids in the same way share the request
    """

    def __init__(
        self,
        anaplat_conn_id: str,
        kind: Request,
        ids: Collection[str],
        interval: float,
        *,
        fresh: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.ids = frozenset(ids)
        self.interval = interval
        self.came_at = -inf if not fresh else asyncio.get_running_loop().time()
        self.seen = 0  # number of the last look that this watch was given
        self.waiting: asyncio.Future[Look] | None = None
        self._failures = 0  # in a row that this watch was given
        self._spared_until = -inf
        self._asks = (anaplat_conn_id, kind, dict(arguments or {}))
        own = dumps([sorted(self.ids), arguments], sort_keys=True) if arguments else None
        self._key = (anaplat_conn_id, kind, own)

    def __enter__(self) -> Watch:
        of_this_loop = _pollers.setdefault(asyncio.get_running_loop(), {})
        if self._key not in of_this_loop:
            of_this_loop[self._key] = Poller(*self._asks)
        self._poller = of_this_loop[self._key]
        self._poller.watches.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._poller.watches.discard(self)
        if not self._poller.watches:
            del _pollers[asyncio.get_running_loop()][self._key]
            self._poller.end()

    async def look(self) -> Look:
        """Return the next look at the platform, or the error that came in its place.

        A look that is younger than the interval, and that this watch was not given yet, is returned at once.
        """
        young = self._poller.young_look(self)
        if young is not None:
            return young
        self.waiting = asyncio.get_running_loop().create_future()
        self._poller.arrived.set()
        try:
            return await self.waiting
        finally:
            self.waiting = None

    def is_spared(self, at: float) -> bool:
        """Tell whether a failure comes sooner than this watch would have looked again by itself.

        Otherwise the failures that it bears would be used up at the pace of whoever has the shortest interval.
        """
        return at < self._spared_until

    def note(self, found: Look, at: float) -> None:
        """Note what it was given, and when."""
        if not isinstance(found, Exception):
            self._failures, self._spared_until = 0, -inf
            return
        self._failures += 1
        self._spared_until = at + backoff(self.interval, self._failures, found)


class Poller:
    """Looks at the platform at the shortest interval of all watches, and gives each of them what it saw."""

    def __init__(self, anaplat_conn_id: str, kind: Request, arguments: Mapping[str, Any]) -> None:
        self.watches: set[Watch] = set()
        self.arrived = asyncio.Event()
        self._anaplat_conn_id = anaplat_conn_id
        self._kind = kind
        self._arguments = arguments
        self._client: AnaplatClient | None = None
        self._outdated = False  # its connection may have been changed
        self._number = 0
        self._last: Lookup[Any] | None = None
        self._asked_at = self._answered_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"anaplat-{anaplat_conn_id}")
        # In a context of its own: it outlives the trigger that came first, and writes to no trigger's log.
        self._task = self._loop.create_task(self._run(), name=f"anaplat {kind}", context=Context())

    def end(self) -> None:
        """Ask no more; a request that is under way ends by itself, and its thread with it."""
        self._task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    def young_look(self, watch: Watch) -> Lookup[Any] | None:
        """Return the last look, if it is new to this watch and young enough for it."""
        is_young = self._loop.time() - self._asked_at < watch.interval
        if self._last is None or watch.seen == self._number or not is_young or not self._is_for(self._last, watch):
            return None
        watch.seen = self._number
        return self._last

    async def _run(self) -> None:
        failures = 0
        while True:
            asked_at = self._loop.time()
            found = await self._look()
            self._asked_at, self._answered_at = asked_at, self._loop.time()
            self._number += 1
            failed = isinstance(found, Exception)
            failures = failures + 1 if failed else 0
            self._last = None if isinstance(found, Exception) else found
            await self._tell(found)
            await self._pause(failures, found if isinstance(found, Exception) else None)

    async def _look(self) -> Look:
        try:
            known = self._client is not None
            found = await self._find()
            if known and isinstance(found, AnaplatAuthenticationError | AnaplatPermissionError):  # a new token?
                found = await self._find()
        except Exception as error:  # noqa: BLE001 - of the connection, or unforeseen: every waiter shall have it
            return error
        return found

    async def _find(self) -> Look:
        """Send one request; after a failure that a changed connection may mend, the next one reads it anew."""
        if self._client is None:
            self._client = await self._connected()
        elif self._outdated:
            self._client = await self._connected_anew(self._client)
        self._outdated = False
        ids = frozenset().union(*(watch.ids for watch in self.watches))
        self._client.observe(POLLS, 1, kind=self._kind)
        self._client.observe(POLL_WAITERS, len(self.watches), kind=self._kind)
        find = partial(getattr(self._client, self._kind), **self._arguments)
        try:
            found: Look = await self._loop.run_in_executor(self._threads, find, ids, self._last)
        except Exception as error:  # noqa: BLE001 - what went wrong is what there is to tell
            found = error
        of_the_platform = isinstance(found, PASSING_ERRORS) and not isinstance(found, AnaplatConnectionError)
        self._outdated = isinstance(found, Exception) and not of_the_platform
        return found

    async def _connected(self) -> AnaplatClient:
        # Airflow's hook imports the client; the first import takes long, so it is made off the event loop.
        await self._loop.run_in_executor(self._threads, import_module, "airflow_provider_anaplat.client.client")
        return (await AnaplatHook.get_async_conn(self._anaplat_conn_id)).without_retries()

    async def _connected_anew(self, known: AnaplatClient) -> AnaplatClient:
        """Return a client of the connection as it is now; where Airflow cannot tell, the one that is known.

        :raises AnaplatError: the connection has become unusable
        """
        try:
            client = await self._connected()
        except AnaplatError:
            raise
        except Exception as error:  # noqa: BLE001 - an outage of Airflow's database shall end nobody's wait
            _log.warning(
                "Airflow cannot read connection %r (%s); it is used as it was.",
                self._anaplat_conn_id,
                type(error).__name__,
            )
            return known
        known.close()
        return client

    async def _tell(self, found: Look) -> None:
        waiting = [watch for watch in self.watches if watch.waiting is not None and self._is_for(found, watch)]
        for index, watch in enumerate(waiting):
            if watch.waiting is not None and not watch.waiting.done():
                watch.seen = self._number
                watch.note(found, self._answered_at)
                watch.waiting.set_result(found)
            if index % _WOKEN_AT_A_TIME == _WOKEN_AT_A_TIME - 1:
                await asyncio.sleep(0)

    async def _pause(self, failures: int, error: Exception | None) -> None:
        """Wait until the next look is due, which somebody who comes meanwhile may bring forward."""
        jitter = 1 + random.uniform(0, _JITTER)  # noqa: S311 - no secret hangs on it
        while True:
            self.arrived.clear()
            interval = min((watch.interval for watch in self.watches), default=0.0)
            wait = backoff(interval, failures, error) * jitter
            if error is None and any(map(self._has_seen_nothing, self.watches)):
                wait = min(interval, _SOONEST)
            left = self._answered_at + wait - self._loop.time()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self.arrived.wait()
            except TimeoutError:
                return

    def _has_seen_nothing(self, watch: Watch) -> bool:
        """Tell whether a watch is waiting for which the last look was too old or was about other records."""
        return watch.waiting is not None and watch.seen != self._number

    def _is_for(self, found: Look, watch: Watch) -> bool:
        """Tell whether a look speaks of what a watch wants to know."""
        if isinstance(found, Exception):
            # Whoever is spared has borne a failure; what may end its wait comes when it would have looked itself.
            return not (may_pass(found, answered=True) and watch.is_spared(self._answered_at))
        return found.covers(watch.ids) and self._asked_at >= watch.came_at
