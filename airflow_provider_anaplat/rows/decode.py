"""From the bytes of a page to a frame of text.

The rows are read a slice at a time, since that takes several times the memory of what is read. What cannot be read
so is read again the exact way, which either accepts it or says what is wrong and where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import polars as pl

from airflow_provider_anaplat.client._http.envelope import Answer, each_once, memory_of, read_payload
from airflow_provider_anaplat.client._http.redaction import redact, without_echo
from airflow_provider_anaplat.client._http.validation import validated
from airflow_provider_anaplat.client.models import Column, DatasetData
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError
from airflow_provider_anaplat.output.counting import occurrences
from airflow_provider_anaplat.output.lines import Lines, Shape
from airflow_provider_anaplat.output.schema import unique_names
from airflow_provider_anaplat.output.whole import in_columns, whole
from airflow_provider_anaplat.rows.cells import SPACE, Read, has_numbers, load, reader_of, slices, written_out
from airflow_provider_anaplat.rows.plain import plain_lines

__all__ = [
    "Described",
    "Head",
    "Map",
    "RowPage",
    "Said",
    "Snapshot",
    "read_head",
]

_NAMES_OF_ROWS = ("preview", "data")  # some releases name it so
_ROWS_START = re.compile(rb'"(?:preview|data)"%b:%b\[' % (SPACE, SPACE))
_SLICE = 1 << 19  # bytes, but for the row that is cut after: larger slices take more memory, and are no faster
_UNCUT = 4  # times the size of a slice; few rows are that much larger
# What is made a frame at a time: two slices, or so many bytes for each column, which takes as long as hundreds of
# its cells.
_SLICES_OF_FRAME = 2
_FRAME_PER_COLUMN = 10_000
_LINES_SLICE = 1 << 21  # bytes that are made lines at a time; it takes a hundred steps, however few they are
_FEW_ESCAPES = 20  # characters for each of them, or more
# What is read of an answer beside its rows.
_HEAD = {"columns", "rowCount", "version", "utime"}
S = TypeVar("S")
T = TypeVar("T")


class Map(Protocol):
    """What applies a function to each item and yields the results in order."""

    def __call__(self, function: Callable[[S], T], items: Iterable[S], /) -> Iterator[T]:
        """Apply the function."""


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
class RowPage:
    """Rows of a dataset.

    :param frame: the cells as texts and nulls, under unique column names or in whole rows, or lines of them
    :param columns: the columns as the platform describes them
    :param snapshot: the state of the dataset that the rows belong to
    """

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    snapshot: Snapshot


@dataclass(frozen=True)
class Described:
    """The columns of a dataset; a thousand of them take longer to check than a page's rows to read.

    :param as_sent: what an answer says of them
    :param columns: the same, checked
    :param types: name and type of each
    """

    as_sent: Any = field(repr=False)
    columns: tuple[Column, ...]
    types: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Said:
    """What an answer says beside its rows.

    :param text: all of it, as it came; None if that cannot be told from the rows
    :param described: the columns as the platform describes them
    :param snapshot: the state of the dataset
    :param parent_dir_id: id of the directory that the dataset is in, if it is in one
    """

    text: bytes | None = field(repr=False)
    described: Described
    snapshot: Snapshot
    parent_dir_id: str | None


@dataclass(frozen=True)
class Head:
    """An answer, of which all is read but its rows, which take longer.

    :param said: what it says beside them
    :param rows: where in the answer's body they begin and end, if that is known
    """

    said: Said
    rows: tuple[int, int] | None
    answer: Answer = field(repr=False)

    def page(self, each: Map = map, most_rows: int | None = None, shape: Shape = "columns") -> RowPage:
        """Return the page with its rows.

        :param each: reads the slices of the rows; an executor's ``map`` does so in its threads
        :param most_rows: how many are wanted at most; if there are more, some more are read, and not all
        :param shape: that the rows are put into, if there are columns
        :raises AnaplatInvalidAnswerError: a row is shorter or longer than the column list, or a cell is
            neither text nor null; the first such place is named
        """
        answer, described = self.answer, self.said.described
        names = tuple(name for name, _ in described.types)
        framing = _Framing(names, shape if names else "columns")
        frame = None
        if self.rows is not None:
            frame = _arrow_frame(
                answer.body,
                *self.rows,
                framing,
                each,
                most_memory=answer.most_memory,
                most_rows=most_rows,
            )
        if frame is None:
            (frame,) = each(lambda answer: framing.frame(_exact_rows(answer, names)), [answer])
        return RowPage(frame, described.columns, self.said.snapshot)


def read_head(answer: Answer, ds_id: str | None = None, known: Said | None = None) -> Head:
    """Return an answer of the data operation, read but for its rows.

    :param ds_id: id of the dataset that was asked for, if the answer must be of that one
    :param known: what another answer said; if this one says the same, that is not checked again
    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: it is no answer of the data operation
    """
    rows = _rows(answer.body)
    beside = answer if rows is None else replace(answer, body=answer.body[: rows[0]] + answer.body[rows[1] :])
    if known is not None and answer.status == 200 and beside.body == known.text:
        return Head(known, rows, answer)
    envelope = None if rows is None else _envelope(beside)
    payload = read_payload(answer, _parsed if envelope is None else lambda _: envelope)
    as_sent = payload.get("columns") if isinstance(payload, dict) else None
    described = known.described if known is not None and known.described.as_sent == as_sent else None
    if isinstance(payload, dict):
        left_out = _NAMES_OF_ROWS if described is None else (*_NAMES_OF_ROWS, "columns")
        payload = {name: [] if name in left_out and isinstance(of, list) else of for name, of in payload.items()}
    # What is said of the dataset goes into messages and logs; its cells are the users' own.
    payload = without_echo(payload, (answer if envelope is None else beside).body, answer.secrets)
    data: DatasetData = validated(DatasetData, payload, answer)
    if ds_id is not None and data.ds_id != ds_id:
        raise answer.error(
            AnaplatInvalidAnswerError,
            f"dataset {ds_id} was asked for, and the answer is of {data.ds_id}. A proxy may mix answers up.",
        )
    if data.row_count is None:
        raise answer.error(AnaplatInvalidAnswerError, "the answer has no rowCount.")
    utime = data.model_dump(mode="json", by_alias=True, include={"utime"})["utime"]
    described = described or _described(as_sent, data.columns, answer)
    snapshot = Snapshot(data.version, utime, data.row_count, described.types)
    text, place = (None, None) if envelope is None else (beside.body, rows)
    return Head(Said(text, described, snapshot, data.parent_dir_id), place, answer)


def _described(as_sent: Any, columns: Sequence[Column], answer: Answer) -> Described:
    types = tuple((column.name, column.fd_type) for column in columns)
    if not all(_is_unicode(text) for names_and_types in types for text in names_and_types):
        raise answer.error(AnaplatInvalidAnswerError, "an unpaired surrogate is in the name or type of a column.")
    return Described(as_sent, tuple(columns), types)


def _parsed(answer: Answer) -> Any:
    return answer.parsed(load)


def _rows(body: bytes) -> tuple[int, int] | None:
    """Return where the rows begin and end; None if that takes reading all of it."""
    start = _ROWS_START.search(body)
    return None if start is None else (start.end(), body.rfind(b"]"))


def _envelope(without_rows: Answer) -> Any:
    """Return the envelope with no rows in it; None if more than the rows may be missing then."""
    try:
        envelope = _parsed(without_rows)
        complete = "result" in envelope and envelope["response"].keys() >= _HEAD
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return envelope if complete and len(_ROWS_START.findall(without_rows.body)) == 1 else None


@dataclass(frozen=True)
class _Framing:
    """How rows become a frame.

    :param names: of their columns
    :param shape: that they are put into
    """

    names: tuple[str, ...]
    shape: Shape

    def frame(self, rows: pl.Series) -> pl.DataFrame:
        """Return rows, as lists of cells, as a frame."""
        if isinstance(self.shape, Lines):
            return self.shape.of_cells(rows)
        return whole(rows) if self.shape == "whole" else in_columns(rows, unique_names(list(self.names)))

    def slice_size(self, text: memoryview, size: int) -> int:
        """Return how many bytes of rows become a frame together.

        :param text: all rows
        :param size: of what is read at a time
        """
        if not isinstance(self.shape, Lines):
            return max(_SLICES_OF_FRAME * size, _FRAME_PER_COLUMN * len(self.names))
        # An escape takes many times the memory of another character.
        has_few = occurrences(text, b"\\") * _FEW_ESCAPES < len(text)
        return _LINES_SLICE if has_few else _LINES_SLICE // 2

    def of_text(self, text: memoryview, slices: Iterable[memoryview], read: Read) -> pl.DataFrame | None:
        """Return a list of rows, but for its brackets, as a frame, or None if the exact way must look.

        :param slices: of the list
        :param read: reads one of them
        """
        lines = plain_lines(text, len(self.names), self.shape) if isinstance(self.shape, Lines) else None
        if lines is not None:
            return lines
        found: list[pl.Series] = []
        for rows in map(read, slices):
            if rows is None:
                return None
            found.append(rows)
        rows = pl.concat(found)
        widths = rows.list.len()
        if rows.has_nulls() or (widths.min(), widths.max()) != (len(self.names), len(self.names)):
            return None
        return self.frame(rows)


def _arrow_frame(
    body: bytes,
    start: int,
    end: int,
    framing: _Framing,
    each: Map = map,
    size: int = _SLICE,
    most_memory: int | None = None,
    most_rows: int | None = None,
) -> pl.DataFrame | None:
    """Return the rows; None if the exact way must look."""
    numbered = has_numbers(body)
    read = reader_of(body, numbered=numbered)

    def frame(text: memoryview) -> pl.DataFrame | None:
        text = written_out(text) if numbered else text
        texts = list(slices(text, size))
        # What cannot be cut is one row, or no rows at all; Arrow would take ten times the memory for it.
        uncut = max(map(len, texts)) > _UNCUT * size
        if uncut and most_memory is not None and memory_of(body) > most_memory:
            return None
        return framing.of_text(text, texts, read)

    frames, rows = [], 0
    rows_text = memoryview(body)[start:end]
    for found in each(frame, slices(rows_text, framing.slice_size(rows_text, size))):
        if found is None:
            return None
        frames.append(found)
        rows += found.height
        if most_rows is not None and rows > most_rows:
            break
    return pl.concat(frames, rechunk=False)


def _exact_rows(answer: Answer, names: tuple[str, ...]) -> pl.Series:
    try:
        return _checked_rows(_rows_of(read_payload(answer, _exactly)), names, answer)
    except _TooDeepError:
        raise answer.error(
            AnaplatInvalidAnswerError, "lists or objects are nested too deep for the contract."
        ) from None


class _TooDeepError(Exception):
    """Nobody reads JSON that is nested so deep."""


def _exactly(answer: Answer) -> Any:
    try:
        return answer.parsed(partial(load, object_pairs_hook=each_once))
    except RecursionError:
        raise _TooDeepError from None


def _rows_of(payload: dict[str, Any]) -> list[Any]:
    return next((payload[name] for name in _NAMES_OF_ROWS if name in payload), None) or []


def _checked_rows(preview: list[Any], names: tuple[str, ...], answer: Answer) -> pl.Series:
    """Check each row and cell, and return the rows."""
    for number, row in enumerate(preview, 1):
        if not isinstance(row, list):
            raise answer.error(AnaplatInvalidAnswerError, f"row {number} of the page is not a list of cells.")
        if len(row) != len(names):
            raise answer.error(
                AnaplatInvalidAnswerError,
                f"row {number} of the page has {len(row)} cells, and the column list {len(names)} columns.",
            )
        for index, cell in enumerate(row):
            if cell is None or (isinstance(cell, str) and _is_unicode(cell)):
                continue
            raise answer.error(
                AnaplatInvalidAnswerError,
                f"row {number} of the page, column {names[index]!r}: the cell is {_kind(cell, answer)}, but the "
                "platform promises a text or null. Report this to the platform's administrator.",
            )
    return pl.Series(preview, dtype=pl.List(pl.String))


def _is_unicode(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(cell: Any, answer: Answer) -> str:
    try:
        text = json.dumps(cell)
    except RecursionError:
        text = "nested too deep to be shown"
    shown = redact(text, answer.secrets)[:80]  # in this order: no secret is known by its half
    return f"{shown} ({'an unpaired surrogate' if isinstance(cell, str) else type(cell).__name__})"
