"""How far an export is, in the place where users look: the task's log."""

from __future__ import annotations

import logging
import resource
import sys
import time

from airflow_provider_anaplat.rows.budget import MEGABYTE, Budget

__all__ = [
    "ExportProgress",
]

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 5.0


class ExportProgress:
    """Says every few seconds how far an export is, and at its end what it came to.

    :param ds_id: id of the dataset
    :param total: number of rows expected; with a filter, an upper bound
    :param budget: knows what was read
    """

    def __init__(self, ds_id: str, total: int, budget: Budget) -> None:
        self.rows = 0
        self._ds_id = ds_id
        self._total = total
        self._budget = budget
        self._started = self._last_line = time.monotonic()

    def add(self, rows: int) -> None:
        """Count rows that were handed on."""
        self.rows += rows
        now = time.monotonic()
        if now - self._last_line < _SECONDS_BETWEEN_LINES or not self._total or not self.rows:
            return
        self._last_line = now
        rate = self.rows / (now - self._started)
        log.info(
            "Dataset %s: %s of %s rows (%.0f %%), %.0f MB read, %s rows/s, about %.0f s left",
            self._ds_id,
            f"{self.rows:,}",
            f"{self._total:,}",
            100 * self.rows / self._total,
            self._budget.bytes_read / MEGABYTE,
            f"{rate:,.0f}",
            (self._total - self.rows) / rate,
        )

    def finish(self, target: object, size: int | None) -> None:
        """Say what the export came to.

        :param target: where the rows are
        :param size: in bytes, if known
        """
        seconds = time.monotonic() - self._started
        log.info(
            "Dataset %s: exported %s rows%s to %s in %.1f s (%s rows/s); pages had up to %s rows, "
            "and the process up to %.0f MB",
            self._ds_id,
            f"{self.rows:,}",
            "" if size is None else f", {size:,} bytes,",
            target,
            seconds,
            f"{self.rows / max(seconds, 1e-6):,.0f}",
            f"{self._budget.most_rows:,}",
            _peak_of_process() / MEGABYTE,
        )


def _peak_of_process() -> int:
    """Return the most bytes of memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
