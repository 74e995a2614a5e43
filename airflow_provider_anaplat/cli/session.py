"""What a command works with: a client for as long as it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.cli.connect import Connection, connection_of
from airflow_provider_anaplat.errors import AnaplatRequestError

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.cli.output import Printer
    from airflow_provider_anaplat.client import AnaplatClient

__all__ = [
    "client_for",
    "connected",
    "json_object",
    "user_ids",
]


@contextmanager
def client_for(arguments: Namespace, output: Printer) -> Iterator[AnaplatClient]:
    """Give a client of the platform that the command line names, and close it in the end."""
    with closing(connected(connection_of(arguments), output)) as client:
        yield client


def connected(connection: Connection, output: Printer) -> AnaplatClient:
    """Return a client; from then on, what is secret of it is in no output."""
    client = connection.connect()
    output.hide = client.masked
    return client


def json_object(name: str, text: str | None) -> dict[str, Any] | None:
    """Return the JSON object that a person wrote as an argument.

    :param name: of the argument, for the error
    :raises AnaplatRequestError: it is none
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # whose text may hold a secret
        value = None
    if not isinstance(value, dict):
        raise AnaplatRequestError(f"{name} must be a JSON object. Nothing was sent.")
    return value


def user_ids(arguments: Namespace) -> list[str]:
    """Return the ids of users that the command line gives or names a file of.

    :raises AnaplatRequestError: there is none, or the file cannot be read
    """
    given = list(arguments.users)
    if arguments.users_from:
        try:
            lines = Path(arguments.users_from).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise AnaplatRequestError(f"{arguments.users_from} cannot be read: {why}. Nothing was sent.") from None
        given += [line.strip() for line in lines if line.strip()]
    if not given:
        raise AnaplatRequestError("No user is named: give --user or --users-from. The platform lists no users.")
    return given
