"""Some records of one answer, found by their ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from airflow_provider_anaplat.client._http.envelope import Answer, read_payload
from airflow_provider_anaplat.client._http.redaction import without_echo
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError

__all__ = [
    "Lookup",
    "records_by_id",
]

T = TypeVar("T")


class Lookup(Generic[T]):
    """The flat fields of one answer's records by id, each record read when it is first asked for.

    A record that breaks the contract fails those alone who ask for it.

    :param records: the records as plain Python, by id
    :param read: makes a typed record, or raises :class:`AnaplatInvalidAnswerError`
    :param asked: the ids that the request named; None if the answer holds all there are
    :ivar clock_ahead: how much the platform's clock is ahead of ours, as far as that is known
    """

    def __init__(
        self, records: dict[str, Any], read: Callable[[Any], T], asked: Collection[str] | None = None
    ) -> None:
        self._records = records
        self._read = read
        self._asked = None if asked is None else frozenset(asked)
        self._done: dict[str, T] = {}
        self.clock_ahead = timedelta(0)

    def covers(self, ids: Collection[str]) -> bool:
        """Tell whether this answer speaks of these ids, be it by not having them."""
        return self._asked is None or self._asked.issuperset(ids)

    def get(self, record_id: str) -> T | None:
        """Return a record; None if the answer has none of this id.

        :raises AnaplatInvalidAnswerError: the record has another shape than the contract's
        """
        if record_id not in self._done:
            if record_id not in self._records:
                return None
            self._done[record_id] = self._read(self._records[record_id])
        return self._done[record_id]

    def matching(self, fits: Callable[[Mapping[str, Any]], bool]) -> dict[str, Mapping[str, Any]]:
        """Return the flat fields of those records that fit, by id, whatever their other fields look like."""
        return {record_id: record for record_id, record in self._records.items() if fits(record)}

    def read_ahead(self, ids: Collection[str], known: Lookup[T] | None = None) -> None:
        """Read these records now, so that later asking for them costs nothing.

        :param ids: ids of the records
        :param known: an earlier answer; what it has read and has not changed since is taken from it
        """
        for record_id in ids:
            known_record = known._done.get(record_id) if known is not None else None
            if (
                known is not None
                and known_record is not None
                and known._records[record_id] == self._records.get(record_id)
            ):
                self._done[record_id] = known_record
            try:
                self.get(record_id)
            except AnaplatInvalidAnswerError:  # for whoever asks for it
                continue


def records_by_id(answer: Answer, key: str) -> dict[str, Any]:
    """Return the records of an answer that is a list of them.

    :param answer: the HTTP answer
    :param key: name of the field that holds a record's id; a record without one stands under a text that tells so,
        for whoever finds it by another field
    :raises AnaplatError: as :func:`read_payload`, and if the answer is no list
    """
    payload = read_payload(
        answer, lambda answer: answer.parsed(partial(json.loads, object_hook=partial(_flat, key)))
    )
    if not isinstance(payload, list):
        raise answer.error(AnaplatInvalidAnswerError, "the answer's `response` is not a list.")
    payload = without_echo(payload, answer.body, answer.secrets)
    records = ((place, record) for place, record in enumerate(payload, 1) if isinstance(record, dict))
    return {
        found if isinstance(found := record.get(key), str) else f"(record {place}, without {key})": record
        for place, record in records
    }


def _flat(key: str, found: dict[str, Any]) -> dict[str, Any]:
    """Leave the nested fields of a record out, which nobody who waits asks for.

    This also spares the event loop of a triggerer long stalls. Being Python, the function lets Python switch to
    another thread at every record; and flat records are nothing to Python's garbage collector, whose full
    collections a list of thousands would otherwise bring about again and again.
    """
    if key not in found:
        return found
    return {name: value for name, value in found.items() if not isinstance(value, dict | list)}
