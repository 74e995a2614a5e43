"""Moments: reading those that a user gave, and comparing those that the platform's clock shows."""

from __future__ import annotations

from datetime import datetime, timedelta

import pendulum

from airflow_provider_anaplat.errors import AnaplatRequestError

__all__ = [
    "by_its_clock",
    "is_later",
    "moment",
]

_CLOCKS_AGREE = timedelta(minutes=1)  # as far as the platform's clock is known, and moments that it rounds up


def is_later(utime: datetime | None, noted: datetime | None, platform_now: datetime) -> bool:
    """Tell whether a dataset was updated after an update that was noted.

    :param utime: its last update; None if it was never updated
    :param noted: the last update of before. If the platform's clock has not come to it, that clock was set back
        since, and every other update is after it
    :param platform_now: what the platform's clock shows
    """
    if utime is None or noted is None:
        return utime is not None
    return utime != noted if noted > platform_now + _CLOCKS_AGREE else utime > noted


def by_its_clock(clock_ahead: timedelta) -> str:
    """Return what to add to a moment of the platform's."""
    seconds = clock_ahead.total_seconds()
    if not seconds:
        return ""
    return f" by its clock, which is {abs(seconds):,.0f} s {'ahead of' if seconds > 0 else 'behind'} ours"


def moment(name: str, given: str | datetime) -> pendulum.DateTime:
    """Return a moment that a user or a template gave.

    :param name: name of the argument, for the error
    :param given: ISO 8601, or a datetime; UTC if it names no zone
    :raises AnaplatRequestError: it is neither
    """
    try:
        # Pendulum would read a time of day as that of today, and "now" as another moment at each look.
        return pendulum.instance(given if isinstance(given, datetime) else datetime.fromisoformat(given))
    except (ValueError, TypeError):
        raise AnaplatRequestError(
            f"{name} is {given!r}, which is no moment such as 2026-01-31T06:00:00+00:00."
        ) from None
