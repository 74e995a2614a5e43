"""Wait for datasets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)

from airflow_provider_anaplat.client import errors
from airflow_provider_anaplat.client.states import FAILURE_STATES, SUCCESS_STATES, State, StateTable
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger, Outcome

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_anaplat.client.models import Dataset

# How much longer than the trigger itself Airflow waits before it gives the trigger up.
_TRIGGER_GRACE = timedelta(minutes=1)


class AnaplatDatasetTaskSensor(BaseSensorOperator):
    """Wait until the creation of a dataset has left the state 处理中 (processing).

    The contract shows no way to ask for a creation task, so the sensor watches the dataset's ``status`` in the
    dataset list (operation 2). A dataset that is not in the list yet, or whose status says that the platform
    still works on it, is waited for. A failure fails the task at once, without a retry. A word that no table
    knows is never a success. A list that cannot be had (no connection, HTTP 5xx or 429) is asked for again,
    up to ``max_poll_failures`` times in a row.

    ``mode="poke"``, ``mode="reschedule"`` and ``deferrable=True`` end alike; ``poke_interval`` is the time
    between two looks and ``timeout`` the longest wait in each of them. With ``reschedule``, the worker slot is
    kept while the list cannot be had; deferred, ``exponential_backoff`` is not used.

    :param ds_id: id of the dataset (templated)
    :param success_states: words that mean done
    :param failure_states: words that mean failed
    :param unknown_state: what to do at a word in no table: ``wait`` until the time-out, or ``fail`` at once
    :param max_poll_failures: failures of the dataset list in a row before the task fails with the last one
    :param deferrable: wait in the triggerer instead of a worker
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``name``, ``status``, ``rowCount``, ``colCount``, ``ctime`` and ``utime`` of the dataset.

    Raises :class:`AirflowFailException` where the creation failed, :class:`AirflowSensorTimeout` where it took
    too long, :class:`AnaplatError` where the list cannot be had.
    """

    template_fields: Sequence[str] = ("ds_id", "anaplat_conn_id")

    def __init__(
        self,
        *,
        ds_id: str,
        success_states: Sequence[str] = SUCCESS_STATES,
        failure_states: Sequence[str] = FAILURE_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        max_poll_failures: int = 10,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.ds_id = ds_id
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state
        self.max_poll_failures = max_poll_failures
        self.deferrable = deferrable
        self.anaplat_conn_id = anaplat_conn_id

    def execute(self, context: Context) -> Any:
        """Wait, in the worker or in the triggerer."""
        if self.deferrable:
            self._defer()
        try:
            return super().execute(context)
        except AirflowSensorTimeout as error:
            self._skip_if_never_fail(error)
            raise

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Look at the dataset once."""
        datasets = self._list_datasets(self._deadline(context))
        if datasets is None:
            return False
        state, dataset = self._states().read_dataset(datasets, self.ds_id)
        word = "not in the list" if dataset is None else dataset.status
        self.log.info("Dataset %s is %s: %s", self.ds_id, word, state.value)
        if state is State.DONE and dataset is not None:
            return PokeReturnValue(is_done=True, xcom_value=dataset.summary())
        if state is State.FAILED or (state is State.UNKNOWN and self.unknown_state == "fail"):
            self._fail(state, word)
        return False

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """End as the trigger's event says; an event that is not understood fails the task."""
        try:
            return self._end(event or {})
        except (errors.AnaplatError, AirflowFailException, AirflowSensorTimeout) as error:
            self._skip_if_never_fail(error)
            raise

    def _defer(self) -> NoReturn:
        wait = timedelta(seconds=self.timeout)
        trigger = AnaplatDatasetTaskTrigger(
            ds_id=self.ds_id,
            anaplat_conn_id=self.anaplat_conn_id,
            poll_interval=self.poke_interval,
            deadline=(datetime.now(UTC) + wait).timestamp(),
            success_states=list(self.success_states),
            failure_states=list(self.failure_states),
            unknown_state=self.unknown_state,
            max_poll_failures=self.max_poll_failures,
            silent_fail=self.silent_fail,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=wait + _TRIGGER_GRACE)
        raise AssertionError("defer() raises")

    def _end(self, event: dict[str, Any]) -> dict[str, Any]:
        match event:
            case {"outcome": Outcome.DONE, "dataset": {"dsId": self.ds_id} as dataset}:
                self.log.info("Dataset %s is %s", self.ds_id, dataset.get("status"))
                return dict(dataset)
            case {"outcome": Outcome.FAILED, "word": word}:
                self._fail(State.FAILED, word)
            case {"outcome": Outcome.UNKNOWN, "word": word}:
                self._fail(State.UNKNOWN, word)
            case {"outcome": Outcome.TIMED_OUT}:
                raise AirflowSensorTimeout(
                    f"Dataset {self.ds_id} was not done within {self.timeout:g} seconds; "
                    f"it was {event.get('word')}."
                )
            case {
                "outcome": Outcome.ERROR,
                "error": {"type": str(), "message": str(), "details": dict()} as error,
            }:
                raise errors.from_json(error)
        raise AirflowFailException(f"The trigger's event is not understood: {sorted(event)}.")

    def _list_datasets(self, deadline: datetime) -> list[Dataset] | None:
        """Return the dataset list, asking again while it cannot be had; None where the time is up.

        The failures in a row are counted here, within one poke, because nothing would carry a count from one
        poke to the next in reschedule mode.
        """
        client = AnaplatHook(self.anaplat_conn_id).get_conn().without_retries()
        for failures in itertools.count(1):
            try:
                return client.list_datasets()
            except errors.PASSING_ERRORS as error:
                if failures >= self.max_poll_failures:
                    raise
                self.log.warning("Poll failed (%d in a row): %s", failures, error)
                wait = max(self.poke_interval, error.retry_after or 0)
            left = (deadline - datetime.now(UTC)).total_seconds()
            if left <= 0:
                break
            time.sleep(min(wait, left))
        return None

    def _deadline(self, context: Context) -> datetime:
        """Return when Airflow will end the wait, so that no poke outlasts it."""
        ti = context.get("ti")
        start = None
        if ti is not None:
            rescheduled = getattr(ti, "get_first_reschedule_date", None) if self.reschedule else None
            start = (rescheduled(context) if rescheduled else None) or ti.start_date
        deadline: datetime = (start or datetime.now(UTC)) + timedelta(seconds=self.timeout)
        return deadline

    def _states(self) -> StateTable:
        return StateTable(tuple(self.success_states), tuple(self.failure_states))

    def _fail(self, state: State, word: str | None) -> NoReturn:
        raise AirflowFailException(
            f"The platform reports {word!r} for dataset {self.ds_id} ({state.value}). Look at the dataset's "
            "update task on the platform; a word that means something else belongs into success_states or "
            "failure_states."
        )

    def _skip_if_never_fail(self, error: Exception) -> None:
        if self.never_fail:
            raise AirflowSkipException(f"Skipped since never_fail is set: {error}") from error
