"""A warm process: what many runs of Airflow begin with is done once, and each run is a fork of it.

Airflow takes seconds to import, and a small DAG less than one to run.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

PR_SET_PDEATHSIG = 1


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
            code = self._start(script, arguments, variables, out, err).wait()
            printed = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
            return CompletedProcess([script, *arguments], code, *printed)

    def start(self, script: str, *arguments: str, log: Path = Path(os.devnull), **variables: str) -> Script:
        """Start a script, whose end has to be waited for.

        :param log: what it prints is put at the end of this file
        """
        return self._start(script, arguments, variables, log, log)

    def _start(
        self, script: str, arguments: Sequence[str], variables: Mapping[str, str], out: Path, err: Path
    ) -> Script:
        environment = {**os.environ, **self._settings, **variables}
        return Script(self.ask([script, arguments, environment, str(out), str(err)]), self)

    def ask(self, what: Any) -> int:
        """Give an order to the warm process, and return its answer; without one in time, it is killed."""
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        orders.write(json.dumps(what).encode() + b"\n")
        if not select.select([answers], [], [], self._seconds)[0]:
            os.killpg(self._process.pid, signal.SIGKILL)
        answer = answers.readline()
        return int(answer) if answer else -signal.SIGKILL


@dataclass(frozen=True)
class Script:
    """A script that was started."""

    pid: int
    python: WarmPython

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self.python.ask(self.pid)


def die_with_parent() -> None:
    """Have this process killed when its parent ends, however that ends; Linux alone can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(beginning: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed is no answer
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(beginning, names)
    gc.collect()
    gc.freeze()  # or each fork would look through all of it again and again, and once more at its end
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if isinstance(order, int):
            print(os.waitstatus_to_exitcode(os.waitpid(order, 0)[1]), file=answers, flush=True)
            continue
        process = os.fork()
        if process == 0:
            answers.close()
            _become(names, *order)
            return  # and ends as any Python does
        print(process, file=answers, flush=True)


def _become(
    names: dict[str, Any], script: str, arguments: list[str], environment: dict[str, str], out: str, err: str
) -> None:
    die_with_parent()
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), (out, append), (err, append)]):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    exec(compile(script, "<script>", "exec"), names)


if __name__ == "__main__":
    _serve(sys.argv[1])
