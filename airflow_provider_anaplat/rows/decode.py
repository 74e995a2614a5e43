"""From the bytes of a page to a frame of text.

Polars reads the rows, in a tenth of the time that Python's objects would take. It is more lenient than this
package: it turns numbers into texts and forgives a row that is no list. So each page is counted: the
quotation marks and brackets that stand in its bytes must be those of as many texts and rows as were read. A
page that does not add up is read again the exact way, which either finds it well or says what is wrong where.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl

from airflow_provider_anaplat.client.client import validated
from airflow_provider_anaplat.client.envelope import Answer, read_payload
from airflow_provider_anaplat.client.errors import AnaplatInvalidAnswerError
from airflow_provider_anaplat.client.models import Column, DatasetData

_ROWS_START = re.compile(rb'"preview"\s*:\s*\[')
_KEY_AFTER_LIST = re.compile(rb'\]\s*,\s*"')
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SCHEMA = {"response": pl.Struct({"preview": pl.List(pl.List(pl.String))})}


@dataclass(frozen=True)
class Snapshot:
    """What identifies the state of a dataset that a page was read from.

    :param columns: name and type of each column
    """

    version: int | None
    utime: str | None
    row_count: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """Rows of a dataset.

    :param frame: the cells as texts and nulls, under unique column names
    :param columns: the columns as the platform describes them
    :param snapshot: the state of the dataset that the rows belong to
    """

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    snapshot: Snapshot


def read_page(answer: Answer) -> Page:
    """Return a page of the data operation.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: a row is shorter or longer than the column list, or a cell is neither
        text nor null; the first such place is named
    """
    header, rows = _fast(answer.body) or (None, None)
    payload = read_payload(answer, json.loads if header is None else lambda _: header)
    preview = payload.get("preview") if isinstance(payload, dict) else None
    if isinstance(preview, list) and rows is None:
        payload = {**payload, "preview": []}
    data: DatasetData = validated(DatasetData, payload, answer)
    if data.row_count is None:
        raise answer.error(AnaplatInvalidAnswerError, "the answer has no rowCount.")
    if rows is None:
        rows = _exact(preview or [], [column.name for column in data.columns], answer)
    names = unique_names([column.name for column in data.columns])
    utime = data.model_dump(mode="json", by_alias=True)["utime"]
    columns = tuple(data.columns)
    snapshot = Snapshot(
        data.version, utime, data.row_count, tuple((column.name, column.fd_type) for column in columns)
    )
    return Page(_frame(rows, names, answer), columns, snapshot)


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


def _fast(body: bytes) -> tuple[dict[str, Any], pl.Series] | None:
    """Return the envelope without its rows, and the rows; None where the exact way must look."""
    start = _ROWS_START.search(body)
    end = body.rfind(b"]") + 1
    if start is None or not end:
        return None
    first, last = start.end(), end
    if _KEY_AFTER_LIST.search(body, first, last):
        return None
    escapes = body.find(b"\\", first, last) >= 0
    if escapes and _SURROGATE.search(body, first, last):
        return None
    try:
        envelope = json.loads(body[:first] + body[last - 1 :])
        rows = pl.read_json(body, schema=_SCHEMA)["response"].struct.field("preview")
    except (ValueError, pl.exceptions.PolarsError):
        return None
    rows = rows.explode() if rows.list.len()[0] else rows.explode().clear()
    if rows.null_count() or not isinstance(envelope, dict):
        return None
    cells = rows.explode()
    quotes = body.count(b'"', first, last)
    if escapes:
        quotes -= _count(cells, '"')
    brackets = body.count(b"[", first, last)
    if brackets != len(rows):  # a cell may hold one; an array may follow the rows
        brackets -= _count(cells, "[")
    if quotes != 2 * (len(cells) - cells.null_count()) or brackets != len(rows):
        return None
    return envelope, rows


def _count(cells: pl.Series, character: str) -> int:
    return int(cells.str.count_matches(character, literal=True).sum())


def _exact(preview: list[Any], names: list[str], answer: Answer) -> pl.Series:
    """Check each cell, and return the rows."""
    for number, row in enumerate(preview, 1):
        if not isinstance(row, list):
            raise answer.error(AnaplatInvalidAnswerError, f"row {number} of the page is not a list of cells.")
        for index, cell in enumerate(row):
            if cell is None or (isinstance(cell, str) and _is_unicode(cell)):
                continue
            where = names[index] if index < len(names) else f"number {index + 1}"
            raise answer.error(
                AnaplatInvalidAnswerError,
                f"row {number} of the page, column {where!r}: the cell is {_kind(cell)}, where the platform "
                "promises a text or null. Report this to the platform's administrator.",
            )
    return pl.Series(preview, dtype=pl.List(pl.String))


def _is_unicode(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(cell: Any) -> str:
    return f"{json.dumps(cell)[:80]} ({'half a character' if isinstance(cell, str) else type(cell).__name__})"


def _frame(rows: pl.Series, names: list[str], answer: Answer) -> pl.DataFrame:
    width = len(names)
    wrong = (rows.list.len() != width).fill_null(value=True)
    if wrong.any():
        number = wrong.arg_true()[0]
        length = rows.list.len()[number]
        raise answer.error(
            AnaplatInvalidAnswerError,
            f"row {number + 1} of the page has {length} cells, and the column list {width} columns.",
        )
    if rows.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    cells = rows.explode()
    return pl.DataFrame([cells.gather_every(width, index).alias(name) for index, name in enumerate(names)])
