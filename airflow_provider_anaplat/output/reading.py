"""Rows of a file that was written here, in a stream: the way back, for all formats and compressions."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from tempfile import NamedTemporaryFile
from typing import IO, Any, cast

import polars as pl

from airflow_provider_anaplat.output.formats import FileFormat
from airflow_provider_anaplat.output.place import Place

__all__ = [
    "DamagedFileError",
    "Row",
    "rows_of",
]

Row = tuple[int, Sequence[Any]]

# Each piece is looked for from the beginning of its row group, so small ones would take long.
_ROWS_OF_PARQUET = 20_000
_BYTES_AT_A_TIME = 1 << 16


class DamagedFileError(ValueError):
    """The file does not hold what was written; the text says where and why."""


def rows_of(place: Place, names: Sequence[str]) -> Iterator[Row]:
    """Yield the number of each row, counted from 1, and its values: texts alone if the format keeps no types.

    :param place: a file with a header, if its format has one, in UTF-8
    :param names: the columns that it must have
    :raises OSError: it cannot be read
    :raises DamagedFileError: it is damaged, or has other columns
    """
    with place.path.open("rb") as file:
        try:
            with closing(_unpacked(file, place.compression)) as stream:
                yield from _READERS[place.sink.file_format](stream, tuple(names))
        except UnicodeDecodeError as error:
            raise DamagedFileError("it is not UTF-8") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DamagedFileError(f"its compression is damaged: {error}") from error


def _csv_rows(file: IO[bytes], names: tuple[str, ...]) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))  # many may grant a right
    # A carriage return within a cell ends no line.
    with io.TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
        reader = csv.reader(_whole_lines(text), strict=True)
        try:
            _check_names(next(reader, []), names)
            for number, values in enumerate(reader, 1):
                if len(values) != len(names):
                    raise DamagedFileError(f"row {number:,} has {len(values)} fields in place of {len(names)}")
                yield number, values
        except csv.Error as error:
            raise DamagedFileError(f"line {reader.line_num:,}: {error}") from error


def _whole_lines(lines: IO[str]) -> Iterator[str]:
    """Yield the lines; whoever writes a row ends it."""
    for line in lines:
        if not line.endswith("\n"):
            raise DamagedFileError("it ends in the middle of a row")
        yield line


def _json_rows(file: IO[bytes], names: tuple[str, ...]) -> Iterator[Row]:
    with io.TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
        for number, line in enumerate(_whole_lines(text), 1):
            try:
                fields = json.loads(line)
            except (ValueError, RecursionError):
                raise DamagedFileError(f"row {number:,} is not JSON") from None
            if not isinstance(fields, dict):
                raise DamagedFileError(f"row {number:,} is no JSON object")
            _check_names(list(fields), names)
            yield number, [fields[name] for name in names]


def _parquet_rows(file: IO[bytes], names: tuple[str, ...]) -> Iterator[Row]:
    with NamedTemporaryFile(prefix="anaplat-", suffix=".parquet") as local, _damaged_parquet():
        shutil.copyfileobj(file, local)  # an object would have to be read whole into memory
        local.flush()
        frame = pl.scan_parquet(local.name)
        _check_names(frame.collect_schema().names(), names)
        number = 0
        while not (piece := frame.select(names).slice(number, _ROWS_OF_PARQUET).collect()).is_empty():
            yield from enumerate(piece.iter_rows(), number + 1)
            number += piece.height


@contextmanager
def _damaged_parquet() -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DamagedFileError((str(error).splitlines() or ["it is no Parquet"])[0]) from error


_READERS: dict[FileFormat, Callable[[IO[bytes], tuple[str, ...]], Iterator[Row]]] = {
    "csv": _csv_rows,
    "ndjson": _json_rows,
    "parquet": _parquet_rows,
}


def _check_names(found: Sequence[str], names: tuple[str, ...]) -> None:
    """See that the columns are those that are expected, in their order."""
    if tuple(found) != names:
        shown = ", ".join(name[:40] for name in found[:20]) or "none"
        raise DamagedFileError(f"its columns are {shown}; they must be {', '.join(names)}")


def _unpacked(file: IO[bytes], compression: str) -> IO[bytes]:
    if compression == ".gz":
        if not file.read(1):
            raise EOFError("it is empty")  # which gzip takes for a whole one
        file.seek(0)
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    if compression == ".zst":
        return cast("IO[bytes]", io.BufferedReader(_Zstandard(file), _BYTES_AT_A_TIME))
    return file


class _Zstandard(io.RawIOBase):
    """One frame of Zstandard; the library's own reader would take one that is cut off for a whole one."""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._error = zstandard.ZstdError
        self._waiting = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            packed = self._file.read(_BYTES_AT_A_TIME)
            if not packed and self._frame.eof:
                return 0
            if not packed or self._frame.eof:
                raise EOFError("it is cut off, or something follows on it")
            self._waiting = memoryview(self._more(packed))
        taken = self._waiting[: len(buffer)]
        buffer[: len(taken)] = taken
        self._waiting = self._waiting[len(taken) :]
        return len(taken)

    def _more(self, packed: bytes) -> bytes:
        try:
            unpacked = self._frame.decompress(packed)
        except self._error as error:
            raise EOFError(str(error)) from error
        if self._frame.unused_data:
            raise EOFError("something follows on it")
        return unpacked
