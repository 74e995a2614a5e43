"""Where users are listed: a list, a file or a query; each can be read again and again, in a stream."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Protocol

from airflow_provider_anaplat.client._http.envelope import each_once
from airflow_provider_anaplat.errors import AnaplatInvalidUsersError, AnaplatSourceError
from airflow_provider_anaplat.users.columns import ColumnError, UserColumn, columns, user_fields

__all__ = [
    "BadRow",
    "CsvSource",
    "ListSource",
    "NdjsonSource",
    "ParquetSource",
    "QuerySource",
    "Row",
    "UserSource",
    "file_source",
]

# Each piece is looked for from the beginning of its row group, so small ones would take long.
_ROWS_OF_PARQUET = 20_000


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be read.

    :param problem: what is wrong with it, without its values
    """

    problem: str


Row = tuple[int, Mapping[str, Any] | BadRow]


class UserSource(Protocol):
    """A list of users.

    :ivar prefix: how a message names a row, with ``{}`` for its number
    """

    prefix: str

    def __str__(self) -> str:
        """Return what the log calls it."""

    def rows(self) -> Iterator[Row]:
        """Yield each user's number and fields, under the contract's names or theirs in snake_case.

        :raises AnaplatInvalidUsersError: what is there is no list of users
        :raises AnaplatSourceError: it cannot be read
        """


class ListSource:
    """Users that are in memory.

    :param users: mappings of fields
    """

    prefix = "users[{}]."

    def __init__(self, users: Sequence[Mapping[str, Any]]) -> None:
        self._users = users

    def __str__(self) -> str:
        return "the list"

    def rows(self) -> Iterator[Row]:
        """Yield the users."""
        return enumerate(self._users)


class QuerySource:
    """Users that a database selects.

    :param execute: runs the query, and gives the names of its columns and its rows as long as it is open
    """

    prefix = "row {}, "

    def __init__(self, execute: Callable[[], AbstractContextManager[tuple[Sequence[str], Iterable[Any]]]]) -> None:
        self._execute = execute

    def __str__(self) -> str:
        return "the query"

    def rows(self) -> Iterator[Row]:
        """Yield the users, counted from 1."""
        with self._execute() as (names, rows):
            places = _columns(self, names)
            for number, row in enumerate(rows, 1):
                yield number, user_fields(places, row)


class _FileSource:
    """Users in a file.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)
    """

    prefix = "line {}, "

    def __init__(self, path: Any) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        try:
            with self._path.open("rb") as file:
                yield file
        except OSError as error:
            raise AnaplatSourceError(
                f"Cannot read {self._path}: {error.strerror or error}. Make sure that it is there and may be "
                "read, then run the task again."
            ) from error


class CsvSource(_FileSource):
    """A CSV file in UTF-8, with a line of column names."""

    def rows(self) -> Iterator[Row]:
        """Yield the users, with the number of the line on which each ends."""
        with self._open() as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                names = next(reader, [])
                places = _columns(self, names)
                for values in reader:
                    if len(values) == len(names):
                        yield reader.line_num, user_fields(places, values)
                    elif values:
                        yield reader.line_num, BadRow(f"{len(values)} fields, but the header has {len(names)}")
            except UnicodeDecodeError:
                raise _unreadable(self, f"after line {reader.line_num} comes what is not UTF-8") from None
            except csv.Error as error:
                raise _unreadable(self, f"line {reader.line_num}: {error}") from None


class NdjsonSource(_FileSource):
    """A file of JSON objects, one a line."""

    def rows(self) -> Iterator[Row]:
        """Yield the users, with the number of the line."""
        with self._open() as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _json_row(line)


class ParquetSource(_FileSource):
    """A Parquet file; from an object store, all of it is read at a time, and decoded in pieces."""

    prefix = "row {}, "

    def rows(self) -> Iterator[Row]:
        """Yield the users, counted from 1."""
        import polars as pl

        with self._open() as file:
            try:
                where = self._path if type(self._path) is type(Path()) else file.read()
                frame = pl.scan_parquet(where, glob=False)  # of users[1].parquet, users1.parquet would be read
                places = _columns(self, frame.collect_schema().names())
                number = 0
                while not (piece := frame.slice(number, _ROWS_OF_PARQUET).collect()).is_empty():
                    for number, values in enumerate(piece.iter_rows(), number + 1):  # noqa: B020 - it counts on
                        yield number, user_fields(places, values)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                raise _unreadable(self, str(error).partition("\n")[0]) from None


_SOURCE_BY_SUFFIX: dict[str, type[CsvSource | NdjsonSource | ParquetSource]] = {
    ".csv": CsvSource,
    ".ndjson": NdjsonSource,
    ".jsonl": NdjsonSource,
    ".parquet": ParquetSource,
}


def file_source(path: Any) -> UserSource:
    """Return the source for a path, by its suffix.

    :raises AnaplatInvalidUsersError: it has none that is known
    """
    kind = _SOURCE_BY_SUFFIX.get(PurePath(str(path)).suffix.lower())
    if kind is None:
        raise AnaplatInvalidUsersError(
            f"{path} is no file of users: its name must end in {', '.join(_SOURCE_BY_SUFFIX)}."
        )
    return kind(path)


def _columns(source: UserSource, names: Sequence[str]) -> list[UserColumn]:
    try:
        return columns(names)
    except ColumnError as error:
        raise _unreadable(source, str(error)) from None


def _unreadable(source: UserSource, why: str) -> AnaplatInvalidUsersError:
    return AnaplatInvalidUsersError(f"{source} is no list of users: {why}. None was sent.")


def _json_row(line: bytes) -> Mapping[str, Any] | BadRow:
    try:
        fields = json.loads(line, object_pairs_hook=each_once)
    except ValueError:  # whose text may hold the line
        return BadRow("the line is not JSON, or names a field twice")
    except RecursionError:
        return BadRow("the line is nested too deeply")
    if not isinstance(fields, dict):
        return BadRow("the line is no JSON object")
    try:
        return user_fields(_json_columns(tuple(fields)), fields.values())
    except ColumnError as error:
        return BadRow(str(error))


@lru_cache(maxsize=1024)
def _json_columns(names: tuple[str, ...]) -> list[UserColumn]:
    return columns(names)
