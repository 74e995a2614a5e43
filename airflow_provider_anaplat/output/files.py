"""Files that are visible when they are complete, and never before."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.output.streams import Output

__all__ = [
    "StagedFile",
    "Written",
    "copy_file",
    "identity_of",
    "named",
    "names_in",
    "overtaken",
    "remove_file",
    "remove_folder",
    "size_of",
    "write_file",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """What was written to a file or a folder.

    :param bytes: size of the files with rows
    :param files: names of all files, each with what :func:`identity_of` says of it; None of an object in a store,
        which would have to be asked
    """

    bytes: int
    files: Mapping[str, str | None]


class StagedFile:
    """A file that is written without a name or under a temporary one, and takes its own at the end.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)
    :param group: name that it shares with other files of the folder which only one process writes at a time; by
        default its own

    Every method raises :class:`AnaplatOutputError` if the place cannot be written.
    """

    def __init__(self, path: Any, group: str = "") -> None:
        self.path = path
        self.size = 0
        self._nameless = False
        # Older universal paths are pathlib's too; those of an object store have a file system.
        self._local = not hasattr(type(path), "fs")
        with named(path):
            self._target: Any = _local_target(path) if self._local else path
        self._group = group or self._target.name
        self._temporary: Any = self._target.with_name(_temporary_name(self._group))

    def remove_others(self) -> None:
        """Remove the temporary files of this file's group that others left, or will miss and then fail."""
        folder = self._target.parent
        try:
            names = names_in(folder)
        except (FileNotFoundError, NotADirectoryError):  # what universal paths say of a folder without a file
            return
        except OSError as error:  # a place that can be written need not be one that can be listed
            log.info("Could not look for temporary files beside %s: %s", self.path, error)
            return
        for name in names:
            if _is_temporary(name, self._group) and name != self._temporary.name:
                _discard(folder / name)

    def check(self) -> None:
        """See that the complete file is still there under its temporary name.

        :raises AnaplatOutputError: another export of its group has begun since, and removed it, or it is not whole
        """
        with named(self.path):
            try:
                size = size_of(self._temporary)
            except FileNotFoundError as error:
                raise overtaken(self.path) from error
            if size not in (self.size, None):
                raise OSError(f"{self.size:,} bytes were written, and {size:,} are there")

    @contextmanager
    def open(self) -> Iterator[Output]:
        """Open the file for writing; what is written is on disk at the end of the block, and all of it."""
        with named(self.path):
            with self._opened() as file:
                # A store's file may keep what it is given until it sends it.
                output = Output(file.write if self._local else lambda data: file.write(bytes(data)), file.flush)
                yield output
                output.check()
                self.size = output.bytes
                if self._local:
                    file.flush()
                    os.fsync(file.fileno())
                    if self._nameless:
                        _give_name(file, self._temporary)
            self.check()

    def publish(self) -> str | None:
        """Give the file its own name.

        :returns: what :func:`identity_of` says of it; None of an object in a store, which would have to be asked
        """
        with named(self.path):
            try:
                if not self._local:
                    _move(self._target.fs, self._temporary.path, self._target.path)
                    _see_whole(self._target, self.size)
                    return None
                _copy_mode(self._target, self._temporary)
                identity = identity_of(self._temporary)  # others know nothing of it, and the name keeps it
                self._temporary.replace(self._target)
            except FileNotFoundError as error:
                raise overtaken(self.path) from error
        return identity

    def discard(self) -> None:
        """Remove what is left of the temporary file."""
        _discard(self._temporary)

    def _opened(self) -> Any:
        if not self._local:
            return self._temporary.fs.open(self._temporary.path, "wb")
        file = _nameless(self._target.parent)
        self._nameless = file is not None
        return file or self._temporary.open("xb")


def write_file(path: Any, data: bytes) -> str | None:
    """Write a file that takes its place when it is complete, and return what :meth:`StagedFile.publish` does.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path)
    :raises AnaplatOutputError: the file cannot be written
    """
    staged = StagedFile(path)
    try:
        with staged.open() as file:
            file.write(data)
        return staged.publish()
    finally:
        staged.discard()


def identity_of(path: Any) -> str | None:
    """Return what tells a file from any other that was or will be at its place; None if nobody can tell.

    It is size, time and number of a local file, and of an object what its store says.
    """
    try:
        if not hasattr(type(path), "fs"):
            seen = path.stat()
            return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ino}"
        path.fs.invalidate_cache()
        return str(path.fs.checksum(path.path))
    except (OSError, ValueError, LookupError) as error:  # a store's entity tag may be missing, or no number
        log.info("Could not tell %s from others: %s", path, error)
        return None


def size_of(path: Any) -> int | None:
    """Return how many bytes of a file are there; None if the file system does not know."""
    if not hasattr(type(path), "fs"):
        return int(path.stat().st_size)
    path.fs.invalidate_cache(path.parent.path)  # it may remember what was there
    size: int | None = path.fs.info(path.path).get("size")
    return size


def copy_file(source: Any, target: Any) -> str | None:
    """Give a complete file a second name; a file that stands there is replaced. Return what ``publish`` does.

    Whoever is killed here leaves a temporary file, if any, beside the source.

    :param source: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param target: a path of the same kind
    """
    if hasattr(type(source), "fs") and _copies(source.fs):
        size = size_of(source)
        source.fs.cp_file(source.path, target.path)
        _see_whole(target, size)
        return None
    temporary = source.with_name(_temporary_name(source.name))
    try:
        if hasattr(type(source), "fs"):
            with source.open("rb") as file, temporary.open("wb") as copy:
                shutil.copyfileobj(file, copy)
            _move(source.fs, temporary.path, target.path)
            return None
        _link(source, temporary)
        _copy_mode(target, temporary)
        identity = identity_of(temporary)
        temporary.replace(target)
        return identity
    finally:
        remove_file(temporary)


def remove_file(path: Any) -> None:
    """Remove a file; one that is not there is no error."""
    if not hasattr(type(path), "fs"):
        path.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):  # a universal path's own unlink would take a name with * or [ for a pattern
        path.fs.rm_file(path.path)


def names_in(folder: Any) -> list[str]:
    """Return the names of what is in a folder now."""
    if not hasattr(type(folder), "fs"):
        return [path.name for path in folder.iterdir()]
    folder.fs.invalidate_cache(folder.path)  # it may remember what was there
    return [path.rstrip("/").rpartition("/")[2] for path in folder.fs.ls(folder.path, detail=False)]


def remove_folder(folder: Any) -> None:
    """Remove a folder with all that is in it, if it can be removed; the log says what stays."""
    try:
        for path in [folder / name for name in names_in(folder)]:
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


def overtaken(path: Any) -> AnaplatOutputError:
    """Return the error of an export whose temporary files a later one has removed."""
    return AnaplatOutputError(
        f"Cannot write {path}: what was written for it is gone. Another export to the same place has begun since. "
        "Let one at a time write there: give each run a place of its own, or the DAG max_active_runs=1."
    )


def _discard(path: Any) -> None:
    try:
        remove_file(path)
    except OSError as error:  # why the file is in the way matters more than this
        log.warning("Could not remove the temporary file %s: %s", path, error)


def _copy_mode(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        target.chmod(stat.S_IMODE(source.stat().st_mode))


def _temporary_name(group: str) -> str:
    return f"{_prefix(group)}{secrets.token_hex(8)}.tmp"


def _is_temporary(name: str, group: str) -> bool:
    return name.startswith(_prefix(group))


def _prefix(group: str) -> str:
    # Readers of a folder pass over it: hidden, and without the suffix of a format. No name is too long for it.
    return f".anaplat-{sha256(os.fsencode(group)).hexdigest()[:16]}-"


def _nameless(folder: Path) -> BinaryIO | None:
    """Open a file without a name, which leaves nothing behind if the process is killed; None if there are none.

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
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copyfile(source, target)


def _copies(file_system: Any) -> bool:
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    return isinstance(file_system, AsyncFileSystem) or type(file_system).cp_file is not AbstractFileSystem.cp_file


def _move(file_system: Any, source: str, target: str) -> None:
    """Rename an object, or copy it if the store knows no renaming.

    fsspec's own copying ``mv`` would take a name with ``*`` or ``[`` for a pattern.
    """
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem  # the base of the object stores

    if isinstance(file_system, AsyncFileSystem) or type(file_system).mv is AbstractFileSystem.mv:
        file_system.cp_file(source, target)  # the source goes when it is discarded
    else:
        file_system.mv(source, target)


def _see_whole(path: Any, size: int | None) -> None:
    """See that an object is in its place, and all of it: not every store says so where a copy fails.

    It stays there, since it may be another export's by now.

    :param size: how many bytes it must have, if that is known
    """
    try:
        there = size_of(path)
    except FileNotFoundError:
        there = 0
    if None not in (size, there) and there != size:
        raise OSError(
            f"{size:,} bytes were copied, and {there:,} are there, unless another export has begun since"
        )


def _local_target(path: Path) -> Path:
    try:
        path = path.resolve()  # if path is a link, the file behind it is replaced
    except (RuntimeError, ValueError) as error:  # a link to itself, or a NUL
        raise AnaplatOutputError(f"Cannot write {path!r}: {error}.") from error
    if path.exists() and not path.is_file():
        raise AnaplatOutputError(f"Cannot write {path}: it exists and is no regular file.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def named(path: Any) -> Iterator[None]:
    """Turn what the operating system or an object store says into an error that names the path."""
    try:
        yield
    except OSError as error:
        raise AnaplatOutputError(
            f"Cannot write {path}: {error.strerror or error}. Make sure that the place "
            "exists, is writable and has room, then run the task again."
        ) from error
