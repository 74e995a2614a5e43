"""What the operators share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.dataset_names import NamesDataset
from airflow_provider_anaplat._airflow.failures import no_useless_retry
from airflow_provider_anaplat._airflow.memory import keep_large_blocks_apart
from airflow_provider_anaplat._airflow.releases import AirflowSkipException, BaseOperator
from airflow_provider_anaplat._airflow.words import check_kinds, check_words
from airflow_provider_anaplat.assets import describe_events
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatDatasetLink

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.models import Column
    from airflow_provider_anaplat.lineage import Name
    from airflow_provider_anaplat.rows.export import ExportPlan, ExportSummary, OnCastError, OnChange
    from airflow_provider_anaplat.rows.pages import RowQuery
    from airflow_provider_anaplat.rows.targets import Target
    from airflow_provider_anaplat.rows.unchanged import IfUnchanged, LastWork

__all__ = [
    "AnaplatOperator",
    "AnaplatRowsOperator",
    "work_of",
]


def work_of(context: Context) -> str | None:
    """Return what all attempts of a task in one DAG run share; None if there is no DAG run."""
    ti: Any = context.get("ti")
    return None if ti is None else "/".join((ti.dag_id, ti.run_id, ti.task_id, str(ti.map_index)))


class AnaplatOperator(BaseOperator):
    """An operator that talks to the platform.

    Its result is a small dictionary; each entry is also an XCom of its own, so that
    ``task.output["dsId"]`` can be handed to another task.

    :param anaplat_conn_id: id of the Airflow connection (templated)
    """

    def __init__(self, *, anaplat_conn_id: str = AnaplatHook.default_conn_name, **kwargs: Any) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.anaplat_conn_id = anaplat_conn_id

    def execute(self, context: Context) -> Any:
        """Check the arguments, and do the work.

        :raises AirflowFailException: a retry would meet the same mistake again
        """
        with no_useless_retry():
            check_words(self)
            check_kinds(self)
            self.check()
            return self.work(context)

    def check(self) -> None:
        """See that the arguments can be right, before anything is sent.

        :raises AnaplatRequestError: one cannot
        """
        if isinstance(self, NamesDataset):
            self.check_dataset()

    def work(self, context: Context) -> Any:
        """Do what the operator is for; each has its own."""
        raise NotImplementedError

    def client(self) -> AnaplatClient:
        """Return a client of the platform."""
        return AnaplatHook(self.anaplat_conn_id).get_conn()

    def dataset_name(self, ds_id: str) -> Name:
        """Return how OpenLineage names a dataset of the platform."""
        from airflow_provider_anaplat.lineage import name_of_dataset

        return name_of_dataset(AnaplatHook(self.anaplat_conn_id).base_url(), ds_id)


class AnaplatRowsOperator(NamesDataset, AnaplatOperator):
    """An operator that takes the rows of a dataset somewhere (contract: operation 3).

    Memory is bounded by ``memory_mb``, whatever a row weighs. Each page says which version of the dataset it
    belongs to. If the dataset is updated in between, the export starts again from nothing, or fails. The events of
    the assets in ``outlets`` have ``dsId``, ``rows``, ``version`` and ``utime`` in their ``extra``. The contract
    promises no order without ``sort_by``. Without a filter, the export fails unless it got as many rows as the
    platform counts; with one, it reads until the platform returns no more.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``; exactly one must have it (templated)
    :param sort_by: name of the column to sort by (templated)
    :param sort_type: ``asc`` or ``desc`` (templated)
    :param filter: sent as the body's ``filter``; the contract leaves its shape open (templated)
    :param memory_mb: megabytes by which the task's process may grow, 64 at least: a page has as many rows as fit
    :param page_size: rows a request asks for at most; the platform allows 50,000
    :param concurrency: requests in flight at most
    :param max_rows: rows to export at most; by default all
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :param on_change: if the dataset is updated while it is read, ``restart`` or ``fail``
    :param max_restarts: how often to start again
    :param if_unchanged: if another export would write what the last one wrote, ``export`` all the same,
        ``skip`` the task, or ``return`` what the last one returned, with ``unchanged``
    :param anaplat_conn_id: id of the Airflow connection (templated)
    """

    template_fields: Sequence[str] = ("ds_id", "dataset", "sort_by", "sort_type", "filter", "anaplat_conn_id")
    operator_extra_links = (AnaplatDatasetLink(),)
    # What the task has returned and read, once it has; OpenLineage's listener asks in the same process.
    written: tuple[Mapping[str, Any], Sequence[Column]] | None = None

    def __init__(
        self,
        *,
        ds_id: str | None = None,
        dataset: str | None = None,
        sort_by: str | None = None,
        sort_type: Literal["asc", "desc"] = "asc",
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the platform's name of the field
        memory_mb: int = 256,
        page_size: int = 50_000,
        concurrency: int = 4,
        max_rows: int | None = None,
        on_cast_error: OnCastError = "fail",
        on_change: OnChange = "restart",
        max_restarts: int = 3,
        if_unchanged: IfUnchanged = "export",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.ds_id = ds_id
        self.dataset = dataset
        self.sort_by = sort_by
        self.sort_type = sort_type
        self.filter = filter
        self.memory_mb = memory_mb
        self.page_size = page_size
        self.concurrency = concurrency
        self.max_rows = max_rows
        self.on_cast_error = on_cast_error
        self.on_change = on_change
        self.max_restarts = max_restarts
        self.if_unchanged = if_unchanged

    def found_id(self) -> str:
        """Return the dataset's id, which is looked for if its name was given."""
        with closing(self.client()) as client:
            return self.dataset_id(client)

    def export_to(self, target: Target, ds_id: str) -> ExportSummary:
        """Export the rows of a dataset to a target."""
        from airflow_provider_anaplat.rows.export import export_rows

        keep_large_blocks_apart()
        with closing(self.client()) as client:
            return export_rows(client, self.plan(target, ds_id))

    def plan(self, target: Target, ds_id: str) -> ExportPlan:
        """Return what to export, and where to."""
        from airflow_provider_anaplat.rows.export import ExportPlan

        return ExportPlan(self.row_query(ds_id), target, self.on_cast_error, self.on_change, self.max_restarts)

    def find_unchanged(self, last: LastWork, client: AnaplatClient, ds_id: str) -> ExportSummary | None:
        """Return what the last work came to, if nothing has changed and ``if_unchanged`` asks for that.

        :param last: what was last written to the place where this task writes
        :raises AirflowSkipException: nothing has changed, and the task is to be skipped then
        """
        if self.if_unchanged == "export":
            return None
        found = last.find_unchanged(client)
        if found is not None:
            unchanged = f"Dataset {ds_id} has not changed since it was written to {last}."
            if self.if_unchanged == "skip":
                raise AirflowSkipException(unchanged)
            self.log.info("%s Nothing is written", unchanged)
        return found

    def succeed(self, context: Context, result: dict[str, Any], columns: Sequence[Column]) -> dict[str, Any]:
        """Say in the events of the task's assets what it has written, note it for OpenLineage, and return it.

        :param context: the task's context
        :param result: what the task returns
        :param columns: those that were read; none if an earlier attempt has read them
        """
        describe_events(context, self.outlets, result)
        self.written = result, columns
        return result

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return what OpenLineage shall know; None if the task has written nothing."""
        if self.written is None:
            return None
        from airflow_provider_anaplat.lineage import lineage_of_rows

        result, columns = self.written
        return lineage_of_rows(
            self.dataset_name(result["dsId"]), self.target_name(), result, columns, self.outlets
        )

    def target_name(self) -> Name | None:
        """Return how OpenLineage names what the rows were written to; None if it has no name for it."""
        raise NotImplementedError

    def row_query(self, ds_id: str) -> RowQuery:
        """Return which rows of a dataset to read, and how."""
        from airflow_provider_anaplat.rows.pages import RowQuery

        return RowQuery(
            ds_id=ds_id,
            sort_by=self.sort_by,
            sort_type=self.sort_type,
            filter=self.filter,
            memory_mb=self.memory_mb,
            page_size=self.page_size,
            concurrency=self.concurrency,
            max_rows=self.max_rows,
        )
