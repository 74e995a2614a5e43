"""Commands about the platform as a whole: test, pages, cards, call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.cli.session import client_for, connected, json_object
from airflow_provider_anaplat.errors import AnaplatRequestError

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.cli.output import Printer

__all__ = [
    "call",
    "cards",
    "pages",
    "test",
]


def test(arguments: Namespace, output: Printer) -> int:
    """Try each layer of the connection, and return the exit code of the one that is not good."""
    from airflow_provider_anaplat.cli.connect import connection_of
    from airflow_provider_anaplat.cli.exits import exit_code
    from airflow_provider_anaplat.hooks.layers import find_bad_layer

    connection = connection_of(arguments)
    error, message = find_bad_layer(lambda: connected(connection, output))
    output.result({"ok": error is None, "message": message}, [message])
    return 0 if error is None else exit_code(error)


def pages(arguments: Namespace, output: Printer) -> None:
    """List pages, by name."""
    from airflow_provider_anaplat.cli.datasets import is_named

    with client_for(arguments, output) as client:
        listed = client.list_pages()
    found = [
        page
        for page in listed
        if is_named(page.name, arguments.name) and arguments.folder in (None, page.parent_dir_id)
    ]
    found.sort(key=lambda page: (page.name or "", page.pg_id))
    rows = [(page.pg_id, page.name, page.parent_dir_id, page.pg_type, page.u_id) for page in found]
    fields = {"pg_id", "name", "parent_dir_id", "pg_type", "u_id", "description", "ctime", "is_del"}
    value = [page.model_dump(mode="json", by_alias=True, include=fields) for page in found]
    output.table(value, ("id", "name", "folder", "type", "owner"), rows)


def cards(arguments: Namespace, output: Printer) -> None:
    """List the cards of a page, in its order."""
    from airflow_provider_anaplat.client.names import one_named

    with client_for(arguments, output) as client:
        known = [(page.pg_id, page.name, page.parent_dir_id) for page in client.list_pages()]
        page_id = one_named("page", arguments.page, known)
        found = client.list_cards(page_id)
    value = [card.model_dump(mode="json", by_alias=True, include={"cd_id", "name", "cd_type"}) for card in found]
    output.table(value, ("id", "name", "type"), [(card.cd_id, card.name, card.cd_type) for card in found])


def call(arguments: Namespace, output: Printer) -> None:
    """Call an operation, and print its response as JSON."""
    from airflow_provider_anaplat.client._http.redaction import without_secrets

    body = json_object("--body", _text(arguments.body))
    params = dict(map(_pair, arguments.query)) or None
    with client_for(arguments, output) as client:
        response = client.call(
            arguments.path,
            method=arguments.method,
            json=body,
            params=params,
            token_in=arguments.token_in,
            repeatable=arguments.repeatable,
        )
    output.as_json = True  # it has no other form
    output.result(without_secrets(response))


def _text(given: str | None) -> str | None:
    """Return a text, or what stands in the file that it names after an ``@``."""
    if given is None or not given.startswith("@"):
        return given
    try:
        return sys.stdin.read() if given == "@-" else Path(given[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise AnaplatRequestError(f"{given[1:]} cannot be read: {why}. Nothing was sent.") from None


def _pair(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise AnaplatRequestError("--query takes NAME=VALUE. Nothing was sent.")
    return name, value
