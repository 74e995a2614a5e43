"""Export a dataset that outgrows one worker: plan, mapped parts, commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.memory import keep_large_blocks_apart
from airflow_provider_anaplat._airflow.releases import AirflowFailException, TaskGroup
from airflow_provider_anaplat.links import link_dataset
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.rows.partitions import Committed, Partition, PartitionedExport
    from airflow_provider_anaplat.rows.unchanged import IfUnchanged, LastExport

__all__ = [
    "partitioned_export",
]

_OF_ONE_WORKER = ("filter", "max_rows", "on_change", "max_restarts", "rows_per_file")
_FOUND = "found"  # key of the XCom that names the export of an earlier run, if nothing has changed


def partitioned_export(
    group_id: str,
    *,
    output_path: str,
    partitions: int,
    ds_id: str | None = None,
    dataset: str | None = None,
    file_format: str = "parquet",
    sort_by: str | None = None,
    sort_type: Literal["asc", "desc"] = "asc",
    if_unchanged: IfUnchanged = "export",
    **kwargs: Any,
) -> TaskGroup:
    """Return a task group that exports a dataset by several workers to a folder (contract: operation 3).

    The task ``plan`` notes the dataset's version and splits its rows; the tasks ``part``, one for each partition,
    each export their own, on whatever executor runs them; the task ``commit`` publishes all files and their
    ``_manifest.json``, or none. A part that fails is retried alone. If the dataset is updated in between, the
    remaining parts fail without a retry: clear the whole group to plan it again. Until the commit, parts
    wait in a hidden folder; a group that is abandoned leaves it behind.

    The contract promises no order without ``sort_by``; without it, the platform must answer every request in
    the same order.

    :param group_id: id of the task group
    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``; the task ``plan`` looks for it, and
        exactly one must have it (templated)
    :param output_path: folder that all workers reach, or the URL of one in an object store (templated)
    :param partitions: number of parts at most; each holds whole pages
    :param file_format: ``csv``, ``ndjson`` or ``parquet``; CSV and NDJSON with ``.gz`` or ``.zst`` (templated)
    :param sort_by: name of the column to sort by (templated)
    :param sort_type: ``asc`` or ``desc`` (templated)
    :param if_unchanged: if dataset, query, format and number of parts are those of the last export to this
        folder, and its files are as they were left: ``export`` all the same, ``skip`` all tasks of the group, or
        ``return`` from ``commit`` what that export returned, with ``unchanged``, while no part runs
    :param kwargs: further arguments of its three tasks: Airflow's, such as ``retries`` or ``queue``, and those of
        :class:`AnaplatExportRowsOperator` except ``filter``, ``max_rows``, ``rows_per_file``, ``on_change`` and
        ``max_restarts``

    The task ``commit`` returns what :class:`AnaplatExportRowsOperator` returns, and ``parts``, their number.
    """
    if unfit := [name for name in _OF_ONE_WORKER if name in kwargs]:
        raise TypeError(f"partitioned_export() takes no {', '.join(unfit)}: a partition cannot know the whole.")
    arguments = {
        "ds_id": ds_id,
        "dataset": dataset,
        "output_path": output_path,
        "file_format": file_format,
        "sort_by": sort_by,
        "sort_type": sort_type,
        "if_unchanged": if_unchanged,
        "partitions": partitions,
        **kwargs,
    }
    with TaskGroup(group_id) as group:
        plan = _PlanOperator(task_id="plan", multiple_outputs=False, **arguments)
        parts = _PartOperator.partial(task_id="part", multiple_outputs=False, **arguments).expand(
            partition=plan.output
        )
        if if_unchanged == "return":  # no part is a reason to skip, and not to skip the commit
            found = plan.output[_FOUND]  # type: ignore[index]  # its type is said too wide
            arguments = {"trigger_rule": "none_failed_min_one_success", **arguments, "found": found}
        parts >> _CommitOperator(task_id="commit", **arguments)
    return group


class _PartitionedOperator(AnaplatExportRowsOperator):
    """A task of an export by several workers."""

    def __init__(self, *, partitions: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions

    def partitioned(self, context: Context) -> PartitionedExport:
        """Return the export that this task is part of; the same for all tasks of its group in one DAG run."""
        from airflow_provider_anaplat.rows.partitions import PartitionedExport

        ti = context["ti"]
        group = "/".join((ti.dag_id, ti.run_id, ti.task_id.rpartition(".")[0]))
        return PartitionedExport(self.place(), sha256(group.encode()).hexdigest()[:16])

    def last_by(self, export: PartitionedExport, ds_id: str) -> LastExport:
        """Return the last export to the folder; the same for all tasks of a group whose arguments are the same."""
        return self.last_export(ds_id, {"partitions": self.partitions}, export.key)


class _PlanOperator(_PartitionedOperator):
    """Split a dataset's rows, and note its version."""

    def work(self, context: Context) -> Any:
        """Return a line for each partition; none if nothing has changed."""
        from dataclasses import asdict

        with closing(self.client()) as client:
            ds_id = self.dataset_id(client)
            link_dataset(self, context, ds_id)
            export = self.partitioned(context)
            unchanged = self.find_unchanged(self.last_by(export, ds_id), client, ds_id) is not None
            if self.if_unchanged == "return":
                found = export.published_id() if unchanged else ""
                unchanged = bool(found)  # of a manifest that cannot be read, a commit would return nothing
                context["ti"].xcom_push(key=_FOUND, value=found)
            if unchanged:
                return []
            parts = export.plan(client, ds_id, self.partitions, self.page_size)
        self.log.info("Dataset %s: %d rows in %d parts", ds_id, sum(part.rows for part in parts), len(parts))
        return [asdict(part) for part in parts]


class _PartOperator(_PartitionedOperator):
    """Export one partition to a file that waits for the commit."""

    template_fields: Sequence[str] = (*AnaplatExportRowsOperator.template_fields, "partition")

    def __init__(self, *, partition: dict[str, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partition = partition

    def work(self, context: Context) -> Any:
        """Export the rows, and return how many."""
        from airflow_provider_anaplat.errors import AnaplatDatasetChangedError, AnaplatUnplannedError
        from airflow_provider_anaplat.rows.partitions import RowsOfPart

        partition = self._partition()
        keep_large_blocks_apart()
        export = self.partitioned(context)
        try:
            with closing(self.client()) as client:
                ds_id = export.planned_id()
                link_dataset(self, context, ds_id)
                last = self.last_by(export, ds_id)
                part = RowsOfPart(self.row_query(ds_id), self.on_cast_error, last.fingerprint(client))
                summary = export.export(client, part, partition)
        except (AnaplatDatasetChangedError, AnaplatUnplannedError) as error:
            raise AirflowFailException(
                f"{error} A retry of this part alone cannot mend it: clear the whole task group."
            ) from error
        return summary.rows

    def _partition(self) -> Partition:
        from airflow_provider_anaplat.rows.partitions import Partition

        try:
            return Partition(**self.partition)
        except TypeError:
            raise AirflowFailException(
                f"partition is {self.partition!r}; it must be an object with number, offset and rows, as the task "
                "that plans returns them. Nothing was sent."
            ) from None


class _CommitOperator(_PartitionedOperator):
    """Publish all parts and their manifest."""

    template_fields: Sequence[str] = (*AnaplatExportRowsOperator.template_fields, "found")

    def __init__(self, *, found: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.found = found

    def work(self, context: Context) -> dict[str, Any]:
        """Return what was exported, by this run or, if nothing has changed, by an earlier one."""
        from airflow_provider_anaplat.client.models import Column

        export = self.partitioned(context)
        manifest = export.published(self.found) if self.found else self._committed(export)
        link_dataset(self, context, manifest["dsId"])
        what = "found" if self.found else "published"
        self.log.info("Dataset %s: %s %d parts", manifest["dsId"], what, len(manifest["files"]))
        result = {
            "dsId": manifest["dsId"],
            "path": str(self.output_path),
            "format": manifest["format"],
            "rows": manifest["rows"],
            "columns": len(manifest["columns"]),
            "version": manifest["version"],
            "utime": manifest["utime"],
            "bytes": manifest["bytes"],
            "parts": len(manifest["files"]),
            **({"unchanged": True} if self.found else {}),
        }
        return self.succeed(context, result, [Column.model_validate(column) for column in manifest["columns"]])

    def _committed(self, export: PartitionedExport) -> dict[str, Any]:
        """Publish, and note what was published if a later run may ask whether anything has changed."""
        return export.commit(None if self.if_unchanged == "export" else partial(self._note, export))

    def _note(self, export: PartitionedExport, committed: Committed) -> None:
        """Note what was published, unless its parts were exported in another way than this task was told."""
        last = self.last_by(export, committed.ds_id)
        with closing(self.client()) as client:
            if committed.fingerprint == last.fingerprint(client):
                last.note(client, committed.summary)
