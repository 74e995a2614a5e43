"""The platform as plain Python, without Airflow.

The names below are imported when they are first used, so that naming this package costs a DAG file nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.client import AnaplatClient

__all__ = ["AnaplatClient"]


def __getattr__(name: str) -> Any:
    if name == "AnaplatClient":
        from airflow_provider_anaplat.client.client import AnaplatClient

        return AnaplatClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
