"""File formats: each turns an iterator of frames into one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, ClassVar, Protocol

import polars as pl
from polars.io.plugins import register_io_source

Schema = Mapping[str, type[pl.DataType]]


class Sink(Protocol):
    """A file format.

    :cvar typed: whether it keeps types, or the platform's own text
    :cvar finite: whether its numbers are finite
    """

    typed: ClassVar[bool]
    finite: ClassVar[bool]

    def write(self, frames: Iterator[pl.DataFrame], schema: Schema, file: BinaryIO) -> None:
        """Write all frames, in their order; none makes a valid file without rows."""


class CsvSink:
    """CSV in UTF-8 with a header line: null is an empty field, the empty text is ``""``."""

    typed: ClassVar[bool] = False
    finite: ClassVar[bool] = False

    def write(self, frames: Iterator[pl.DataFrame], schema: Schema, file: BinaryIO) -> None:
        """Write the header and all rows."""
        pl.DataFrame(schema=dict(schema)).write_csv(file)
        for frame in frames:
            frame.write_csv(file, include_header=False)


class NdjsonSink:
    """One JSON object a line, typed."""

    typed: ClassVar[bool] = True
    finite: ClassVar[bool] = True

    def write(self, frames: Iterator[pl.DataFrame], schema: Schema, file: BinaryIO) -> None:
        """Write all rows."""
        for frame in frames:
            frame.write_ndjson(file)


class ParquetSink:
    """Parquet, typed, compressed with Zstandard."""

    typed: ClassVar[bool] = True
    finite: ClassVar[bool] = False

    def write(self, frames: Iterator[pl.DataFrame], schema: Schema, file: BinaryIO) -> None:
        """Write all rows, one page after the other: Polars asks for a frame when it can take one."""
        source = register_io_source(lambda *_: frames, schema=dict(schema))
        try:
            source.sink_parquet(file, compression="zstd", maintain_order=True)
        except pl.exceptions.ComputeError as error:  # how Polars reports that the file cannot be written
            raise OSError(str(error)) from error


SINKS: Mapping[str, type[Sink]] = {"csv": CsvSink, "ndjson": NdjsonSink, "parquet": ParquetSink}
