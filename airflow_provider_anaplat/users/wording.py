"""How many of many loginIds and problems a message shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

__all__ = [
    "SHOWN",
    "shown_of",
]

SHOWN = 200  # of a longer list of problems or loginIds, this many are shown, and the number of all


def shown_of(login_ids: Sequence[str] | Iterable[str], total: int | None = None) -> str:
    """Return loginIds for a person to read, the first 200 of them.

    :param total: how many there are, if not all are given
    """
    first = list(islice(login_ids, SHOWN))
    total = total if total is not None else len(login_ids) if isinstance(login_ids, Sequence) else len(first)
    rest = f" and {total - len(first):,} more" if total > len(first) else ""
    return ", ".join(first) + rest
