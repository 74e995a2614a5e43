"""Tables that the embedded platform serves as datasets: every cell a text or null, every column a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import polars as pl

__all__ = [
    "Table",
    "rows_json",
    "with_rows",
]

# The first type that holds every cell of a column is the column's.
_FD_TYPES: tuple[tuple[str, Callable[[pl.Series], pl.Series]], ...] = (
    ("INT", lambda cells: cells.cast(pl.Int32, strict=False)),
    ("LONG", lambda cells: cells.cast(pl.Int64, strict=False)),
    ("DOUBLE", lambda cells: cells.cast(pl.Float64, strict=False)),
    ("DATE", lambda cells: cells.str.to_date("%Y-%m-%d", strict=False)),
)
_CONDITION: dict[str, Callable[[pl.Expr, Any], pl.Expr]] = {
    "EQ": lambda column, values: column == values[0],
    "NE": lambda column, values: column != values[0],
    "GT": lambda column, values: column > values[0],
    "GE": lambda column, values: column >= values[0],
    "LT": lambda column, values: column < values[0],
    "LE": lambda column, values: column <= values[0],
    "IN": lambda column, values: column.is_in(values),
    "IS_NULL": lambda column, _: column.is_null(),
    "NOT_NULL": lambda column, _: column.is_not_null(),
}


@dataclass(frozen=True)
class Table:
    """Rows of text with the platform's types.

    :param frame: the cells; every column holds texts and nulls
    :param names: column names as the platform shows them; two may be equal
    :param fd_types: the platform's type of each column
    """

    frame: pl.DataFrame
    names: tuple[str, ...]
    fd_types: tuple[str, ...]

    @classmethod
    def read(cls, path: Path | str, null_value: str | None = None) -> Table:
        """Read a CSV (also zipped) or Parquet file.

        :param path: the file
        :param null_value: the text that stands for null in a CSV file
        """
        path = Path(path)
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path).with_columns(pl.all().cast(pl.String))
        else:
            frame = pl.read_csv(_unzipped(path), infer_schema=False, null_values=null_value)
        return cls(frame, tuple(frame.columns), tuple(map(_fd_type, frame.iter_columns())))

    @classmethod
    def of_rows(cls, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | None]]) -> Table:
        """Build a table from pairs of column name and type, and rows of texts and None."""
        keys = [str(index) for index in range(len(columns))]
        frame = pl.DataFrame(list(rows), schema=dict.fromkeys(keys, pl.String), orient="row")
        return cls(frame, tuple(name for name, _ in columns), tuple(kind for _, kind in columns))

    def selected(self, sort: Mapping[str, Any] | None, condition: Mapping[str, Any] | None) -> pl.DataFrame:
        """Return the cells in the order, and through the filter, of a request."""
        frame = self.frame
        if condition:
            frame = frame.filter(self._expression(condition))
        if sort:
            frame = frame.sort(
                self._typed(sort["name"]),
                descending=sort.get("sortType") == "desc",
                maintain_order=True,
            )
        return frame

    def _typed(self, name: str) -> pl.Expr:
        index = self.names.index(name)
        column = pl.nth(index)
        numeric = self.fd_types[index] in ("INT", "LONG", "DOUBLE")
        return column.cast(pl.Float64) if numeric else column

    def _expression(self, condition: Mapping[str, Any]) -> pl.Expr:
        if "combineType" in condition:
            join = and_ if condition["combineType"] == "AND" else or_
            return reduce(join, map(self._expression, condition["conditions"]))
        value = condition["value"]
        column = self._typed(value["name"])
        expression: pl.Expr = _CONDITION[value["filterType"]](column, value.get("filterValue"))
        return ~expression if condition.get("not") else expression


def rows_json(frame: pl.DataFrame) -> bytes:
    """Return the rows as a JSON array of arrays of texts and nulls."""
    if frame.is_empty():
        return b"[]"
    rows = frame.select(pl.concat_list(pl.all()).alias("row")).select(pl.col("row").implode().alias("rows"))
    return rows.write_ndjson().encode()[len(b'{"rows":') : -len(b"}\n")]


def with_rows(response: Mapping[str, Any], rows: bytes) -> bytes:
    """Return the success envelope of a data answer whose rows are JSON already."""
    head = json.dumps({"result": "ok", "response": dict(response)}, ensure_ascii=False).encode()
    return head[: -len(b"}}")] + b', "preview": ' + rows + b"}}"


def _fd_type(cells: pl.Series) -> str:
    for name, cast in _FD_TYPES:
        if cast(cells).null_count() == cells.null_count() < len(cells):
            return name
    return "STRING"


def _unzipped(path: Path) -> bytes:
    if path.suffix != ".zip":
        return path.read_bytes()
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return archive.read(archive.namelist()[0])
