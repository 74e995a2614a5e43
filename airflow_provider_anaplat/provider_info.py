"""What Airflow reads of this provider, without importing anything of it but the connection form's data."""

from __future__ import annotations

from typing import Any

from airflow_provider_anaplat import connection_form

_URIS = [
    {
        "schemes": ["anaplat"],
        "handler": "airflow_provider_anaplat.assets.sanitize_uri",
        "factory": "airflow_provider_anaplat.assets.create_asset",
        "to_openlineage_converter": "airflow_provider_anaplat.lineage.convert_asset_to_openlineage",
    }
]


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, in the shape of Airflow's provider schema."""
    behaviour = connection_form.field_behaviour()
    return {
        "package-name": "airflow-provider-anaplat",
        "name": "Anaplat",
        "description": "Datasets, rows and users of an analytics platform, through its Public API.",
        "connection-types": [
            {
                "connection-type": "anaplat",
                "hook-class-name": "airflow_provider_anaplat.hooks.anaplat.AnaplatHook",
                "hook-name": "Anaplat",
                "ui-field-behaviour": {name.replace("_", "-"): value for name, value in behaviour.items()},
                "conn-fields": connection_form.FIELDS,
            }
        ],
        "extra-links": [
            "airflow_provider_anaplat.links.AnaplatDatasetLink",
            "airflow_provider_anaplat.links.AnaplatPageLink",
        ],
        "asset-uris": _URIS,
        "dataset-uris": _URIS,
    }
