"""What Airflow reads of this provider, without importing anything of it but the connection form's data."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from airflow_provider_anaplat import connection_form

__all__ = [
    "get_provider_info",
]

_PACKAGE = "airflow-provider-anaplat"
_INTEGRATION = "Anaplat"
_MODULES = {
    "hooks": ("anaplat",),
    "operators": ("access", "call", "cards", "datasets", "listing", "partitioned", "refresh", "rows", "users"),
    "sensors": ("datasets", "subscriptions"),
    "triggers": ("datasets", "subscriptions"),
}
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
        "package-name": _PACKAGE,
        "name": _INTEGRATION,
        "description": "Datasets, rows and users of an analytics platform, through its Public API.",
        "integrations": [
            {"integration-name": _INTEGRATION, "external-doc-url": _documentation(), "tags": ["service"]}
        ],
        **{
            kind: [
                {
                    "integration-name": _INTEGRATION,
                    "python-modules": [f"airflow_provider_anaplat.{kind}.{name}" for name in names],
                }
            ]
            for kind, names in _MODULES.items()
        },
        "transfers": [
            {
                "source-integration-name": _INTEGRATION,
                "target-integration-name": "Common SQL",
                "python-module": "airflow_provider_anaplat.transfers.anaplat_to_sql",
            }
        ],
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
        "cli": ["airflow_provider_anaplat.cli.airflow.get_commands"],
        "asset-uris": _URIS,
        "dataset-uris": _URIS,
    }


def _documentation() -> str:
    """Return the address that the release was given; "" if it was given none."""
    try:
        addresses = metadata(_PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:  # the sources alone, without an installation
        return ""
    named = dict(address.split(", ", 1) for address in addresses)
    return str(named.get("Documentation", ""))
