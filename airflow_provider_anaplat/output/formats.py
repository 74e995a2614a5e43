"""File formats: each turns an iterator of frames into one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import IO, ClassVar, Literal, Protocol

import polars as pl

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.counting import occurrences
from airflow_provider_anaplat.output.feed import feed
from airflow_provider_anaplat.output.formulas import Formulas, escaped
from airflow_provider_anaplat.output.lines import Lines, Shape, check_csv, is_lines, line_texts
from airflow_provider_anaplat.output.objects import Objects
from airflow_provider_anaplat.output.parquet import JoinedParquet
from airflow_provider_anaplat.output.row_groups import RowGroup
from airflow_provider_anaplat.output.schema import Caster, arrow_schema, schema_of, unique_names
from airflow_provider_anaplat.output.scratch import Scratch
from airflow_provider_anaplat.output.splitter import Splitter, rows_within, weight_of
from airflow_provider_anaplat.output.streams import ZSTD_LEVEL, Encoding, Output, Writable, encoded
from airflow_provider_anaplat.output.whole import MANY_COLUMNS, cells_of, is_whole

__all__ = [
    "FORMATS",
    "CsvSink",
    "FileFormat",
    "Format",
    "NdjsonSink",
    "ParquetSink",
    "Sink",
    "WriteOptions",
]

FileFormat = Literal["csv", "ndjson", "parquet"]

_CSV_BATCH = 4096  # rows that a thread writes at a time; a quarter of them, as Polars has it, takes a tenth longer
_CSV_BATCH_BYTES = 1 << 20  # which is more than those rows take, unless they are heavy
# Bytes of rows whose text is made at a time. Polars writes to memory alone: some releases lose what a file says of
# a write.
_CSV_BYTES = 16 << 20
_NDJSON_BYTES = 4 << 20
_OBJECT_BYTES = 1 << 20  # the same of whole rows: what is made on the way to their text takes ten times as much
_OBJECT_COLUMNS = 500  # and more are not written by columns
# By which an export may let the process grow; with less, a text or a row group has fewer rows.
_MEMORY_MB = 256


class Sink(Protocol):
    """A file format.

    :cvar file_format: its name, which is the suffix of its files too
    """

    file_format: ClassVar[FileFormat]

    def shape(self, columns: int) -> Shape:
        """Return in which shape it takes rows of so many columns."""

    def write(self, frames: Iterator[pl.DataFrame], caster: Caster, file: Writable) -> None:
        """Write all frames, in their order; none makes a valid file without rows.

        :param frames: of text
        :param caster: knows their columns, and reads them if the format keeps types
        :raises OSError: the file does not take all of it
        """


@dataclass(frozen=True)
class CsvSink:
    """CSV: null is an empty field, the empty text is ``""``.

    :param delimiter: one ASCII character between two fields
    :param header: whether the first line holds the column names
    :param encoding: ``utf-8``, ``utf-8-sig`` (with the mark that Excel looks for) or ``gb18030``
    :param formulas: ``keep`` every cell as it is, or ``escape`` what a spreadsheet would calculate, with an
        apostrophe before it: cells and names that begin with ``=``, ``+``, ``-``, ``@``, a tab or a line break and
        are no numbers, and those signs within a cell behind a line break, or a comma, semicolon, bar or tab that
        is not the delimiter
    """

    file_format: ClassVar[FileFormat] = "csv"

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

    def shape(self, columns: int) -> Shape:
        """Return that it takes lines."""
        return Lines(self.delimiter, self.formulas)

    def write(self, frames: Iterator[pl.DataFrame], caster: Caster, file: Writable) -> None:
        """Write the header and all rows."""
        output = Output(file.write, file.flush)
        write = encoded(output, self.encoding)
        with Scratch() as scratch:
            if self.header:
                names = unique_names([column.name for column in caster.columns])
                # As a row, where names that were escaped need not differ.
                self._write_columns(pl.DataFrame({name: [name] for name in names}), write, scratch)
            for frame in frames:
                if is_lines(frame):
                    for text in line_texts(frame):
                        write(memoryview(text))
                else:
                    self._write_columns(frame, write, scratch)
                del frame  # it may be large, and the next one takes its time
        output.flush()

    def as_written(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return columns of text with their cells as the file has them."""
        if self.formulas == "keep":
            return frame
        return pl.DataFrame([escaped(column, self.delimiter) for column in frame.get_columns()])

    def _write_columns(self, frame: pl.DataFrame, write: Callable[[memoryview], object], scratch: Scratch) -> None:
        frame = self.as_written(frame)
        weight = weight_of(frame) + 1
        for rows in frame.iter_slices(max(1, _CSV_BYTES * frame.height // weight)):
            write_text = partial(
                rows.write_csv,
                include_header=False,
                separator=self.delimiter,
                batch_size=max(1, min(_CSV_BATCH, _CSV_BATCH_BYTES * frame.height // weight)),
                quote_style="necessary",
            )
            text = scratch.text(3 * weight, write_text)  # of each cell, twice its bytes and three more
            check_csv(cells_of(rows), text)
            write(text)


@dataclass(frozen=True)
class NdjsonSink:
    """One JSON object a line, typed.

    :param memory_mb: megabytes by which the process may grow, the pages included
    """

    file_format: ClassVar[FileFormat] = "ndjson"

    memory_mb: int = _MEMORY_MB

    def shape(self, columns: int) -> Shape:
        """Return whole rows if there are so many columns that objects are made faster of those."""
        return "whole" if columns >= _OBJECT_COLUMNS else "columns"

    def write(self, frames: Iterator[pl.DataFrame], caster: Caster, file: Writable) -> None:
        """Write all rows, while this thread makes the next ones: to make some takes as long as to write them."""
        output = Output(file.write, file.flush)

        def write(pulled: Iterator[_JsonLines]) -> None:
            with Scratch() as scratch:
                for lines in pulled:
                    text = scratch.text(lines.most_bytes, lines.write)
                    _check_rows(occurrences(text, b"\n"), lines.rows)
                    output.write(text)
                    del lines  # they may be large, and the next ones take their time

        feed(_lines(frames, caster, _share(self.memory_mb)), write)
        output.flush()


@dataclass(frozen=True)
class ParquetSink:
    """Parquet, typed, compressed with Zstandard; each field's metadata holds what the platform says of the column.

    :param memory_mb: megabytes by which the process may grow, the pages included
    :param row_group_size: rows of a row group at most; more take more memory
    """

    file_format: ClassVar[FileFormat] = "parquet"

    memory_mb: int = _MEMORY_MB
    row_group_size: int = 20_000

    def shape(self, columns: int) -> Shape:
        """Return whole rows if there are many columns, of which it takes some at a time."""
        return "whole" if columns >= MANY_COLUMNS else "columns"

    def write(self, frames: Iterator[pl.DataFrame], caster: Caster, file: Writable) -> None:
        """Write all rows, while this thread makes the next frames."""
        output = Output(file.write, file.flush)
        empty = pl.DataFrame(schema=schema_of(caster.columns, typed=True))

        def join(pulled: Iterator[pl.DataFrame]) -> None:
            splitter = Splitter(pulled)
            with JoinedParquet(output, _parquet(empty), arrow_schema(caster.columns)) as joined:
                while splitter.has_more():
                    with RowGroup(_share(self.memory_mb)) as group:
                        group.take(splitter, self.row_group_size)
                        blocks = caster.blocks(group.blocks())
                        _check_rows(joined.add(map(_parquet, blocks)), group.rows)
                joined.finish()

        feed(caster.typed(frames), join, interrupt=output.break_off)
        output.flush()


@dataclass(frozen=True)
class WriteOptions:
    """What a user may say of how a file is written; each format takes what concerns it.

    :param memory_mb: megabytes by which the process may grow, the pages included

    The others are those of :class:`CsvSink`.
    """

    delimiter: str = ","
    header: bool = True
    encoding: Encoding = "utf-8"
    csv_formulas: Formulas = "keep"
    memory_mb: int = _MEMORY_MB


@dataclass(frozen=True)
class Format:
    """A row of the table of formats.

    :param suffixes: ends of paths that stand for it
    :param sink: makes what writes it
    :param compressible: whether a file may be compressed as a whole
    """

    suffixes: tuple[str, ...]
    sink: Callable[[WriteOptions], Sink]
    compressible: bool = True


FORMATS: dict[FileFormat, Format] = {
    "csv": Format((".csv",), lambda of: CsvSink(of.delimiter, of.header, of.encoding, of.csv_formulas)),
    "ndjson": Format((".ndjson", ".jsonl"), lambda of: NdjsonSink(of.memory_mb)),
    "parquet": Format((".parquet",), lambda of: ParquetSink(of.memory_mb), compressible=False),
}


@dataclass(frozen=True)
class _JsonLines:
    """Rows as lines that are still to be written.

    :param most_bytes: that they have at most
    :param write: writes them to a file
    """

    rows: int
    most_bytes: int
    write: Callable[[IO[bytes]], object]


def _share(memory_mb: int) -> float:
    """Return the share of the memory that there is by default; more of it is left to the pages."""
    return min(1.0, memory_mb / _MEMORY_MB)


def _lines(frames: Iterator[pl.DataFrame], caster: Caster, share: float) -> Iterator[_JsonLines]:
    """Yield the lines of NDJSON of a few rows after the others.

    :param frames: of text
    :param share: of the memory that there is by default
    """
    names = unique_names([column.name for column in caster.columns])
    objects = Objects(names, caster.places)
    # Each row repeats the names, which may be longer than what it holds.
    size_of_names = sum(len(name.encode()) for name in names) + 1
    for frame in caster.typed(frames, finite=True):
        most_bytes = int(share * (_OBJECT_BYTES if is_whole(frame) else _NDJSON_BYTES))
        for rows in frame.iter_slices(rows_within(frame, max(1, most_bytes // size_of_names), most_bytes)):
            # A byte becomes six at most, and there are a few more around a cell.
            most = 10 * (weight_of(rows) + rows.height * size_of_names)
            yield _JsonLines(rows.height, most, _writer(rows, objects, caster))
            del rows
        del frame  # it may be large, and the next one takes its time


def _writer(rows: pl.DataFrame, objects: Objects, caster: Caster) -> Callable[[IO[bytes]], object]:
    """Return what writes rows, whole or in typed columns, as lines of NDJSON."""
    if not is_whole(rows):
        return rows.write_ndjson
    lines = objects.lines(caster.by_type(rows))
    return partial(lines.write_csv, include_header=False, quote_style="never")


def _check_rows(written: int, expected: int) -> None:
    """See that the file got as many rows as were to be written, whatever the library says."""
    if written != expected:
        raise OSError(f"{written:,} of {expected:,} rows were written")


def _parquet(frame: pl.DataFrame) -> bytes:
    """Return a file with one row group, or with none if there are no rows."""
    written = BytesIO()
    frame.write_parquet(
        written, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=max(1, frame.height)
    )
    return written.getvalue()  # a view of its buffer can end Python 3.12.1 when garbage is collected
