"""The columns of a dataset against those that are expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.schema import unique_names

__all__ = [
    "Difference",
    "Types",
    "difference",
    "expected_types",
]

Types = dict[str, str | None]  # fdType by name; None for any


@dataclass(frozen=True)
class Difference:
    """How the columns of a dataset differ from those that are expected.

    :param missing: expected columns that are not there, with their types
    :param extra: columns that nobody expected, with their types
    :param changed: expected and present type of a column, by name
    """

    missing: Types
    extra: Types
    changed: dict[str, tuple[str, str]]

    def lines(self, *, allow_extra: bool) -> list[str]:
        """Return what differs for a person to read, a line for each column.

        :param allow_extra: pass over columns that nobody expected
        """
        return [
            *(f"missing: {_column(name, fd_type)}" for name, fd_type in self.missing.items()),
            *(f"type changed: {name!r} was {was}, is {now}" for name, (was, now) in self.changed.items()),
            *(f"extra: {_column(name, fd_type)}" for name, fd_type in self.extra.items() if not allow_extra),
        ]


def expected_types(given: Any) -> Types:
    """Return what a user expects, given as a mapping or a list.

    :param given: types by name, None for any; or a list of names, or of mappings with ``name`` and ``fdType``, as
        the manifest of an export has them
    :raises AnaplatRequestError: it is neither
    """
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = [_pair(item) for item in given]
    else:
        pairs = []
    if not pairs or not all(isinstance(name, str) and isinstance(fd_type, str | None) for name, fd_type in pairs):
        raise AnaplatRequestError(
            "columns is unusable: give an object such as {'city': 'STRING', 'sales': None}, or a list of names, "
            "or of objects with `name` and `fdType`."
        )
    return dict(zip(unique_names([name for name, _ in pairs]), (fd_type for _, fd_type in pairs), strict=True))


def difference(columns: Sequence[Column], expected: Types) -> Difference:
    """Compare columns; a repeated name is told apart as in an export: ``a``, ``a (2)``."""
    names = unique_names([column.name for column in columns])
    present = dict(zip(names, (column.fd_type for column in columns), strict=True))
    return Difference(
        missing={name: fd_type for name, fd_type in expected.items() if name not in present},
        extra={name: fd_type for name, fd_type in present.items() if name not in expected},
        changed={
            name: (fd_type, present[name])
            for name, fd_type in expected.items()
            if fd_type is not None and name in present and present[name] != fd_type
        },
    )


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, Mapping):
        return item, None
    return item.get("name"), item.get("fdType", item)  # a type under another name must not pass for any type


def _column(name: str, fd_type: str | None) -> str:
    return repr(name) if fd_type is None else f"{name!r} ({fd_type})"
