"""Export the rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.paths import place_of
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import link_dataset
from airflow_provider_anaplat.operators.base import AnaplatRowsOperator, work_of

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.lineage import Name
    from airflow_provider_anaplat.output.formulas import Formulas
    from airflow_provider_anaplat.output.place import Place
    from airflow_provider_anaplat.output.streams import Encoding
    from airflow_provider_anaplat.rows.export import ExportSummary, OnCastError, OnChange
    from airflow_provider_anaplat.rows.targets import Target
    from airflow_provider_anaplat.rows.unchanged import IfUnchanged, LastExport

__all__ = [
    "AnaplatExportRowsOperator",
]


class AnaplatExportRowsOperator(AnaplatRowsOperator):
    """Export all rows of a dataset to one file, or to a folder of parts (contract: operation 3).

    The file, or the manifest of the folder, appears when it is complete; after a failure the path is as it was
    before. CSV holds the platform's own text, with null as an empty field and the empty text as ``""``. Parquet
    and NDJSON are typed: INT and LONG as 64-bit integers, DOUBLE as float, DATE as date, everything else as text.
    A repeated column name gets a number: ``a``, ``a (2)``. :class:`AnaplatRowsOperator` says how the rows are
    read.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``; exactly one must have it (templated)
    :param output_path: local path, or the URL of an object, such as ``s3://conn@bucket/key``; with
        ``rows_per_file``, of a folder (templated)
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; by default, as the path's suffix says. CSV and
        NDJSON are compressed if the path, or the format, ends in ``.gz`` or ``.zst``, as in ``csv.gz``
        (templated)
    :param rows_per_file: write ``part-00001`` and so on, of that many rows at most, and a ``_manifest.json``
        when all of them are complete; one export at a time writes to the folder
    :param delimiter: of CSV, one ASCII character
    :param header: whether CSV begins with a line of column names
    :param encoding: of CSV, ``utf-8``, ``utf-8-sig`` (which Excel recognises) or ``gb18030``
    :param csv_formulas: ``keep`` every cell of CSV as it is, or ``escape``, with a leading apostrophe, what a
        spreadsheet would calculate: cells and column names that begin with ``=``, ``+``, ``-``, ``@``, a tab or a
        line break; numbers such as ``-5`` stay. Within a cell, the four signs get it behind a line break, and
        behind a comma, semicolon, bar or tab that is not the delimiter, since another reader may take it for one
    :param sort_by: name of the column to sort by (templated)
    :param sort_type: ``asc`` or ``desc`` (templated)
    :param filter: sent as the body's ``filter``; the contract leaves its shape open (templated)
    :param memory_mb: megabytes by which the task's process may grow, 64 at least: a page has as many rows as fit
    :param page_size: rows a request asks for at most; the platform allows 50,000
    :param concurrency: requests in flight at most
    :param max_rows: rows to export at most; by default all
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :param on_change: if the dataset is updated while it is read, ``restart`` or ``fail``
    :param max_restarts: how often to start again
    :param if_unchanged: if the dataset, the query and the format are those of the last export to this path,
        and the file is as it was left: ``export`` all the same, ``skip`` the task, or ``return`` what that export
        returned, with ``unchanged``. It takes one request for one row. A hidden note beside the file, or in the
        folder of parts, records the last export; with ``export``, none is written. A filter that is relative to
        today looks unchanged
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``path``, ``format``, ``rows`` and ``columns`` (their numbers), ``version`` and ``utime``
    of the dataset, and ``bytes``.

    Raises :class:`AnaplatExportError` if the rows are not whole, fit no type or cannot be written, and another
    :class:`AnaplatError` if the platform does not answer; :class:`AirflowFailException`, which
    Airflow does not retry, if it refuses.

    How-to: :doc:`howto/export-rows`. Example::

        AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path="/data/sales-{{ ds }}.parquet")
    """

    template_fields: Sequence[str] = (*AnaplatRowsOperator.template_fields, "output_path", "file_format")

    def __init__(
        self,
        *,
        output_path: str,
        ds_id: str | None = None,
        dataset: str | None = None,
        file_format: str | None = None,
        rows_per_file: int | None = None,
        delimiter: str = ",",
        header: bool = True,
        encoding: Encoding = "utf-8",
        csv_formulas: Formulas = "keep",
        sort_by: str | None = None,
        sort_type: Literal["asc", "desc"] = "asc",
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the platform's name of the field
        memory_mb: int = 256,
        page_size: int = 50_000,
        concurrency: int = 4,
        max_rows: int | None = None,
        on_cast_error: OnCastError = "fail",
        on_change: OnChange = "restart",
        max_restarts: int = 3,
        if_unchanged: IfUnchanged = "export",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ds_id=ds_id,
            dataset=dataset,
            sort_by=sort_by,
            sort_type=sort_type,
            filter=filter,
            memory_mb=memory_mb,
            page_size=page_size,
            concurrency=concurrency,
            max_rows=max_rows,
            on_cast_error=on_cast_error,
            on_change=on_change,
            max_restarts=max_restarts,
            if_unchanged=if_unchanged,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.output_path = output_path
        self.file_format = file_format
        self.rows_per_file = rows_per_file
        self.delimiter = delimiter
        self.header = header
        self.encoding = encoding
        self.csv_formulas = csv_formulas

    def work(self, context: Context) -> dict[str, Any]:
        """Export the rows."""
        place = self.place()
        target, ds_id = self._target(place), self.found_id()
        link_dataset(self, context, ds_id)
        summary, unchanged = self._exported(context, target, ds_id)
        link_dataset(self, context, ds_id, summary.parent_dir_id)
        result = {
            "dsId": ds_id,
            "path": str(self.output_path),
            "format": place.sink.file_format,
            "rows": summary.rows,
            "columns": summary.columns,
            "version": summary.version,
            "utime": summary.utime,
            "bytes": summary.bytes,
            **({"unchanged": True} if unchanged else {}),
        }
        return self.succeed(context, result, summary.read)

    def _exported(self, context: Context, target: Target, ds_id: str) -> tuple[ExportSummary, bool]:
        """Export, unless nothing has changed; return what was written, and whether by an earlier task."""
        if self.if_unchanged == "export":
            return self.export_to(target, ds_id), False
        split = {} if self.rows_per_file is None else {"rows_per_file": self.rows_per_file}
        last = self.last_export(ds_id, split, work_of(context))
        with closing(self.client()) as client:
            found = self.find_unchanged(last, client, ds_id)
            if found is not None:
                return found, True
            summary = self.export_to(target, ds_id)
            last.note(client, summary)
        return summary, False

    def last_export(self, ds_id: str, split: Mapping[str, int], by: str | None) -> LastExport:
        """Return the last export to this path.

        :param split: how the rows are split into parts; nothing, if there is one file
        :param by: who exports: the same for all attempts of a task in one DAG run
        """
        from airflow_provider_anaplat.rows.unchanged import LastExport

        return LastExport(self.row_query(ds_id), self.place(), self.on_cast_error, split, by)

    def target_name(self) -> Name:
        """Return how OpenLineage names the file, or the folder of parts."""
        from airflow_provider_anaplat.lineage import name_of_file

        return name_of_file(str(self.output_path))

    def place(self) -> Place:
        """Return where to write, in which format."""
        from airflow_provider_anaplat.output.formats import WriteOptions

        options = WriteOptions(self.delimiter, self.header, self.encoding, self.csv_formulas, self.memory_mb)
        return place_of(self.output_path, self.file_format, options)

    def _target(self, place: Place) -> Target:
        from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget

        return FileTarget(place) if self.rows_per_file is None else PartsTarget(place, self.rows_per_file)
