"""File formats: each turns an iterator of frames into one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, ClassVar, Literal, Protocol

import polars as pl
from polars.io.plugins import register_io_source

from airflow_provider_anaplat.client.errors import AnaplatRequestError
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.rows.feed import feed
from airflow_provider_anaplat.rows.parquet import JoinedParquet
from airflow_provider_anaplat.rows.splitter import Splitter
from airflow_provider_anaplat.rows.streams import Encoding, encoded
from airflow_provider_anaplat.rows.types import arrow_schema, schema_of

FileFormat = Literal["csv", "ndjson", "parquet"]
Formulas = Literal["keep", "escape"]
Columns = tuple[Column, ...]

# How a cell begins that a spreadsheet may calculate, also in full width; a plain number does no harm.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_CSV_BATCH = 4096  # rows that a thread writes at a time; a quarter of them, as Polars has it, takes a tenth longer
_ZSTD_LEVEL = 2  # files as small as with level 3, which is Polars' own, in a tenth less time
# Rows of a Parquet file until it is joined to the others, where a row group has less; fewer take longer.
_PART_ROWS = 20_000


class Sink(Protocol):
    """A file format.

    :cvar file_format: its name, which is the suffix of its files too
    :cvar typed: whether it keeps types, or the platform's own text
    :cvar finite: whether its numbers are finite
    """

    file_format: ClassVar[FileFormat]
    typed: ClassVar[bool]
    finite: ClassVar[bool]

    def write(self, frames: Iterator[pl.DataFrame], columns: Columns, file: BinaryIO) -> None:
        """Write all frames, in their order; none makes a valid file without rows."""


@dataclass(frozen=True)
class CsvSink:
    """CSV: null is an empty field, the empty text is ``""``.

    :param delimiter: one ASCII character between two fields
    :param header: whether the first line holds the column names
    :param encoding: ``utf-8``, ``utf-8-sig`` (with the mark that Excel looks for) or ``gb18030``
    :param formulas: ``keep`` every cell as it is, or ``escape`` what a spreadsheet would calculate, with a leading
        apostrophe: cells and names that begin with ``=``, ``+``, ``-``, ``@``, a tab or a line break and are no
        numbers
    """

    file_format: ClassVar[FileFormat] = "csv"
    typed: ClassVar[bool] = False
    finite: ClassVar[bool] = False

    delimiter: str = ","
    header: bool = True
    encoding: Encoding = "utf-8"
    formulas: Formulas = "keep"

    def __post_init__(self) -> None:
        if self.formulas not in ("keep", "escape"):
            raise AnaplatRequestError(f"csv_formulas is {self.formulas!r}; it must be keep or escape.")
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise AnaplatRequestError(
                f"delimiter is {self.delimiter!r}; it must be one ASCII character, "
                "and no quotation mark or line break."
            )

    def write(self, frames: Iterator[pl.DataFrame], columns: Columns, file: BinaryIO) -> None:
        """Write the header and all rows."""
        file = encoded(file, self.encoding)
        if self.header:
            # As a row, where names that were escaped need not differ.
            names = pl.DataFrame({name: [name] for name in schema_of(columns, typed=False)})
            self._write_rows(names, file)
        for frame in frames:
            self._write_rows(frame, file)
            del frame  # it may be large, and the next one takes its time

    def _write_rows(self, frame: pl.DataFrame, file: BinaryIO) -> None:
        if self.formulas == "escape":
            cells = pl.all()
            is_formula = cells.str.contains(_FORMULA) & ~cells.str.contains(_NUMBER)
            frame = frame.select(pl.when(is_formula).then("'" + cells).otherwise(cells).name.keep())
        frame.write_csv(file, include_header=False, separator=self.delimiter, batch_size=_CSV_BATCH)


@dataclass(frozen=True)
class NdjsonSink:
    """One JSON object a line, typed."""

    file_format: ClassVar[FileFormat] = "ndjson"
    typed: ClassVar[bool] = True
    finite: ClassVar[bool] = True

    def write(self, frames: Iterator[pl.DataFrame], columns: Columns, file: BinaryIO) -> None:
        """Write all rows, while this thread makes the next frame: to make one takes as long as to write one."""

        def write(pulled: Iterator[pl.DataFrame]) -> None:
            for frame in pulled:
                frame.write_ndjson(file)
                del frame  # it may be large, and the next one takes its time

        feed(frames, write)


@dataclass(frozen=True)
class ParquetSink:
    """Parquet, typed, compressed with Zstandard; each field's metadata holds what the platform says of the column.

    :param row_group_size: rows of a row group at most
    """

    file_format: ClassVar[FileFormat] = "parquet"
    typed: ClassVar[bool] = True
    finite: ClassVar[bool] = False

    row_group_size: int = 50_000

    def write(self, frames: Iterator[pl.DataFrame], columns: Columns, file: BinaryIO) -> None:
        """Write all rows.

        Polars pulls frames from a thread of its own and lets no signal through until it is done. So it does
        that in a thread, and the frames come from here, where a task's time-out can end them.
        """

        def join(pulled: Iterator[pl.DataFrame]) -> None:
            joined, splitter = JoinedParquet(file), Splitter(pulled)
            rows = self.row_group_size * max(1, _PART_ROWS // self.row_group_size)
            joined.add(self._part(splitter.take(rows), columns))  # also where there are no rows
            while splitter.has_more():
                joined.add(self._part(splitter.take(rows), columns))
            joined.finish()

        feed(frames, join)

    def _part(self, frames: Iterator[pl.DataFrame], columns: Columns) -> memoryview:
        part = BytesIO()
        register_io_source(lambda *_: frames, schema=schema_of(columns, typed=True)).sink_parquet(
            part,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            row_group_size=self.row_group_size,
            maintain_order=True,
            arrow_schema=arrow_schema(columns),
        )
        return part.getbuffer()
