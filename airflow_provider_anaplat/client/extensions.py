"""The client's calls that the contract does not describe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from airflow_provider_anaplat.client._http.checks import checked_path
from airflow_provider_anaplat.client._http.transport import Settings, Transport
from airflow_provider_anaplat.client._http.validation import validated_answer, validated_echo
from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.models import TaskStatus
from airflow_provider_anaplat.client.operations import GET_USERS, Operation, TokenPlace
from airflow_provider_anaplat.client.tasks import RefreshCall, TaskStatusCall, read_task


class Extensions:
    """What platforms of this family are known to do besides; each call is made where a user asks for it."""

    _settings: Settings
    _transport: Transport

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
    ) -> str | None:
        """Have the platform update a dataset; an answer says that it was accepted, not that it is done.

        The contract names update tasks without describing them.

        :param ds_id: id of the dataset
        :param call: how the platform is asked; by default as its vendor describes it
        :param body: the request's body, without the token
        :returns: the platform's id of the update (``taskId``), where it gives one
        :raises AnaplatOutcomeUnknownError: the answer was lost
        """
        operation = (call or RefreshCall()).operation(ds_id)
        answer = self._transport.send(
            operation, checked_path(operation.path), partial(validated_echo, object), json=body
        )
        task_id = answer.get("taskId") if isinstance(answer, dict) else None
        return None if task_id is None else str(task_id)

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
        """
        (task_id,) = ids
        how = TaskStatusCall.of(self._settings.task_status, call)
        operation = how.operation(task_id)
        path, params = checked_path(operation.path), how.params_for(task_id)
        return Lookup(
            {task_id: self._transport.send(operation, path, read_task, params=params)}, lambda task: task, ids
        )

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
        :param token_in: where the token goes: the JSON ``body``, the ``X-Auth-Token`` ``header``, or the
            ``query``, which the logs of servers and proxies keep
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
