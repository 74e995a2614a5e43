"""The console script ``anaplat``, run by the tests, which look for the token in all that it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from conftest import LONG

TOKEN = "t0ken/of+the=tests"
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
        env={**os.environ, **(environment or {})},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LONG,
        **arguments,
    )
    assert_no_secret(done.stdout + done.stderr)
    return Ended(done.returncode, done.stdout, done.stderr)
