"""What a request holds before the token is added: its path and its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import dumps
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

from pydantic import BaseModel

from airflow_provider_anaplat.client.operations import MAX_ROWS_PER_CALL, Operation
from airflow_provider_anaplat.errors import AnaplatRequestError

# What may lead elsewhere if a server or a proxy decodes twice, or drops what follows a semicolon; and what breaks
# a line or controls a terminal.
_NO_ID = re.compile(r"[/\\;%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s*\.{1,2}\s*$")


def url_path(operation: Operation[Any], ids: Mapping[str, str]) -> str:
    """Return an operation's path with the ids filled in.

    :raises AnaplatRequestError: one cannot be an id; nothing was sent
    """
    return operation.path.format_map({name: quoted_id(operation.name, name, value) for name, value in ids.items()})


def quoted_id(operation: str, name: str, value: Any) -> str:
    """Return an id as it stands in a path.

    :param operation: name of the operation, for the error
    :param name: what the id is called
    :raises AnaplatRequestError: it cannot be an id
    """
    if not isinstance(value, str) or not value.strip() or _NO_ID.search(normalize("NFKC", value)):
        shown = f"{value!r:.100}" if isinstance(value, str) else f"of type {type(value).__name__}"
        raise AnaplatRequestError(
            f"{operation}: {name} is {shown}, which cannot be an id; nothing was sent.", operation=operation
        )
    return quote(value, safe="")


def rows_body(
    offset: int, limit: int, sort_by: str | None, sort_type: str, filter_: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the body of a request for rows.

    :raises AnaplatRequestError: the contract does not allow it; nothing was sent
    """
    if offset < 0 or not 0 < limit <= MAX_ROWS_PER_CALL:
        raise AnaplatRequestError(
            f"read_rows: offset {offset} and limit {limit} are refused; a call reads 1 to "
            f"{MAX_ROWS_PER_CALL:,} rows from an offset of 0 or more. Nothing was sent."
        )
    body: dict[str, Any] = {"offset": offset, "limit": limit}
    if sort_by is not None:
        body["sortFactor"] = {"name": sort_by, "sortType": sort_type}
    if filter_ is not None:
        body["filter"] = dict(filter_)
    return body


def json_bytes(operation: Operation[Any], body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent.

    :raises AnaplatRequestError: it holds what JSON cannot
    """
    try:
        return dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise _no_json(operation) from None


def record_body(operation: Operation[Any], record: BaseModel) -> dict[str, Any]:
    """Return a record as the body that holds it, or as a part of that.

    :raises AnaplatRequestError: it holds what JSON cannot
    """
    try:
        return record.model_dump(by_alias=True, exclude_none=True)
    except (TypeError, ValueError, RecursionError):
        raise _no_json(operation) from None


def _no_json(operation: Operation[Any]) -> AnaplatRequestError:
    return AnaplatRequestError(
        f"{operation.name}: the request holds a value that JSON cannot, or is nested too deep; nothing was sent.",
        operation=operation.name,
    )
