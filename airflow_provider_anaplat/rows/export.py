"""All rows of a query to a target, of one version, or none at all."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

import polars as pl
import tenacity

from airflow_provider_anaplat.client.arguments import OnCastError
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.metrics import BYTES_EXPORTED, ROWS_EXPORTED
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatDatasetChangedError, AnaplatRequestError
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.rows.decode import RowPage, Snapshot
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.progress import ExportProgress
from airflow_provider_anaplat.rows.targets import Target

__all__ = [
    "ExportPlan",
    "ExportSummary",
    "OnCastError",
    "OnChange",
    "export_rows",
]

log = logging.getLogger(__name__)

OnChange = Literal["restart", "fail"]

_FIRST_RESTART_AFTER = 1.0  # seconds; doubled each time, since an update may come in several steps
_LONGEST_RESTART_AFTER = 60.0


@dataclass(frozen=True)
class ExportPlan:
    """What to export, where to, and what to do when something gets in the way.

    :param query: which rows
    :param target: where they go
    :param on_cast_error: what becomes of a cell that its column's type cannot hold
    :param on_change: what to do when the dataset is updated while its rows are read
    :param max_restarts: how often to start again from nothing
    :param snapshot: the state that the dataset must be in; by default, any
    """

    query: RowQuery
    target: Target
    on_cast_error: OnCastError = "fail"
    on_change: OnChange = "restart"
    max_restarts: int = 3
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class ExportSummary:
    """What was exported.

    :param columns: number of columns
    :param bytes: size of the file, or of all parts; None if the target knows no size
    :param parent_dir_id: id of the directory that the dataset is in, if it is in one
    :param read: the columns as the platform describes them
    :param snapshot: the state of the dataset that the rows are of
    :param files: names of the files, each with what tells it from any other, as in
        :class:`~airflow_provider_anaplat.output.files.Written`
    """

    rows: int
    columns: int
    version: int | None
    utime: str | None
    bytes: int | None
    parent_dir_id: str | None = None
    read: tuple[Column, ...] = ()
    snapshot: Snapshot | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)


def export_rows(client: AnaplatClient, plan: ExportPlan) -> ExportSummary:
    """Write the rows of a query to their target, which shows them when they are complete.

    :raises AnaplatDatasetChangedError: the dataset was updated once too often while its rows were read
    :raises AnaplatExportError: the rows are not whole, or cannot be written; what was there before stays
    :raises AnaplatError: the platform does not answer with success
    """
    if plan.max_restarts < 0:
        raise AnaplatRequestError("max_restarts must be at least 0.")
    restarts = plan.max_restarts if plan.on_change == "restart" else 0
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(restarts + 1),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_RESTART_AFTER, max=_LONGEST_RESTART_AFTER),
        retry=tenacity.retry_if_exception_type(AnaplatDatasetChangedError),
        before_sleep=_log_restart,
        reraise=True,
    )
    summary: ExportSummary = retrying(_export_once, client, plan)
    client.observe(ROWS_EXPORTED, summary.rows)
    if summary.bytes is not None:
        client.observe(BYTES_EXPORTED, summary.bytes)
    return summary


def _export_once(client: AnaplatClient, plan: ExportPlan) -> ExportSummary:
    query, target = plan.query, plan.target
    reader = PageReader(client, query, plan.snapshot, shape=target.shape)
    columns = reader.columns
    caster = Caster(columns, query.offset, nulls_for_errors=plan.on_cast_error == "null")
    progress = ExportProgress(query.ds_id, reader.expected_rows, reader.budget)

    def frame(page: RowPage) -> pl.DataFrame:
        progress.add(page.frame.height)
        return page.frame

    def frames() -> Generator[pl.DataFrame]:
        with closing(reader.pages()) as pages:
            yield from map(frame, pages)  # which keeps no page in memory that was handed on

    with closing(frames()) as stream:
        written = target.write(stream, reader, caster)
    if caster.lost_cells:
        log.warning("%d cells did not fit their column's type and were exported as null", caster.lost_cells)
    size = None if written is None else written.bytes
    progress.finish(target, size)
    snapshot = reader.snapshot
    return ExportSummary(
        progress.rows,
        len(columns),
        snapshot.version,
        snapshot.utime,
        size,
        reader.parent_dir_id,
        reader.columns,
        snapshot,
        {} if written is None else written.files,
    )


def _log_restart(state: tenacity.RetryCallState) -> None:
    log.warning(
        "%s Starting again from nothing (restart %d) in %.1f s",
        state.outcome.exception() if state.outcome else "",
        state.attempt_number,
        state.next_action.sleep if state.next_action else 0,
    )
