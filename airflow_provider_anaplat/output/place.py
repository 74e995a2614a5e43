"""A place to write to: a file or a folder of files, their format, and their compression, as one value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import polars as pl

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.files import StagedFile, Written
from airflow_provider_anaplat.output.formats import FORMATS, FileFormat, Sink, WriteOptions
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.streams import COMPRESSIONS, compressed

__all__ = [
    "Place",
    "has_format",
    "place_named",
]


@dataclass(frozen=True)
class Place:
    """Where rows are written, in which format, and how compressed.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``: of a file, or of a folder of files
    :param sink: the file format
    :param compression: ``""``, ``".gz"`` or ``".zst"``
    """

    path: Any
    sink: Sink
    compression: str = ""

    def __str__(self) -> str:
        return str(self.path)

    @property
    def suffix(self) -> str:
        """Suffix of a file's name, as in ``.csv.gz``."""
        return f".{self.sink.file_format}{self.compression}"

    def at(self, path: Any) -> Place:
        """Return another place of the same format."""
        return replace(self, path=path)

    def write(self, frames: Iterator[pl.DataFrame], caster: Caster) -> Written:
        """Write one file, which appears when it is complete.

        :param frames: the rows as text
        :param caster: knows their columns, and reads them if the format keeps types
        :raises AnaplatOutputError: the file cannot be written
        """
        staged = StagedFile(self.path)
        staged.remove_others()
        with ExitStack() as leftovers:
            self.stage(leftovers, staged, frames, caster)
            return Written(staged.size, {self.path.name: staged.publish()})

    def stage(
        self, leftovers: ExitStack, staged: StagedFile, frames: Iterator[pl.DataFrame], caster: Caster
    ) -> None:
        """Write a file that is not seen yet.

        :param leftovers: removes the file if it is not published
        """
        leftovers.callback(staged.discard)
        with staged.open() as file, compressed(file, self.compression) as stream:
            self.sink.write(frames, caster, stream)


def place_named(
    path: Any,
    name: str,
    file_format: str | None,
    options: WriteOptions,
    argument: str = "output_path",
    format_argument: str = "file_format",
) -> Place:
    """Return the place that a user names.

    :param path: a :class:`pathlib.Path`, or an ``ObjectStoragePath``
    :param name: what the user wrote as a path
    :param file_format: what the user wrote as a format, if the path's suffix does not say it
    :param argument: what the path is called, for the error
    :param format_argument: what the format is called there
    :raises AnaplatRequestError: neither tells a format, or an option of the format is unusable
    """
    name, given = name.lower(), f".{file_format}".lower() if file_format else ""
    compression = next((end for end in COMPRESSIONS if given.endswith(end) or name.endswith(end)), "")
    suffix = given.removesuffix(compression) or PurePath(name.removesuffix(compression)).suffix
    found = _FORMAT_BY_SUFFIX.get(suffix)
    if found is None or (compression and not FORMATS[found].compressible):
        raise AnaplatRequestError(
            f"No format for {path}: end {argument} in one of {', '.join(_FORMAT_BY_SUFFIX)}, or set "
            f"{format_argument} to one of {', '.join(FORMATS)}. {_COMPRESSIBLE} may end in "
            f"{' or '.join(COMPRESSIONS)} besides."
        )
    return Place(path, FORMATS[found].sink(options), compression)


def has_format(name: str) -> bool:
    """Tell whether the suffix of a path says a format."""
    name = name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return PurePath(name).suffix in _FORMAT_BY_SUFFIX


_FORMAT_BY_SUFFIX: dict[str, FileFormat] = {
    suffix: name for name, file_format in FORMATS.items() for suffix in file_format.suffixes
}
_COMPRESSIBLE = " and ".join(name for name, file_format in FORMATS.items() if file_format.compressible)
