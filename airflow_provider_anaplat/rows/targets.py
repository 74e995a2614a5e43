"""Where rows go: one file, or a folder of parts whose manifest is written last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import polars as pl

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.files import (
    StagedFile,
    atomic_file,
    listed,
    named,
    remove_file,
)
from airflow_provider_anaplat.output.formats import Columns, Sink
from airflow_provider_anaplat.output.splitter import Splitter
from airflow_provider_anaplat.output.streams import compressed
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.pages import PageReader

MANIFEST = "_manifest.json"
_PART = re.compile(r"part-\d{5,}\.(csv|ndjson|parquet)(\.gz|\.zst)?")


@dataclass(frozen=True)
class Part:
    """A line of the manifest.

    :param path: name of the file in the manifest's folder
    """

    path: str
    rows: int
    bytes: int


class Target(Protocol):
    """A place for rows; ``str()`` of it is what the log calls it.

    :ivar typed: whether it keeps types, or the platform's own text
    :ivar finite: whether its numbers are finite
    """

    @property
    def typed(self) -> bool: ...  # noqa: D102

    @property
    def finite(self) -> bool: ...  # noqa: D102

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader) -> int | None:
        """Write all frames so that they are seen when they are complete, and return their size in bytes, if known.

        :param reader: what the frames are read from: it knows columns and version
        """


@dataclass(frozen=True)
class _Path:
    """A place in a file system.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param sink: the file format
    :param suffix: suffix of a file's name; its end says how the file is compressed
    """

    path: Any
    sink: Sink
    suffix: str

    def __str__(self) -> str:
        return str(self.path)

    @property
    def typed(self) -> bool:
        """Whether the format keeps types."""
        return self.sink.typed

    @property
    def finite(self) -> bool:
        """Whether the format's numbers are finite."""
        return self.sink.finite


@dataclass(frozen=True)
class FileTarget(_Path):
    """One file, which appears when it is complete."""

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader) -> int:
        """Write the file."""
        return write_file(self.path, self.suffix, self.sink, frames, reader.columns)


@dataclass(frozen=True)
class PartsTarget(_Path):
    """A folder of files of so many rows each, and their manifest.

    While the parts take their places, no manifest stands in the folder. Parts of an earlier export that the
    manifest does not name are removed before it is written. One export at a time writes to a folder: what another
    has begun there is removed, and that one fails.

    :param rows_per_file: rows of a part at most
    """

    rows_per_file: int

    def __post_init__(self) -> None:
        if self.rows_per_file < 1:
            raise AnaplatRequestError("rows_per_file must be at least 1.")

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader) -> int:
        """Write the parts, then the manifest."""
        folder = self.path
        splitter = Splitter(frames)
        parts: list[Part] = []
        staged_parts: list[StagedFile] = []
        with ExitStack() as leftovers:
            claim = _claimed(leftovers, folder)
            while splitter.has_more() or not parts:
                staged = StagedFile(folder / f"part-{len(parts) + 1:05d}{self.suffix}", MANIFEST)
                taken = splitter.take(self.rows_per_file)
                _write_staged(leftovers, staged, self.suffix, self.sink, taken, reader.columns)
                parts.append(Part(staged.path.name, splitter.taken, staged.size))
                staged_parts.append(staged)
            claim.check()
            with named(folder):
                remove_file(folder / MANIFEST)
            for staged in staged_parts:
                staged.publish()
            claim.check()
            with named(folder):
                remove_other_parts(folder, {part.path for part in parts})
            manifest = manifest_of(reader.ds_id, reader.snapshot, self.sink, parts)
            claim.check()
            publish_manifest(folder, manifest)
        return sum(part.bytes for part in parts)


def manifest_of(ds_id: str, snapshot: Snapshot, sink: Sink, parts: list[Part]) -> dict[str, Any]:
    """Return what says that the parts it names are complete and of one version."""
    return {
        "dsId": ds_id,
        "format": sink.file_format,
        "version": snapshot.version,
        "utime": snapshot.utime,
        "rows": sum(part.rows for part in parts),
        "bytes": sum(part.bytes for part in parts),
        "columns": [{"name": name, "fdType": fd_type} for name, fd_type in snapshot.columns],
        "files": [asdict(part) for part in parts],
    }


def publish_manifest(folder: Any, manifest: dict[str, Any]) -> None:
    """Write the manifest."""
    with atomic_file(folder / MANIFEST) as file:
        file.write(json.dumps(manifest, ensure_ascii=False, indent=2).encode())


def write_file(path: Any, suffix: str, sink: Sink, frames: Iterator[pl.DataFrame], columns: Columns) -> int:
    """Write one file, which appears when it is complete, and return its size in bytes.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param suffix: says by its end how the file is compressed
    :param sink: the file format
    :param frames: the rows
    :param columns: their columns
    """
    staged = StagedFile(path)
    staged.remove_others()
    with ExitStack() as leftovers:
        _write_staged(leftovers, staged, suffix, sink, frames, columns)
        staged.publish()
    return staged.size


def _write_staged(
    leftovers: ExitStack,
    staged: StagedFile,
    suffix: str,
    sink: Sink,
    frames: Iterator[pl.DataFrame],
    columns: Columns,
) -> None:
    leftovers.callback(staged.discard)
    with staged.open() as file, compressed(file, suffix) as stream:
        sink.write(frames, columns, stream)


def _claimed(leftovers: ExitStack, folder: Any) -> StagedFile:
    """Return a temporary file that is there until another export to the folder begins, as this one does now.

    It is written before those of others are removed: of two that begin at once, none finds its own in the end, or
    one, and never both.
    """
    claim = StagedFile(folder / MANIFEST)
    leftovers.callback(claim.discard)
    with claim.open():
        pass
    claim.remove_others()
    return claim


def remove_other_parts(folder: Any, names: set[str]) -> None:
    """Remove what an earlier export left, so that a reader of all parts reads those of this one alone."""
    for name in listed(folder):
        if _PART.fullmatch(name) and name not in names:
            remove_file(folder / name)
