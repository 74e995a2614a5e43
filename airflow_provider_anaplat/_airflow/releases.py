"""Where each name of Airflow's stands, whichever release is installed: the one place that knows releases apart.

Import a name from here as from any module. It is looked up when it is first used, so that what nobody uses is
not imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import DAG as DAG
    from airflow.sdk import Asset as Asset
    from airflow.sdk import AssetAlias as AssetAlias
    from airflow.sdk import BaseHook as BaseHook
    from airflow.sdk import BaseOperator as BaseOperator
    from airflow.sdk import BaseOperatorLink as BaseOperatorLink
    from airflow.sdk import BaseSensorOperator as BaseSensorOperator
    from airflow.sdk import Connection as Connection
    from airflow.sdk import Context as Context
    from airflow.sdk import ObjectStoragePath as ObjectStoragePath
    from airflow.sdk import PokeReturnValue as PokeReturnValue
    from airflow.sdk import TaskGroup as TaskGroup
    from airflow.sdk import Variable as Variable
    from airflow.sdk import task as task
    from airflow.sdk.configuration import conf as conf
    from airflow.sdk.exceptions import AirflowException as AirflowException
    from airflow.sdk.exceptions import AirflowFailException as AirflowFailException
    from airflow.sdk.exceptions import AirflowRescheduleException as AirflowRescheduleException
    from airflow.sdk.exceptions import AirflowSensorTimeout as AirflowSensorTimeout
    from airflow.sdk.exceptions import AirflowSkipException as AirflowSkipException
    from airflow.sdk.exceptions import AirflowTaskTimeout as AirflowTaskTimeout
    from airflow.sdk.exceptions import TaskDeferred as TaskDeferred
    from airflow.sdk.execution_time.xcom import XCom as XCom
    from airflow.sdk.log import mask_secret as mask_secret
    from airflow.sdk.observability.stats import Stats as Stats
    from airflow.triggers.base import BaseEventTrigger as BaseEventTrigger

_EXCEPTIONS = ("airflow.sdk.exceptions", "airflow.exceptions")

# The modules that may hold a name, the newest first: an older place warns, or is gone, if there is a newer one.
# After a colon stands what the name is called there.
_PLACES: dict[str, tuple[str, ...]] = {
    "DAG": ("airflow.sdk", "airflow"),
    "Asset": ("airflow.sdk", "airflow.datasets:Dataset"),
    "AssetAlias": ("airflow.sdk", "airflow.datasets:DatasetAlias"),
    "BaseEventTrigger": ("airflow.triggers.base", "airflow.triggers.base:BaseTrigger"),
    "BaseHook": ("airflow.sdk", "airflow.hooks.base"),
    "BaseOperator": ("airflow.sdk", "airflow.models.baseoperator"),
    "BaseOperatorLink": ("airflow.sdk", "airflow.models.baseoperatorlink"),
    "BaseSensorOperator": ("airflow.sdk", "airflow.sensors.base"),
    "Connection": ("airflow.sdk", "airflow.models.connection"),
    "Context": ("airflow.sdk", "airflow.utils.context"),
    "ObjectStoragePath": ("airflow.sdk", "airflow.io.path"),
    "PokeReturnValue": ("airflow.sdk", "airflow.sensors.base"),
    "Stats": ("airflow.sdk.observability.stats", "airflow.stats"),
    "TaskGroup": ("airflow.sdk", "airflow.utils.task_group"),
    "Variable": ("airflow.sdk", "airflow.models.variable"),
    "XCom": ("airflow.sdk.execution_time.xcom", "airflow.models.xcom"),
    "mask_secret": (
        "airflow.sdk.log",
        "airflow.sdk.execution_time.secrets_masker",
        "airflow.utils.log.secrets_masker",
    ),
    "conf": ("airflow.sdk.configuration", "airflow.configuration"),
    "task": ("airflow.sdk", "airflow.decorators"),
    "AirflowException": _EXCEPTIONS,
    "AirflowFailException": _EXCEPTIONS,
    "AirflowRescheduleException": _EXCEPTIONS,
    "AirflowSensorTimeout": _EXCEPTIONS,
    "AirflowSkipException": _EXCEPTIONS,
    "AirflowTaskTimeout": _EXCEPTIONS,
    "TaskDeferred": _EXCEPTIONS,
}


def __getattr__(name: str) -> Any:
    """Return what a name stands for in this release of Airflow."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place in _PLACES[name]:
        module, _, called = place.partition(":")
        try:
            found = getattr(import_module(module), called or name)
        except (ModuleNotFoundError, AttributeError):
            continue
        globals()[name] = found
        return found
    raise ImportError(f"This release of Airflow has no {name} in {' or '.join(_PLACES[name])}.")


async def connection_and_extra(hook: type[BaseHook], conn_id: str) -> tuple[Connection, dict[str, Any]]:
    """Return a connection and its extra, for a trigger; its secrets are masked in what the trigger logs.

    :param hook: the hook that the connection is for
    :param conn_id: id of the connection
    """
    if hasattr(_connection_type(), "aextra_dejson"):  # since 3.3.2; before, masking blocks the event loop
        connection = await hook.aget_connection(conn_id)
        return connection, await connection.aextra_dejson()
    from asgiref.sync import sync_to_async

    def read() -> tuple[Connection, dict[str, Any]]:
        connection = hook.get_connection(conn_id)
        return connection, connection.extra_dejson

    # Of all threads, Airflow's supervisor answers those that asgiref has started.
    return await sync_to_async(read)()


def _connection_type() -> Any:
    return __getattr__("Connection")
