"""What is shared by the operators that start work on the platform and wait for its end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.failures import no_useless_retry
from airflow_provider_anaplat._airflow.releases import AirflowFailException, AirflowTaskTimeout
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator
from airflow_provider_anaplat.triggers.base import DEFERRABLE, AnaplatWaitTrigger, plain, result_of
from airflow_provider_anaplat.waiting.conditions import Condition
from airflow_provider_anaplat.waiting.states import FAILURE_STATES, SUCCESS_STATES, StateTable
from airflow_provider_anaplat.waiting.wait import Wait, check_pace, wait_here

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "AnaplatWaitingOperator",
    "carried_by",
]

# How much longer than the trigger itself Airflow waits before it gives the trigger up.
_GRACE = 60.0


class AnaplatWaitingOperator(AnaplatOperator):
    """Start work on the platform, and wait until it is done.

    Two time-outs end the wait, whichever is earlier, in a worker and deferred alike: ``timeout``, from when the
    wait begins, and Airflow's ``execution_timeout``, from when the attempt began. Both end in
    :class:`AirflowTaskTimeout`, and Airflow retries the task if it has retries left.

    :param wait_for_completion: wait, rather than end once the platform has accepted the work
    :param deferrable: wait in the triggerer instead of a worker
    :param poll_interval: seconds between two polls; when deferred, the shortest interval on the connection counts
    :param timeout: seconds to wait at most
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param success_states: status words that mean done
    :param failure_states: status words that mean failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param anaplat_conn_id: id of the Airflow connection (templated)
    """

    # What the task has returned, once it has; OpenLineage's listener asks in the same process.
    done: dict[str, Any] | None = None

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool = DEFERRABLE,
        poll_interval: float = 60,
        timeout: float = 7 * 24 * 3600,
        max_poll_failures: int = 10,
        success_states: Sequence[str] = SUCCESS_STATES,
        failure_states: Sequence[str] = FAILURE_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.timeout = timeout
        self.max_poll_failures = max_poll_failures
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state

    def check(self) -> None:
        """See that the arguments can be right, and that somebody can wait so."""
        super().check()
        check_pace(poll_interval=self.poll_interval, timeout=self.timeout)
        StateTable(self.success_states, self.failure_states)

    def wait(
        self, context: Context, trigger: type[AnaplatWaitTrigger], carried: Mapping[str, Any], **condition: Any
    ) -> dict[str, Any]:
        """Wait in the worker or in the triggerer, and return what :meth:`complete` makes of the end.

        :param context: the task's context
        :param trigger: the trigger whose condition is waited for
        :param carried: plain JSON to hand to :meth:`complete`, which may run in another process
        :param condition: the fields of the condition, beyond the words of states
        """
        words = {
            "success_states": plain(self.success_states),
            "failure_states": plain(self.failure_states),
            "unknown_state": self.unknown_state,
        }
        deadline = self._deadline(context)
        waiting = trigger(
            anaplat_conn_id=self.anaplat_conn_id,
            poll_interval=self.poll_interval,
            max_poll_failures=self.max_poll_failures,
            deadline=deadline,
            carried={**carried, "condition": {**words, **condition}},
            fresh=True,
            **words,
            **condition,
        )
        if self.deferrable:
            left = deadline - time.time() + 2 * self.poll_interval + _GRACE
            self.defer(trigger=waiting, method_name="execute_complete", timeout=timedelta(seconds=left))
        wait = Wait(trigger.condition.of(waiting), self.log, deadline, self.max_poll_failures)
        with closing(self.client().without_retries()) as client:
            event = wait_here(client, wait, self.poll_interval)
        return self.complete(context, {**event, "carried": waiting.carried})

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """End as the event of the wait says, after a wait in the triggerer."""
        with no_useless_retry():
            return self.complete(context, event)

    def complete(self, context: Context, event: dict[str, Any] | None) -> dict[str, Any]:
        """End as the event of the wait says; each operator has its own."""
        raise NotImplementedError

    def outcome(self, event: dict[str, Any] | None, condition: type[Condition]) -> dict[str, Any]:
        """Return the result that an event holds, or raise what it says; what is not understood is a failure."""
        try:
            waited_for = condition(**carried_by(event)["condition"])
        except (KeyError, TypeError):  # another release may carry other fields
            event_holds = sorted(event) if isinstance(event, dict) else type(event).__name__
            raise AirflowFailException(f"The trigger's event is not understood: {event_holds}.") from None
        return result_of(event or {}, waited_for, AirflowTaskTimeout)

    def _deadline(self, context: Context) -> float:
        now = time.time()
        ends = [now + self.timeout]
        if self.execution_timeout is not None:
            ti = context.get("ti")
            began = ti.start_date.timestamp() if ti is not None and ti.start_date is not None else now
            ends.append(began + self.execution_timeout.total_seconds())
        return min(ends)


def carried_by(event: Any) -> dict[str, Any]:
    """Return what an event hands back of what the wait has carried; nothing, if it is not understood."""
    match event:
        case {"carried": {"condition": {}} as carried}:
            return dict(carried)
    return {}
