"""The columns of what is written: unique names, and the type table: what a type becomes, how its text is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from airflow_provider_anaplat.client._http.redaction import brief
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatCellError
from airflow_provider_anaplat.output.whole import UNNAMED, cells_of, in_columns, is_whole

__all__ = [
    "BOOLEAN",
    "Caster",
    "arrow_schema",
    "schema_of",
    "unique_names",
]


@dataclass(frozen=True)
class _FdType:
    dtype: type[pl.DataType]
    read: Callable[[pl.Series], pl.Series]


def _integers(cells: pl.Series) -> pl.Series:
    return cells.cast(pl.Int64, strict=False)


def _floats(cells: pl.Series) -> pl.Series:
    """Read numbers; one that a float cannot hold would become infinite, and is lost instead."""
    numbers = cells.cast(pl.Float64, strict=False)
    if not numbers.is_infinite().any():
        return numbers
    too_large = numbers.is_infinite() & ~cells.str.contains("(?i)inf")
    return numbers.set(too_large.fill_null(value=False), None)


def _dates(cells: pl.Series) -> pl.Series:
    """Read dates; a time of midnight is no more than a date, and no other time is lost."""
    days = cells
    if not cells.str.contains(r"^\d{4}-\d{2}-\d{2}$").all():
        days = cells.str.extract(r"^(\d{4}-\d{2}-\d{2})(?: 00:00:00)?$")
    return days.str.to_date("%Y-%m-%d", strict=False)


def _booleans(cells: pl.Series) -> pl.Series:
    return cells.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)


# Of this package's own reports, by a name that is no type of a platform, whose booleans stay text like any other.
BOOLEAN = "true or false"
_FEW_ROWS = 1_000  # of a column: to read it by itself takes longer than to copy it beside the others
_INTEGER = _FdType(pl.Int64, _integers)
_TEXT = _FdType(pl.String, lambda cells: cells)
# A type outside the contract stays the platform's text: how its cells are written is not known.
_FD_TYPES = {
    "INT": _INTEGER,
    "LONG": _INTEGER,
    "DOUBLE": _FdType(pl.Float64, _floats),
    "DATE": _FdType(pl.Date, _dates),
    "STRING": _TEXT,
    BOOLEAN: _FdType(pl.Boolean, _booleans),
}


def unique_names(names: list[str]) -> list[str]:
    """Return the names with each repeated one told apart: ``a``, ``a (2)``, ``a (3)``.

    An empty name, which no typed file can hold, becomes ``column`` and its number; a NUL becomes ``�``.
    """
    names = [name.replace("\0", "�") or f"column {number}" for number, name in enumerate(names, 1)]
    taken = set(names)
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        candidate = name
        while seen[name] > 1 and candidate in taken:
            candidate = f"{name} ({seen[name]})"
            seen[name] += candidate in taken
        taken.add(candidate)
        unique.append(candidate)
    return unique


def schema_of(columns: tuple[Column, ...], *, typed: bool) -> dict[str, type[pl.DataType]]:
    """Return the frame schema of a dataset's columns.

    :param typed: by each column's type, or all text
    """
    names = unique_names([column.name for column in columns])
    return {
        name: _fd_type(column).dtype if typed else pl.String for name, column in zip(names, columns, strict=True)
    }


def arrow_schema(columns: tuple[Column, ...]) -> Any:
    """Return the typed schema with what the platform says of each column as its field's metadata."""
    from arro3.core import DataType, Field, Schema

    arrow_types = {
        pl.Int64: DataType.int64(),
        pl.Float64: DataType.float64(),
        pl.Date: DataType.date32(),
        pl.Boolean: DataType.bool(),
    }
    return Schema(
        [
            Field(name, arrow_types.get(dtype, DataType.large_utf8()), nullable=True, metadata=_metadata(column))
            for (name, dtype), column in zip(schema_of(columns, typed=True).items(), columns, strict=True)
        ]
    )


def _metadata(column: Column) -> dict[str, str]:
    described = {
        "fdType": column.fd_type,
        "metaType": column.meta_type,
        "alias": column.alias,
        "annotation": column.annotation,
    }
    return {key: value for key, value in described.items() if value is not None}


class Caster:
    """Turns the text of frames into their columns' types, and counts what had to be given up.

    All columns of a type are read together, since thousands of them would take as many steps. The frames come in
    the order of their rows.

    :param columns: the dataset's columns
    :param first_row: number of the first row in the dataset, counted from 0
    :param nulls_for_errors: make a cell that its type cannot hold null, instead of failing
    :ivar lost_cells: how many became null
    """

    def __init__(self, columns: tuple[Column, ...], first_row: int = 0, *, nulls_for_errors: bool = False) -> None:
        self.columns = columns
        self.lost_cells = 0
        self._names = unique_names([column.name for column in columns])
        self._nulls_for_errors = nulls_for_errors
        self._row = first_row

    def typed(self, frames: Iterator[pl.DataFrame], *, finite: bool = False) -> Iterator[pl.DataFrame]:
        """Return the frames typed; whole rows stay whole, for :meth:`blocks` or :meth:`by_type`.

        :param finite: whether whoever takes them can hold no NaN and no infinity
        :raises AnaplatCellError: a cell does not fit; column, row and value are named
        """

        def typed(frame: pl.DataFrame) -> pl.DataFrame:
            return frame if is_whole(frame) else self._counted(self._cast(frame, finite=finite))

        return map(typed, frames)  # which keeps no frame in memory that was handed on

    def blocks(self, parts: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Yield a row group typed, some columns after the others.

        :param parts: what :meth:`typed` has returned, some columns after the others: typed, or of whole rows
        :raises AnaplatCellError: a cell does not fit; column, row and value are named
        """
        first = rows = 0
        for part in parts:
            if is_whole(part):
                cells = part.to_series()
                names = self._names[first : first + len(cells[0])]
                yield self._cast(in_columns(cells, names), first)
                first += len(names)
                rows = part.height
            else:
                yield part
        self._row += rows

    @cached_property
    def places(self) -> list[list[int]]:
        """The numbers of the columns of each type, from 0."""
        return list(_places_of(self.columns).values())

    def by_type(self, rows: pl.DataFrame) -> list[pl.Series]:
        """Return the cells of whole rows typed, and finite: those of all columns of a type together, row by row.

        :return: the cells of each type, in the order of :attr:`places`
        :raises AnaplatCellError: a cell does not fit; column, row and value are named
        """
        by_type, lost = [], []
        for places in self.places:
            cells = cells_of(rows.select(pl.all().list.gather(places)))
            typed, misfits = self._read(_fd_type(self.columns[places[0]]), cells, finite=True)
            if len(misfits):
                misfit = misfits[(misfits % len(places)).arg_min() or 0]
                row, place = divmod(misfit, len(places))
                lost.append((places[place], row, cells[misfit]))
            by_type.append(typed)
        self._refuse(lost)
        self._row += rows.height
        return by_type

    def _counted(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._row += frame.height
        return frame

    def _cast(self, frame: pl.DataFrame, first: int = 0, *, finite: bool = False) -> pl.DataFrame:
        """Return a frame of some columns, from the first of these on."""
        columns, height = frame.get_columns(), frame.height
        lost = []
        for fd_type, places in _places_of(self.columns[first : first + len(columns)]).items():
            if fd_type is _TEXT:
                continue
            cells = pl.concat([columns[place] for place in places], rechunk=height < _FEW_ROWS).alias(UNNAMED)
            read, misfits = self._read(fd_type, cells, finite=finite)
            if len(misfits):
                place, row = divmod(misfits[0], height)
                lost.append((first + places[place], row, cells[misfits[0]]))
            for number, place in enumerate(places):
                columns[place] = read.slice(number * height, height).alias(columns[place].name)
        self._refuse(lost)
        return pl.DataFrame(columns)

    def _read(self, fd_type: _FdType, cells: pl.Series, *, finite: bool) -> tuple[pl.Series, pl.Series]:
        """Return cells of a type, and where those are that do not fit it."""
        read = fd_type.read(cells)
        if finite and read.dtype == pl.Float64:
            read = pl.select(pl.when(read.is_finite()).then(read)).to_series()
        lost = read.null_count() - cells.null_count()
        self.lost_cells += lost
        return read, (read.is_null() & cells.is_not_null()).arg_true() if lost else pl.Series(dtype=pl.UInt32)

    def _refuse(self, lost: list[tuple[int, int, str]]) -> None:
        """Name the first of the cells that do not fit, unless they become null.

        :param lost: number of the column, number of the row, and the cell
        """
        if not lost or self._nulls_for_errors:
            return
        place, row, cell = min(lost)
        raise AnaplatCellError(
            f"Column {brief(repr(self._names[place]))}, row {self._row + row + 1:,} (counted from 1): "
            f"{cell[:100]!r} is not a {self.columns[place].fd_type}. Set on_cast_error='null' to export such "
            "cells as null, or export to CSV, which keeps the platform's own text."
        )


def _fd_type(column: Column) -> _FdType:
    return _FD_TYPES.get(column.fd_type, _TEXT)


def _places_of(columns: Sequence[Column]) -> dict[_FdType, list[int]]:
    """Return which columns are of which type."""
    places_of: dict[_FdType, list[int]] = {}
    for place, column in enumerate(columns):
        places_of.setdefault(_fd_type(column), []).append(place)
    return places_of
