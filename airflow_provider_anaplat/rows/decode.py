"""From the bytes of a page to a frame of text.

Arrow reads the rows, in a third of the time that Python's objects would take and less of the memory, and
refuses a cell that is no text. What it refuses is read again the exact way, which either finds it well or says
what is wrong where.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import arro3.io
import polars as pl
from arro3.core import DataType, Field, Schema

from airflow_provider_anaplat.client.envelope import Answer, read_payload
from airflow_provider_anaplat.client.errors import AnaplatInvalidAnswerError
from airflow_provider_anaplat.client.models import Column, DatasetData
from airflow_provider_anaplat.client.validation import validated

_ROWS_START = re.compile(rb'"preview"\s*:\s*\[')
_KEY_AFTER_LIST = re.compile(rb'\](?:\s*\})*\s*,\s*"')
# Arrow puts surrogates together wrongly, and ends the whole process where an error of its own quotes a NUL.
_NOT_FOR_ARROW = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_ROWS = DataType.list(Field("row", DataType.list(Field("cell", DataType.string_view()))))
_SCHEMA = Schema([Field("response", DataType.struct([Field("preview", _ROWS)]))])


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


@dataclass(frozen=True)
class Head:
    """What an answer says of the dataset, read at once; its rows take longer.

    :param columns: the columns as the platform describes them
    :param snapshot: the state of the dataset
    :param parent_dir_id: id of the directory that the dataset is in, where it is in one
    """

    columns: tuple[Column, ...]
    snapshot: Snapshot
    parent_dir_id: str | None
    answer: Answer = field(repr=False)

    def page(self) -> Page:
        """Return the page with its rows.

        :raises AnaplatInvalidAnswerError: a row is shorter or longer than the column list, or a cell is
            neither text nor null; the first such place is named
        """
        names = [column.name for column in self.columns]
        rows = _arrow_rows(self.answer.body)
        if rows is None:
            rows = _exact_rows(read_payload(self.answer).get("preview") or [], names, self.answer)
        return Page(_frame(rows, unique_names(names), self.answer), self.columns, self.snapshot)


def read_head(answer: Answer) -> Head:
    """Return what an answer of the data operation says before its rows.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: it is no answer of the data operation
    """
    envelope = _envelope(answer.body)
    payload = read_payload(answer, json.loads if envelope is None else lambda _: envelope)
    if isinstance(payload, dict) and isinstance(payload.get("preview"), list):
        payload = {**payload, "preview": []}
    data: DatasetData = validated(DatasetData, payload, answer)
    if data.row_count is None:
        raise answer.error(AnaplatInvalidAnswerError, "the answer has no rowCount.")
    utime = data.model_dump(mode="json", by_alias=True)["utime"]
    columns = tuple(data.columns)
    types = tuple((column.name, column.fd_type) for column in columns)
    if not all(_is_unicode(text) for names_and_types in types for text in names_and_types):
        raise answer.error(AnaplatInvalidAnswerError, "half a character is in the name or type of a column.")
    return Head(columns, Snapshot(data.version, utime, data.row_count, types), data.parent_dir_id, answer)


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


def _envelope(body: bytes) -> Any:
    """Return the envelope with no rows in it; None where that takes reading all of it."""
    start = _ROWS_START.search(body)
    last = body.rfind(b"]")
    if start is None or _KEY_AFTER_LIST.search(body, start.end(), last):
        return None
    try:
        return json.loads(body[: start.end()] + body[last:])
    except ValueError:
        return None


def _arrow_rows(body: bytes) -> pl.Series | None:
    """Return the rows; None where the exact way must look."""
    if b"\0" in body or (b"\\" in body and _NOT_FOR_ARROW.search(body)):
        return None
    try:
        answers = pl.DataFrame(arro3.io.read_json(io.BytesIO(body), _SCHEMA))
    except pl.exceptions.PolarsError:
        return None
    preview = answers["response"].struct.field("preview")
    if len(preview) != 1 or preview.null_count():
        return None
    rows = preview.explode() if preview.list.len()[0] else preview.explode().clear()
    return None if rows.null_count() else rows


def _exact_rows(preview: list[Any], names: list[str], answer: Answer) -> pl.Series:
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
