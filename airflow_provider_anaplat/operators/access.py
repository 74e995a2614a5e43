"""Report who may see what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.paths import place_of
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.output.formats import Formulas

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

    A user whose rights cannot be read has no row, and is named in the log. The file is written nevertheless; then
    the task fails, or, with ``on_user_error="report"``, names such users in its result and succeeds. Nothing is
    written where the token is not good, where no user's rights can be read, or where the platform does not answer
    for 20 users in a row.

    :param user_ids: ids of the users, ``uId`` (templated)
    :param output_path: local path, or the URL of an object, such as ``s3://conn@bucket/key`` (templated)
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; by default, as the path's suffix says. CSV and NDJSON
        are compressed where path or format end in ``.gz`` or ``.zst`` (templated)
    :param csv_formulas: ``keep`` every cell of CSV as it is, or ``escape``, with an apostrophe, what a spreadsheet
        would calculate: users write names
    :param page_types: values of ``pgType`` to ask for, each with a request a user; by default one request without
        it, which leaves the kinds of pages to the platform (templated)
    :param concurrency: requests in flight at most
    :param on_user_error: where the rights of a user cannot be read, ``fail`` in the end, or ``report`` it
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``path``, ``format``, ``users``, ``datasets`` and ``pages`` (rows of each), ``bytes``, ``failed``
    (number of users), and ``failedUsers``, the ids of the first 200 of them.

    Raises :class:`AirflowFailException` where the platform refuses, :class:`AnaplatError` where a retry may help,
    and :class:`AnaplatOutputError` where the file cannot be written.

    How-to: :doc:`howto/report-access`. Example::

        AnaplatAccessReportOperator(task_id="access", user_ids=["u1", "u2"], output_path="/data/access.csv")
    """

    template_fields: Sequence[str] = ("user_ids", "output_path", "file_format", "page_types", "anaplat_conn_id")

    def __init__(
        self,
        *,
        user_ids: Sequence[str],
        output_path: str,
        file_format: str | None = None,
        csv_formulas: Formulas = "keep",
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
        self.page_types = page_types
        self.concurrency = concurrency
        self.on_user_error = on_user_error

    def work(self, context: Context) -> dict[str, Any]:
        """Write the report."""
        from airflow_provider_anaplat.access import AccessQuery, write_access_report
        from airflow_provider_anaplat.output.formats import WriteOptions

        for name in ("user_ids", "page_types"):
            if isinstance(getattr(self, name), str):
                raise AirflowFailException(f"{name} is a text; it must be a list of ids.")
        place = place_of(self.output_path, self.file_format, WriteOptions(csv_formulas=self.csv_formulas))
        query = AccessQuery(list(self.user_ids), list(self.page_types), self.concurrency)
        with closing(self.client()) as client:
            summary = write_access_report(client, query, place)
            self.log.info("Reported the rights of %d users to %s", summary.users, self.output_path)
            if self.on_user_error == "fail":
                summary.raise_failed()
        return {
            "path": str(self.output_path),
            "format": place.sink.file_format,
            "users": summary.users,
            "datasets": summary.datasets,
            "pages": summary.pages,
            "bytes": summary.bytes,
            "failed": len(summary.failed),
            "failedUsers": list(islice(summary.failed, _LISTED)),
        }
