"""One export by several workers: a plan, parts of it, and a commit that publishes all of them or none.

Plan, parts and what became of each lie in a hidden folder within the target folder, until the commit. What
belongs to one plan lies in a folder of its own, so that an attempt which outlives its plan disturbs no other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatRequestError, AnaplatRowCountError, AnaplatUnplannedError
from airflow_provider_anaplat.output.files import (
    copy_file,
    named,
    remove_file,
    remove_folder,
    size_of,
    write_file,
)
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary, OnCastError, export_rows
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.targets import (
    MANIFEST,
    FileTarget,
    Part,
    claimed,
    manifest_of,
    part_name,
    publish_manifest,
    remove_other_parts,
)

__all__ = [
    "Committed",
    "Partition",
    "PartitionedExport",
    "RowsOfPart",
]

N = TypeVar("N", bound="_Note")

_PLAN = "plan.json"
_CLEAR = "Clear the whole task group, beginning with its plan."


@dataclass(frozen=True)
class Partition:
    """Rows of a dataset that one worker exports.

    :param number: counted from 1
    :param offset: number of the first row, counted from 0
    :param rows: how many
    """

    number: int
    offset: int
    rows: int


class _Note(BaseModel):
    """What is written down in a file, and may be damaged when it is read."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Plan(_Note):
    id: str = Field(pattern="^[0-9A-Za-z]+-[0-9a-f]{16}$")
    ds_id: str = Field(alias="dsId", min_length=1)
    snapshot: Snapshot
    parts: list[Partition]


class _PartNote(_Note):
    rows: int
    bytes: int
    fingerprint: str | None


class _Manifest(_Note):
    """What makes a manifest one of an export by several workers."""

    ds_id: str = Field(alias="dsId", min_length=1)
    format: str
    version: int | None
    utime: str | None
    rows: int
    bytes: int
    columns: list[Column]
    files: list[Part]
    export: str = Field(min_length=1)


@dataclass(frozen=True)
class RowsOfPart:
    """How to read a partition.

    :param query: how to read; the partition says which rows
    :param on_cast_error: what becomes of a cell that its column's type cannot hold
    :param fingerprint: tells this way of exporting from any other
    """

    query: RowQuery
    on_cast_error: OnCastError = "fail"
    fingerprint: str | None = None


@dataclass(frozen=True)
class Committed:
    """What a commit has published.

    :param fingerprint: tells the way in which all its parts were exported from any other
    """

    ds_id: str
    summary: ExportSummary
    fingerprint: str | None


@dataclass(frozen=True)
class PartitionedExport:
    """The folder of an export, and the place within it where its parts wait for the commit.

    :param place: the folder, with format and compression of the parts
    :param key: tells this export from others to the same folder; letters and digits
    """

    place: Place
    key: str

    def plan(self, client: AnaplatClient, ds_id: str, partitions: int, page_size: int) -> list[Partition]:
        """Split a dataset into at most that many partitions of whole pages, and note its state.

        What an earlier plan of this export left is removed.

        :raises AnaplatError: the platform does not answer
        :raises AnaplatOutputError: the folder cannot be written
        """
        if not all(type(number) is int and number >= 1 for number in (partitions, page_size)):
            raise AnaplatRequestError("partitions and page_size must be at least 1, and whole numbers.")
        reader = PageReader(client, RowQuery(ds_id, max_rows=0))
        self._discard()
        split = list(_split(reader.snapshot.row_count, partitions, page_size))
        plan = {
            "id": f"{self.key}-{secrets.token_hex(8)}",
            "dsId": ds_id,
            "snapshot": asdict(reader.snapshot),
            "parts": [asdict(part) for part in split],
        }
        _write(self._staging / _PLAN, plan)
        return split

    def planned_id(self) -> str:
        """Return the id of the dataset that was planned.

        :raises AnaplatUnplannedError: there is no plan
        """
        return self._planned().ds_id

    def export(self, client: AnaplatClient, how: RowsOfPart, partition: Partition) -> ExportSummary:
        """Export one partition to a part that waits for the commit; whatever an earlier attempt left is replaced.

        :raises AnaplatDatasetChangedError: the dataset is no longer what was planned
        :raises AnaplatUnplannedError: there is no plan, or it has no such partition
        :raises AnaplatExportError: the rows are not whole, or cannot be written
        """
        planned = self._planned()
        if partition not in planned.parts:
            raise AnaplatUnplannedError(
                f"The plan of the export to {self.folder} has no such partition: {partition}."
            )
        last = partition.number == len(planned.parts)  # shows rows beyond the platform's count
        query = replace(how.query, offset=partition.offset, max_rows=None if last else partition.rows)
        waiting = self._staging / planned.id
        target = FileTarget(self.place.at(waiting / part_name(partition.number, self.place)))
        plan = ExportPlan(query, target, how.on_cast_error, "fail", snapshot=planned.snapshot)
        summary = export_rows(client, plan)
        record = {"rows": summary.rows, "bytes": summary.bytes, "fingerprint": how.fingerprint}
        _write(waiting / f"{partition.number}.json", record)
        return summary

    def commit(self, note: Callable[[Committed], None] | None = None) -> dict[str, Any]:
        """Publish all parts and their manifest, and return the manifest.

        A commit that was broken off can be run again.

        :param note: notes what was published; a commit that was broken off before is not noted
        :raises AnaplatUnplannedError: there is no plan, a part of it is missing or damaged, or its parts were
            exported in several ways
        :raises AnaplatRowCountError: the parts' rows are not as many as the platform counts
        :raises AnaplatOutputError: the folder cannot be written, or another export to it has begun since
        """
        manifest = self._published_by_plan()
        if manifest is not None:
            self._discard()
            return manifest
        planned = self._planned()
        snapshot = planned.snapshot
        waiting = self._staging / planned.id
        parts, fingerprint = self._exported(waiting, len(planned.parts))
        rows = sum(part.rows for part in parts)
        if rows != snapshot.row_count:
            raise AnaplatRowCountError(
                f"The parts hold {rows:,} rows, and the platform counts {snapshot.row_count:,}. "
                "Nothing was published; clear the whole task group, beginning with its plan."
            )
        manifest = {**manifest_of(planned.ds_id, snapshot, self.place.sink, parts), "export": planned.id}
        files = self._publish(waiting, manifest)
        if note is not None:
            note(Committed(planned.ds_id, _summary(manifest, snapshot, files), fingerprint))
        self._discard()
        return manifest

    def published_id(self) -> str:
        """Return what names the export that the folder holds; nothing if it holds none by several workers."""
        return str((self._manifest() or {}).get("export", ""))

    def published(self, export_id: str) -> dict[str, Any]:
        """Return the manifest of the export that the plan has found.

        :param export_id: what names it
        :raises AnaplatUnplannedError: it is no longer there
        """
        manifest = self._manifest()
        if manifest is None or manifest["export"] != export_id:
            raise AnaplatUnplannedError(
                f"What the plan found in {self.folder} is gone: another export may be writing there. {_CLEAR}"
            )
        return manifest

    @property
    def folder(self) -> Any:
        """Path of the folder."""
        return self.place.path

    @property
    def _staging(self) -> Any:
        return self.folder / f".anaplat-{self.key}"

    def _publish(self, waiting: Any, manifest: dict[str, Any]) -> dict[str, str | None]:
        """Give the parts their places, unless another export to the folder begins to do so; then the manifest."""
        files: dict[str, str | None] = {}
        with ExitStack() as leftovers:
            claim = claimed(leftovers, self.folder)
            with named(self.folder):
                remove_file(self.folder / MANIFEST)
                # They also stay where they are, for a commit that is broken off here.
                for name in (part["path"] for part in manifest["files"]):
                    claim.check()
                    files[name] = copy_file(waiting / name, self.folder / name)
                claim.check()
                remove_other_parts(self.folder, files)
            claim.check()
            return files | publish_manifest(self.folder, manifest)

    def _exported(self, waiting: Any, parts: int) -> tuple[list[Part], str | None]:
        """Return the parts that wait, and the fingerprint of how they were exported."""
        exported, fingerprints = [], set[str | None]()
        for number in range(1, parts + 1):
            record = self._noted(waiting / f"{number}.json", _PartNote)
            name = part_name(number, self.place)
            if record is None or not _is_whole(waiting / name, record.bytes):
                raise AnaplatUnplannedError(
                    f"Part {number} of the export to {self.folder} is missing, or not whole any more. Nothing "
                    "was published; clear that part's task, or the whole task group, beginning with its plan."
                )
            exported.append(Part(name, record.rows, record.bytes))
            fingerprints.add(record.fingerprint)
        if len(fingerprints) > 1:  # in another order, for one, rows would be there twice, and others not at all
            raise AnaplatUnplannedError(
                f"The parts of the export to {self.folder} were not all exported in the same way: the DAG file, "
                f"the connection or this package was changed meanwhile. Nothing was published. {_CLEAR}"
            )
        return exported, fingerprints.pop()

    def _published_by_plan(self) -> dict[str, Any] | None:
        """Return the manifest, if it is that of the last plan of this export."""
        manifest, plan = self._manifest(), self._plan()
        if manifest is None:
            return None
        export = manifest["export"]
        ours = export.startswith(f"{self.key}-") if plan is None else export == plan.id
        return manifest if ours else None

    def _manifest(self) -> dict[str, Any] | None:
        """Return the folder's manifest; None if it is missing, damaged, or of anything but such an export.

        A commit replaces whatever manifest there is, so one that it cannot read need not stop it.
        """
        content = _content(self.folder / MANIFEST)
        if content is None:
            return None
        try:
            _Manifest.model_validate_json(content)
        except ValidationError:
            return None
        manifest: dict[str, Any] = json.loads(content)
        return manifest

    def _plan(self) -> _Plan | None:
        return self._noted(self._staging / _PLAN, _Plan)

    def _noted(self, path: Any, kind: type[N]) -> N | None:
        """Return what this export has noted in a file; None if it has noted nothing."""
        content = _content(path)
        try:
            return None if content is None else kind.model_validate_json(content)
        except ValidationError:
            raise AnaplatUnplannedError(
                f"{path} is damaged, so the export to {self.folder} cannot go on. Nothing was published. {_CLEAR}"
            ) from None

    def _planned(self) -> _Plan:
        plan = self._plan()
        if plan is None:
            raise AnaplatUnplannedError(
                f"There is no plan of the export to {self.folder}: all workers must reach the same folder. "
                f"{_CLEAR}"
            )
        return plan

    def _discard(self) -> None:
        """Remove what waits for a commit, and what broken attempts left."""
        remove_folder(self._staging)


def _write(path: Any, content: dict[str, Any]) -> None:
    write_file(path, json.dumps(content).encode())


def _content(path: Any) -> bytes | None:
    with named(path):
        try:
            content: bytes = path.read_bytes()
        except FileNotFoundError:
            return None
    return content


def _is_whole(path: Any, size: int) -> bool:
    with named(path):
        try:
            return size_of(path) in (size, None)
        except FileNotFoundError:
            return False


def _summary(manifest: dict[str, Any], snapshot: Snapshot, files: Mapping[str, str | None]) -> ExportSummary:
    return ExportSummary(
        rows=manifest["rows"],
        columns=len(snapshot.columns),
        version=snapshot.version,
        utime=snapshot.utime,
        bytes=manifest["bytes"],
        snapshot=snapshot,
        files=files,
    )


def _split(rows: int, partitions: int, page_size: int) -> Iterator[Partition]:
    pages = max(1, -(-rows // page_size))
    for number in range(min(partitions, pages)):
        first, end = (pages * n // min(partitions, pages) * page_size for n in (number, number + 1))
        yield Partition(number + 1, first, min(end, rows) - first)
