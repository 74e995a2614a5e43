"""The client's calls that the contract does not describe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, overload

from airflow_provider_anaplat.client._http.checks import checked_path
from airflow_provider_anaplat.client._http.outgoing import url_path
from airflow_provider_anaplat.client._http.redaction import brief
from airflow_provider_anaplat.client._http.settings import Settings
from airflow_provider_anaplat.client._http.transport import Transport
from airflow_provider_anaplat.client._http.validation import validated_answer, validated_echo
from airflow_provider_anaplat.client.arguments import checked_arguments
from airflow_provider_anaplat.client.cards import (
    CARD_PAGE_SIZE,
    CardData,
    Conditions,
    View,
    card_body,
    read_card_data,
    read_cards,
)
from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.models import Card, TaskStatus
from airflow_provider_anaplat.client.operations import GET_USERS, LIST_CARDS, READ_CARD, Operation, TokenPlace
from airflow_provider_anaplat.client.tasks import RefreshCall, TaskStatusCall, read_refresh, read_task
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError, AnaplatRequestError

__all__ = [
    "Extensions",
]


@checked_arguments
class Extensions:
    """What else platforms of this family are known to do; each call is made if a user asks for it."""

    _settings: Settings
    _transport: Transport

    def sign_in(self) -> None:
        """Sign the connection's user in anew (an extension); every method that needs it does so by itself.

        :raises AnaplatSignInError: the platform does not sign the user in
        """
        self._transport.sign_in()

    @property
    def login(self) -> str | None:
        """The loginId of the user who is signed in; None if nobody is."""
        return self._settings.login

    def find_users(self, login_ids: Sequence[str]) -> list[str]:
        """Return those of the loginIds that exist (an extension, not of the contract: ``users/get``).

        :param login_ids: the loginIds to ask for
        """
        return self._transport.send(
            GET_USERS,
            GET_USERS.path,
            partial(validated_answer, GET_USERS.answer),
            json={"users": list(login_ids)},
        ).user_exist

    def refresh_dataset(
        self, ds_id: str, call: RefreshCall | None = None, body: Mapping[str, Any] | None = None
    ) -> TaskStatus:
        """Have the platform update a dataset; an answer says that it was accepted, not that it is done.

        The contract names update tasks without describing them.

        :param ds_id: id of the dataset
        :param call: how the platform is asked; by default as its vendor describes it
        :param body: the request's body, without the token
        :returns: the platform's id of the update (``task_id``) and what it says of it, as far as it does
        :raises AnaplatOutcomeUnknownError: the answer was lost
        """
        operation = (call or RefreshCall()).operation(ds_id)
        return self._transport.send(operation, checked_path(operation.path), read_refresh, json=body)

    def find_task(
        self,
        ids: Collection[str],
        known: Lookup[TaskStatus] | None = None,
        *,
        call: Mapping[str, Any] | None = None,
    ) -> Lookup[TaskStatus]:
        """Return what the platform says of one task (an extension, not of the contract: ``task/status``).

        :param ids: the one task's id (``taskId``)
        :param known: an earlier answer; it is read anew in any case
        :param call: how to ask, before what the client was given as ``task_status``
        :raises AnaplatInvalidAnswerError: the answer speaks of another task
        """
        if len(ids) != 1:
            raise AnaplatRequestError(f"find_task: ids holds {len(ids)} ids and must hold one. Nothing was sent.")
        (task_id,) = ids
        how = TaskStatusCall.of(self._settings.task_status, call)
        operation = how.operation(task_id)
        path, params = checked_path(operation.path), how.params_for(task_id)
        task = self._transport.send(operation, path, read_task, params=params)
        if task.task_id not in (None, "", task_id):  # such as the last one, if the platform passes the id over
            raise AnaplatInvalidAnswerError(
                f"The platform was asked for task {task_id} and answers of {brief(repr(task.task_id))}. See that "
                "task_status names the task as this deployment takes it.",
                operation=operation.name,
            )
        return Lookup({task_id: task}, lambda task: task, ids)

    @overload
    def read_card(
        self,
        card_id: str,
        *,
        view: View = "GRID",
        offset: int = 0,
        limit: int = CARD_PAGE_SIZE,
        filters: Conditions | None = None,
        dynamic_params: Conditions | None = None,
        raw: Literal[False] = False,
        most: int | None = None,
    ) -> CardData: ...

    @overload
    def read_card(
        self,
        card_id: str,
        *,
        view: View = "GRID",
        offset: int = 0,
        limit: int = CARD_PAGE_SIZE,
        filters: Conditions | None = None,
        dynamic_params: Conditions | None = None,
        raw: Literal[True],
        most: int | None = None,
    ) -> Any: ...

    def read_card(
        self,
        card_id: str,
        *,
        view: View = "GRID",
        offset: int = 0,
        limit: int = CARD_PAGE_SIZE,
        filters: Conditions | None = None,
        dynamic_params: Conditions | None = None,
        raw: bool = False,
        most: int | None = None,
    ) -> Any:
        """Return rows of a card (an extension, not of the contract: ``card/{cdId}/data``).

        :param card_id: id of the card (``cdId``)
        :param view: ``GRID``, or ``GRAPH``, the figures that the chart is drawn from
        :param offset: number of rows to skip
        :param limit: number of rows at most
        :param filters: objects with ``name``, ``filterType`` and ``filterValue``, sent as they are
        :param dynamic_params: sent as the body's ``dynamicParams``
        :param raw: return the answer as it came, whatever its shape
        :param most: bytes of the answer at most, if that is less than the connection allows
        :returns: the rows with their columns, or the answer's ``response`` as plain Python
        :raises AnaplatInvalidAnswerError: the answer has another shape than the one that is known
        :raises AnaplatAnswerTooLargeError: it is larger; it is not read to its end
        """
        read = partial(validated_echo, object) if raw else read_card_data
        body = card_body(view, offset, limit, filters, dynamic_params)
        path = url_path(READ_CARD, {"card_id": card_id})
        return self._transport.send(READ_CARD, path, read, json=body, most=most)

    def list_cards(self, page: str) -> list[Card]:
        """Return the cards of a page (an extension, not of the contract: ``page/{pgId}``).

        :param page: id of the page (``pgId``)
        :returns: the cards at its top, below its tabs and in its ``doms``, each once, as far as they have an id
        """
        return self._transport.send(LIST_CARDS, url_path(LIST_CARDS, {"page_id": page}), read_cards)

    def call(
        self,
        path: str,
        *,
        method: str = "POST",
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        token_in: TokenPlace = "body",
        repeatable: bool = False,
    ) -> Any:
        """Send a request to an operation that the contract names without describing.

        :param path: path below the base address; it starts with ``/public-api/``
        :param method: HTTP method
        :param json: the body, without the token
        :param params: query parameters
        :param token_in: where the token goes: the JSON ``body``, the ``X-Auth-Token`` ``header``, a header
            named ``token`` (``token_header``), or the ``query``, which the logs of servers and proxies keep
        :param repeatable: whether it may be sent again after a failure without doing more
        :returns: the envelope's ``response``, as plain Python
        :raises AnaplatRequestError: a path outside ``/public-api/``; nothing was sent
        :raises AnaplatOutcomeUnknownError: the answer to a call that is not repeatable was lost
        """
        operation: Operation[Any] = Operation(
            path, checked_path(path), token_in, repeatable, object, method.upper()
        )
        return self._transport.send(
            operation, operation.path, partial(validated_echo, object), json=json, params=params
        )
