"""Apache Airflow provider for an analytics platform's Public API.

What a DAG needs can be imported from here. A name is imported when it is first used, so that naming this package
costs a DAG file nothing; exceptions are in :mod:`airflow_provider_anaplat.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat._version import __version__ as __version__

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
    from airflow_provider_anaplat.operators.access import AnaplatAccessReportOperator
    from airflow_provider_anaplat.operators.call import AnaplatCallOperator
    from airflow_provider_anaplat.operators.cards import AnaplatExportCardOperator
    from airflow_provider_anaplat.operators.datasets import (
        AnaplatCreateDatasetOperator,
        AnaplatSchemaCheckOperator,
    )
    from airflow_provider_anaplat.operators.listing import AnaplatListDatasetsOperator
    from airflow_provider_anaplat.operators.partitioned import partitioned_export
    from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
    from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
    from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
    from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
    from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor
    from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator
    from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetUpdatedTrigger

__all__ = [
    "AnaplatAccessReportOperator",
    "AnaplatCallOperator",
    "AnaplatClient",
    "AnaplatCreateDatasetOperator",
    "AnaplatCreateUsersOperator",
    "AnaplatDatasetFreshnessSensor",
    "AnaplatDatasetTaskSensor",
    "AnaplatDatasetUpdatedTrigger",
    "AnaplatExportCardOperator",
    "AnaplatExportRowsOperator",
    "AnaplatHook",
    "AnaplatListDatasetsOperator",
    "AnaplatRefreshDatasetOperator",
    "AnaplatSchemaCheckOperator",
    "AnaplatSubscriptionSensor",
    "AnaplatToSqlOperator",
    "partitioned_export",
]

_MODULES = {
    "client": ("AnaplatClient",),
    "hooks.anaplat": ("AnaplatHook",),
    "operators.access": ("AnaplatAccessReportOperator",),
    "operators.call": ("AnaplatCallOperator",),
    "operators.cards": ("AnaplatExportCardOperator",),
    "operators.datasets": ("AnaplatCreateDatasetOperator", "AnaplatSchemaCheckOperator"),
    "operators.listing": ("AnaplatListDatasetsOperator",),
    "operators.partitioned": ("partitioned_export",),
    "operators.refresh": ("AnaplatRefreshDatasetOperator",),
    "operators.rows": ("AnaplatExportRowsOperator",),
    "operators.users": ("AnaplatCreateUsersOperator",),
    "sensors.datasets": ("AnaplatDatasetFreshnessSensor", "AnaplatDatasetTaskSensor"),
    "sensors.subscriptions": ("AnaplatSubscriptionSensor",),
    "transfers.anaplat_to_sql": ("AnaplatToSqlOperator",),
    "triggers.datasets": ("AnaplatDatasetUpdatedTrigger",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
