"""Whether an export would write what it wrote last: known from a note beside the file, and one small request."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_anaplat._version import __version__
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.output.files import identity_of, write_file
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.export import ExportSummary, OnCastError
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.targets import parts_in

__all__ = [
    "IfUnchanged",
    "LastExport",
    "LastWork",
    "fingerprint",
    "present_state",
]

IfUnchanged = Literal["export", "skip", "return"]

# What says how rows are asked for, and not which.
_HOW = ("page_size", "concurrency", "memory_mb")


def fingerprint(client: AnaplatClient, query: RowQuery, written: Mapping[str, Any]) -> str:
    """Return what tells an export from any other that would write something else.

    It is another one with another user's rights, and with another release of this package.

    :param client: the platform
    :param query: which rows; how they are asked for does not count
    :param written: all else that decides about what is written, as JSON
    """
    rows = {field.name: getattr(query, field.name) for field in fields(RowQuery) if field.name not in _HOW}
    where = {"platform": client.base_url, "rights": client.rights, "release": __version__}
    what = {**where, "query": rows, **written}
    return sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def present_state(client: AnaplatClient, query: RowQuery) -> PageReader | None:
    """Return what a request for one row tells of the dataset (operation 3, Read rows).

    :returns: a reader, which knows the state; None if that has neither version nor update time, so that nobody
        could tell whether it is the same as before
    :raises AnaplatError: the platform does not answer with success
    """
    reader = PageReader(client, replace(query, max_rows=0, sort_by=None))
    nameless = reader.snapshot.version is None and reader.snapshot.utime is None
    return None if nameless else reader


class LastWork(Protocol):
    """What was written last to a place; ``str()`` of it is what the log calls the place."""

    def find_unchanged(self, client: AnaplatClient) -> ExportSummary | None:
        """Return what it came to, if another time would write the same; None if nobody can tell."""


class _Noted(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Summary(_Noted):
    rows: int
    columns: int
    version: int | None
    utime: str | None
    bytes: int | None
    parent_dir_id: str | None


class _Note(_Noted):
    fingerprint: str
    snapshot: Snapshot | None
    files: dict[str, str | None] = Field(min_length=1)
    summary: _Summary
    by: str | None


@dataclass(frozen=True)
class LastExport:
    """The last export to a place, as the note beside its file tells.

    The note names the state of the dataset, a fingerprint of platform, query and format, and what identifies each
    file as the one that was written: size and time of a local file, and what an object store says of an object.
    A file that is gone or was changed, one part too many, another query or format, and a note that is missing or
    damaged are a reason to export again; so is a platform that names neither version nor update time. What the
    same task has written in the same DAG run is exported again, too: what follows it has not seen that yet.

    :param query: which rows
    :param place: path, format and compression of the file, or the folder of parts
    :param on_cast_error: what became of a cell that its column's type cannot hold
    :param split: how the rows are split into parts; nothing, if there is one file
    :param by: who exports: the same for all attempts of a task in one DAG run
    """

    query: RowQuery
    place: Place
    on_cast_error: OnCastError = "fail"
    split: Mapping[str, int] = field(default_factory=dict)
    by: str | None = None

    def __str__(self) -> str:
        return str(self.place)

    def find_unchanged(self, client: AnaplatClient) -> ExportSummary | None:
        """Return what the last export came to, if another one would write the same (operation 3, Read rows).

        It takes one request for one row, and none if the note or a file already says that it would not.

        :param client: the platform
        :raises AnaplatError: the platform does not answer with success
        """
        note = self._note()
        if note is None or note.fingerprint != self.fingerprint(client) or not self._has_files(note.files):
            return None
        if note.by is not None and note.by == self.by:
            return None
        present = present_state(client, self.query)
        if present is None or present.snapshot != note.snapshot:
            return None
        return ExportSummary(**note.summary.model_dump(), snapshot=present.snapshot)

    def note(self, client: AnaplatClient, summary: ExportSummary) -> None:
        """Note what was written.

        :param summary: what was exported, with its files
        :raises AnaplatOutputError: the note cannot be written
        """
        note = {
            "fingerprint": self.fingerprint(client),
            "snapshot": asdict(summary.snapshot) if summary.snapshot else None,
            "files": {
                name: identity or identity_of(self._folder / name) for name, identity in summary.files.items()
            },
            "summary": {name: getattr(summary, name) for name in _Summary.model_fields},
            "by": self.by,
        }
        write_file(self._place_of_note, json.dumps(note, ensure_ascii=False).encode())

    @property
    def _folder(self) -> Any:
        return self.place.path if self.split else self.place.path.parent

    @property
    def _place_of_note(self) -> Any:
        if self.split:
            return self._folder / ".anaplat-export.json"
        of_file = sha256(os.fsencode(self.place.path.name)).hexdigest()[:16]
        return self._folder / f".anaplat-export-{of_file}.json"

    def fingerprint(self, client: AnaplatClient) -> str:
        """Return what tells this export from any other that would write something else.

        :param client: the platform
        """
        sink = self.place.sink
        written = {
            "on_cast_error": self.on_cast_error,
            "format": [sink.file_format, asdict(sink), self.place.compression],  # type: ignore[call-overload]  # each sink is a dataclass
            "split": dict(self.split),
        }
        return fingerprint(client, self.query, written)

    def _has_files(self, noted: dict[str, str | None]) -> bool:
        """Tell whether all files are as they were left, and no part is beside them."""
        whole = all(identity and identity_of(self._folder / name) == identity for name, identity in noted.items())
        return whole and (not self.split or parts_in(self._folder) <= noted.keys())

    def _note(self) -> _Note | None:
        """Return the note; None if there is none that can be read."""
        try:
            return _Note.model_validate_json(self._place_of_note.read_bytes())
        except (OSError, ValidationError):
            return None
