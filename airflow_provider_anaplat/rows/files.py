"""Files that are visible when they are complete, and never before."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from airflow_provider_anaplat.rows.errors import OutputError


@contextmanager
def atomic_file(path: Any) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place at the end of the block, or leaves no trace.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)
    :raises OutputError: the file cannot be written
    """
    opened = _local_file(path) if isinstance(path, Path) else _stored_file(path)
    try:
        with opened as file:
            yield file
    except OSError as error:
        raise OutputError(
            f"Cannot write {path}: {error.strerror or error}. The file is as it was before; make sure that "
            "the place exists, is writable and has room, then run the task again."
        ) from error


@contextmanager
def _local_file(path: Path) -> Iterator[BinaryIO]:
    path = path.resolve()  # where path is a link, the file behind it is replaced
    if path.exists() and not path.is_file():
        raise OutputError(f"Cannot write {path}: it exists and is no regular file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(_temporary_name(path.name))
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _stored_file(path: Any) -> Iterator[BinaryIO]:
    # A temporary object works on every store. fsspec's own way (autocommit off) would spare the copy, and some
    # of its file systems ignore it.
    temporary = path.with_name(_temporary_name(path.name))
    try:
        with temporary.fs.open(temporary.path, "wb") as file:
            yield file
        path.fs.mv(temporary.path, path.path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.fs.rm(temporary.path)
        raise


def _temporary_name(name: str) -> str:
    """Return a name that readers of a folder pass over: hidden, and without the suffix of a format."""
    return f".{name}.{secrets.token_hex(4)}.tmp"
