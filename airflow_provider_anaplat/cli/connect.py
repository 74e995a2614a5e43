"""From the command line and the environment to a client; a token is never an argument."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_provider_anaplat.errors import AnaplatError, AnaplatSettingsError

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.client import AnaplatClient

__all__ = [
    "VARIABLES",
    "Connection",
    "connection_of",
    "list_quietly",
]

T = TypeVar("T")
# What each variable holds, for the help and the documents.
VARIABLES = {
    "ANAPLAT_URL": "the platform's address, if neither `--url` nor `--conn-id` is given",
    "ANAPLAT_TOKEN": "the application token, if `--token-file` is not given",
    "ANAPLAT_TOKEN_FILE": "path of a file that holds it, if `ANAPLAT_TOKEN` is not set",
    "ANAPLAT_LOGIN": "loginId of the user to sign in, as in a connection's login field",
    "ANAPLAT_EXTRA": "JSON object of the extras that a connection has, such as `verify` or `read_timeout`",
}


@dataclass(frozen=True)
class Connection:
    """How to reach the platform.

    :param connect: makes a client
    :param extension: returns the value of an option that operators read, such as ``refresh_path``
    """

    connect: Callable[[], AnaplatClient]
    extension: Callable[[str], str | None]


def connection_of(arguments: Namespace) -> Connection:
    """Return the connection that the command line or the environment names.

    :param arguments: ``conn_id``, ``url`` and ``token_file``
    :raises AnaplatSettingsError: none is named, or it cannot be used
    """
    if arguments.conn_id:
        return _airflows(arguments.conn_id)
    extra = _extra()
    fields = {
        "host": _url(arguments.url),
        "schema": None,
        "port": None,
        "password": _token(arguments.token_file),
        "login": os.environ.get("ANAPLAT_LOGIN"),
        "extra": extra,
    }
    return Connection(lambda: _client(fields), lambda name: _option(name, extra))


def _airflows(conn_id: str) -> Connection:
    try:
        from airflow_provider_anaplat.hooks.anaplat import AnaplatHook

        hook = AnaplatHook(conn_id)
        _quietly(hook.get_connection, conn_id)
    except Exception as error:  # noqa: BLE001 - whatever a release of Airflow raises
        raise AnaplatSettingsError(
            f"Airflow has no usable connection {conn_id!r} ({type(error).__name__}). See `airflow connections "
            "list`, or leave out --conn-id and set ANAPLAT_URL."
        ) from None  # the error's text may hold the connection
    return Connection(lambda: _quietly(hook.get_conn), lambda name: _quietly(hook.get_extension, name))


def _quietly(function: Callable[..., T], *arguments: Any) -> T:
    """Call what looks for a connection; Airflow 2 writes to standard output about that."""
    logger = logging.getLogger("airflow")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        return function(*arguments)
    finally:
        logger.setLevel(before)


def _client(fields: Mapping[str, Any]) -> AnaplatClient:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.hooks.settings import client_arguments

    return AnaplatClient(**client_arguments(**fields))


def _option(name: str, extra: Mapping[str, Any]) -> str | None:
    from airflow_provider_anaplat.hooks.settings import option_value

    value = option_value(name, extra)
    return None if value is None else str(value)


def _url(given: str | None) -> str:
    url = given or os.environ.get("ANAPLAT_URL")
    if not url:
        raise AnaplatSettingsError(
            "There is no platform to ask: set ANAPLAT_URL to its address, or give --url, or --conn-id with the id "
            "of a connection of Airflow."
        )
    return url


def _token(file: str | None) -> str:
    if not file and (token := os.environ.get("ANAPLAT_TOKEN")):
        return token
    if file := file or os.environ.get("ANAPLAT_TOKEN_FILE"):
        return _read(Path(file))
    if sys.stdin.isatty():
        return getpass("Application token: ")
    raise AnaplatSettingsError(
        "There is no token: set ANAPLAT_TOKEN, or name a file that holds it with --token-file or "
        "ANAPLAT_TOKEN_FILE. In a terminal, it is asked for."
    )


def _read(path: Path) -> str:
    try:
        token = path.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise AnaplatSettingsError(f"The token cannot be read from {path}: {why}.") from None
    if not token:
        raise AnaplatSettingsError(f"The file {path} holds no token.")
    return token


def _extra() -> dict[str, Any]:
    try:
        extra = json.loads(os.environ.get("ANAPLAT_EXTRA") or "{}")
    except (ValueError, RecursionError):  # whose text may hold a secret
        extra = None
    if not isinstance(extra, dict):
        raise AnaplatSettingsError('ANAPLAT_EXTRA must be a JSON object, such as {"read_timeout": 600}.')
    return extra


def list_quietly(arguments: Namespace, what: Literal["datasets", "pages"]) -> list[tuple[str, str | None]]:
    """Return the ids and names of all for a shell's completion, which shows no error and asks for nothing."""
    has_token = any(os.environ.get(name) for name in ("ANAPLAT_TOKEN", "ANAPLAT_TOKEN_FILE"))
    if not (arguments.conn_id or arguments.token_file or has_token):
        return []
    try:
        client = connection_of(arguments).connect().without_retries()
        if what == "pages":
            return [(page.pg_id, page.name) for page in client.list_pages()]
        return [(dataset.ds_id, dataset.name) for dataset in client.list_datasets()]
    except AnaplatError:
        return []
