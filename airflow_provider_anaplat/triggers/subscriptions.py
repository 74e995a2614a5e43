"""Wait for subscriptions in the triggerer."""

from __future__ import annotations

from airflow_provider_anaplat.client.conditions import SubscriptionsSent
from airflow_provider_anaplat.triggers.base import AnaplatWaitTrigger


class AnaplatSubscriptionTrigger(AnaplatWaitTrigger):
    """Wait until subscriptions were sent.

    Arguments: those of :class:`~airflow_provider_anaplat.client.conditions.SubscriptionsSent` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = SubscriptionsSent
