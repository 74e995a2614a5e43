"""Wait for subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatPageLink, link_page
from airflow_provider_anaplat.sensors.base import END_OF_INTERVAL, AnaplatSensor
from airflow_provider_anaplat.triggers.base import DEFERRABLE
from airflow_provider_anaplat.triggers.subscriptions import AnaplatSubscriptionTrigger
from airflow_provider_anaplat.waiting.states import NOT_SENT_STATES, SENT_STATES

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "AnaplatSubscriptionSensor",
]


class AnaplatSubscriptionSensor(AnaplatSensor):
    """Wait until every subscription was last sent at or after a moment, with success (contract: operation 9).

    A send that failed since then fails the task at once, and so does a plan that does not exist or is disabled,
    since it will not be sent. An unknown word is never a success.

    :param subscription_ids: ids of the subscription plans (``scId``; templated)
    :param sent_after: the moment, ISO 8601 or a datetime; UTC if it names no zone. By default the end of the
        run's data interval, or the moment from which the run may start if it has none (templated)
    :param success_states: words of ``lastSendStatus`` that mean sent; the contract shows ``SUCCESS`` alone
    :param failure_states: status words that mean failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param deferrable: wait in the triggerer instead of a worker
    :param start_from_trigger: with ``deferrable``, begin in the triggerer too, and never take a worker slot
        before the end. If Airflow does not offer that (before 3.3) or an argument comes from another task's
        output, the sensor defers from a worker
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``subscriptions``: of each plan ``scId``, ``name``, ``scType``, ``resourceId``, ``lastSendTime``
    (milliseconds since the epoch) and ``lastSendStatus``.

    Raises :class:`AirflowFailException` if a send failed or can never be, :class:`AirflowSensorTimeout` if
    it took too long, :class:`AnaplatError` if polls keep failing.

    How-to: :doc:`howto/wait-for-subscriptions`. Example::

        AnaplatSubscriptionSensor(task_id="sent", subscription_ids=["sc1"], deferrable=True)
    """

    trigger = AnaplatSubscriptionTrigger
    template_fields: Sequence[str] = ("subscription_ids", "sent_after", "anaplat_conn_id")
    operator_extra_links = (AnaplatPageLink(),)

    def __init__(
        self,
        *,
        subscription_ids: Sequence[str],
        sent_after: str | datetime = END_OF_INTERVAL,
        success_states: Sequence[str] = SENT_STATES,
        failure_states: Sequence[str] = NOT_SENT_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        max_poll_failures: int = 10,
        deferrable: bool = DEFERRABLE,
        start_from_trigger: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_poll_failures=max_poll_failures,
            deferrable=deferrable,
            start_from_trigger=start_from_trigger,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.subscription_ids = subscription_ids
        self.sent_after = sent_after
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state
        self._begin_in_triggerer()

    def link(self, context: Context, result: Mapping[str, Any]) -> None:
        """Note the link to the page that was sent: the first, if plans send several, and none for a card."""
        pages = [plan["resourceId"] for plan in result.get("subscriptions", ()) if plan.get("scType") == "PAGE"]
        if pages and pages[0]:
            link_page(self, context, pages[0])
