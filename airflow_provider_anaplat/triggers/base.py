"""What the triggers that wait for one event share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_anaplat._airflow.releases import AirflowFailException, conf
from airflow_provider_anaplat.errors import from_json, to_json
from airflow_provider_anaplat.triggers.poller import Watch
from airflow_provider_anaplat.waiting.conditions import Condition
from airflow_provider_anaplat.waiting.wait import Outcome, Wait

__all__ = [
    "CAN_BEGIN_IN_TRIGGERER",
    "DEFERRABLE",
    "VERSION",
    "AnaplatWaitTrigger",
    "deadline_in",
    "is_json",
    "plain",
    "result_of",
]

# Version 1 had no `carried` and no `fresh`, and a deadline in every case.
VERSION = 2
# Only an Airflow that renders a trigger's templates can begin a task in the triggerer (3.3).
CAN_BEGIN_IN_TRIGGERER = hasattr(BaseTrigger, "render_template_fields")
# Where Airflow's configuration says that operators defer unless told otherwise.
DEFERRABLE = conf.getboolean("operators", "default_deferrable", fallback=False)
# How long a wait that begins when its time is up already may take for its one look.
_FIRST_LOOK = 30.0


class AnaplatWaitTrigger(BaseTrigger):
    """Wait until a condition holds, sharing one request an interval with all triggers of the connection.

    Its one event holds the ``outcome``, what was ``seen``, the ``result`` or the ``error``, and what was
    ``carried``. The arguments besides those below are the fields of its condition.

    :param anaplat_conn_id: id of the Airflow connection
    :param poll_interval: seconds between two polls at most
    :param deadline: when the wait ends, in seconds since the epoch; None if Airflow's own time-out ends it
    :param max_poll_failures: consecutive failed polls after which the wait ends with the last error
    :param silent_fail: log failures, and wait on
    :param carried: plain JSON that the event hands back, for the task that resumes
    :param fresh: let no look count that was asked for before this wait began
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
        fresh: bool = False,
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
        self.fresh = fresh
        self.version = version
        # As attributes, since Airflow renders the templates among them when a task starts in the triggerer.
        for name, value in vars(self.condition(**condition)).items():
            setattr(self, name, value)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments; none of them is a secret."""
        names = (
            "anaplat_conn_id", "poll_interval", "max_poll_failures", "deadline", "silent_fail", "carried", "fresh",
            *(field.name for field in fields(self.condition)),
        )  # fmt: skip
        arguments = {name: plain(getattr(self, name)) for name in names}
        return self.classpath(), {**arguments, "version": VERSION}

    @classmethod
    def classpath(cls) -> str:
        """Return where Airflow finds this class."""
        return f"{cls.__module__}.{cls.__qualname__}"

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
        timer = asyncio.timeout(None)
        with (
            suppress(TimeoutError),
            Watch(
                self.anaplat_conn_id,
                condition.request,
                condition.ids,
                self.poll_interval,
                fresh=self.fresh,
                arguments=condition.arguments,
            ) as watch,
        ):
            async with timer:
                self._end_after(timer, max(wait.left(), _FIRST_LOOK))
                event = wait.take(await watch.look())
                self._end_after(timer, max(wait.left(), 0))
                while event is None:
                    event = wait.take(await watch.look())
                return event
        return {"outcome": Outcome.TIMED_OUT, "seen": wait.seen}

    def _end_after(self, timer: asyncio.Timeout, seconds: float) -> None:
        """Set when to stop waiting for a look: one interval late, as the last look of a sensor that pokes is."""
        if seconds != float("inf"):
            timer.reschedule(asyncio.get_running_loop().time() + seconds + self.poll_interval * 1.2)


def result_of(event: dict[str, Any], condition: Condition, timed_out: type[BaseException]) -> dict[str, Any]:
    """Return what a wait brought, or raise what its event says.

    :param event: the event of a trigger, or of a wait in the worker; one that is not understood is a failure
    :param condition: what was waited for
    :param timed_out: the type of exception for a wait that took too long
    :raises AirflowFailException: the platform reports a failure; no retry helps
    :raises AnaplatError: the platform could not be asked
    """
    match event:
        case {"outcome": Outcome.DONE, "result": dict() as result} if condition.is_result(result):
            return dict(result)
        case {"outcome": Outcome.FAILED | Outcome.UNKNOWN as outcome, "seen": str() as seen}:
            raise AirflowFailException(
                f"The platform reports that {seen} ({outcome}). Look at it there; a word that means something "
                "else belongs into success_states or failure_states."
            )
        case {"outcome": Outcome.TIMED_OUT}:
            raise timed_out(f"Not done in time: {event.get('seen') or 'the platform did not answer'}.")
        case {"outcome": Outcome.ERROR, "error": {"type": str(), "message": str(), "details": dict()} as error}:
            raise from_json(error)
    raise AirflowFailException(f"The trigger's event is not understood: {sorted(event)}.")


def deadline_in(seconds: float) -> float:
    """Return the deadline that is this many seconds away, in seconds since the epoch."""
    return time.time() + seconds


def plain(value: Any) -> Any:
    """Return an argument as the JSON that Airflow keeps of it: no tuple, no set, no moment."""
    if isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def is_json(value: Any) -> bool:
    """Tell whether an argument is JSON; the output of another task is not known before that has run."""
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    return all(map(is_json, value)) if isinstance(value, list) else isinstance(value, str | int | float | None)
