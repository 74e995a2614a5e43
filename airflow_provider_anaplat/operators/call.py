"""Call what the contract names without describing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client.operations import TokenPlace

__all__ = [
    "AnaplatCallOperator",
]


class AnaplatCallOperator(AnaplatOperator):
    """Call any operation of the platform, for those that the contract names without describing.

    The call is treated like all others: it has time-outs and typed errors, no redirect is followed, and no message
    or log contains a secret. If the answer is lost, the call is sent again only if it is ``repeatable``; otherwise
    the task fails without a retry, since the call may have been carried out. The operator remembers nothing from
    one attempt to the next: set ``retries=0`` for calls that must not happen twice, since a worker may die after
    the call was sent.

    :param path: path below the base address; it starts with ``/public-api/`` (templated)
    :param json: the body, without the token (templated)
    :param query: query parameters (templated); ``params`` are Airflow's own
    :param method: HTTP method (templated)
    :param token_in: where the token goes: the JSON ``body``, the ``X-Auth-Token`` ``header``, a header named
        ``token`` (``token_header``), or the ``query``, which the logs of servers and proxies keep
    :param repeatable: whether sending the call twice does no more than sending it once
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns the envelope's ``response``, and so pushes it to XCom; values under ``token`` or ``password`` are
    masked. Set ``do_xcom_push=False`` if it is large, and ``multiple_outputs=True`` to give each key of an object
    its own XCom.

    Raises :class:`AirflowFailException`, which Airflow does not retry, at a path outside ``/public-api/``, if
    the platform refuses, and if it is not known whether it carried the call out; :class:`AnaplatError` if a
    retry may help.

    How-to: :doc:`howto/call-operation`. Example::

        AnaplatCallOperator(task_id="call", path="/public-api/page/list", repeatable=True)
    """

    template_fields: Sequence[str] = ("path", "json", "query", "method", "anaplat_conn_id")
    template_fields_renderers = {"json": "json", "query": "json"}  # noqa: RUF012 - as BaseOperator has it

    def __init__(
        self,
        *,
        path: str,
        json: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        method: str = "POST",
        token_in: TokenPlace = "body",
        repeatable: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", False)
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.path = path
        self.json = json
        self.query = query
        self.method = method
        self.token_in = token_in
        self.repeatable = repeatable

    def work(self, context: Context) -> Any:
        """Send the call."""
        from airflow_provider_anaplat.client._http.redaction import without_secrets

        with closing(self.client()) as client:
            response = client.call(
                self.path,
                method=self.method,
                json=self.json,
                params=self.query,
                token_in=self.token_in,
                repeatable=self.repeatable,
            )
        self.log.info("The platform has accepted %s %s", self.method, self.path)
        return without_secrets(response)
