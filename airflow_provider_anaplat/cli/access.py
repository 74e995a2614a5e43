"""The command ``access``: which user may see and export what, to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_anaplat.access import AccessQuery, write_access_report
from airflow_provider_anaplat.access.changes import comparison_of
from airflow_provider_anaplat.cli.paths import place_for
from airflow_provider_anaplat.cli.session import client_for, user_ids
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.formats import WriteOptions

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.cli.output import Printer
    from airflow_provider_anaplat.output.place import Place

__all__ = [
    "access",
]


def access(arguments: Namespace, output: Printer) -> None:
    """Write the report; then fail, if the rights of some users could not be read."""
    if arguments.compare_with is None and (arguments.changes_path or arguments.on_changes == "fail"):
        raise AnaplatRequestError("--on-changes and --changes-path need --compare-with. Nothing was sent.")
    query = AccessQuery(user_ids(arguments), arguments.page_types)
    options = WriteOptions(csv_formulas=arguments.csv_formulas)

    def place_at(path: str, file_format: str | None, argument: str = "FILE") -> Place:
        return place_for(path, file_format, options, argument)

    place, comparison = place_at(arguments.file, arguments.file_format), None
    if arguments.compare_with:
        comparison = comparison_of(
            place_at, arguments.file, arguments.file_format, arguments.compare_with, arguments.changes_path
        )
    with client_for(arguments, output) as client:
        summary = write_access_report(client, query, place, comparison)
    result = {
        "path": arguments.file,
        "format": place.sink.file_format,
        **summary.result(),
        "failedUsers": list(summary.failed),
    }
    said = f"The rights of {summary.users:,} users on {summary.datasets:,} datasets and {summary.pages:,} pages"
    lines, changes = [f"{said} are in {arguments.file}"], summary.changes
    if changes:
        lines.append(f"{changes.gained:,} gained and {changes.lost:,} lost are in {changes.comparison.changes}")
    output.result(result, lines)
    summary.raise_failed()
    if changes and arguments.on_changes == "fail":
        changes.raise_any()
