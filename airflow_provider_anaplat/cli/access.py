"""The command ``access``: which user may see and export what, to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_anaplat.access import AccessQuery, write_access_report
from airflow_provider_anaplat.cli.paths import place_for
from airflow_provider_anaplat.cli.session import client_for, user_ids
from airflow_provider_anaplat.output.formats import WriteOptions

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.cli.output import Output

__all__ = [
    "access",
]


def access(arguments: Namespace, output: Output) -> None:
    """Write the report; then fail, where the rights of some users could not be read."""
    query = AccessQuery(user_ids(arguments), arguments.page_types)
    place = place_for(arguments.file, arguments.file_format, WriteOptions(csv_formulas=arguments.csv_formulas))
    with client_for(arguments, output) as client:
        summary = write_access_report(client, query, place)
    result = {
        "path": arguments.file,
        "format": place.sink.file_format,
        "users": summary.users,
        "datasets": summary.datasets,
        "pages": summary.pages,
        "bytes": summary.bytes,
        "failed": len(summary.failed),
        "failedUsers": list(summary.failed),
    }
    said = f"The rights of {summary.users:,} users on {summary.datasets:,} datasets and {summary.pages:,} pages"
    output.result(result, [f"{said} are in {arguments.file}"])
    summary.raise_failed()
