"""Export the rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_anaplat.operators.base import AnaplatOperator
from airflow_provider_anaplat.operators.paths import path_of

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_anaplat.rows.export import OnCastError, OnChange
    from airflow_provider_anaplat.rows.sinks import FileFormat, Sink
    from airflow_provider_anaplat.rows.streams import Encoding
    from airflow_provider_anaplat.rows.targets import Target

_FORMAT_BY_SUFFIX: dict[str, FileFormat] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
}
_COMPRESSIONS = (".gz", ".zst")


class AnaplatExportRowsOperator(AnaplatOperator):
    """Export all rows of a dataset to one file, or to a folder of parts (contract: operation 3).

    What is exported appears when it is complete; after a failure the path is as it was before. CSV holds the
    platform's own text, with null as an empty field and the empty text as ``""``. Parquet and NDJSON are
    typed: INT and LONG as 64-bit integers, DOUBLE as float, DATE as date, everything else as text. A repeated
    column name gets a number: ``a``, ``a (2)``. Memory is bounded by ``page_size`` × ``concurrency``.

    Each page says which version of the dataset it belongs to. Where the dataset is updated in between, the
    export starts again from nothing, or fails. The contract promises no order without ``sort_by``. Without a
    filter, the export fails unless it got as many rows as the platform counts; with one, it reads until the
    platform returns no more.

    :param ds_id: id of the dataset (templated)
    :param output_path: local path, or the URL of an object, such as ``s3://conn@bucket/key``; with
        ``rows_per_file``, of a folder (templated)
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; by default, as the path's suffix says. CSV and
        NDJSON are compressed where the path, or the format, ends in ``.gz`` or ``.zst``, as in ``csv.gz``
        (templated)
    :param sort_by: name of the column to sort by (templated)
    :param sort_type: ``asc`` or ``desc`` (templated)
    :param filter: sent as the body's ``filter``; the contract leaves its shape open (templated)
    :param page_size: rows a request asks for, 50,000 at most
    :param concurrency: requests in flight at most
    :param max_rows: rows to export at most; by default all
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :param on_change: where the dataset is updated while it is read, ``restart`` or ``fail``
    :param max_restarts: how often to start again
    :param rows_per_file: write ``part-00001`` and so on, of so many rows at most, and a ``_manifest.json``
        when all of them are complete
    :param delimiter: of CSV, one ASCII character
    :param header: whether CSV begins with a line of column names
    :param encoding: of CSV, ``utf-8``, ``utf-8-sig`` (which Excel recognises) or ``gb18030``
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``path``, ``format``, ``rows`` and ``columns`` (their numbers), ``version`` and ``utime``
    of the dataset, and ``bytes``.

    Raises :class:`ExportError` where the rows are not whole, fit no type or cannot be written, and another
    :class:`AnaplatError` where the platform does not answer.
    """

    template_fields: Sequence[str] = (
        "ds_id",
        "output_path",
        "file_format",
        "sort_by",
        "sort_type",
        "filter",
        "anaplat_conn_id",
    )

    def __init__(
        self,
        *,
        ds_id: str,
        output_path: str,
        file_format: str | None = None,
        sort_by: str | None = None,
        sort_type: Literal["asc", "desc"] = "asc",
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the platform's name of the field
        page_size: int = 50_000,
        concurrency: int = 4,
        max_rows: int | None = None,
        on_cast_error: OnCastError = "fail",
        on_change: OnChange = "restart",
        max_restarts: int = 3,
        rows_per_file: int | None = None,
        delimiter: str = ",",
        header: bool = True,
        encoding: Encoding = "utf-8",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ds_id = ds_id
        self.output_path = output_path
        self.file_format = file_format
        self.sort_by = sort_by
        self.sort_type = sort_type
        self.filter = filter
        self.page_size = page_size
        self.concurrency = concurrency
        self.max_rows = max_rows
        self.on_cast_error = on_cast_error
        self.on_change = on_change
        self.max_restarts = max_restarts
        self.rows_per_file = rows_per_file
        self.delimiter = delimiter
        self.header = header
        self.encoding = encoding

    def execute(self, context: Context) -> dict[str, Any]:
        """Export the rows."""
        from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
        from airflow_provider_anaplat.rows.pages import RowQuery

        query = RowQuery(
            ds_id=self.ds_id,
            sort_by=self.sort_by,
            sort_type=self.sort_type,
            filter=self.filter,
            page_size=self.page_size,
            concurrency=self.concurrency,
            max_rows=self.max_rows,
        )
        file_format, compression = self._format()
        target = self._target(file_format, f".{file_format}{compression}")
        plan = ExportPlan(query, target, self.on_cast_error, self.on_change, self.max_restarts)
        with closing(self.client()) as client:
            summary = export_rows(client, plan)
        return {
            "dsId": self.ds_id,
            "path": str(self.output_path),
            "format": file_format,
            "rows": summary.rows,
            "columns": summary.columns,
            "version": summary.version,
            "utime": summary.utime,
            "bytes": summary.bytes,
        }

    def _format(self) -> tuple[FileFormat, str]:
        """Return the format and the suffix of its compression, which may be none."""
        path = str(self.output_path).lower()
        given = f".{self.file_format}".lower() if self.file_format else ""
        compression = next((end for end in _COMPRESSIONS if given.endswith(end) or path.endswith(end)), "")
        suffix = given.removesuffix(compression) or Path(path.removesuffix(compression)).suffix
        file_format = _FORMAT_BY_SUFFIX.get(suffix)
        if file_format is None or (compression and file_format == "parquet"):
            raise AirflowFailException(
                f"No format for {self.output_path}: end output_path in one of {', '.join(_FORMAT_BY_SUFFIX)}, or "
                "set file_format to csv, ndjson or parquet. CSV and NDJSON may end in .gz or .zst besides; "
                "Parquet is compressed within."
            )
        return file_format, compression

    def _target(self, file_format: FileFormat, suffix: str) -> Target:
        from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget

        path, sink = path_of(self.output_path), self._sink(file_format)
        if self.rows_per_file is None:
            return FileTarget(path, sink, suffix)
        return PartsTarget(path, sink, suffix, self.rows_per_file)

    def _sink(self, file_format: FileFormat) -> Sink:
        from airflow_provider_anaplat.rows.sinks import CsvSink, NdjsonSink, ParquetSink

        if file_format == "csv":
            return CsvSink(self.delimiter, self.header, self.encoding)
        return NdjsonSink() if file_format == "ndjson" else ParquetSink(max(self.page_size, 1))
