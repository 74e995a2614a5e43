"""What the sensors share: poked, rescheduled or deferred, they judge with one condition and end alike."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from airflow.triggers.base import StartTriggerArgs

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.dataset_names import NamesDataset
from airflow_provider_anaplat._airflow.failures import no_useless_retry
from airflow_provider_anaplat._airflow.releases import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
)
from airflow_provider_anaplat._airflow.words import check_kinds, check_words
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.triggers.base import (
    CAN_BEGIN_IN_TRIGGERER,
    DEFERRABLE,
    AnaplatWaitTrigger,
    deadline_in,
    is_json,
    plain,
    result_of,
)
from airflow_provider_anaplat.waiting.wait import Wait, backoff, check_pace, look

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "END_OF_INTERVAL",
    "AnaplatSensor",
]

# On Airflow 3, a run that an asset or a person started has no data interval, and Airflow does not know the name.
END_OF_INTERVAL = (
    "{{ data_interval_end if data_interval_end is defined and data_interval_end else dag_run.run_after }}"
)

# In the context, which is of one attempt and of all its pokes in a process: the platform has answered one of them.
_ANSWERED = "anaplat_answered"


class AnaplatSensor(BaseSensorOperator):
    """Wait for the platform.

    ``mode="poke"``, ``mode="reschedule"`` and ``deferrable=True`` end alike; ``poke_interval`` is the time
    between two polls and ``timeout`` the longest wait in each of them. Deferred, all sensors of a connection
    share one request an interval, and ``exponential_backoff`` is not used. With ``reschedule``, the worker slot
    is kept while polls fail. An error that only a person can correct, such as a refused token, fails the task
    without a retry.

    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param deferrable: wait in the triggerer instead of a worker
    :param start_from_trigger: with ``deferrable``, begin in the triggerer too, and never take a worker slot
        before the end. If Airflow does not offer that (before 3.3) or an argument comes from another task's
        output, the sensor defers from a worker
    :param anaplat_conn_id: id of the Airflow connection (templated)
    :cvar trigger: the trigger that waits in the sensor's place; its condition's fields are the sensor's arguments
    """

    trigger: ClassVar[type[AnaplatWaitTrigger]]
    # Whether a look of before the sensor began may tell it a state that has ended since.
    needs_new_look: ClassVar[bool] = False

    def __init__(
        self,
        *,
        max_poll_failures: int = 10,
        deferrable: bool = DEFERRABLE,
        start_from_trigger: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.max_poll_failures = max_poll_failures
        self.deferrable = deferrable
        self.begin_in_triggerer = start_from_trigger
        self.anaplat_conn_id = anaplat_conn_id

    def _begin_in_triggerer(self) -> None:
        """Begin in the triggerer, if that is asked for and can be; the last call of a constructor."""
        arguments = self._trigger_arguments()
        if not (self.deferrable and self.begin_in_triggerer and CAN_BEGIN_IN_TRIGGERER and is_json(arguments)):
            return
        try:
            self._check()
        except (AirflowFailException, errors.AnaplatRequestError):
            return  # nobody would say so in the triggerer; a worker fails with it
        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=self.trigger.classpath(),
            next_method="execute_complete",
            trigger_kwargs=arguments,
            timeout=timedelta(seconds=self.timeout),
        )

    def link(self, context: Context, result: Mapping[str, Any]) -> None:
        """Note the links of this task, as far as they are known.

        :param context: the task's context
        :param result: what the wait brought; empty while it lasts
        """
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        """Wait, in the worker or in the triggerer.

        :raises AirflowFailException: a retry would meet the same mistake again
        """
        with no_useless_retry():
            self._check()
            self.trigger.condition.of(self).check()
            self.link(context, {})
            if self.deferrable:
                self._defer()
            try:
                return super().execute(context)
            except AirflowSensorTimeout as error:
                self._skip_if_never_fail(error)
                raise

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after the trigger; an error of the platform is no reason to skip with ``soft_fail``, as poked."""
        with no_useless_retry():
            return super().resume_execution(next_method, next_kwargs, context)

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Look once; while the platform cannot be asked, look again.

        The failures in a row are counted here, within one poke, because nothing would carry a count from one
        poke to the next in reschedule mode.
        """
        rescheduled_at = self._rescheduled_at(context)  # as a poke ends that was answered
        of_this_attempt = cast("dict[str, Any]", context)
        wait = Wait(
            self.trigger.condition.of(self),
            self.log,
            self._deadline(context, rescheduled_at),
            self.max_poll_failures,
            answered=_ANSWERED in of_this_attempt or rescheduled_at is not None,
        )
        with closing(AnaplatHook(self.anaplat_conn_id).get_conn().without_retries()) as client:
            while True:
                found = look(client, wait.condition)
                event = wait.take(found)
                if event is not None:
                    return PokeReturnValue(is_done=True, xcom_value=self._end(context, event))
                if not isinstance(found, Exception):
                    of_this_attempt[_ANSWERED] = True
                    return False
                time.sleep(max(0.0, min(backoff(self.poke_interval, wait.failures, found), wait.left())))

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """End as the trigger's event says; an event that is not understood fails the task."""
        try:
            return self._end(context, event or {})
        except (errors.AnaplatError, AirflowFailException, AirflowSensorTimeout) as error:
            self._skip_if_never_fail(error)
            raise

    def _check(self) -> None:
        """See that the arguments can be right, before anything is sent."""
        check_words(self, ("unknown_state", "probe"))
        check_kinds(self)
        check_pace(poke_interval=self.poke_interval)  # Airflow would let it be 0
        if isinstance(self, NamesDataset):
            self.check_dataset()

    def _defer(self) -> NoReturn:
        trigger = self.trigger(**self._trigger_arguments(), deadline=deadline_in(self.timeout))
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self._trigger_timeout())
        raise AssertionError("defer() raises")

    def _trigger_arguments(self) -> dict[str, Any]:
        names = [field.name for field in fields(self.trigger.condition)]
        return {
            **{name: plain(getattr(self, name)) for name in names},
            "anaplat_conn_id": self.anaplat_conn_id,
            "poll_interval": self.poke_interval,
            "max_poll_failures": self.max_poll_failures,
            "silent_fail": self.silent_fail,
            "fresh": self.needs_new_look,
        }

    def _trigger_timeout(self) -> timedelta:
        """Return when Airflow gives up a trigger that has not ended by itself: after its last look."""
        return timedelta(seconds=self.timeout + 2 * self.poke_interval + 60)

    def _end(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        result = result_of(event, self.trigger.condition.of(self), AirflowSensorTimeout)
        self.link(context, result)
        return result

    def _rescheduled_at(self, context: Context) -> datetime | None:
        """Return when the first poke of this attempt ended, if Airflow has rescheduled the task since."""
        ask = getattr(context.get("ti"), "get_first_reschedule_date", None) if self.reschedule else None
        return ask(context) if ask else None

    def _deadline(self, context: Context, rescheduled_at: datetime | None) -> float:
        """Return when Airflow will end the wait, so that no poke outlasts it."""
        start = rescheduled_at or getattr(context.get("ti"), "start_date", None) or datetime.now(UTC)
        return float(start.timestamp() + self.timeout)

    def _skip_if_never_fail(self, error: Exception) -> None:
        if self.never_fail:
            raise AirflowSkipException(f"Skipped since never_fail is set: {error}") from error
