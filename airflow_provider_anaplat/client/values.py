"""The kinds of values that the contract's records hold: moments, counts, ids and lists."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeVar

import pendulum
from pydantic import BeforeValidator, Field, PlainSerializer

__all__ = [
    "Count",
    "EpochMillis",
    "Id",
    "Int64",
    "Items",
    "TaskId",
    "Timestamp",
]

T = TypeVar("T")
# A list that is read up to its first error: each takes far more memory than what it is about.
Items = Annotated[list[T], Field(fail_fast=True)]

# The contract shows milliseconds and promises no unit; below this, which is in 1973, they are seconds.
_FIRST_MILLIS = 10**11
_TIMESTAMP_FORMAT = "%Y-%m-%d %H:%M:%S%z"


def _read_timestamp(value: Any) -> Any:
    """Read the platform's ``YYYY-MM-DD HH:mm:ss+hhmm``; a moment without a zone is refused."""
    if value == "":
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:  # whose text holds the value, which may be anything
            raise ValueError("no timestamp such as 2026-01-31 10:00:00+0800") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a timestamp without a zone offset")
        return pendulum.instance(value)
    return value


def _read_epoch_millis(value: Any) -> Any:
    if not isinstance(value, int):
        return value
    try:
        return pendulum.from_timestamp(value / 1000 if abs(value) >= _FIRST_MILLIS else value)
    except (OverflowError, OSError) as error:
        raise ValueError("no moment that a calendar has") from error


def _read_count(value: Any) -> Any:
    if isinstance(value, bool):  # which would be read as 0 or 1
        raise ValueError("true or false is no count")
    return value


def _write_timestamp(value: datetime | None) -> str | None:
    if value is None:
        return None
    # What the contract does not show is kept too: a moment that was cut off would look earlier than itself.
    form = _TIMESTAMP_FORMAT.replace("%S", "%S.%f") if value.microsecond else _TIMESTAMP_FORMAT
    return value.strftime(form.replace("%Y", f"{value.year:04}"))  # of a year before 1000, %Y has fewer digits


def _write_epoch_millis(value: datetime | None) -> int | None:
    return None if value is None else round(value.timestamp() * 1000)


Timestamp = Annotated[
    pendulum.DateTime | None, BeforeValidator(_read_timestamp), PlainSerializer(_write_timestamp, when_used="json")
]
EpochMillis = Annotated[
    pendulum.DateTime | None,
    BeforeValidator(_read_epoch_millis),
    PlainSerializer(_write_epoch_millis, when_used="json"),
]

# What 64 bits hold: whoever keeps a number, or computes with it, may take no other.
_MOST = (1 << 63) - 1
Int64 = Annotated[int, Field(ge=-_MOST, le=_MOST)]
Id = Annotated[str, Field(pattern=r"\S")]  # by a blank one, nothing can be found or waited for
# The contract shows a text; where a refresh is answered with a number, the task is that number, too.
TaskId = Annotated[str, Field(coerce_numbers_to_str=True)]
Count = Annotated[int, BeforeValidator(_read_count), Field(ge=0, le=_MOST)]
