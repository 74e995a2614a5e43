"""Create datasets, and check their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.dataset_names import NamesDataset
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat._airflow.task_state import run_began, task_state
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatDatasetLink, link_dataset
from airflow_provider_anaplat.operators.base import AnaplatOperator
from airflow_provider_anaplat.operators.waiting import AnaplatWaitingOperator, carried_by
from airflow_provider_anaplat.triggers.base import DEFERRABLE
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger
from airflow_provider_anaplat.waiting.states import FAILURE_STATES, SUCCESS_STATES, StateTable

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client.models import CreateDatasetRequest, CreationTask
    from airflow_provider_anaplat.datasets.creation import IfExists

__all__ = [
    "AnaplatCreateDatasetOperator",
    "AnaplatSchemaCheckOperator",
]


class AnaplatCreateDatasetOperator(AnaplatWaitingOperator):
    """Create a dataset from a data account (contract: operation 4).

    The platform accepts the creation and works on it afterwards; wait for it with ``wait_for_completion``, or with
    :class:`~airflow_provider_anaplat.sensors.datasets.AnaplatDatasetTaskSensor`. Objects may be given with the
    contract's field names (``queryType``) or in snake_case (``query_type``); fields that are None are not sent.

    :param account_id: id of the data account (``acId``; templated)
    :param name: name of the dataset (templated)
    :param table_query: what to read: ``query_type``, ``table``, ``query`` (templated)
    :param source_type: ``sourceType`` of the dataset (templated)
    :param parent_dir_id: id of the directory to create it in (templated)
    :param cron: when the platform updates it: ``cron_type``, ``value`` (templated)
    :param real_time_update: ``enabled``, ``interval`` (seconds), ``disable_cache`` (templated)
    :param primary_key_columns: names of the columns that tell rows apart (templated)
    :param incremental_update: ``enabled``, ``query`` (templated)
    :param extra_fields: further fields of the body, under the platform's own names (templated)
    :param if_exists: if this directory already has a dataset of this name: ``reuse`` it, ``fail``, or ``create``
        another one. Without ``parent_dir_id``, that is a dataset that the platform lists without a
        directory, or in ``root`` (templated)
    :param reconcile_timeout: seconds to watch the dataset list for a dataset whose creation was not answered, both
        in the attempt that sent the request and in a retry
    :param in_doubt: if the answer was lost and no dataset appears: ``fail`` without a retry, or ``resend``:
        Airflow's retries look again and resend the request, at the risk of a second dataset
    :param wait_for_completion: wait until the creation of the dataset, created or found, has left 处理中
        (processing)
    :param deferrable: wait in the triggerer instead of a worker
    :param poll_interval: seconds between two polls; when deferred, the shortest interval on the connection counts
    :param timeout: seconds to wait at most
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param success_states: status words that mean done
    :param failure_states: status words that mean failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Whatever ``if_exists`` says, one DAG run creates at most one dataset. The request is never repeated blindly:
    if its answer is lost, and if an earlier attempt may have sent it, the operator looks for the dataset in
    the dataset list, and adopts it. On Airflow 3.3 and newer, it remembers in the task state store which datasets
    of this name existed before, and what was created. On older releases, it adopts the dataset of this name that
    is younger than the DAG run, by the platform's clock; it cannot tell it from one that someone else created
    meanwhile. Without ``parent_dir_id``, it looks in all directories for its own.

    Returns ``taskId``, ``dsId``, ``status`` and ``result`` as the platform answered them. For a dataset that was
    found rather than created, ``status`` is that of the dataset, and ``taskId`` and ``result`` are None. With
    ``wait_for_completion``, ``taskId`` and what the sensor returns.

    Raises :class:`AirflowFailException`, which Airflow does not retry, if the platform refuses the name or the
    account, if ``if_exists`` is ``fail`` and the name is taken, if several datasets match, or if the
    answer was lost and the dataset does not appear; :class:`AnaplatError` if a retry may help.

    How-to: :doc:`howto/create-dataset`. Example::

        create = AnaplatCreateDatasetOperator(
            task_id="create",
            account_id="ac1",
            name="sales",
            table_query={"query_type": "query", "query": "select * from sales"},
        )
    """

    template_fields: Sequence[str] = (
        "account_id",
        "name",
        "table_query",
        "source_type",
        "parent_dir_id",
        "cron",
        "real_time_update",
        "primary_key_columns",
        "incremental_update",
        "extra_fields",
        "if_exists",
        "anaplat_conn_id",
    )
    operator_extra_links = (AnaplatDatasetLink(),)

    def __init__(
        self,
        *,
        account_id: str,
        name: str,
        table_query: Mapping[str, Any],
        source_type: str = "DIRECT_CONNECT_DATABASE",
        parent_dir_id: str | None = None,
        cron: Mapping[str, Any] | None = None,
        real_time_update: Mapping[str, Any] | None = None,
        primary_key_columns: Sequence[str] | None = None,
        incremental_update: Mapping[str, Any] | None = None,
        extra_fields: Mapping[str, Any] | None = None,
        if_exists: IfExists = "reuse",
        reconcile_timeout: float = 60,
        in_doubt: Literal["fail", "resend"] = "fail",
        wait_for_completion: bool = False,
        deferrable: bool = DEFERRABLE,
        poll_interval: float = 60,
        timeout: float = 7 * 24 * 3600,
        max_poll_failures: int = 10,
        success_states: Sequence[str] = SUCCESS_STATES,
        failure_states: Sequence[str] = FAILURE_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            wait_for_completion=wait_for_completion,
            deferrable=deferrable,
            poll_interval=poll_interval,
            timeout=timeout,
            max_poll_failures=max_poll_failures,
            success_states=success_states,
            failure_states=failure_states,
            unknown_state=unknown_state,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.account_id = account_id
        self.name = name
        self.table_query = table_query
        self.source_type = source_type
        self.parent_dir_id = parent_dir_id
        self.cron = cron
        self.real_time_update = real_time_update
        self.primary_key_columns = primary_key_columns
        self.incremental_update = incremental_update
        self.extra_fields = extra_fields
        self.if_exists = if_exists
        self.reconcile_timeout = reconcile_timeout
        self.in_doubt = in_doubt

    def work(self, context: Context) -> dict[str, Any]:
        """Have the dataset created, or find it; then wait for it, if asked to."""
        task = self._find_or_create(context)
        link_dataset(self, context, task.ds_id, self.parent_dir_id)
        created = task.model_dump(mode="json", by_alias=True, include={"task_id", "ds_id", "status", "result"})
        if not self.wait_for_completion:
            self.done = created
            return created
        return self.wait(context, AnaplatDatasetTaskTrigger, {"taskId": created["taskId"]}, ds_id=created["dsId"])

    def complete(self, context: Context, event: dict[str, Any] | None) -> dict[str, Any]:
        """End as the event of the wait says."""
        dataset = self.outcome(event, AnaplatDatasetTaskTrigger.condition)
        link_dataset(self, context, dataset["dsId"], dataset.get("parentDirId"))
        self.done = {"taskId": carried_by(event).get("taskId"), **dataset}
        return self.done

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return what OpenLineage shall know; None if no dataset was created or found."""
        if self.done is None:
            return None
        from airflow_provider_anaplat.lineage import lineage_of_dataset

        name, query = self.dataset_name(self.done["dsId"]), self.table_query.get("query")
        created = self.done["taskId"] is not None  # and not found
        return lineage_of_dataset(name, self.name, created=created, query=query, declared=self.inlets)

    def _find_or_create(self, context: Context) -> CreationTask:
        """Return the creation of this DAG run, or of the dataset that it shall reuse."""
        from airflow_provider_anaplat.datasets.creation import Creation, Wish

        wish = Wish(self._request(), self.if_exists, run_began(context), self.reconcile_timeout, self.in_doubt)
        with closing(self.client()) as client:
            task = Creation(client, task_state(context), wish).find_or_create()
        self._fail_if_failed(task)
        self.log.info("Dataset %s (%r): %r, %r", task.ds_id, self.name, task.status, task.result)
        return task

    def _request(self) -> CreateDatasetRequest:
        from pydantic import ValidationError

        from airflow_provider_anaplat.client.models import CreateDatasetRequest

        fields = {
            "ac_id": self.account_id,
            "name": self.name,
            "table_query": self.table_query,
            "source_type": self.source_type,
            "parent_dir_id": self.parent_dir_id,
            "cron": self.cron,
            "real_time_update_setting": self.real_time_update,
            "primary_key_columns": self.primary_key_columns,
            "platform_index_incremental_update_setting": self.incremental_update,
        }
        try:
            body = CreateDatasetRequest.model_validate(fields).model_dump(by_alias=True, exclude_none=True)
            return CreateDatasetRequest.model_validate({**body, **(self.extra_fields or {})})
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_input=False, include_url=False)
            )
            raise AirflowFailException(f"The dataset's description is unusable: {problems}.") from error

    def _fail_if_failed(self, task: CreationTask) -> None:
        """Fail if the accepted creation says at once that it failed."""
        if StateTable(self.success_states, self.failure_states).failed_at_once(task):
            raise AirflowFailException(
                f"The platform accepted the creation of dataset {self.name!r} and reports that it failed: status "
                f"{task.status!r}, result {task.error or task.result!r}. Look at the dataset {task.ds_id} there."
            )


class AnaplatSchemaCheckOperator(NamesDataset, AnaplatOperator):
    """Fail if a dataset's columns are not those expected (contract: operation 1).

    The error lists missing columns, extra ones and changed types. If a name is repeated, the second column is
    called ``a (2)``, as in an export. The order of the columns is not checked.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``; exactly one must have it (templated)
    :param columns: the expected ``fdType`` by column name, such as ``{"city": "STRING", "sales": "DOUBLE"}``, None
        for any; or a list of names, or of objects with ``name`` and ``fdType``, as the manifest of an export has
        them (templated)
    :param allow_extra: whether the dataset may have further columns
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``columns`` (their number) and ``extra`` (names).

    Raises :class:`AirflowFailException`, which Airflow does not retry, if the columns differ;
    :class:`AnaplatError` if the platform does not answer.

    How-to: :doc:`howto/check-schema`. Example::

        AnaplatSchemaCheckOperator(task_id="check", ds_id="ds1", columns={"city": "STRING", "sales": "DOUBLE"})
    """

    template_fields: Sequence[str] = ("ds_id", "dataset", "columns", "anaplat_conn_id")

    def __init__(
        self,
        *,
        columns: Mapping[str, str | None] | Sequence[str] | Sequence[Mapping[str, str]],
        ds_id: str | None = None,
        dataset: str | None = None,
        allow_extra: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.ds_id = ds_id
        self.dataset = dataset
        self.columns = columns
        self.allow_extra = allow_extra

    def work(self, context: Context) -> dict[str, Any]:
        """Compare the columns."""
        from airflow_provider_anaplat.datasets.schema import difference, expected_types
        from airflow_provider_anaplat.errors import AnaplatSchemaChangedError

        with closing(self.client()) as client:
            expected = expected_types(self.columns)
            ds_id = self.dataset_id(client)
            columns = client.get_columns(ds_id)
            found = difference(columns, expected)
            if lines := found.lines(allow_extra=self.allow_extra):
                raise AnaplatSchemaChangedError(
                    f"Dataset {ds_id} has other columns than expected:\n  "
                    + "\n  ".join(lines)
                    + "\nCorrect the dataset on the platform, or `columns` if the change is meant."
                )
        self.log.info("Dataset %s has the %d columns that are expected", ds_id, len(expected))
        return {"dsId": ds_id, "columns": len(columns), "extra": list(found.extra)}
