"""Refresh datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.dataset_names import NamesDataset
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat._airflow.task_state import retried_since, task_state
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatDatasetLink, link_dataset
from airflow_provider_anaplat.operators.waiting import AnaplatWaitingOperator, carried_by
from airflow_provider_anaplat.triggers.base import DEFERRABLE
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetRefreshTrigger
from airflow_provider_anaplat.waiting.states import FAILURE_STATES, SUCCESS_STATES, StateTable

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.operations import TokenPlace
    from airflow_provider_anaplat.client.tasks import RefreshCall
    from airflow_provider_anaplat.datasets.refresh import Refresh

__all__ = [
    "AnaplatRefreshDatasetOperator",
]

_LONGEST_PAUSE = 10.0  # seconds between two looks after a lost answer


class AnaplatRefreshDatasetOperator(NamesDataset, AnaplatWaitingOperator):
    """Have the platform update a dataset, and wait until it has.

    **An extension**: the contract names dataset update tasks without describing them. Path, method and place of
    the token are those of the connection's ``refresh_style``: ``post``, as the vendor documents it, or ``get``,
    with the token in the query, as deployments are known to take it. If yours differs, give the arguments or the
    connection's extras ``refresh_path``, ``refresh_method`` and ``refresh_auth_in``. The wait itself rests on
    operation 2: the dataset's ``utime`` must be later than before, and its status a success.

    The refresh is requested once. If the answer is lost, the operator looks at the dataset list: an update that
    is running or done is taken for this one; otherwise the task fails without a retry, since a second request
    could update twice. On Airflow 3.3, the task state store tells a retry that an earlier attempt has sent the
    request. Before 3.3, a retry takes an update since the DAG run's start for its own, follows one that is
    running, and sends the request again only if there is neither.

    :param ds_id: id of the dataset (templated); ``.partial(...).expand(ds_id=[...])`` refreshes several
    :param dataset: its name in place of its id, also as ``directory/name``; exactly one must have it (templated)
    :param body: the request's body, without the token: what to refresh, on platforms that allow a partial refresh
        (templated)
    :param path: path below the base address; ``{dsId}`` stands for the id (templated)
    :param method: HTTP method (templated)
    :param token_in: where the token goes: the JSON ``body``, the ``X-Auth-Token`` ``header``, a header named
        ``token`` (``token_header``), or the ``query``, which the logs of servers and proxies keep (templated)
    :param if_running: if an update is already running: ``follow`` it instead of requesting a second one, ``fail``,
        or ``request`` one all the same
    :param in_doubt: if the answer was lost and no update is seen: ``fail`` without a retry, or ``resend``:
        Airflow's retries send the request again, at the risk of a second update
    :param probe: wait for the dataset in the ``list``, or for the ``task`` whose id the platform has answered, on
        deployments that can be asked for one. Only the task shows an update that fails without moving ``utime``
    :param wait_for_completion: wait, rather than end once the platform has accepted the work
    :param deferrable: wait in the triggerer instead of a worker
    :param poll_interval: seconds between two polls; when deferred, the shortest interval on the connection counts
    :param timeout: seconds to wait at most
    :param max_poll_failures: consecutive failed polls after which the task fails with the last error
    :param success_states: status words that mean done
    :param failure_states: status words that mean failed
    :param unknown_state: what to do at an unknown status word: ``wait`` until the time-out, or ``fail`` at once
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``name``, ``parentDirId``, ``status``, ``rowCount``, ``colCount``, ``ctime`` and ``utime`` of
    the dataset, after the update or, without ``wait_for_completion``, before it; and ``taskId``, None if the
    platform gave none.

    Raises :class:`AirflowFailException` if the update failed, or if it is not known whether it was accepted,
    :class:`AirflowTaskTimeout` if it took too long, and :class:`AnaplatError` if the platform refused or
    cannot be asked.

    How-to: :doc:`howto/refresh-dataset`. Example::

        AnaplatRefreshDatasetOperator(task_id="refresh", ds_id="ds1", deferrable=True)
    """

    template_fields: Sequence[str] = ("ds_id", "dataset", "body", "path", "method", "token_in", "anaplat_conn_id")
    operator_extra_links = (AnaplatDatasetLink(),)

    def __init__(
        self,
        *,
        ds_id: str | None = None,
        dataset: str | None = None,
        body: Mapping[str, Any] | None = None,
        path: str | None = None,
        method: str | None = None,
        token_in: TokenPlace | None = None,
        if_running: Literal["follow", "fail", "request"] = "follow",
        in_doubt: Literal["fail", "resend"] = "fail",
        probe: Literal["list", "task"] = "list",
        wait_for_completion: bool = True,
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
        self.ds_id = ds_id
        self.dataset = dataset
        self.body = body
        self.path = path
        self.method = method
        self.token_in = token_in
        self.if_running = if_running
        self.in_doubt = in_doubt
        self.probe = probe

    def work(self, context: Context) -> dict[str, Any]:
        """Note the dataset's last update, ask for the next one, and wait for it."""
        with closing(self.client()) as client:
            ds_id = self.dataset_id(client)
            refresh = self._refresh(client, context, ds_id)
            asked = refresh.ask()
            link_dataset(self, context, ds_id, asked.dataset.get("parentDirId"))
            if not self.wait_for_completion:
                refresh.forget()
                self.done = {**asked.dataset, "taskId": asked.task_id}
                return self.done
        return self.wait(
            context,
            AnaplatDatasetRefreshTrigger,
            {"taskId": asked.task_id},
            ds_id=ds_id,
            noted_utime=asked.utime,
            noted_status=asked.dataset["status"],
            probe=self.probe,
            platform_task_id=asked.task_id,
        )

    def complete(self, context: Context, event: dict[str, Any] | None) -> dict[str, Any]:
        """End as the event of the wait says."""
        carried = carried_by(event)
        ds_id = carried.get("condition", {}).get("ds_id") or self.ds_id or ""
        with closing(self.client()) as client:
            refresh = self._refresh(client, context, ds_id)
            try:
                result = self.outcome(event, AnaplatDatasetRefreshTrigger.condition)
            except AirflowFailException:  # this refresh has ended; clearing the task asks for another
                refresh.give_up()
                raise
            if "utime" not in result:  # the task was looked at, which says nothing of the dataset
                result = refresh.look().summary()
            refresh.forget()
        self.log.info("Dataset %s was updated at %s", ds_id, result["utime"])
        self.done = {**result, "taskId": carried.get("taskId")}
        return self.done

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return what OpenLineage shall know; None if the dataset was not updated."""
        if self.done is None:
            return None
        from airflow_provider_anaplat.lineage import lineage_of_dataset

        name = self.dataset_name(self.done["dsId"])
        return lineage_of_dataset(name, self.done["name"], created=False, query=None, declared=self.inlets)

    def check(self) -> None:
        """See that the arguments can be right, also where an update runs that is followed without a request."""
        super().check()
        self._call()

    def _call(self) -> RefreshCall:
        """Return how the platform is asked, as the arguments say, or else the connection."""
        from airflow_provider_anaplat.client.tasks import RefreshCall

        extension = AnaplatHook(self.anaplat_conn_id).get_extension
        return RefreshCall.of(
            extension("refresh_style"),
            self.path or extension("refresh_path"),
            self.method or extension("refresh_method"),
            self.token_in or extension("refresh_auth_in"),
        )

    def _refresh(self, client: AnaplatClient, context: Context, ds_id: str) -> Refresh:
        from airflow_provider_anaplat.datasets.refresh import Refresh, RefreshWish

        wish = RefreshWish(
            ds_id,
            self._call(),
            self.body,
            self.if_running,
            self.in_doubt,
            since=retried_since(context),
            states=StateTable(self.success_states, self.failure_states),
            pause=min(self.poll_interval, _LONGEST_PAUSE),
        )
        return Refresh(client, task_state(context), wish)
