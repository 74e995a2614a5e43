"""What Airflow reads of this provider, without importing anything of it."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, in the shape of Airflow's provider schema."""
    return {
        "package-name": "airflow-provider-anaplat",
        "name": "Anaplat",
        "description": "Datasets, rows and users of an analytics platform, through its Public API.",
        "connection-types": [
            {
                "connection-type": "anaplat",
                "hook-class-name": "airflow_provider_anaplat.hooks.anaplat.AnaplatHook",
            }
        ],
    }
