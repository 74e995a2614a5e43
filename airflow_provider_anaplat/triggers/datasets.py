"""Wait for datasets in the triggerer."""

from __future__ import annotations

from airflow_provider_anaplat.client.conditions import DatasetDone, DatasetFresh, DatasetRefreshed
from airflow_provider_anaplat.triggers.base import AnaplatWaitTrigger


class AnaplatDatasetTaskTrigger(AnaplatWaitTrigger):
    """Wait until a dataset's status in the dataset list has left the state of being worked on.

    Arguments: those of :class:`~airflow_provider_anaplat.client.conditions.DatasetDone` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetDone


class AnaplatDatasetFreshnessTrigger(AnaplatWaitTrigger):
    """Wait until a dataset's last update is at or after a moment, with success.

    Arguments: those of :class:`~airflow_provider_anaplat.client.conditions.DatasetFresh` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetFresh


class AnaplatDatasetRefreshTrigger(AnaplatWaitTrigger):
    """Wait until a dataset was updated after a refresh was asked for, with success.

    Arguments: those of :class:`~airflow_provider_anaplat.client.conditions.DatasetRefreshed` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetRefreshed
