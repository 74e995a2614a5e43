"""One export by several workers: a plan, parts of it, and a commit that publishes all of them or none.

Plan, parts and what became of each lie in a hidden folder within the target folder, until the commit. What
belongs to one plan lies in a folder of its own, so that an attempt which outlives its plan disturbs no other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatRequestError, AnaplatRowCountError, AnaplatUnplannedError
from airflow_provider_anaplat.output.files import (
    StagedFile,
    atomic_file,
    copy_file,
    named,
    remove_file,
    remove_folder,
)
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary, OnCastError, export_rows
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.targets import (
    MANIFEST,
    FileTarget,
    Part,
    manifest_of,
    part_name,
    publish_manifest,
    remove_other_parts,
)

__all__ = [
    "Partition",
    "PartitionedExport",
    "RowsOfPart",
]

_PLAN = "plan.json"

Noted = Callable[[ExportSummary], None]


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


@dataclass(frozen=True)
class RowsOfPart:
    """How to read a partition.

    :param query: how to read; which rows, the partition says
    :param on_cast_error: what becomes of a cell that its column's type cannot hold
    """

    query: RowQuery
    on_cast_error: OnCastError = "fail"


@dataclass(frozen=True)
class PartitionedExport:
    """The folder of an export, and the place within it where its parts wait for the commit.

    :param place: the folder, with format and compression of the parts
    :param key: tells this export from others to the same folder; letters and digits
    """

    place: Place
    key: str

    def plan(self, client: AnaplatClient, ds_id: str, partitions: int, page_size: int) -> list[Partition]:
        """Split a dataset into at most so many partitions of whole pages, and note its state.

        What an earlier plan of this export left is removed.

        :raises AnaplatError: the platform does not answer
        :raises AnaplatOutputError: the folder cannot be written
        """
        if partitions < 1 or page_size < 1:
            raise AnaplatRequestError("partitions and page_size must be at least 1.")
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
        return str(self._plan()["dsId"])

    def export(self, client: AnaplatClient, how: RowsOfPart, partition: Partition) -> ExportSummary:
        """Export one partition to a part that waits for the commit; whatever an earlier attempt left is replaced.

        :raises AnaplatDatasetChangedError: the dataset is no longer what was planned
        :raises AnaplatUnplannedError: there is no plan, or it has no such partition
        :raises AnaplatExportError: the rows are not whole, or cannot be written
        """
        planned = self._plan()
        if asdict(partition) not in planned["parts"]:
            raise AnaplatUnplannedError(
                f"The plan of the export to {self.folder} has no such partition: {partition}."
            )
        last = partition.number == len(planned["parts"])  # shows rows beyond the platform's count
        query = replace(how.query, offset=partition.offset, max_rows=None if last else partition.rows)
        waiting = self._staging / planned["id"]
        target = FileTarget(self.place.at(waiting / part_name(partition.number, self.place)))
        plan = ExportPlan(query, target, how.on_cast_error, "fail", snapshot=_snapshot(planned))
        summary = export_rows(client, plan)
        _write(waiting / f"{partition.number}.json", {"rows": summary.rows, "bytes": summary.bytes})
        return summary

    def commit(self, noted: Noted | None = None) -> dict[str, Any]:
        """Publish all parts and their manifest, and return the manifest.

        A commit that was broken off can be run again.

        :param noted: notes what was published; a commit that was broken off before is not noted
        :raises AnaplatUnplannedError: there is no plan, or a part of it is missing
        :raises AnaplatRowCountError: the parts' rows are not as many as the platform counts
        :raises AnaplatOutputError: the folder cannot be written
        """
        manifest = self._published_by_plan()
        if manifest is not None:
            self._discard()
            return manifest
        planned = self._plan()
        snapshot = _snapshot(planned)
        waiting = self._staging / planned["id"]
        parts = [self._exported(waiting, part["number"]) for part in planned["parts"]]
        rows = sum(part.rows for part in parts)
        if rows != snapshot.row_count:
            raise AnaplatRowCountError(
                f"The parts hold {rows:,} rows, and the platform counts {snapshot.row_count:,}. "
                "Nothing was published; clear the whole task group, beginning with its plan."
            )
        StagedFile(self.folder / MANIFEST).remove_others()
        with named(self.folder):
            remove_file(self.folder / MANIFEST)
            for part in parts:  # which also stay where they are, for a commit that is broken off here
                copy_file(waiting / part.path, self.folder / part.path)
            remove_other_parts(self.folder, {part.path for part in parts})
        manifest = {**manifest_of(planned["dsId"], snapshot, self.place.sink, parts), "export": planned["id"]}
        publish_manifest(self.folder, manifest)
        if noted is not None:
            noted(_summary(manifest, snapshot))
        self._discard()
        return manifest

    def published(self) -> dict[str, Any]:
        """Return the manifest of the folder, whatever export it is of.

        :raises AnaplatUnplannedError: there is none
        """
        return _required(
            self.folder / MANIFEST,
            f"The manifest of {self.folder} is gone since the plan found it: another export may be writing there.",
        )

    @property
    def folder(self) -> Any:
        """Path of the folder."""
        return self.place.path

    @property
    def _staging(self) -> Any:
        return self.folder / f".anaplat-{self.key}"

    def _exported(self, waiting: Any, number: int) -> Part:
        record = _read(waiting / f"{number}.json")
        if record is None:
            raise AnaplatUnplannedError(
                f"Part {number} of the export to {self.folder} is missing. Nothing was published; clear "
                "that part's task, or the whole task group, beginning with its plan."
            )
        return Part(part_name(number, self.place), record["rows"], record["bytes"])

    def _published_by_plan(self) -> dict[str, Any] | None:
        """Return the manifest, if it is that of the last plan of this export."""
        manifest: dict[str, Any] = _read(self.folder / MANIFEST) or {}
        plan = _read(self._staging / _PLAN)
        export = str(manifest.get("export"))
        ours = export.startswith(f"{self.key}-") if plan is None else export == plan["id"]
        return manifest if ours else None

    def _plan(self) -> dict[str, Any]:
        return _required(
            self._staging / _PLAN,
            f"There is no plan of the export to {self.folder}: all workers must reach the same folder.",
        )

    def _discard(self) -> None:
        """Remove what waits for a commit, and what broken attempts left."""
        remove_folder(self._staging)


def _write(path: Any, content: dict[str, Any]) -> None:
    with atomic_file(path) as file:
        file.write(json.dumps(content).encode())


def _read(path: Any) -> Any:
    with named(path):
        try:
            return json.loads(path.read_bytes())
        except FileNotFoundError:
            return None


def _required(path: Any, missing: str) -> dict[str, Any]:
    content: dict[str, Any] | None = _read(path)
    if content is None:
        raise AnaplatUnplannedError(f"{missing} Clear the whole task group, beginning with its plan.")
    return content


def _summary(manifest: dict[str, Any], snapshot: Snapshot) -> ExportSummary:
    return ExportSummary(
        rows=manifest["rows"],
        columns=len(snapshot.columns),
        version=snapshot.version,
        utime=snapshot.utime,
        bytes=manifest["bytes"],
        snapshot=snapshot,
    )


def _split(rows: int, partitions: int, page_size: int) -> Iterator[Partition]:
    pages = max(1, -(-rows // page_size))
    for number in range(min(partitions, pages)):
        first, end = (pages * n // min(partitions, pages) * page_size for n in (number, number + 1))
        yield Partition(number + 1, first, min(end, rows) - first)


def _snapshot(plan: dict[str, Any]) -> Snapshot:
    fields = plan["snapshot"]
    return Snapshot(**{**fields, "columns": tuple((name, fd_type) for name, fd_type in fields["columns"])})
