"""Wait for subscriptions in the triggerer."""

from __future__ import annotations

from airflow_provider_anaplat.triggers.base import AnaplatWaitTrigger
from airflow_provider_anaplat.waiting.conditions import SubscriptionsSent

__all__ = [
    "AnaplatSubscriptionTrigger",
]


class AnaplatSubscriptionTrigger(AnaplatWaitTrigger):
    """Wait until subscriptions were sent.

    Arguments: those of :class:`~airflow_provider_anaplat.waiting.conditions.SubscriptionsSent` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = SubscriptionsSent
