"""The same commands as ``airflow anaplat …``, on releases of Airflow that take commands from providers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.cli.commands import COMMANDS, Command, Group, arguments_of

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

__all__ = [
    "get_commands",
]

_DEFAULT = "anaplat_default"


def get_commands() -> list[GroupCommand]:
    """Return the commands as Airflow describes its own; without ``--conn-id`` they take ``anaplat_default``."""
    from airflow.cli.cli_config import GroupCommand

    return [GroupCommand("anaplat", "Work with an analytics platform", [_described(each) for each in COMMANDS])]


def _described(command: Command | Group) -> ActionCommand | GroupCommand:
    from airflow.cli.cli_config import ActionCommand, GroupCommand

    if isinstance(command, Group):
        return GroupCommand(command.name, command.help, [_described(each) for each in command.commands])
    return ActionCommand(command.name, command.help, _runner(command), _arguments(command))


def _arguments(command: Command) -> list[Arg]:
    from airflow.cli import cli_config

    argument_of: Any = cli_config.Arg  # whose constructor Airflow leaves without types
    return [
        argument_of(argument.flags, argument.help, **{**argument.options, **_FOR_AIRFLOW.get(argument.flags, {})})
        for argument in arguments_of(command)
    ]


_FOR_AIRFLOW: dict[tuple[str, ...], dict[str, Any]] = {("--conn-id",): {"default": _DEFAULT}}


def _runner(command: Command) -> Callable[[Namespace], None]:
    def runner(arguments: Namespace) -> None:
        from airflow_provider_anaplat.cli.main import read_airflows_connections, run

        read_airflows_connections()
        arguments.command = command
        if getattr(arguments, "url", None):
            arguments.conn_id = None
        if code := run(arguments):
            sys.exit(code)

    return runner
