"""The console script ``anaplat``: from the table of commands to a parser, a command and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

from airflow_provider_anaplat.cli.commands import COMMANDS, Command, Group, arguments_of
from airflow_provider_anaplat.cli.output import Printer

__all__ = [
    "main",
    "parser",
    "read_airflows_connections",
    "run",
    "script",
]

_DESCRIPTION = "An analytics platform in a terminal, through its Public API."
_EPILOG = (
    "The platform is the one of --conn-id, or of ANAPLAT_URL with the token in ANAPLAT_TOKEN, in a file that "
    "--token-file or ANAPLAT_TOKEN_FILE names, or typed in. Exit codes: docs/howto/command-line.md."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    :param argv: the words behind ``anaplat``; by default those of the process
    :raises SystemExit: the words are no command; the code is 2
    """
    made = parser()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(made)
    return run(made.parse_args(argv))


def script() -> None:
    """Be the console script: run a command, and end the process with its exit code."""
    from airflow_provider_anaplat.cli.exits import INTERRUPTED

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started this has closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - it stays open
        getattr(sys, name).reconfigure(errors="backslashreplace")
    read_airflows_connections()
    code = main()
    if code == INTERRUPTED:  # a thread may wait for an answer, and Python would wait for the thread
        os._exit(code)
    sys.exit(code)


def read_airflows_connections() -> None:
    """Let Airflow 3 look for a connection in its database too, as its own commands about connections do."""
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")


def run(arguments: argparse.Namespace) -> int:
    """Carry out a command that was parsed, and return its exit code; an error is told, without a traceback."""
    output = Printer(as_json=arguments.json)
    module, _, name = arguments.command.run.partition(":")
    try:
        function = getattr(import_module(f"{__package__}.{module}"), name)
        _listen_to_interrupts()
        with output.told(logging.INFO):
            return int(function(arguments, output) or 0)
    except KeyboardInterrupt as interrupt:
        output.say("Interrupted.")
        return _code(interrupt)
    except Exception as error:  # noqa: BLE001 - a person reads it, whatever it is
        output.fail(error, code := _code(error))
        return code


def _listen_to_interrupts() -> None:
    """Let Ctrl-C end what waits: Polars sets a handler, when it is imported, after which a wait would go on."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    made = argparse.ArgumentParser("anaplat", description=_DESCRIPTION, epilog=_EPILOG)
    _add(made, COMMANDS)
    return made


def _add(parent: argparse.ArgumentParser, commands: Sequence[Command | Group]) -> None:
    below = parent.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        child = below.add_parser(command.name, help=command.help, description=_sentence(command.help))
        if isinstance(command, Group):
            _add(child, command.commands)
            continue
        for argument in arguments_of(command):
            action = child.add_argument(*argument.flags, help=argument.help, **argument.options)
            if argument.completes:
                action.completer = partial(_complete, argument.completes)  # type: ignore[attr-defined]  # argcomplete reads it
        child.set_defaults(command=command)


def _complete(
    what: Literal["datasets", "pages"], prefix: str, parsed_args: argparse.Namespace, **_: Any
) -> list[str]:
    """Return the ids and names of datasets or pages that begin so."""
    from airflow_provider_anaplat.cli.connect import list_quietly

    words = (word for known in list_quietly(parsed_args, what) for word in known)
    return [word for word in words if word and word.startswith(prefix)]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _code(error: BaseException) -> int:
    from airflow_provider_anaplat.cli.exits import exit_code

    return exit_code(error)


if __name__ == "__main__":
    script()
