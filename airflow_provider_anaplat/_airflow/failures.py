"""The one policy of errors of operators and sensors: which of them Airflow may run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import (
    PASSING_ERRORS,
    AnaplatNeedsAPersonError,
    AnaplatOutcomeUnknownError,
    AnaplatRefusedError,
    AnaplatRequestError,
)

__all__ = ["no_useless_retry"]


@contextmanager
def no_useless_retry() -> Iterator[None]:
    """Keep Airflow from running a task again when only a person can mend what is wrong.

    :raises AirflowFailException: in place of an error that a repetition would meet again, or that says that a
        write may have been carried out
    """
    try:
        yield
    except (AnaplatOutcomeUnknownError, AnaplatRequestError, AnaplatNeedsAPersonError) as error:
        raise AirflowFailException(str(error)) from error
    except AnaplatRefusedError as error:
        if isinstance(error, PASSING_ERRORS):
            raise
        raise AirflowFailException(str(error)) from error
