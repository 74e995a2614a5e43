"""What the operators share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator

from airflow_provider_anaplat.client.errors import (
    PASSING_ERRORS,
    AnaplatOutcomeUnknownError,
    AnaplatRefusedError,
    AnaplatRequestError,
    NeedsAPersonError,
)
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient


@contextmanager
def no_useless_retry() -> Iterator[None]:
    """Keep Airflow from running a task again where only a person can mend what is wrong.

    :raises AirflowFailException: in place of an error that a repetition would meet again, or that says that a
        write may have been carried out
    """
    try:
        yield
    except (AnaplatOutcomeUnknownError, AnaplatRequestError, NeedsAPersonError) as error:
        raise AirflowFailException(str(error)) from error
    except AnaplatRefusedError as error:
        if isinstance(error, PASSING_ERRORS):
            raise
        raise AirflowFailException(str(error)) from error


class AnaplatOperator(BaseOperator):
    """An operator that talks to the platform.

    Its result is a small dictionary; each entry is an XCom of its own besides, so that
    ``task.output["dsId"]`` can be handed to another task.

    :param anaplat_conn_id: id of the Airflow connection (templated)
    """

    def __init__(self, *, anaplat_conn_id: str = AnaplatHook.default_conn_name, **kwargs: Any) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.anaplat_conn_id = anaplat_conn_id

    def client(self) -> AnaplatClient:
        """Return a client of the platform."""
        return AnaplatHook(self.anaplat_conn_id).get_conn()
