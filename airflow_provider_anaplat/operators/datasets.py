"""Create datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_anaplat.client.states import State, StateTable
from airflow_provider_anaplat.operators.base import AnaplatOperator, no_retry_of_unknown_outcomes

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_anaplat.client.models import CreateDatasetRequest, CreationTask


class AnaplatCreateDatasetOperator(AnaplatOperator):
    """Create a dataset from a data account (contract: operation 4).

    The platform accepts the creation and works on it afterwards; wait for it with
    :class:`~airflow_provider_anaplat.sensors.datasets.AnaplatDatasetTaskSensor`. Objects may be given with the
    contract's field names (``queryType``) or in snake_case (``query_type``); what is None is not sent.

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
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``taskId``, ``dsId``, ``status`` and ``result`` as the platform answered them.

    Raises :class:`AirflowFailException` where the answer was lost, since a retry could create the dataset
    twice, and :class:`AnaplatError` where the platform refused.
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
        "anaplat_conn_id",
    )

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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
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

    def execute(self, context: Context) -> dict[str, Any]:
        """Ask the platform to create the dataset."""
        request = self._request()
        with no_retry_of_unknown_outcomes():
            task = self.client().create_dataset(request)
        self._fail_if_failed(task)
        self.log.info("Dataset %s (%r) is being created: %s, %s", task.ds_id, self.name, task.status, task.result)
        return task.model_dump(mode="json", by_alias=True, include={"task_id", "ds_id", "status", "result"})

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
        """Fail where the accepted creation says at once that it failed, in a word or in an object."""
        error = task.result.get("error") if isinstance(task.result, dict) else None
        words = (task.status, task.result if isinstance(task.result, str) else None)
        if error or any(StateTable().read(word) is State.FAILED for word in words):
            raise AirflowFailException(
                f"The platform accepted the creation of dataset {self.name!r} and reports that it failed: "
                f"status {task.status!r}, result {error or task.result!r}. Look at the dataset {task.ds_id} there."
            )
