"""The command ``export``: all rows of a dataset to a file, with a progress bar if somebody watches."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.cli.paths import place_for
from airflow_provider_anaplat.cli.session import client_for, json_object
from airflow_provider_anaplat.client.names import find_dataset
from airflow_provider_anaplat.output.formats import WriteOptions
from airflow_provider_anaplat.output.lines import Shape
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget

if TYPE_CHECKING:
    from argparse import Namespace

    import polars as pl
    from rich.progress import Progress

    from airflow_provider_anaplat.cli.output import Printer
    from airflow_provider_anaplat.output.files import Written
    from airflow_provider_anaplat.rows.pages import PageReader
    from airflow_provider_anaplat.rows.targets import Target

__all__ = [
    "export",
]

_log = logging.getLogger(__name__)


def export(arguments: Namespace, output: Printer) -> None:
    """Export the rows of a dataset."""
    options = WriteOptions(
        delimiter=arguments.delimiter, encoding=arguments.encoding, csv_formulas=arguments.csv_formulas
    )
    place = place_for(arguments.file, arguments.file_format, options)
    target: Target = FileTarget(place)
    if arguments.rows_per_file is not None:
        target = PartsTarget(place, arguments.rows_per_file)
    condition = json_object("--filter", arguments.filter)
    with client_for(arguments, output) as client:
        ds_id = find_dataset(client.list_datasets(), arguments.dataset).ds_id
        query = RowQuery(
            ds_id=ds_id,
            sort_by=arguments.sort_by,
            sort_type=arguments.sort_type,
            filter=condition,
            concurrency=arguments.concurrency,
            max_rows=arguments.max_rows,
        )
        with _watched(target, output) as shown:
            summary = export_rows(client, ExportPlan(query, shown))
    result = _result(ds_id, arguments.file, summary)
    output.result(
        {**result, "format": place.sink.file_format},
        [f"{summary.rows:,} rows of dataset {ds_id} are in {arguments.file} ({summary.bytes or 0:,} bytes)"],
    )


def _result(ds_id: str, file: str, summary: ExportSummary) -> dict[str, Any]:
    return {
        "dsId": ds_id,
        "path": file,
        "rows": summary.rows,
        "columns": summary.columns,
        "version": summary.version,
        "utime": summary.utime,
        "bytes": summary.bytes,
    }


def _watched(target: Target, output: Printer) -> AbstractContextManager[Target]:
    return _Bar(target, output) if output.is_interactive() else nullcontext(target)


class _Bar(AbstractContextManager["Target"]):
    """A target with a progress bar over it, and without the lines that say the same.

    :param target: where the rows go
    :param output: whose terminal shows the bar
    """

    def __init__(self, target: Target, output: Printer) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._target = target
        self._progress = Progress(
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=output.messages,
        )

    def __enter__(self) -> Target:
        logging.getLogger(_log.name.partition(".")[0]).setLevel(logging.WARNING)
        self._progress.start()
        return _Watched(self._target, self._progress)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


@dataclass(frozen=True)
class _Watched:
    """A target that moves a bar by the rows that it is given; an export that starts again begins a new one."""

    target: Target
    progress: Progress

    def __str__(self) -> str:
        return str(self.target)

    def shape(self, columns: int) -> Shape:
        return self.target.shape(columns)

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader, caster: Caster) -> Written | None:
        for task in self.progress.task_ids:
            self.progress.remove_task(task)
        bar = self.progress.add_task("", total=reader.expected_rows, rows=_rows(0, reader), rate="")
        count = 0

        def counted(frame: pl.DataFrame) -> pl.DataFrame:
            nonlocal count
            count += frame.height
            seconds = self.progress.tasks[0].elapsed
            rate = f"{count / seconds:,.0f} rows/s" if seconds else ""
            self.progress.update(bar, completed=count, rows=_rows(count, reader), rate=rate)
            return frame

        return self.target.write(map(counted, frames), reader, caster)  # which keeps no page in memory


def _rows(count: int, reader: PageReader) -> str:
    return f"{count:,} of {reader.expected_rows:,} rows"
