"""What the platform says of a dataset in its own words, as logs, XComs and notes may hold it."""

from __future__ import annotations

from typing import Any

from airflow_provider_anaplat.client import AnaplatClient

__all__ = [
    "shown",
]

_LONGEST = 500  # characters of a text
_DEEPEST = 20  # objects and lists within one another


def shown(client: AnaplatClient, said: Any) -> Any:
    """Return what the platform has said, with secrets masked, and without what is too long or too deep.

    :param client: knows the secrets
    :param said: plain JSON
    """
    return _cut(client.masked(said), _DEEPEST)


def _cut(said: Any, depth: int) -> Any:
    if isinstance(said, str):
        return said if len(said) <= _LONGEST else said[:_LONGEST] + "…"
    if not isinstance(said, dict | list):
        return said
    if not depth:
        return "…"
    if isinstance(said, list):
        return [_cut(item, depth - 1) for item in said]
    return {_cut(key, depth): _cut(item, depth - 1) for key, item in said.items()}
