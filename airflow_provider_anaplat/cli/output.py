"""What a person or a script reads: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.errors import AnaplatError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "NULL",
    "Printer",
    "labelled",
    "printable",
]

_PACKAGE = __name__.partition(".")[0]
NULL = "null"


class Printer:
    """Writes results and messages, with what is secret of the connection masked.

    :param as_json: whether results and errors are JSON

    :ivar hide: masks secrets in plain JSON; a client that is made brings its own
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.hide: Callable[[Any], Any] = lambda value: value

    @cached_property
    def messages(self) -> Console:
        """Where progress and messages go; made when it is needed, since rich takes its time."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def is_interactive(self) -> bool:
        """Tell whether somebody watches the messages on a terminal."""
        return sys.stderr.isatty()

    def result(self, value: Any, lines: Iterable[str] = ()) -> None:
        """Show what a command has brought.

        :param value: plain JSON, for ``--json``
        :param lines: the same for a person
        """
        if self.as_json:
            _write(json.dumps(self.hide(value), ensure_ascii=False, indent=2))
            return
        for line in lines:
            _write(printable(self.hide(line)))

    def table(self, value: Any, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Show what a command has brought as a table: framed on a terminal, else with a tab between two cells.

        :param value: the same as plain JSON, for ``--json``
        :param names: of the columns
        :param rows: texts, numbers or None
        """
        if self.as_json:
            self.result(value)
        elif sys.stdout.isatty():
            self._framed(names, rows)
        else:
            for row in [names, *rows]:
                _write("\t".join(map(self._cell, row)))

    def fail(self, error: BaseException, code: int) -> None:
        """Say what went wrong."""
        message = (
            str(error) if isinstance(error, AnaplatError) else f"Unexpected: {type(error).__name__} ({error})"
        )
        if self.as_json:
            described = {"error": type(error).__name__, "message": self.hide(message), "exit": code}
            _write(json.dumps(described, ensure_ascii=False), sys.stderr)
        else:
            self.say(message)

    def say(self, message: str) -> None:
        """Write a message for a person, above a progress bar that is shown."""
        lines = "\n".join(printable(line) for line in self.hide(message).split("\n"))
        if self.is_interactive():
            self.messages.print(lines, markup=False, emoji=False, soft_wrap=True)
        else:
            _write(lines, sys.stderr)

    @contextmanager
    def told(self, level: int) -> Iterator[None]:
        """Show what the package logs meanwhile.

        :param level: the least that is shown
        """
        logger = logging.getLogger(_PACKAGE)
        handler, before = _ToOutput(self), (logger.level, logger.propagate)
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before[0])
            logger.propagate = before[1]

    def _framed(self, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
        rows = list(rows)
        for number, name in enumerate(names):
            numbers = all(isinstance(row[number], int | float | None) for row in rows)
            table.add_column(Text(self._cell(name)), overflow="fold", justify="right" if numbers else "left")
        for row in rows:
            table.add_row(*(Text(self._cell(cell), "dim" if cell is None else "") for cell in row))
        Console(highlight=False).print(table)

    def _cell(self, value: Any) -> str:
        if value is None:
            return NULL
        if isinstance(value, int) and not isinstance(value, bool) and sys.stdout.isatty():
            return f"{value:,}"
        return printable(str(self.hide(value)))


class _ToOutput(logging.Handler):
    def __init__(self, output: Printer) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write what is logged."""
        self._output.say(record.getMessage())


def printable(text: str) -> str:
    """Return a text without what moves a terminal's cursor, changes its colours or ends a line."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def labelled(fields: Mapping[str, Any]) -> list[str]:
    """Return fields as lines for a person: the name, and the value behind it in a column."""
    width = max(map(len, fields), default=0)
    return [f"{name.ljust(width)}  {NULL if value is None else value}" for name, value in fields.items()]


def _write(text: str, file: Any = None) -> None:
    file = file or sys.stdout
    try:
        file.write(f"{text}\n")
        file.flush()
    except OSError as error:
        # Whoever reads may have read enough; the command goes on, and its exit code tells how it ends. Messages
        # stop nothing either, wherever they go.
        if file is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
