"""A PostgreSQL and a Redis of the tests' own, of which nothing is left afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import LONG

from support.running import free_port, wait_until

POSTGRES_PORT, REDIS_PORT = free_port(), free_port()
SERVER = f"postgres@127.0.0.1:{POSTGRES_PORT}"
BROKER = f"redis://127.0.0.1:{REDIS_PORT}/0"
PACKAGES = {"initdb": "postgresql", "postgres": "postgresql", "redis-server": "redis-server"}  # Debian's
# Debian has a folder for each release of PostgreSQL, where no PATH looks.
PATH = os.pathsep.join([os.environ["PATH"], *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))])
PROGRAMS = {name: shutil.which(name, path=PATH) for name in PACKAGES}
INITDB = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")
# Nobody needs the data after a crash of the machine.
POSTGRES = ("--fsync=off", "--synchronous_commit=off", "--full_page_writes=off", "--unix_socket_directories=")


def missing() -> str | None:
    """Say what has to be installed first, if anything."""
    lacks = [f"no {name}: apt-get install {PACKAGES[name]}" for name, path in PROGRAMS.items() if path is None]
    return lacks[0] if lacks else None


@contextmanager
def backends() -> Iterator[None]:
    """Serve at ``SERVER`` and ``BROKER`` for the length of a ``with`` block."""
    assert missing() is None, missing()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then, all that runs is stopped
    with tempfile.TemporaryDirectory(prefix="anaplat-backends-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        assert _start(folder, "initdb", "--pgdata=data", *INITDB).wait() == 0, (folder / "initdb.log").read_text()
        with (
            _serving(folder, "postgres", "-D", "data", "-h", "127.0.0.1", "-p", str(POSTGRES_PORT), *POSTGRES),
            _serving(folder, "redis-server", "--bind", "127.0.0.1", "--port", str(REDIS_PORT), "--save", ""),
        ):
            yield


@contextmanager
def _serving(folder: Path, program: str, *arguments: str) -> Iterator[None]:
    def says() -> str:
        return (folder / f"{program}.log").read_text()

    def ready() -> bool:
        assert process.poll() is None, says()
        return "ready to accept connections" in says().lower()

    process = _start(folder, program, *arguments)
    try:
        wait_until(ready, says)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # to which both end at once, whoever is connected
        process.wait(LONG)


def _start(folder: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a program in the folder, with a log there, and not as root: PostgreSQL refuses that."""
    nobody = pwd.getpwnam("nobody")
    user: dict[str, Any] = (
        {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()} if os.geteuid() == 0 else {}
    )
    with (folder / f"{program}.log").open("wb") as log:
        return subprocess.Popen(
            [str(PROGRAMS[program]), *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, **user,
        )  # fmt: skip
