"""Whether an export would write what it wrote last: known from a note beside the file, and one small request."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any, Literal

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.output.files import atomic_file, named
from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary, export_rows
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.targets import MANIFEST, FileTarget, PartsTarget

__all__ = [
    "IfUnchanged",
    "LastExport",
]

IfUnchanged = Literal["export", "skip", "return"]

log = logging.getLogger(__name__)

_LAYOUT = 1  # of the note, and of what the fingerprint is made of
# What says how rows are asked for, and not which.
_HOW = ("page_size", "concurrency", "memory_mb")
_KEYS = {"fingerprint", "snapshot", "files", "summary"}
_SUMMARY = ("rows", "columns", "version", "utime", "bytes", "parent_dir_id")


@dataclass(frozen=True)
class LastExport:
    """The last export to a place, as the note beside its file tells.

    The note names the state of the dataset, a fingerprint of platform, query and format, and what identifies each
    file as the one that was written: size and time of a local file, and what an object store says of an object.
    A file that is gone or was changed, another query or format, and a note that is missing or damaged are a reason
    to export again; so is a platform that names neither version nor update time.

    :param plan: the export; its target is a :class:`FileTarget`
    """

    plan: ExportPlan

    def find_unchanged(self, client: AnaplatClient) -> ExportSummary | None:
        """Return what the last export came to, if another one would write the same (operation 3, Read rows).

        It takes one request for one row, and none where the note or a file already says that it would not.

        :param client: the platform
        :raises AnaplatError: the platform does not answer with success
        """
        note = self._note()
        if note is None or note["fingerprint"] != self._fingerprint(client) or not self._has_files(note["files"]):
            return None
        snapshot = PageReader(client, replace(self.plan.query, max_rows=0, sort_by=None)).snapshot
        if _plain(asdict(snapshot)) != note["snapshot"] or (snapshot.version is None and snapshot.utime is None):
            return None
        log.info("Dataset %s has not changed since it was exported to %s", self.plan.query.ds_id, self._target)
        return ExportSummary(**note["summary"], snapshot=snapshot)

    def export(self, client: AnaplatClient) -> ExportSummary:
        """Export, and note what was written.

        :raises AnaplatError: as :func:`export_rows`
        """
        summary = export_rows(client, self.plan)
        note = {
            "fingerprint": self._fingerprint(client),
            "snapshot": asdict(summary.snapshot) if summary.snapshot else None,
            "files": {name: _identity(self._folder / name) for name in self._written()},
            "summary": {name: getattr(summary, name) for name in _SUMMARY},
        }
        with atomic_file(self._place_of_note) as file:
            file.write(json.dumps(note, ensure_ascii=False).encode())
        return summary

    @property
    def _target(self) -> FileTarget:
        target = self.plan.target
        assert isinstance(target, FileTarget)  # noqa: S101 - a table has no note
        return target

    @property
    def _folder(self) -> Any:
        path = self._target.place.path
        return path if isinstance(self._target, PartsTarget) else path.parent

    @property
    def _place_of_note(self) -> Any:
        if isinstance(self._target, PartsTarget):
            return self._folder / ".anaplat-export.json"
        of_file = sha256(os.fsencode(self._target.place.path.name)).hexdigest()[:16]
        return self._folder / f".anaplat-export-{of_file}.json"

    def _fingerprint(self, client: AnaplatClient) -> str:
        place = self._target.place
        query = {
            field.name: getattr(self.plan.query, field.name)
            for field in fields(RowQuery)
            if field.name not in _HOW
        }
        what = {
            "layout": _LAYOUT,
            "platform": client.base_url,
            "query": query,
            "on_cast_error": self.plan.on_cast_error,
            "format": [place.sink.file_format, asdict(place.sink), place.compression],  # type: ignore[call-overload]  # each sink is a dataclass
            "rows_per_file": getattr(self._target, "rows_per_file", None),
        }
        return sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()

    def _written(self) -> list[str]:
        if not isinstance(self._target, PartsTarget):
            return [self._target.place.path.name]
        with named(self._folder):
            manifest = json.loads((self._folder / MANIFEST).read_bytes())
        return [MANIFEST, *(file["path"] for file in manifest["files"])]

    def _has_files(self, noted: dict[str, str | None]) -> bool:
        return all(identity and _identity(self._folder / name) == identity for name, identity in noted.items())

    def _note(self) -> dict[str, Any] | None:
        """Return the note; None where there is none that can be read."""
        try:
            note = json.loads(self._place_of_note.read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(note, dict) or note.keys() != _KEYS:
            return None
        files, summary = note["files"], note["summary"]
        whole = isinstance(files, dict) and isinstance(summary, dict) and summary.keys() == set(_SUMMARY)
        return note if whole and files else None


def _identity(path: Any) -> str | None:
    """Return what tells a file from any other that was or will be at its place; None where there is none."""
    try:
        if not hasattr(type(path), "fs"):
            seen = path.stat()
            return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ino}"
        path.fs.invalidate_cache()
        return str(path.fs.checksum(path.path))
    except OSError:
        return None


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value))
