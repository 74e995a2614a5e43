"""From the columns of a file or a query to the fields of a user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

__all__ = [
    "ColumnError",
    "UserColumn",
    "column",
    "columns",
    "user_fields",
]

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_PROPERTIES = "userDefinedProperties"


class ColumnError(ValueError):
    """A column that no user has, the same one twice, or none with the loginIds."""


class UserColumn(NamedTuple):
    """Where the values of a column go.

    :param field: the contract's name of the field
    :param convert: makes the field's value from the column's
    :param key: for a column of ``userDefinedProperties``, the property's name
    """

    field: str
    convert: Callable[[Any], Any]
    key: str | None = None


def _text(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _flag(value: Any) -> Any:
    if isinstance(value, list | dict):  # however deep
        return value
    word = str(value).strip().lower()
    return True if word in _TRUE else False if word in _FALSE else value


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(";") if part.strip()]
    return value


def _object(value: Any) -> Any:
    if isinstance(value, Mapping):  # in Parquet, every row has every key of any row
        return {key: item for key, item in value.items() if item is not None}
    return value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "loginId": _text,
    "name": _text,
    "password": _text,
    "role": _text,
    "email": _text,
    "mobile": _text,
    "enabled": _flag,
    "userGroupIds": _texts,
    _PROPERTIES: _object,
}


def _normalised(name: str) -> str:
    """Let ``loginid`` and ``login_id`` stand for ``loginId``: databases fold the names of columns."""
    return name.strip().replace("_", "").lower()


_FIELDS = {_normalised(field): field for field in _CONVERSIONS}


@cache
def column(name: str) -> UserColumn | None:
    """Return where a column of this name goes, or None if no user has such a field."""
    head, dot, key = name.strip().partition(".")
    field = _FIELDS.get(_normalised(head))
    if field is None or bool(dot) != bool(key) or (key and field != _PROPERTIES):
        return None
    return UserColumn(field, _text if key else _CONVERSIONS[field], key or None)


def columns(names: Sequence[str]) -> list[UserColumn]:
    """Return where each column goes.

    :raises ColumnError: naming every column that no user has, or that is there twice
    """
    if not names:
        return []
    found = [(name, column(name)) for name in names]
    if not any(place and place.field == "loginId" for _, place in found):
        # If a file has no header, its first user stands here, and must not be shown.
        raise ColumnError("there is no column loginId; the first line of a CSV file must name the columns")
    unknown = [name for name, place in found if place is None]
    if unknown:
        raise ColumnError(
            f"unknown columns: {', '.join(map(repr, unknown))}; a user has {', '.join(_CONVERSIONS)} "
            f"and {_PROPERTIES}.<name>"
        )
    places = [place for _, place in found if place is not None]
    seen = [(place.field, place.key) for place in places]
    whole = (_PROPERTIES, None)
    twice = [
        name
        for name, place in zip(names, seen, strict=True)
        if seen.count(place) > 1 or (whole in seen and place != whole and place[0] == _PROPERTIES)
    ]
    if twice:
        raise ColumnError(f"columns for a field that another column gives: {', '.join(map(repr, twice))}")
    return places


def user_fields(places: Sequence[UserColumn], values: Iterable[Any]) -> dict[str, Any]:
    """Return a user's fields; an empty value is as if it were not given."""
    fields: dict[str, Any] = {}
    for (field, convert, key), value in zip(places, values, strict=True):
        if value is None or value == "":
            continue
        if key is None:
            fields[field] = convert(value)
        else:
            fields.setdefault(_PROPERTIES, {})[key] = convert(value)
    return fields
