"""Report who may see what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.paths import place_of
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.access import AccessQuery, Comparison
    from airflow_provider_anaplat.output.formulas import Formulas
    from airflow_provider_anaplat.output.place import Place

__all__ = [
    "AnaplatAccessReportOperator",
]

_LISTED = 200  # ids in the result at most


class AnaplatAccessReportOperator(AnaplatOperator):
    """Write which user may see and export which dataset and page to a file (contract: operations 5, 6, 2 and 7).

    The file has one row for each user and resource: ``uId``, ``resourceType`` (``dataset`` or ``page``),
    ``resourceId``, ``name``, ``isOwner``, ``isInherit``, ``canExport``, and ``sources``: the subjects that grant
    it, such as ``Sales (g7); Ann (u1, self)``. A resource that the platform lists without a name gets it from the
    dataset list or the page list. The file appears when it is complete; memory does not grow with the users.

    A user whose rights cannot be read has no row, and is named in the log. The file is still written; then the
    task fails, or, with ``on_user_error="report"``, names such users in its result and succeeds. Nothing is
    written if the token is refused, if no user's rights can be read, or if the platform fails to answer for 20
    users in a row.

    With ``compare_with``, a second file says who ``gained`` and who ``lost`` what since an earlier report: a
    column ``change``, and those of the report. A right is a user, a resource and the three flags: if a flag
    differs, one right was lost and one gained; a different name or different sources are not a change. A user in
    only one of the reports has gained or lost everything. Nothing is said about a user whose rights could not be
    read this time.

    :param user_ids: ids of the users, ``uId`` (templated)
    :param output_path: local path, or the URL of an object, such as ``s3://conn@bucket/key`` (templated)
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; by default, as the path's suffix says. CSV and NDJSON
        are compressed if the path or the format ends in ``.gz`` or ``.zst`` (templated)
    :param csv_formulas: ``keep`` every cell of CSV as it is, or ``escape``, with an apostrophe, what a spreadsheet
        would calculate: users write names
    :param compare_with: path or URL of an earlier report, in any format of a report, by its suffix; with None or
        an empty text, nothing is compared (templated)
    :param changes_path: path or URL of the file of what has changed since; by default, that of the report with
        ``-changes`` before the suffix (templated)
    :param on_changes: if a right was gained or lost, ``pass``, or ``fail`` once both files are written
    :param page_types: values of ``pgType`` to ask for, with one request per user for each; by default one request
        without it, which leaves the kinds of pages to the platform (templated)
    :param concurrency: requests in flight at most
    :param on_user_error: if the rights of a user cannot be read, ``fail`` in the end, or ``report`` it
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``path``, ``format``, ``users``, ``datasets`` and ``pages`` (rows of each), ``bytes``, ``failed``
    (number of users), ``failedUsers``, the ids of the first 200 of them, ``gained`` and ``lost`` (numbers of
    rights), and ``changesPath``; these three are None if nothing was compared.

    Raises :class:`AirflowFailException` if the platform refuses, if the earlier report is missing, damaged or
    not an access report, and, with ``on_changes="fail"``, if a right was gained or lost;
    :class:`AnaplatOutputError` if a file cannot be written; another :class:`AnaplatError` if a retry may help.

    How-to: :doc:`howto/report-access`. Example::

        AnaplatAccessReportOperator(task_id="access", user_ids=["u1", "u2"], output_path="/data/access.csv")
    """

    template_fields: Sequence[str] = (
        "user_ids",
        "output_path",
        "file_format",
        "compare_with",
        "changes_path",
        "page_types",
        "anaplat_conn_id",
    )

    def __init__(
        self,
        *,
        user_ids: Sequence[str],
        output_path: str,
        file_format: str | None = None,
        csv_formulas: Formulas = "keep",
        compare_with: str | None = None,
        changes_path: str | None = None,
        on_changes: Literal["pass", "fail"] = "pass",
        page_types: Sequence[str] = (),
        concurrency: int = 8,
        on_user_error: Literal["fail", "report"] = "fail",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.user_ids = user_ids
        self.output_path = output_path
        self.file_format = file_format
        self.csv_formulas = csv_formulas
        self.compare_with = compare_with
        self.changes_path = changes_path
        self.on_changes = on_changes
        self.page_types = page_types
        self.concurrency = concurrency
        self.on_user_error = on_user_error

    def work(self, context: Context) -> dict[str, Any]:
        """Write the report."""
        from airflow_provider_anaplat.access import write_access_report

        place, query = self._place(self.output_path, self.file_format), self._query()
        with closing(self.client()) as client:
            summary = write_access_report(client, query, place, self._comparison())
        self.log.info("Reported the rights of %d users to %s", summary.users, self.output_path)
        changes = summary.changes
        if changes:
            self.log.info(
                "%d rights gained, %d lost since %s", changes.gained, changes.lost, changes.comparison.earlier
            )
        if self.on_user_error == "fail":
            summary.raise_failed()
        if changes and self.on_changes == "fail":
            changes.raise_any()
        return {
            "path": str(self.output_path),
            "format": place.sink.file_format,
            **summary.result(),
            "failedUsers": list(islice(summary.failed, _LISTED)),
        }

    def _query(self) -> AccessQuery:
        from airflow_provider_anaplat.access import AccessQuery

        return AccessQuery(list(self.user_ids), list(self.page_types), self.concurrency)

    def _comparison(self) -> Comparison | None:
        from airflow_provider_anaplat.access.changes import comparison_of

        if not self.compare_with:
            return None
        return comparison_of(self._place, self.output_path, self.file_format, self.compare_with, self.changes_path)

    def _place(self, path: Any, file_format: str | None, argument: str = "output_path") -> Place:
        from airflow_provider_anaplat.output.formats import WriteOptions

        return place_of(path, file_format, WriteOptions(csv_formulas=self.csv_formulas), argument)
