"""Commands about users: check a file of them, create them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_anaplat.cli.paths import path_for
from airflow_provider_anaplat.cli.session import client_for
from airflow_provider_anaplat.errors import AnaplatInvalidUsersError, AnaplatProvisioningError, AnaplatRequestError
from airflow_provider_anaplat.state import FolderStateStore
from airflow_provider_anaplat.users.checks import CheckedUsers, examined
from airflow_provider_anaplat.users.ledger import UserLedger
from airflow_provider_anaplat.users.provision import Provisioning, Rules
from airflow_provider_anaplat.users.sources import UserSource, file_source

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_provider_anaplat.cli.output import Printer

__all__ = [
    "check",
    "create",
]


def check(arguments: Namespace, output: Printer) -> None:
    """Name all problems of a file of users."""
    source = file_source(path_for(arguments.file))
    count = 0

    def problems() -> Iterator[str]:
        nonlocal count
        for count, (_, found) in enumerate(examined(source), 1):  # noqa: B007 - the last one is how many there are
            yield from found

    if output.as_json:
        listed = list(problems())
        output.result({"users": count, "problems": listed})
    else:
        listed = []
        for problem in problems():
            output.result(None, [problem])
            listed.append("")
    if listed:
        raise AnaplatInvalidUsersError(
            f"{len(listed):,} problems in {count:,} users of {source}; nothing was sent."
        )
    output.say(f"{count:,} users of {source} are fit to be sent; nothing was.")


def create(arguments: Namespace, output: Printer) -> None:
    """Create the users of a file, after a question."""
    if arguments.batch_size < 1:
        raise AnaplatRequestError("--batch-size must be at least 1. Nothing was sent.")
    source = file_source(path_for(arguments.file))
    count = CheckedUsers(source).count
    rules = Rules(
        batch_size=arguments.batch_size,
        existing_users=arguments.existing_users,
        in_doubt=arguments.in_doubt,
        password_encoding=arguments.password_encoding,
    )
    with client_for(arguments, output) as client:
        if not arguments.yes:
            _ask(f"Create {count:,} users of {source} on {client.base_url}?")
        # One folder a platform: who is created on one is not on another.
        folder = path_for(arguments.progress or f"{arguments.file}.progress")
        progress = folder / quote(client.base_url, safe="")
        result = _provision(Provisioning(client, UserLedger(FolderStateStore(progress)), rules), source, progress)
    said = (f"{result[name]:,} {name}" for name in ("created", "skipped", "rejected"))
    output.result({**result, "progress": str(progress)}, [f"{', '.join(said)}; noted in {progress}"])


def _provision(provisioning: Provisioning, source: UserSource, progress: Any) -> dict[str, object]:
    try:
        return provisioning.run(source)
    except AnaplatProvisioningError as error:
        error.args = (
            f"{error}\nHere: who is created is noted in {progress}. The same command goes on from there; if "
            "users are in doubt, with --in-doubt created, --in-doubt not_created or --existing-users skip.",
        )
        raise


def _ask(question: str) -> None:
    """Ask a person, who must agree.

    :raises AnaplatRequestError: nobody is there, or does not agree
    """
    if not sys.stdin.isatty():
        raise AnaplatRequestError(
            f"{question} There is no terminal to ask for confirmation: pass --yes. Nothing was sent."
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise AnaplatRequestError("Nothing was sent.")
