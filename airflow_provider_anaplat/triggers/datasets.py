"""Wait for datasets in the triggerer."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_anaplat.client.errors import PASSING_ERRORS, AnaplatError, to_json
from airflow_provider_anaplat.client.states import State, StateTable
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.models import Dataset

T = TypeVar("T")


@cache
def _threads(anaplat_conn_id: str) -> ThreadPoolExecutor:
    """Return the threads in which requests block, in place of the event loop that all triggers share.

    Each connection has its own, so that a slow platform keeps nobody else waiting.
    """
    return ThreadPoolExecutor(max_workers=4, thread_name_prefix=f"anaplat-{anaplat_conn_id}")


class Outcome:
    """How a trigger's wait ended, as its event says it."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    TIMED_OUT = "timed_out"
    ERROR = "error"


class AnaplatDatasetTaskTrigger(BaseTrigger):
    """Wait until a dataset's status in the dataset list has left the state of being worked on.

    Its event holds ``outcome`` and what belongs to it: the ``dataset``, the status ``word``, or the ``error``.

    :param ds_id: id of the dataset
    :param anaplat_conn_id: id of the Airflow connection
    :param poll_interval: seconds between two looks
    :param deadline: when the wait ends, in seconds since the epoch
    :param success_states: words that mean done
    :param failure_states: words that mean failed
    :param unknown_state: at a word in no table, ``wait`` or ``fail``
    :param max_poll_failures: failures of the list in a row before the wait ends with the last one
    :param silent_fail: log failures of the list, and poll on
    :param version: version of these arguments
    """

    def __init__(
        self,
        *,
        ds_id: str,
        anaplat_conn_id: str,
        poll_interval: float,
        deadline: float,
        success_states: Sequence[str],
        failure_states: Sequence[str],
        unknown_state: Literal["wait", "fail"],
        max_poll_failures: int,
        silent_fail: bool = False,
        version: int = 1,
    ) -> None:
        super().__init__()
        self.ds_id = ds_id
        self.anaplat_conn_id = anaplat_conn_id
        self.poll_interval = poll_interval
        self.deadline = deadline
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state
        self.max_poll_failures = max_poll_failures
        self.silent_fail = silent_fail
        self.version = version

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments; none of them is a secret."""
        return (
            "airflow_provider_anaplat.triggers.datasets.AnaplatDatasetTaskTrigger",
            {
                "ds_id": self.ds_id,
                "anaplat_conn_id": self.anaplat_conn_id,
                "poll_interval": self.poll_interval,
                "deadline": self.deadline,
                "success_states": list(self.success_states),
                "failure_states": list(self.failure_states),
                "unknown_state": self.unknown_state,
                "max_poll_failures": self.max_poll_failures,
                "silent_fail": self.silent_fail,
                "version": self.version,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until there is something to say."""
        try:
            yield await self._wait()
        except Exception as error:  # noqa: BLE001 - a trigger that dies fails its task with a text that says nothing
            yield TriggerEvent({"outcome": Outcome.ERROR, "error": to_json(error)})

    async def _wait(self) -> TriggerEvent:
        client = (await AnaplatHook.get_async_conn(self.anaplat_conn_id)).without_retries()
        failures = 0
        word: str | None = None
        while True:
            wait = self.poll_interval
            try:
                datasets = await self._in_thread(client.list_datasets)
            except AnaplatError as error:
                failures += 1
                self._raise_unless_tolerated(error, failures)
                self.log.warning("Poll failed (%d in a row): %s", failures, error)
                wait = max(wait, error.retry_after or 0)
            else:
                failures = 0
                event, seen = self._judge(datasets)
                if event is not None:
                    return event
                if seen != word:
                    self.log.info("Dataset %s is %s", self.ds_id, seen)
                    word = seen
            left = self.deadline - time.time()
            if left <= 0:
                return TriggerEvent({"outcome": Outcome.TIMED_OUT, "word": word})
            await asyncio.sleep(min(wait, left))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        # The context tells Airflow whose log a line belongs to.
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(_threads(self.anaplat_conn_id), run, call)

    def _raise_unless_tolerated(self, error: AnaplatError, failures: int) -> None:
        if self.silent_fail:
            return
        if failures >= self.max_poll_failures or not isinstance(error, PASSING_ERRORS):
            raise error

    def _judge(self, datasets: list[Dataset]) -> tuple[TriggerEvent | None, str | None]:
        """Return the event if the wait is over, and the word that the list shows."""
        states = StateTable(tuple(self.success_states), tuple(self.failure_states))
        state, dataset = states.read_dataset(datasets, self.ds_id)
        word = "not in the list" if dataset is None else dataset.status
        if state is State.DONE and dataset is not None:
            return TriggerEvent({"outcome": Outcome.DONE, "dataset": dataset.summary()}), word
        if state is State.FAILED:
            return TriggerEvent({"outcome": Outcome.FAILED, "word": word}), word
        if state is State.UNKNOWN and self.unknown_state == "fail":
            return TriggerEvent({"outcome": Outcome.UNKNOWN, "word": word}), word
        return None, word
