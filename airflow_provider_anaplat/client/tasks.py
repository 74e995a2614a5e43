"""Where a deployment takes a refresh, and tells what became of a task: the contract describes neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args
from urllib.parse import quote

from airflow_provider_anaplat.client import defaults
from airflow_provider_anaplat.client._http.checks import check_method, checked_path
from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.client._http.outgoing import quoted_id
from airflow_provider_anaplat.client._http.validation import in_few_words, validated_echo, validated_task
from airflow_provider_anaplat.client.models import TaskStatus
from airflow_provider_anaplat.client.operations import GET_TASK, REFRESH_DATASET, Operation, TokenPlace
from airflow_provider_anaplat.errors import AnaplatRequestError

__all__ = [
    "REFRESH_STYLES",
    "RefreshCall",
    "RefreshStyle",
    "TaskStatusCall",
    "read_refresh",
    "read_task",
]

_PLACE = "{taskId}"  # stands for the id


@dataclass(frozen=True, slots=True)
class TaskStatusCall:
    """How a deployment is asked for a task; ``{taskId}`` stands for the task's id.

    :param path: path below the base address
    :param method: HTTP method
    :param params: query parameters, without the token
    :param auth_in: where the token goes: ``query``, ``body``, ``header`` or ``token_header``. It has no "token"
        in its name, since Airflow hides in every log what stands under such a name in a connection
    """

    path: str = GET_TASK.path
    method: str = GET_TASK.method
    params: Mapping[str, str] = field(default_factory=lambda: {"taskId": _PLACE})
    auth_in: TokenPlace = "query"

    @classmethod
    def of(cls, *given: Mapping[str, Any] | None) -> TaskStatusCall:
        """Return the call that some mappings describe, a later one before an earlier.

        :raises AnaplatRequestError: a field is unknown, of another type, or nothing that can be asked
        """
        described: dict[str, Any] = {}
        for mapping in given:
            described |= dict(mapping or {})
        unknown = set(described) - {field.name for field in fields(cls)}
        call = cls(**{name: value for name, value in described.items() if name not in unknown})
        texts = (call.path, call.method, *(call.params if isinstance(call.params, Mapping) else (None,)))
        if unknown or not all(isinstance(text, str) for text in texts) or call.auth_in not in get_args(TokenPlace):
            raise AnaplatRequestError(
                f"task_status is unusable: it takes path, method, params (an object) and auth_in "
                f"({', '.join(get_args(TokenPlace))}); it holds {', '.join(sorted(map(str, described)))}."
            )
        checked_path(call.path)
        check_method(GET_TASK.name, call.method)
        return call

    def operation(self, task_id: str) -> Operation[TaskStatus]:
        """Return the row of the operation table for one task."""
        path = self.path.replace(_PLACE, quote(task_id, safe=""))
        return replace(GET_TASK, path=path, method=self.method.upper(), token_in=self.auth_in)

    def params_for(self, task_id: str) -> dict[str, str]:
        """Return the query parameters for one task."""
        return {name: str(value).replace(_PLACE, task_id) for name, value in self.params.items()}


RefreshStyle = Literal["post", "get"]
# How refreshes are asked for: as the vendor documents it, and as it is met at deployments.
REFRESH_STYLES: dict[RefreshStyle, tuple[str, TokenPlace]] = {"post": ("POST", "body"), "get": ("GET", "query")}


@dataclass(frozen=True, slots=True)
class RefreshCall:
    """How a deployment is asked to update a dataset; ``{dsId}`` stands for the dataset's id.

    :param path: path below the base address
    :param method: HTTP method
    :param auth_in: where the token goes: ``body``, ``header``, ``token_header`` or ``query``
    """

    path: str = defaults.REFRESH_PATH
    method: str = REFRESH_DATASET.method
    auth_in: TokenPlace = "body"

    def __post_init__(self) -> None:
        if not (isinstance(self.path, str) and isinstance(self.method, str)):
            raise AnaplatRequestError("RefreshCall: path and method must be texts. Nothing was sent.")
        if self.auth_in not in get_args(TokenPlace):
            raise AnaplatRequestError(
                f"refresh_auth_in is {self.auth_in!r}; it must be one of {', '.join(get_args(TokenPlace))}. "
                "Nothing was sent."
            )
        checked_path(self.path)
        check_method(REFRESH_DATASET.name, self.method)

    @classmethod
    def of(
        cls,
        style: str | None = None,
        path: str | None = None,
        method: str | None = None,
        auth_in: str | None = None,
    ) -> RefreshCall:
        """Return the call of a style; what else is given takes the place of its own.

        :raises AnaplatRequestError: a word is unknown
        """
        known = REFRESH_STYLES.get(style or defaults.REFRESH_STYLE)  # type: ignore[call-overload]  # any word may come
        if known is None:
            raise AnaplatRequestError(
                f"refresh_style is {style!r}; it must be one of {', '.join(REFRESH_STYLES)}. Nothing was sent."
            )
        return cls(path or cls().path, method or known[0], cast("TokenPlace", auth_in or known[1]))

    def operation(self, ds_id: str) -> Operation[Any]:
        """Return the row of the operation table for one dataset.

        :raises AnaplatRequestError: an id that cannot stand in a path
        """
        path = self.path.replace("{dsId}", quoted_id(REFRESH_DATASET.name, "ds_id", ds_id))
        return replace(REFRESH_DATASET, path=path, method=self.method.upper(), token_in=self.auth_in)


def read_refresh(answer: Answer) -> TaskStatus:
    """Return what an answer says of an update that it accepts, whose shape the contract leaves open."""
    said = validated_echo(object, answer)
    fields = said if isinstance(said, dict) else {"result": said}
    task_id, status, result = fields.get("taskId"), fields.get("status"), fields.get("result")
    return in_few_words(
        TaskStatus(
            task_id=None if task_id in (None, "") else str(task_id),
            status=status if isinstance(status, str) else None,
            result=result if isinstance(result, str | dict) else None,
        )
    )


def read_task(answer: Answer) -> TaskStatus:
    """Return what an answer says of a task."""
    return validated_task(TaskStatus, answer)
