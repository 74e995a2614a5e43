"""Cards (charts on a page), about which the contract says nothing: what is asked for, and how the answer is read.

Public material shows one shape, and little of it is sure. If an answer has another, nothing is guessed: the
error says what was looked for, and the answer can be had as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from airflow_provider_anaplat.client._http.envelope import Answer, read_payload
from airflow_provider_anaplat.client._http.redaction import without_echo, without_half_characters
from airflow_provider_anaplat.client._http.validation import validated
from airflow_provider_anaplat.client.models import Card, Column
from airflow_provider_anaplat.errors import AnaplatError, AnaplatInvalidAnswerError, AnaplatRequestError

__all__ = [
    "CARD_PAGE_SIZE",
    "CardData",
    "Conditions",
    "View",
    "card_body",
    "read_card_data",
    "read_cards",
]

View = Literal["GRAPH", "GRID"]
Conditions = Sequence[Mapping[str, Any]]

CARD_PAGE_SIZE = 500
# A number stays as the platform has written it: no digit of it is lost.
_load = partial(json.loads, parse_int=str, parse_float=str, parse_constant=str)
_TITLES = ("alias", "title", "name")
_BETWEEN_LEVELS = " / "


@dataclass(frozen=True, slots=True)
class CardData:
    """Rows of a card.

    :param columns: their titles and types; a type that the answer does not name is ``STRING``
    :param rows: lists of texts or None, one per column; a number is the text that the platform has written
    :param more: whether there are more rows, if the platform says so
    :param size: bytes of the answer
    """

    columns: tuple[Column, ...]
    rows: list[list[str | None]]
    more: bool | None
    size: int = 0


def card_body(
    view: str, offset: int, limit: int, filters: Conditions | None, dynamic_params: Conditions | None
) -> dict[str, Any]:
    """Return the body of a request for the rows of a card.

    :raises AnaplatRequestError: it cannot be sent; nothing was
    """
    if offset < 0 or limit < 1:
        raise AnaplatRequestError(
            f"read_card: offset {offset} and limit {limit} are refused; a call reads 1 row or more from an offset "
            "of 0 or more. Nothing was sent."
        )
    body: dict[str, Any] = {"view": view, "offset": offset, "limit": limit}
    return {**body, "filters": list(filters or ()), "dynamicParams": list(dynamic_params or ())}


def read_card_data(answer: Answer) -> CardData:
    """Return what an answer holds of a card.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: it has another shape than the one that is known
    """
    chart = _part(answer, read_payload(answer, lambda answer: answer.parsed(_load)), "response", "chartMain")
    data, sides = chart.get("data"), _listed(answer, chart, "row", "values")
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        raise _other_shape(answer, "its `chartMain.data` is no list of rows")
    dimensions = _listed(answer, chart, "row", "meta")
    beside = len(sides) == len(data) and all(_fits(side, dimensions) for side in sides) and bool(dimensions)
    width = len(data[0]) if data else None
    columns = _columns(answer, chart, width, beside=beside)
    rows = [
        [
            *(_beside(answer, number, level) for level in (sides[number] if beside else ())),
            *_cells(answer, number, row, width),
        ]
        for number, row in enumerate(data)
    ]
    _check_whole(answer, columns, rows)
    more = chart.get("hasMoreData")
    return CardData(tuple(columns), rows, more if isinstance(more, bool) else None, len(answer.body))


def read_cards(answer: Answer) -> list[Card]:
    """Return the cards that an answer about a page holds, each once: those at its top, below tabs and in ``doms``.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: it is no object, or a card has another shape
    """
    payload = without_echo(read_payload(answer), answer.body, answer.secrets)
    if not isinstance(payload, dict):
        raise _other_shape(answer, "its `response` is no object", "a page")
    found: dict[str, dict[str, Any]] = {}
    for card in _cards_in(payload):
        if card["cdId"] not in found or not found[card["cdId"]].get("name"):
            found[card["cdId"]] = card
    clean = json.loads(without_half_characters(json.dumps(list(found.values()), ensure_ascii=False)))
    return validated(list[Card], clean, answer)


def _cards_in(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what has the id of a card, in its order; what is within a card is none of the page."""
    left: list[Any] = [page]
    while left:
        part = left.pop()
        if isinstance(part, dict) and isinstance(part.get("cdId"), str):
            yield part
        elif isinstance(part, dict | list):
            left.extend(reversed(list(part.values()) if isinstance(part, dict) else part))


def _columns(answer: Answer, chart: dict[str, Any], width: int | None, *, beside: bool) -> list[Column]:
    """Return the columns: those beside the cells first, then one for each cell of a row.

    The cells have the titles of the column's values, if the platform spells them out, or those of its meta
    list; before them, if nothing stands beside the cells, those of the row's meta list. An answer without rows
    may name none.
    """
    dimensions = [[item] for item in _listed(answer, chart, "row", "meta")]
    spelt = _listed(answer, chart, "column", "values")
    spelt = [level if isinstance(level, list) else [level] for level in spelt]
    listed = [[item] for item in _listed(answer, chart, "column", "meta")]
    if beside:
        fitting = [(spelt, dimensions), (listed, dimensions)]
    else:
        fitting = [([*dimensions, *spelt], []), ([*dimensions, *listed], []), (spelt, []), (listed, [])]
    for of_cells, before in fitting:
        titles = [_BETWEEN_LEVELS.join(filter(None, map(_title, levels))) for levels in (*before, *of_cells)]
        fits = len(of_cells) == width if width is not None else of_cells or not (spelt or listed)
        if all(titles) and fits:
            types = [_type(levels[-1]) for levels in (*before, *of_cells)]
            return [Column(name=name, fd_type=kind) for name, kind in zip(titles, types, strict=True)]
    raise _other_shape(
        answer,
        f"a row of its `chartMain.data` has {width or 'no'} cells, and the titles in `chartMain.row.meta` "
        f"({len(dimensions)}), `chartMain.column.meta` ({len(listed)}) and `chartMain.column.values` "
        f"({len(spelt)}) are not as many, or some have no text",
    )


def _cells(answer: Answer, number: int, row: list[Any], width: int | None) -> Iterator[str | None]:
    if len(row) != width:
        raise _other_shape(
            answer, f"row {number + 1} of its `chartMain.data` has {len(row)} cells, and the first has {width}"
        )
    for place, cell in enumerate(row, 1):
        value = cell.get("v", cell) if isinstance(cell, dict) else cell
        if isinstance(value, bool):
            yield "true" if value else "false"
        elif value is None or (isinstance(value, str) and isinstance(cell, dict)):
            yield value
        else:
            raise _other_shape(
                answer, f"cell {place} of row {number + 1} of its `chartMain.data` holds no value under `v`"
            )


def _check_whole(answer: Answer, columns: list[Column], rows: list[list[str | None]]) -> None:
    """Refuse an unpaired surrogate, which no file can hold."""
    if b"\\u" not in answer.body and b"\xed" not in answer.body:
        return
    try:
        json.dumps([[column.name + column.fd_type for column in columns], rows], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _other_shape(answer, "an unpaired surrogate is in a title or a cell") from None


def _fits(side: Any, dimensions: list[Any]) -> bool:
    return isinstance(side, list) and len(side) == len(dimensions)


def _title(item: Any) -> str | None:
    if isinstance(item, dict):
        item = next((item[name] for name in _TITLES if isinstance(item.get(name), str) and item[name]), None)
    return item if isinstance(item, str) else None


def _beside(answer: Answer, number: int, item: Any) -> str | None:
    """Return what stands beside a row's cells; an empty text and null are two things."""
    if isinstance(item, dict):
        item = next((item[name] for name in ("title", "alias", "v") if name in item), item)
    if isinstance(item, bool):
        return "true" if item else "false"
    if item is None or isinstance(item, str):
        return item
    raise _other_shape(answer, f"what stands in `chartMain.row.values` beside row {number + 1} has no title")


def _type(item: Any) -> str:
    kind = item.get("fdType") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) and kind else "STRING"


def _part(answer: Answer, payload: Any, of: str, name: str) -> dict[str, Any]:
    part = payload.get(name) if isinstance(payload, dict) else None
    if not isinstance(part, dict):
        raise _other_shape(answer, f"its `{of}` has no object `{name}`")
    return part


def _listed(answer: Answer, chart: dict[str, Any], side: str, name: str) -> list[Any]:
    """Return a list that may be missing; what is there and no list is another shape."""
    holder = chart.get(side)
    if holder is None:
        return []
    found = holder.get(name) if isinstance(holder, dict) else holder
    if found is not None and not isinstance(found, list):
        raise _other_shape(answer, f"its `chartMain.{side}.{name}` is no list")
    return found or []


def _other_shape(answer: Answer, what: str, of: str = "a card") -> AnaplatError:
    how = "raw=True" if of == "a card" else "AnaplatCallOperator"
    return answer.error(
        AnaplatInvalidAnswerError,
        f"the answer has another shape than those of {of} that are known: {what}. Look at the answer as it came, "
        f"with {how}, and read it with a task of your own.",
    )
