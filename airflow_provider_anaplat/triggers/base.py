"""What the triggers that wait for one event share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_anaplat.client.conditions import Condition
from airflow_provider_anaplat.client.errors import to_json
from airflow_provider_anaplat.client.waiting import Outcome, Wait
from airflow_provider_anaplat.triggers.poller import Watch

# Version 1 had no `carried`, and a deadline in every case.
VERSION = 2
# How long a wait that begins when its time is up already may take for its one look.
_FIRST_LOOK = 30.0


class AnaplatWaitTrigger(BaseTrigger):
    """Wait until a condition holds, sharing one request an interval with all triggers of the connection.

    Its one event holds the ``outcome``, what was ``seen``, the ``result`` or the ``error``, and what was
    ``carried``. The arguments besides those below are the fields of its condition.

    :param anaplat_conn_id: id of the Airflow connection
    :param poll_interval: seconds between two looks at most
    :param deadline: when the wait ends, in seconds since the epoch; None where Airflow's own time-out ends it
    :param max_poll_failures: failures in a row before the wait ends with the last one
    :param silent_fail: log failures, and wait on
    :param carried: plain JSON that the event hands back, for the task that resumes
    :param version: version of these arguments; those of older ones still load
    :cvar condition: what is waited for
    """

    condition: ClassVar[type[Condition]]

    def __init__(
        self,
        *,
        anaplat_conn_id: str,
        poll_interval: float,
        max_poll_failures: int,
        deadline: float | None = None,
        silent_fail: bool = False,
        carried: Mapping[str, Any] | None = None,
        version: int = VERSION,
        **condition: Any,
    ) -> None:
        super().__init__()
        self.anaplat_conn_id = anaplat_conn_id
        self.poll_interval = poll_interval
        self.max_poll_failures = max_poll_failures
        self.deadline = deadline
        self.silent_fail = silent_fail
        self.carried = carried
        self.version = version
        # As attributes, since Airflow renders the templates among them when a task starts in the triggerer.
        for name, value in vars(self.condition(**condition)).items():
            setattr(self, name, value)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments; none of them is a secret."""
        names = (
            "anaplat_conn_id", "poll_interval", "max_poll_failures", "deadline", "silent_fail", "carried",
            *(field.name for field in fields(self.condition)),
        )  # fmt: skip
        arguments = {name: _plain(getattr(self, name)) for name in names}
        return f"{type(self).__module__}.{type(self).__qualname__}", {**arguments, "version": VERSION}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait until there is something to say."""
        try:
            event = await self._wait()
        except Exception as error:  # noqa: BLE001 - a trigger that dies fails its task with a text that says nothing
            event = {"outcome": Outcome.ERROR, "error": to_json(error)}
        yield TriggerEvent({**event, "carried": self.carried})

    async def _wait(self) -> dict[str, Any]:
        condition = self.condition.of(self)
        wait = Wait(condition, self.log, self.deadline, self.max_poll_failures, self.silent_fail)
        # The last look may come an interval after the deadline, as it does in a sensor that pokes.
        patience = max(wait.left(), _FIRST_LOOK)
        event = None
        with Watch(self.anaplat_conn_id, condition.request, condition.ids, self.poll_interval) as watch:
            while event is None:
                try:
                    async with asyncio.timeout(None if patience == float("inf") else patience):
                        found = await watch.look()
                except TimeoutError:
                    return {"outcome": Outcome.TIMED_OUT, "seen": wait.seen}
                event = wait.take(found)
                patience = max(wait.left(), 0) + self.poll_interval * 1.2
        return event


def deadline_in(seconds: float) -> float:
    """Return the deadline that is this many seconds away, in seconds since the epoch."""
    return time.time() + seconds


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
