"""From plain Python to the contract's types."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, TypeVar, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from airflow_provider_anaplat.client._http.envelope import Answer, check_depth, read_payload
from airflow_provider_anaplat.client._http.redaction import (
    LONGEST_WORDS,
    brief,
    without_echo,
    without_half_characters,
    without_values,
)
from airflow_provider_anaplat.client.models import DatasetData
from airflow_provider_anaplat.errors import AnaplatInvalidAnswerError

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # escaped, or as Python's JSON lets it pass


def validated_answer(kind: type[T], answer: Answer) -> T:
    """Return what an answer holds as the type that the contract gives it.

    Secrets that it repeats are masked, but in rows. Half a character in a field of the contract is refused; in
    whatever else is kept, it is replaced, so that a record can be written as JSON.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: its payload has another shape
    """
    payload = read_payload(answer)
    if kind is not DatasetData:  # whose cells are the users' own
        payload = without_echo(payload, answer.body, answer.secrets)
    value = validated(kind, payload, answer)
    if not _SURROGATE.search(answer.body):
        return value
    payload = json.loads(json.dumps(payload, ensure_ascii=False).encode(errors="replace"))
    return validated(kind, payload, answer)


def validated_echo(kind: type[T], answer: Answer) -> T:
    """Return what an answer holds that may repeat the request; what is secret of that is masked.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: its payload has another shape
    """
    payload = read_payload(answer)
    check_depth(answer, payload)
    payload = without_values(payload, answer.secrets)
    return validated(kind, json.loads(without_half_characters(json.dumps(payload, ensure_ascii=False))), answer)


def validated_task(kind: type[R], answer: Answer) -> R:
    """Return what an answer says of a task, in so many words that a log, an XCom and a note can hold them.

    :raises AnaplatError: the answer is no success
    :raises AnaplatInvalidAnswerError: its payload has another shape
    """
    return in_few_words(validated_echo(kind, answer))


def in_few_words(task: R) -> R:
    """Return a task whose ``status`` and ``result`` are short enough for a log, an XCom and a note."""
    return task.model_copy(update={name: _few(getattr(task, name)) for name in ("status", "result")})


def _few(said: Any) -> Any:
    if isinstance(said, dict) and len(text := json.dumps(said, ensure_ascii=False)) > LONGEST_WORDS:
        error = said.get("error")
        return {"error" if error else "begins": brief(error or text, LONGEST_WORDS)}
    return brief(said, LONGEST_WORDS) if isinstance(said, str) and len(said) > LONGEST_WORDS else said


def validated(kind: type[T], payload: Any, answer: Answer) -> T:
    """Return a payload as the type that the contract gives it.

    :raises AnaplatInvalidAnswerError: it has another shape; the first places where it differs are named
    """
    try:
        value: T = _adapter(kind).validate_python(payload)  # type: ignore[arg-type]  # a type is hashable
    except ValidationError as error:
        raise answer.error(
            AnaplatInvalidAnswerError,
            f"the answer's shape is not the contract's: {_places(error)}.",
        ) from None  # the validation's own text may hold what the platform answered
    return value


def validated_record(kind: type[T], record: Any, operation: str, record_id: object) -> T:
    """Return one record of an answer as the type that the contract gives it.

    :raises AnaplatInvalidAnswerError: it has another shape; the record and the first places where it differs
        are named
    """
    try:
        value: T = _adapter(kind).validate_python(record)  # type: ignore[arg-type]  # likewise
    except ValidationError as error:
        raise AnaplatInvalidAnswerError(
            f"{operation}: the record of {brief(repr(record_id))} does not have the contract's "
            f"shape: {_places(error)}.",
            operation=operation,
        ) from None
    return value


def _places(error: ValidationError) -> str:
    return "; ".join(
        f"{brief('.'.join(map(str, problem['loc']))) or 'response'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False)[:5]
    )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Each error takes far more memory than what it is about: one of a list is enough.
    return TypeAdapter(Annotated[kind, Field(fail_fast=True)] if get_origin(kind) is list else kind)
