"""Whole rows as lines of NDJSON, one object each.

To write a column takes as long as hundreds of its cells, and of thousands of columns, few rows fit into a page; so
the values of all columns of a type are written together, and then brought into their order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

__all__ = [
    "Objects",
]

_ESCAPED = {char: json.dumps(char)[1:-1] for char in ('"', "\\", *map(chr, range(32)))}
_QUOTED = (pl.String, pl.Date)


class Objects:
    """Writes rows as objects, as Polars would write them from columns.

    :param names: of the columns
    :param places: of the columns of each type, among the names
    """

    def __init__(self, names: Sequence[str], places: Sequence[Sequence[int]]) -> None:
        keys = [json.dumps(name, ensure_ascii=False) + ":" for name in names]
        self._keys = [pl.Series([keys[place] for place in of_type]) for of_type in places]
        grouped = [place for of_type in places for place in of_type]
        self._order = pl.Series(sorted(range(len(grouped)), key=grouped.__getitem__), dtype=pl.UInt32).implode()

    def lines(self, cells: Sequence[pl.Series]) -> pl.DataFrame:
        """Return the lines.

        :param cells: of each type, row by row
        """
        of_types = zip(self._keys, cells, strict=True)
        lists = [_members(keys, of_type).reshape((-1, len(keys))).arr.to_list() for keys, of_type in of_types]
        members = pl.concat_list(lists).list.gather(self._order).list.join(",")
        return pl.select("{" + members + "}")


def _members(keys: pl.Series, cells: pl.Series) -> pl.Series:
    """Return cells behind their keys."""
    values = cells.cast(pl.String)
    if cells.dtype == pl.String and cells.str.contains_any(list(_ESCAPED)).any():
        values = cells.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))
    frame = pl.DataFrame({"key": pl.concat([keys] * (len(values) // len(keys))), "value": values})
    member = pl.format('{}"{}"' if cells.dtype in _QUOTED else "{}{}", "key", "value")
    if values.has_nulls():
        member = pl.coalesce(member, pl.format("{}null", "key"))
    return frame.select(member).to_series()
