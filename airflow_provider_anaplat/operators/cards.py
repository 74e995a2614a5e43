"""Export cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.paths import path_of, place_of
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.output.formulas import Formulas
    from airflow_provider_anaplat.output.streams import Encoding
    from airflow_provider_anaplat.rows.export import OnCastError

__all__ = [
    "AnaplatExportCardOperator",
]


class AnaplatExportCardOperator(AnaplatOperator):
    """Export the rows of a card, a chart on a page, to one file.

    **An extension**: the contract describes no cards. The request, and the one shape of its answer that is read,
    are those of public material: cells below ``chartMain.data``, titles and types in the ``meta`` lists of
    ``chartMain.row`` and ``chartMain.column``. Any other shape fails the task, and the error names what was
    expected; ``raw=True`` writes the answer as received.

    The rows are read a page at a time until the platform says, or shows, that there are no more; the process grows
    by ``memory_mb`` at most, whatever a row weighs. Repeated rows, as from a platform that ignores the offset,
    fail the task. The file appears when it is complete; after a failure the path is as it was
    before. Formats and types are those of
    :class:`~airflow_provider_anaplat.operators.rows.AnaplatExportRowsOperator`.

    :param card_id: id of the card, ``cdId`` (templated)
    :param output_path: local path, or the URL of an object, such as ``s3://conn@bucket/key`` (templated)
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; by default, as the path's suffix says. CSV and NDJSON
        are compressed if the path or the format ends in ``.gz`` or ``.zst`` (templated)
    :param view: ``GRID``, the rows, or ``GRAPH``, the figures that the chart is drawn from (templated)
    :param filters: a list of objects with ``name``, ``filterType`` and ``filterValue``, sent as it is (templated)
    :param dynamic_params: a list of objects, sent as the body's ``dynamicParams`` (templated)
    :param memory_mb: megabytes by which the task's process may grow, 64 at least: a page has as many rows as fit
    :param page_size: rows a request asks for at most
    :param raw: write the answer to one request for ``page_size`` rows as received, as JSON, whatever its shape and
        size
    :param delimiter: of CSV, one ASCII character
    :param header: whether CSV begins with a line of column names
    :param encoding: of CSV, ``utf-8``, ``utf-8-sig`` (which Excel recognises) or ``gb18030``
    :param csv_formulas: ``keep`` every cell of CSV as it is, or ``escape``, with an apostrophe, what a spreadsheet
        would calculate
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``cdId``, ``path``, ``format``, ``rows`` and ``columns`` (their numbers; None with ``raw``), and
    ``bytes``.

    Raises :class:`AnaplatInvalidAnswerError` if an answer has another shape, :class:`AnaplatExportError` if
    the rows are not whole, fit no type or cannot be written, and another :class:`AnaplatError` if the platform
    does not answer; :class:`AirflowFailException`, which Airflow does not retry, if it refuses.

    How-to: :doc:`howto/export-card`. Example::

        AnaplatExportCardOperator(task_id="card", card_id="cd1", output_path="/data/sales-{{ ds }}.csv")
    """

    template_fields: Sequence[str] = (
        "card_id",
        "output_path",
        "file_format",
        "view",
        "filters",
        "dynamic_params",
        "anaplat_conn_id",
    )

    def __init__(
        self,
        *,
        card_id: str,
        output_path: str,
        file_format: str | None = None,
        view: Literal["GRAPH", "GRID"] = "GRID",
        filters: Sequence[Mapping[str, Any]] | None = None,
        dynamic_params: Sequence[Mapping[str, Any]] | None = None,
        memory_mb: int = 256,
        page_size: int = 500,
        raw: bool = False,
        delimiter: str = ",",
        header: bool = True,
        encoding: Encoding = "utf-8",
        csv_formulas: Formulas = "keep",
        on_cast_error: OnCastError = "fail",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.card_id = card_id
        self.output_path = output_path
        self.file_format = file_format
        self.view = view
        self.filters = filters
        self.dynamic_params = dynamic_params
        self.memory_mb = memory_mb
        self.page_size = page_size
        self.raw = raw
        self.delimiter = delimiter
        self.header = header
        self.encoding = encoding
        self.csv_formulas = csv_formulas
        self.on_cast_error = on_cast_error

    def work(self, context: Context) -> dict[str, Any]:
        """Export the rows, or the answer as it comes."""
        from airflow_provider_anaplat.output.formats import WriteOptions
        from airflow_provider_anaplat.rows.cards import CardQuery, export_card, write_raw_card

        query = CardQuery(
            self.card_id, self.view, self.filters, self.dynamic_params, self.page_size, self.memory_mb
        )
        result = {
            "cdId": self.card_id,
            "path": str(self.output_path),
            "format": "json",
            "rows": None,
            "columns": None,
        }
        if self.raw:
            with closing(self.client()) as client:
                return {**result, "bytes": write_raw_card(client, query, path_of(self.output_path))}
        options = WriteOptions(self.delimiter, self.header, self.encoding, self.csv_formulas, self.memory_mb)
        place = place_of(self.output_path, self.file_format, options)
        with closing(self.client()) as client:
            summary = export_card(client, query, place, self.on_cast_error)
        counts = {"rows": summary.rows, "columns": summary.columns, "bytes": summary.bytes}
        return {**result, "format": place.sink.file_format, **counts}
