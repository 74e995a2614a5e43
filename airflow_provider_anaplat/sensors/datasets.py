"""Wait for datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.dataset_names import NamesDataset
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatDatasetLink, link_dataset
from airflow_provider_anaplat.sensors.base import END_OF_INTERVAL, AnaplatSensor
from airflow_provider_anaplat.triggers.base import DEFERRABLE
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetFreshnessTrigger, AnaplatDatasetTaskTrigger
from airflow_provider_anaplat.waiting.states import FAILURE_STATES, SUCCESS_STATES

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "AnaplatDatasetFreshnessSensor",
    "AnaplatDatasetTaskSensor",
]


class _AnaplatDatasetSensor(NamesDataset, AnaplatSensor):
    """A sensor that waits for one dataset, and links to it."""

    operator_extra_links = (AnaplatDatasetLink(),)

    def link(self, context: Context, result: Mapping[str, Any]) -> None:
        """Note the link to the dataset, once its id is known."""
        if ds_id := self.ds_id or result.get("dsId"):
            link_dataset(self, context, ds_id, result.get("parentDirId"))


class AnaplatDatasetTaskSensor(_AnaplatDatasetSensor):
    """Wait until the creation of a dataset has left the state 处理中 (processing).

    The contract shows no way to ask for a creation task, so the sensor watches the dataset's ``status`` in the
    dataset list (operation 2). It keeps waiting while the dataset is not in the list yet, or its status says
    that the platform is still working on it. A failure fails the task at once, without a retry. An unknown word
    is never a success. A poll that fails (no connection, HTTP 5xx or 429) is repeated, up to
    ``max_poll_failures`` times in a row.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``, looked for at each poll; more than one
        that has it is an error (templated)
    :param success_states: status words that mean done
    :param failure_states: status words that mean failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param probe: ``list``, or ``task`` for deployments that can be asked for a task (below)
    :param platform_task_id: with ``probe="task"``, ``taskId`` of the creation. If there is none, as for a
        dataset that was found, the dataset list is watched (templated)
    :param task_status: with ``probe="task"``, how to ask, if the connection's extra ``task_status`` does not
        say it: ``path``, ``method``, ``params``, ``auth_in`` (``query``, ``header`` or ``body``); ``{taskId}``
        stands for the id (templated)
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param deferrable: wait in the triggerer instead of a worker
    :param start_from_trigger: with ``deferrable``, begin in the triggerer too, and never take a worker slot
        before the end. If Airflow does not offer that (before 3.3) or an argument comes from another task's
        output, the sensor defers from a worker
    :param anaplat_conn_id: id of the Airflow connection (templated)

    ``probe="task"`` is **an extension**: the contract does not describe the call, and public material no more than
    ``GET /public-api/task/status``, the default. If ``result`` of the task is a word, it says whether the
    task is done; otherwise ``status`` does. A failure word, or an unknown one, counts in both; an object with an
    ``error`` is a failure. Deferred, each sensor asks for its own task: a thousand of them send a thousand
    requests an interval, and keep as many threads. The token in the query, the default, is masked in all
    that this package logs and raises; the logs of servers and proxies on the way keep it.

    Returns ``dsId``, ``name``, ``parentDirId``, ``status``, ``rowCount``, ``colCount``, ``ctime`` and ``utime`` of
    the dataset; with ``probe="task"``, ``dsId``, and ``taskId``, ``status`` and ``result`` of the task.

    Raises :class:`AirflowFailException` if the creation failed, :class:`AirflowSensorTimeout` if it took
    too long, :class:`AnaplatError` if polls keep failing.

    How-to: :doc:`howto/wait-for-dataset`. Example::

        AnaplatDatasetTaskSensor(task_id="created", ds_id=create.output["dsId"], deferrable=True)
    """

    trigger = AnaplatDatasetTaskTrigger
    needs_new_look = True
    template_fields: Sequence[str] = ("ds_id", "dataset", "platform_task_id", "task_status", "anaplat_conn_id")

    def __init__(
        self,
        *,
        ds_id: str | None = None,
        dataset: str | None = None,
        success_states: Sequence[str] = SUCCESS_STATES,
        failure_states: Sequence[str] = FAILURE_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        probe: Literal["list", "task"] = "list",
        platform_task_id: str | None = None,
        task_status: Mapping[str, Any] | None = None,
        max_poll_failures: int = 10,
        deferrable: bool = DEFERRABLE,
        start_from_trigger: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_poll_failures=max_poll_failures,
            deferrable=deferrable,
            start_from_trigger=start_from_trigger,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.ds_id = ds_id
        self.dataset = dataset
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state
        self.probe = probe
        self.platform_task_id = platform_task_id
        self.task_status = task_status
        self._begin_in_triggerer()


class AnaplatDatasetFreshnessSensor(_AnaplatDatasetSensor):
    """Wait until a dataset's last update is at or after a moment, with success (contract: operation 2).

    Only updates since that moment count: after an earlier update, even a failed one, the sensor keeps waiting. A
    failed update that does not change ``utime`` therefore ends in a time-out.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``, looked for at each poll; more than one
        that has it is an error (templated)
    :param newer_than: the moment, ISO 8601 or a datetime; UTC if it names no zone. By default the end of the
        run's data interval, or the moment from which the run may start if it has none (templated)
    :param success_states: status words that mean that an update succeeded
    :param failure_states: status words that mean that it failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param deferrable: wait in the triggerer instead of a worker
    :param start_from_trigger: with ``deferrable``, begin in the triggerer too, and never take a worker slot
        before the end. If Airflow does not offer that (before 3.3) or an argument comes from another task's
        output, the sensor defers from a worker
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``name``, ``parentDirId``, ``status``, ``rowCount``, ``colCount``, ``ctime`` and ``utime`` of
    the dataset.

    Raises :class:`AirflowFailException` if the update failed, :class:`AirflowSensorTimeout` if it took too
    long, :class:`AnaplatError` if polls keep failing.

    How-to: :doc:`howto/wait-for-fresh-data`. Example::

        AnaplatDatasetFreshnessSensor(task_id="fresh", ds_id="ds1", newer_than="{{ data_interval_end }}")
    """

    trigger = AnaplatDatasetFreshnessTrigger
    template_fields: Sequence[str] = ("ds_id", "dataset", "newer_than", "anaplat_conn_id")

    def __init__(
        self,
        *,
        ds_id: str | None = None,
        dataset: str | None = None,
        newer_than: str | datetime = END_OF_INTERVAL,
        success_states: Sequence[str] = SUCCESS_STATES,
        failure_states: Sequence[str] = FAILURE_STATES,
        unknown_state: Literal["wait", "fail"] = "wait",
        max_poll_failures: int = 10,
        deferrable: bool = DEFERRABLE,
        start_from_trigger: bool = False,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            max_poll_failures=max_poll_failures,
            deferrable=deferrable,
            start_from_trigger=start_from_trigger,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.ds_id = ds_id
        self.dataset = dataset
        self.newer_than = newer_than
        self.success_states = success_states
        self.failure_states = failure_states
        self.unknown_state = unknown_state
        self._begin_in_triggerer()
