"""A warm process: what many runs of Airflow begin with is done once, and each run is a fork of it.

Airflow takes seconds to import, and a small DAG less than one to run.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any


class WarmPython:
    """Runs Python scripts for the length of a ``with`` block, each in a process and an environment of its own.

    :param beginning: Python code with which each script begins; it is run once, and a script has its names
    :param settings: variables of its environment, and the scripts', beside those of this process
    :param seconds: after which the beginning or a script is killed
    """

    def __init__(self, beginning: str, settings: Mapping[str, str], seconds: float) -> None:
        self._settings = dict(settings)
        self._beginning = beginning
        self._seconds = seconds

    def __enter__(self) -> WarmPython:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, self._beginning], env={**os.environ, **self._settings},
            stdin=PIPE, stdout=PIPE, bufsize=0, start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, script: str, *arguments: str, **variables: str) -> CompletedProcess[str]:
        """Run a script to its end.

        :param arguments: what it finds in ``sys.argv``
        :param variables: of its environment, beside the settings
        """
        with TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            self._start(script, arguments, variables, str(out), str(err))
            code = self.wait()
            printed = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
            return CompletedProcess([script, *arguments], code, *printed)

    def start(self, script: str, *arguments: str, **variables: str) -> int:
        """Start a script, and return the id of its process; nothing else is run until it has ended."""
        return self._start(script, arguments, variables, os.devnull, os.devnull)

    def wait(self) -> int:
        """Wait for the end of what was started, and return its exit code."""
        return self._answer()

    def _start(self, script: str, arguments: Sequence[str], variables: Mapping[str, str], *printed: str) -> int:
        environment = {**os.environ, **self._settings, **variables}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([script, arguments, environment, *printed]).encode() + b"\n")
        return self._answer()

    def _answer(self) -> int:
        answers = self._process.stdout
        assert answers is not None
        if not select.select([answers], [], [], self._seconds)[0]:
            os.killpg(self._process.pid, signal.SIGKILL)
        answer = answers.readline()
        return int(answer) if answer else -signal.SIGKILL


def _serve(beginning: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed is no answer
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(beginning, names)
    for line in iter(sys.stdin.readline, ""):
        process = os.fork()
        if process == 0:
            _become(names, *json.loads(line))
            return  # and ends as any Python does
        print(process, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.wait()[1]), file=answers, flush=True)


def _become(
    names: dict[str, Any], script: str, arguments: list[str], environment: dict[str, str], out: str, err: str
) -> None:
    for descriptor, (path, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), (out, os.O_WRONLY | os.O_CREAT), (err, os.O_WRONLY | os.O_CREAT)]
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    exec(compile(script, "<script>", "exec"), names)


if __name__ == "__main__":
    _serve(sys.argv[1])
