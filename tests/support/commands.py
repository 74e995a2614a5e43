"""The console script ``anaplat``, run by the tests, which look for the token in all that it says."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from conftest import LONG, MEASURED

from airflow_provider_anaplat.simulator import Simulator, replies

TOKEN = "t0ken/of+the=tests"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SCRIPT = Path(sys.executable).with_name("anaplat")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Anaplat = Callable[..., Ended]


def assert_no_secret(text: str) -> None:
    assert TOKEN not in text
    assert TOKEN not in unquote(text).replace("\\", "")
    assert "Traceback" not in text


def in_a_process(
    words: Sequence[object], environment: Mapping[str, str] | None = None, script: Path = SCRIPT, **arguments: Any
) -> Ended:
    """Run the console script itself."""
    done = subprocess.run(
        [script, *map(str, words)],
        env={**os.environ, **MEASURED, **(environment or {})},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LONG,
        **arguments,
    )
    assert_no_secret(done.stdout + done.stderr)
    return Ended(done.returncode, done.stdout, done.stderr)


class Terminal:
    """A terminal with a command in it.

    :param words: the command
    :param environment: variables beside those of this process
    """

    def __init__(self, *words: object, environment: Mapping[str, str] | None = None, columns: int = 100) -> None:
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self._terminal = ours
        self.process = subprocess.Popen(
            [SCRIPT, *map(str, words)],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
            env={
                **os.environ, **MEASURED, "TERM": "xterm-256color", "COLUMNS": str(columns), **(environment or {}),
            },
        )  # fmt: skip
        os.close(theirs)
        self.raw = b""

    @property
    def text(self) -> str:
        """What was shown so far, without colours and movements of the cursor."""
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def read_until(self, shown: str) -> None:
        """Read until something is shown: a regular expression."""
        while not re.search(shown, self.text):
            assert self._read(), f"it ended without {shown!r}: {self.text}"

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        while self._read():
            pass
        os.close(self._terminal)
        assert_no_secret(self.raw.decode(errors="replace"))
        assert_no_secret(self.text)
        return self.process.wait(LONG)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], LONG)
        assert ready, f"nothing came: {self.text}"
        try:
            piece = os.read(self._terminal, 65_536)
        except OSError:  # how Linux says that nobody has the terminal open any more
            piece = b""
        self.raw += piece
        return bool(piece)


@contextmanager
def held(
    simulator: Simulator, operation: str, when: Callable[[Mapping[str, Any]], bool]
) -> Iterator[threading.Event]:
    """Hold an answer back until the event is set."""
    event = threading.Event()
    simulator.inject(operation, replies.hold(event), when=when)
    try:
        yield event
    finally:
        event.set()
