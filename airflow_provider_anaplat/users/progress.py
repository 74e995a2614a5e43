"""How far a provisioning is, in the place where users look: the task's log."""

from __future__ import annotations

import logging
import time

__all__ = [
    "UserProgress",
]

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 5.0


class UserProgress:
    """Says every few seconds how far it is.

    :param total: number of users expected
    """

    def __init__(self, total: int) -> None:
        self._done = 0
        self._total = total
        self._started = self._last_line = time.monotonic()

    def add(self, users: int) -> None:
        """Count users that are dealt with."""
        self._done += users
        now = time.monotonic()
        if now - self._last_line < _SECONDS_BETWEEN_LINES or not self._done:
            return
        self._last_line = now
        rate = self._done / (now - self._started)
        log.info(
            "%s of %s users (%.0f %%), %s users/s, about %.0f s left",
            f"{self._done:,}",
            f"{self._total:,}",
            100 * self._done / self._total,
            f"{rate:,.0f}",
            (self._total - self._done) / rate,
        )
