"""Files that are visible when they are complete, and never before."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from airflow_provider_anaplat.rows.errors import OutputError

log = logging.getLogger(__name__)


class StagedFile:
    """A file that is written without a name or under a temporary one, and takes its own at the end.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)

    Every method raises :class:`OutputError` where the place cannot be written.
    """

    def __init__(self, path: Any) -> None:
        self.path = path
        self.size = 0
        # Older universal paths are pathlib's too; those of an object store have a file system.
        self._local = not hasattr(type(path), "fs")
        with named(path):
            self._target: Any = _local_target(path) if self._local else path
        # Readers of a folder pass over it: hidden, and without the suffix of a format.
        self._temporary: Any = self._target.with_name(f".anaplat-{secrets.token_hex(8)}.tmp")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for writing; what is written is on disk at the end of the block."""
        with named(self.path), self._opened() as file:
            yield file
            self.size = file.tell()
            if self._local:
                file.flush()
                os.fsync(file.fileno())
                if not self._temporary.exists():
                    _give_name(file, self._temporary)

    def publish(self) -> None:
        """Give the file its own name."""
        with named(self.path):
            if self._local:
                if self._target.exists():
                    shutil.copymode(self._target, self._temporary)
                self._temporary.replace(self._target)
            else:
                _move(self._target.fs, self._temporary.path, self._target.path)

    def discard(self) -> None:
        """Remove what is left of the temporary file."""
        try:
            if self._local:
                self._temporary.unlink()
            else:
                self._temporary.fs.rm_file(self._temporary.path)
        except FileNotFoundError:
            return
        except OSError as error:  # the reason why the file is discarded matters more than this
            log.warning("Could not remove the temporary file %s: %s", self._temporary, error)

    def _opened(self) -> Any:
        if self._local:
            return _nameless(self._target.parent) or self._temporary.open("xb")
        return self._temporary.fs.open(self._temporary.path, "wb")


@contextmanager
def atomic_file(path: Any) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place at the end of the block, or leaves no trace.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)
    :raises OutputError: the file cannot be written
    """
    staged = StagedFile(path)
    try:
        with staged.open() as file:
            yield file
        staged.publish()
    finally:
        staged.discard()


def copy_file(source: Any, target: Any) -> None:
    """Give a complete file a second name; a file that stands there is replaced.

    :param source: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param target: a path of the same kind
    """
    if not hasattr(type(source), "fs"):
        _link(source, target)
    elif _copies(source.fs):
        source.fs.cp_file(source.path, target.path)
    else:
        with source.open("rb") as file, atomic_file(target) as copy:
            shutil.copyfileobj(file, copy)


def remove_file(path: Any) -> None:
    """Remove a file; one that is not there is no error."""
    if not hasattr(type(path), "fs"):
        path.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):  # a universal path's own unlink would take a name with * or [ for a pattern
        path.fs.rm_file(path.path)


def remove_folder(folder: Any) -> None:
    """Remove a folder with all that is in it, where it can be; what stays is told in the log."""
    try:
        for path in list(folder.iterdir()):
            if path.is_dir():
                remove_folder(path)
            else:
                remove_file(path)
        if not hasattr(type(folder), "fs"):  # an object store has no folders to remove
            folder.rmdir()
    except (FileNotFoundError, NotADirectoryError):  # what universal paths say of a folder without a file
        return
    except OSError as error:
        log.warning("Could not remove all of %s: %s", folder, error)


def _nameless(folder: Path) -> BinaryIO | None:
    """Open a file without a name, of which nothing stays if the process is killed; None where there are none.

    Linux has them, on most local file systems.
    """
    try:
        return os.fdopen(os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666), "wb")
    except (AttributeError, OSError):
        return None


def _give_name(file: BinaryIO, path: Path) -> None:
    source = f"/proc/self/fd/{file.fileno()}"
    try:
        os.link(source, path, src_dir_fd=file.fileno())  # any: with one, links are followed
    except OSError:  # of a file system that has such files, and names them no more
        with Path(source).open("rb") as complete, path.open("xb") as copy:
            shutil.copyfileobj(complete, copy)
            copy.flush()
            os.fsync(copy.fileno())


def _link(source: Path, target: Path) -> None:
    temporary = target.with_name(f".anaplat-{secrets.token_hex(8)}.tmp")
    try:
        try:
            os.link(source, temporary)
        except OSError:  # not every file system has links
            shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _copies(file_system: Any) -> bool:
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    return isinstance(file_system, AsyncFileSystem) or type(file_system).cp_file is not AbstractFileSystem.cp_file


def _move(file_system: Any, source: str, target: str) -> None:
    """Rename an object, or copy it where the store knows no renaming.

    fsspec's own copying ``mv`` would take a name with ``*`` or ``[`` for a pattern.
    """
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem  # the base of the object stores

    if isinstance(file_system, AsyncFileSystem) or type(file_system).mv is AbstractFileSystem.mv:
        file_system.cp_file(source, target)  # the source goes when it is discarded
    else:
        file_system.mv(source, target)


def _local_target(path: Path) -> Path:
    try:
        path = path.resolve()  # where path is a link, the file behind it is replaced
    except (RuntimeError, ValueError) as error:  # a link to itself, or a NUL
        raise OutputError(f"Cannot write {path!r}: {error}.") from error
    if path.exists() and not path.is_file():
        raise OutputError(f"Cannot write {path}: it exists and is no regular file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def named(path: Any) -> Iterator[None]:
    """Turn what the operating system or an object store says into an error that names the path."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"Cannot write {path}: {error.strerror or error}. Make sure that the place "
            "exists, is writable and has room, then run the task again."
        ) from error
