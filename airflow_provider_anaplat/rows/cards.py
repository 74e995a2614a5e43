"""All rows of a card to a file: a page at a time, and each once."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import polars as pl

from airflow_provider_anaplat.client.cards import CARD_PAGE_SIZE, CardData, Conditions, View
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.metrics import BYTES_EXPORTED, ROWS_EXPORTED
from airflow_provider_anaplat.errors import (
    AnaplatAnswerTooLargeError,
    AnaplatDatasetChangedError,
    AnaplatExportError,
    AnaplatRequestError,
    AnaplatRowCountError,
)
from airflow_provider_anaplat.output.files import write_file
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.output.schema import Caster, schema_of
from airflow_provider_anaplat.rows.budget import MEGABYTE, MEMORY_MB, Budget, Needs
from airflow_provider_anaplat.rows.export import OnCastError
from airflow_provider_anaplat.rows.offsets import OffsetCheck

__all__ = [
    "CardQuery",
    "CardSummary",
    "export_card",
    "write_raw_card",
]

log = logging.getLogger(__name__)

# A cell of a card is an object, which takes more than a cell of a page does.
_NEEDS = Needs(copies=26, cell_bytes=240)


@dataclass(frozen=True)
class CardQuery:
    """Which rows of which card, and how to ask for them.

    :param card_id: id of the card (``cdId``)
    :param view: ``GRID`` or ``GRAPH``
    :param filters: the body's ``filters``
    :param dynamic_params: the body's ``dynamicParams``
    :param page_size: rows a request asks for at most
    :param memory_mb: megabytes by which the process may grow; pages are made to fit
    """

    card_id: str
    view: View = "GRID"
    filters: Conditions | None = None
    dynamic_params: Conditions | None = None
    page_size: int = CARD_PAGE_SIZE
    memory_mb: int = MEMORY_MB


@dataclass(frozen=True)
class CardSummary:
    """What was exported.

    :param columns: number of columns
    :param bytes: size of the file
    """

    rows: int
    columns: int
    bytes: int


def export_card(client: AnaplatClient, query: CardQuery, place: Place, on_cast_error: OnCastError) -> CardSummary:
    """Write the rows of a card to a file, which appears when it is complete.

    :raises AnaplatInvalidAnswerError: an answer has another shape than the one that is known
    :raises AnaplatExportError: the rows are not whole, or cannot be written; what was there before stays
    :raises AnaplatError: the platform does not answer with success
    """
    if query.page_size < 1:
        raise AnaplatRequestError("page_size must be at least 1.")
    reader = _CardReader(client, query)
    caster = Caster(reader.columns, nulls_for_errors=on_cast_error == "null")
    with closing(reader.pages()) as frames:
        size = place.write(frames, caster).bytes
    if caster.lost_cells:
        log.warning("%d cells did not fit their column's type and were exported as null", caster.lost_cells)
    client.observe(ROWS_EXPORTED, reader.read)
    client.observe(BYTES_EXPORTED, size)
    log.info("Card %s: exported %s rows, %s bytes, to %s", query.card_id, f"{reader.read:,}", f"{size:,}", place)
    return CardSummary(reader.read, len(reader.columns), size)


def write_raw_card(client: AnaplatClient, query: CardQuery, path: Any) -> int:
    """Write the answer to one request for a card as it came, as JSON, and return the file's size in bytes.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :raises AnaplatOutputError: the file cannot be written
    """
    answer = client.read_card(
        query.card_id,
        view=query.view,
        limit=query.page_size,
        filters=query.filters,
        dynamic_params=query.dynamic_params,
        raw=True,
    )
    text = json.dumps(answer, ensure_ascii=False, indent=2).encode()
    write_file(path, text)
    return len(text)


class _CardReader:
    """Reads a card's pages one after the other; it asks for the first one at once, for ``columns``.

    The rows end when the platform says that there are no more, or, if it does not say, returns none. ``read``
    is how many were handed on.
    """

    def __init__(self, client: AnaplatClient, query: CardQuery) -> None:
        self._client = client
        self._query = query
        self._budget = Budget(query.memory_mb, query.page_size, 1, client.max_answer_mb, _NEEDS)
        self.read = 0
        # Taken from here when it is read, so that nothing keeps it in memory.
        self._first: tuple[CardData, int] | None = self._ask(0, self._budget.rows())
        self.columns = self._first[0].columns
        self._budget.has_columns(len(self.columns))
        self._budget.makes_columns(len(self.columns))
        if not self.columns:
            raise AnaplatExportError(
                f"Card {query.card_id}: the platform names no column and gives no row: there is nothing to write. "
                "Look at the card there, or at the answer as it came, with raw=True."
            )
        self._schema = schema_of(self.columns, typed=False)

    def pages(self) -> Generator[pl.DataFrame]:
        """Yield the pages in their order.

        :raises AnaplatRowCountError: the platform promises more rows and gives none
        :raises AnaplatInvalidAnswerError: it gives the same rows again
        """
        offsets = OffsetCheck(
            f"Card {self._query.card_id}", lambda offset, limit: self._page(offset, limit)[0], sees_end=False
        )
        more: bool | None = None
        while more is not False:
            frame, said, limit = self._page(self.read, self._budget.rows())
            offsets.look(self.read, limit, frame)
            if frame.is_empty():
                if more or said:
                    raise self._missing()
                break
            self.read += frame.height
            more = said
            yield frame
        offsets.look_again()

    def _page(self, offset: int, limit: int) -> tuple[pl.DataFrame, bool | None, int]:
        """Return rows, whether there are more, and for how many was asked in the end."""
        (data, limit), self._first = self._first or self._ask(offset, limit), None
        if data.columns != self.columns and data.rows:
            raise AnaplatDatasetChangedError(
                f"Card {self._query.card_id} was changed while its rows were being read: it has other columns "
                f"from row {offset + 1:,} on. Nothing was published; run the task again."
            )
        return pl.DataFrame(data.rows, schema=self._schema, orient="row"), data.more, limit

    def _ask(self, offset: int, limit: int) -> tuple[CardData, int]:
        """Ask for rows, or for fewer if that many are too heavy, and return how many were asked for in the end."""
        query, budget = self._query, self._budget
        while True:
            most = budget.most_bytes(limit) if limit > 1 else None
            try:
                data = self._client.read_card(
                    query.card_id,
                    view=query.view,
                    offset=offset,
                    limit=limit,
                    filters=query.filters,
                    dynamic_params=query.dynamic_params,
                    most=most,
                )
            except AnaplatAnswerTooLargeError as error:
                if limit == 1:
                    raise
                limit = budget.saw_too_much(limit, error.size)
                continue
            budget.saw(len(data.rows), data.size)
            if most is None and data.size > budget.most_bytes(1):
                log.info(
                    "Card %s: row %d alone has %.1f MB, more than the memory_mb=%d of the task allow for; it "
                    "is exported all the same",
                    query.card_id, offset + 1, data.size / MEGABYTE, query.memory_mb,
                )  # fmt: skip
            return data, limit

    def _missing(self) -> AnaplatRowCountError:
        return AnaplatRowCountError(
            f"Card {self._query.card_id}: the platform says that there are more than {self.read:,} rows, and "
            "gives none. Nothing was published; run the task again."
        )
