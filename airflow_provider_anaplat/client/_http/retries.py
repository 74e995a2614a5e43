"""When a request is sent again, and how long to wait before."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import tenacity

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.connection_errors import was_never_sent
from airflow_provider_anaplat.client.operations import Operation

log = logging.getLogger(__name__)

_FIRST_WAIT = 0.5  # seconds; doubled at each further attempt, and a random part of it waited
_LONGEST_WAIT = 30.0
_LONGEST_RETRY_AFTER = 120.0  # a platform that asks for more is asked again after this
_RETRIED_STATUS = frozenset({429, 502, 503, 504})


def may_repeat(operation: Operation[Any], error: BaseException) -> bool:
    """Tell whether a request that failed may be sent again, and another attempt makes sense."""
    if not isinstance(error, errors.AnaplatError) or isinstance(error, errors.AnaplatRequestError):
        return False
    if isinstance(error, errors.AnaplatConnectionError) and error.layer == "TLS":
        return False
    if was_never_sent(error):
        return True
    if not operation.repeatable:
        return False
    if isinstance(error, errors.AnaplatConnectionError | errors.AnaplatTruncatedAnswerError):
        return True
    return error.status in _RETRIED_STATUS


def wait_before(state: tenacity.RetryCallState) -> float:
    """Return the seconds before the next attempt: more each time, or what the platform asked for."""
    backoff = tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT)(state)
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, errors.AnaplatError) else None
    return backoff if asked is None else asked + min(backoff, 1)


def log_retry(operation: Operation[Any], state: tenacity.RetryCallState, attempts: int) -> None:
    """Say what went wrong and when the next attempt comes.

    :param attempts: how many there are at most
    """
    log.warning(
        "%s (attempt %d of %d; next one in %.1f s)",
        state.outcome.exception() if state.outcome else operation.name,
        state.attempt_number,
        attempts,
        state.next_action.sleep if state.next_action else 0,
    )


def seconds_of(retry_after: str | None) -> float | None:
    """Read ``Retry-After``, given in seconds or as an HTTP date, up to a maximum; what is neither says nothing."""
    if retry_after is None:
        return None
    try:
        if re.fullmatch(r"\s*[0-9]+\s*", retry_after):
            seconds = float(retry_after)
        else:
            seconds = (moment_of(retry_after) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER)


def moment_of(date: str) -> datetime:
    """Read an HTTP date; it is in UTC, also in its oldest form, which names no zone.

    :raises ValueError: it is none
    :raises OverflowError: no clock has it
    """
    moment = parsedate_to_datetime(date)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
