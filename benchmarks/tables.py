"""The tables that benchmarks export: each row is rendered once, and a page is any of them joined."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain

BENCH_COLUMNS = [
    *({"name": f"int_{i}", "fdType": "LONG"} for i in range(6)),
    *({"name": f"double_{i}", "fdType": "DOUBLE"} for i in range(4)),
    *({"name": f"text_{i}", "fdType": "STRING"} for i in range(8)),
    *({"name": f"day_{i}", "fdType": "DATE"} for i in range(2)),
]
Row = list[str | None]


@dataclass(frozen=True)
class Table:
    """A table, which repeats its different rows.

    :param row: makes the cells of a row from its number
    :param different: how many rows differ
    :param heavy_from: number of the first row that is one of ``heavy``
    """

    columns: list[dict[str, str]]
    rows: int
    row: Callable[[int], Row]
    different: int
    heavy_from: int | None = None
    heavy: Callable[[int], Row] | None = None


def bench_row(n: int) -> Row:
    """Return cells of many lengths, some null and some empty."""
    return [
        *(str((n * (i + 7919)) % 10 ** (i + 3)) for i in range(6)),
        *(str((n * (i + 31)) % 100_000 / 64) for i in range(4)),
        None if n % 11 == 0 else f"customer {n % 5000}",
        "" if n % 13 == 0 else f"ключ-{n % 977}",
        f"{n:012d}", "EUR", f"text, with a comma {n % 89}", "北京" if n % 2 else "上海", f"sku-{n % 3511}", "x",
        f"20{n % 24 + 10}-{n % 12 + 1:02d}-{n % 28 + 1:02d}", "2026-01-31",
    ]  # fmt: skip


def texts(columns: int, size: int, n: int) -> Row:
    """Return cells of so many bytes each."""
    return [f"{n * 7919 + column:0{size}d}"[-size:] for column in range(columns)]


def shape(rows: int, columns: int, size: int, heavy_from: int | None = None) -> Table:
    """Return a table of texts of one size, or, from a row on, of a hundred times that."""
    return Table(
        [{"name": f"c{number}", "fdType": "STRING"} for number in range(columns)],
        rows,
        partial(texts, columns, size),
        max(2, min(997, 100_000_000 // (columns * size))),
        heavy_from,
        None if heavy_from is None else partial(texts, columns, 100 * size),
    )


SHAPES = {
    "20 columns of 8 bytes": shape(500_000, 20, 8),
    "100 columns of 8 bytes": shape(200_000, 100, 8),
    "300 columns of 8 bytes": shape(100_000, 300, 8),
    "1,000 columns of 8 bytes": shape(50_000, 1_000, 8),
    "5,000 columns of 8 bytes": shape(10_000, 5_000, 8),
    "20 columns of 500 bytes": shape(100_000, 20, 500),
    "1 column": shape(5_000_000, 1, 8),
    "heavy at the end": shape(1_050_000, 20, 8, heavy_from=1_000_000),
    "cells of 5 MB": shape(60, 2, 5_000_000),
}


def bench(rows: int) -> Table:
    """Return the table that the ways of exporting are compared with."""
    return Table(BENCH_COLUMNS, rows, bench_row, min(rows, 500_000))


class _Rows:
    """Rendered rows, over and over."""

    def __init__(self, rows: Iterable[Row]) -> None:
        rendered = [json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() for row in rows]
        self._text = memoryview(b",".join(rendered))
        self._ends = list(accumulate(len(row) + 1 for row in rendered))

    def pieces(self, start: int, end: int) -> Iterator[memoryview]:
        """Yield the text of these rows, cut where the rows begin anew."""
        while start < end:
            first = start % len(self._ends)
            count = min(end - start, len(self._ends) - first)
            yield self._text[self._ends[first - 1] if first else 0 : self._ends[first + count - 1] - 1]
            start += count


class Pages:
    """Answers with rows of a table."""

    def __init__(self, table: Table) -> None:
        self._rows = table.rows
        self._heavy_from = table.rows if table.heavy_from is None else table.heavy_from
        self._light = _Rows(map(table.row, range(table.different)))
        self._heavy = _Rows(map(table.heavy, range(min(table.different, 97)))) if table.heavy else self._light
        head = json.dumps({
            "dsId": "bench", "name": "bench", "status": "FINISHED", "version": 1, "rowCount": table.rows,
            "colCount": len(table.columns), "utime": "2026-01-01 00:00:00+0000", "columns": table.columns,
        }, separators=(",", ":"))  # fmt: skip
        self._head = b'{"result":"ok","response":' + head[:-1].encode() + b',"preview":['

    def answer(self, offset: int, limit: int) -> list[bytes | memoryview]:
        """Return the pieces of an answer of the data operation, none of which was copied."""
        end = min(offset + limit, self._rows)
        answer: list[bytes | memoryview] = [self._head]
        for piece in chain(
            self._light.pieces(offset, min(end, self._heavy_from)),
            self._heavy.pieces(max(offset, self._heavy_from), end),
        ):
            answer += [piece, b","]
        return [*(answer if len(answer) == 1 else answer[:-1]), b"]}}"]
