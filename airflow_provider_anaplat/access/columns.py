"""The columns of the report, and of what has changed since an earlier one."""

from __future__ import annotations

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.schema import BOOLEAN

__all__ = [
    "CHANGE_COLUMNS",
    "COLUMNS",
    "NAMES",
]

COLUMNS = tuple(
    Column(name=name, fd_type=fd_type)
    for name, fd_type in (
        ("uId", "STRING"),
        ("resourceType", "STRING"),
        ("resourceId", "STRING"),
        ("name", "STRING"),
        ("isOwner", BOOLEAN),
        ("isInherit", BOOLEAN),
        ("canExport", BOOLEAN),
        ("sources", "STRING"),
    )
)
NAMES = tuple(column.name for column in COLUMNS)
CHANGE_COLUMNS = (Column(name="change", fd_type="STRING"), *COLUMNS)
