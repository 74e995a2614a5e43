"""Where rows go: one file, or a folder of parts whose manifest is written last."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import polars as pl

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.files import (
    StagedFile,
    Written,
    named,
    names_in,
    remove_file,
    write_file,
)
from airflow_provider_anaplat.output.formats import FORMATS, Sink
from airflow_provider_anaplat.output.lines import Shape
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.splitter import Splitter
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.pages import PageReader

__all__ = [
    "MANIFEST",
    "FileTarget",
    "Part",
    "PartsTarget",
    "Target",
    "claimed",
    "manifest_of",
    "part_name",
    "parts_in",
    "publish_manifest",
    "remove_other_parts",
]

MANIFEST = "_manifest.json"
_PART = re.compile(rf"part-\d{{5,}}\.({'|'.join(FORMATS)})(\.gz|\.zst)?")


@dataclass(frozen=True)
class Part:
    """A line of the manifest.

    :param path: name of the file in the manifest's folder
    """

    path: str
    rows: int
    bytes: int


class Target(Protocol):
    """A place for rows; ``str()`` of it is what the log calls it."""

    def shape(self, columns: int) -> Shape:
        """Return in which shape it takes rows of so many columns."""

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader, caster: Caster) -> Written | None:
        """Write all frames so that they are seen when they are complete, and return which files they are, if any.

        :param frames: of text
        :param reader: what the frames are read from: it knows columns and version
        :param caster: reads the text if the target keeps types
        """


@dataclass(frozen=True)
class FileTarget:
    """One file, which appears when it is complete.

    :param place: path, format and compression of the file
    """

    place: Place

    def __str__(self) -> str:
        return str(self.place)

    def shape(self, columns: int) -> Shape:
        """Return that of the format."""
        return self.place.sink.shape(columns)

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader, caster: Caster) -> Written:
        """Write the file."""
        return self.place.write(frames, caster)


@dataclass(frozen=True)
class PartsTarget(FileTarget):
    """A folder of files with a given number of rows each, and their manifest; the place is the folder.

    While the parts take their places, no manifest stands in the folder. Parts of an earlier export that the
    manifest does not name are removed before it is written. One export at a time writes to a folder: what another
    has begun there is removed, and that one fails.

    :param rows_per_file: rows of a part at most
    """

    rows_per_file: int

    def __post_init__(self) -> None:
        if self.rows_per_file < 1:
            raise AnaplatRequestError("rows_per_file must be at least 1.")

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader, caster: Caster) -> Written:
        """Write the parts, then the manifest."""
        folder = self.place.path
        splitter = Splitter(frames)
        parts: list[Part] = []
        staged_parts: list[StagedFile] = []
        with ExitStack() as leftovers:
            claim = claimed(leftovers, folder)
            while splitter.has_more() or not parts:
                staged = StagedFile(folder / part_name(len(parts) + 1, self.place), MANIFEST)
                taken = splitter.take(self.rows_per_file)
                self.place.stage(leftovers, staged, taken, caster)
                parts.append(Part(staged.path.name, splitter.taken, staged.size))
                staged_parts.append(staged)
            claim.check()
            with named(folder):
                remove_file(folder / MANIFEST)
            files = {staged.path.name: staged.publish() for staged in staged_parts}
            claim.check()
            with named(folder):
                remove_other_parts(folder, files)
            manifest = manifest_of(reader.ds_id, reader.snapshot, self.place.sink, parts)
            claim.check()
            files |= publish_manifest(folder, manifest)
        return Written(manifest["bytes"], files)


def part_name(number: int, place: Place) -> str:
    """Return the name of a part's file, which :data:`_PART` knows again."""
    return f"part-{number:05d}{place.suffix}"


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


def publish_manifest(folder: Any, manifest: dict[str, Any]) -> dict[str, str | None]:
    """Write the manifest, and return its name with what tells the file from any other."""
    return {MANIFEST: write_file(folder / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2).encode())}


def claimed(leftovers: ExitStack, folder: Any) -> StagedFile:
    """Return a temporary file that is there until another export to the folder begins, as this one does now.

    It is written before those of others are removed: of two that begin at once, one or none finds its own in the
    end, and never both.
    """
    claim = StagedFile(folder / MANIFEST)
    leftovers.callback(claim.discard)
    with claim.open():
        pass
    claim.remove_others()
    return claim


def parts_in(folder: Any) -> set[str]:
    """Return the names of all parts in a folder, of whatever export."""
    return {name for name in names_in(folder) if _PART.fullmatch(name)}


def remove_other_parts(folder: Any, names: Collection[str]) -> None:
    """Remove what an earlier export left, so that a reader of all parts reads those of this one alone."""
    for name in parts_in(folder).difference(names):
        remove_file(folder / name)
