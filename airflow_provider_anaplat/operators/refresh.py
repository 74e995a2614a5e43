"""Refresh datasets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import AnaplatError, AnaplatNotFoundError, AnaplatOutcomeUnknownError
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import AnaplatDatasetLink, link_dataset
from airflow_provider_anaplat.operators.waiting import AnaplatWaitingOperator
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetRefreshTrigger
from airflow_provider_anaplat.waiting.conditions import moment
from airflow_provider_anaplat.waiting.states import State, StateTable

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.client.models import Dataset
    from airflow_provider_anaplat.client.operations import TokenPlace

_PATH = "/public-api/data-source/{dsId}/refresh"
_STATE_KEY = "anaplat_refresh"
_LOOKS_AFTER_A_LOST_ANSWER = 3
_BETWEEN_LOOKS = 10.0  # seconds at most


class AnaplatRefreshDatasetOperator(AnaplatWaitingOperator):
    """Have the platform update a dataset, and wait until it has.

    **An extension**: the contract names dataset update tasks without describing them. Path, method and place of
    the token are those that platforms of this family are known to have; where yours differ, give the arguments or
    the connection's extras ``refresh_path``, ``refresh_method`` and ``refresh_auth_in``. The wait itself rests on
    operation 2: the dataset's ``utime`` must be later than before, and its status a success.

    The refresh is asked for once. Where the answer is lost, the dataset list is looked at: an update that runs or
    is done is this one; where neither is seen, the task fails without a retry, since asking again could update
    twice. On Airflow 3.3, the task's state tells a retry that an earlier attempt has asked. Before 3.3, a retry
    takes an update since the DAG run's start for its own, follows one that runs, and asks again only where there
    is neither.

    :param ds_id: id of the dataset (templated)
    :param path: path below the base address; ``{dsId}`` stands for the id (templated)
    :param method: HTTP method (templated)
    :param token_in: where the token goes: the JSON ``body``, the ``X-Auth-Token`` ``header``, or the ``query``,
        which the logs of servers and proxies keep (templated)
    :param if_running: where an update runs already: ``follow`` it instead of asking for a second one, ``fail``, or
        ``request`` one nevertheless

    Further arguments: those of :class:`~airflow_provider_anaplat.operators.waiting.AnaplatWaitingOperator`.

    Returns ``dsId``, ``name``, ``parentDirId``, ``status``, ``rowCount``, ``colCount``, ``ctime`` and ``utime`` of
    the dataset:
    after the update or, without ``wait_for_completion``, before it.

    Raises :class:`AirflowFailException` where the update failed, or where it is not known whether it was accepted,
    :class:`AirflowTaskTimeout` where it took too long, and :class:`AnaplatError` where the platform refused or
    cannot be asked.
    """

    template_fields: Sequence[str] = ("ds_id", "path", "method", "token_in", "anaplat_conn_id")
    operator_extra_links = (AnaplatDatasetLink(),)

    def __init__(
        self,
        *,
        ds_id: str,
        path: str | None = None,
        method: str | None = None,
        token_in: TokenPlace | None = None,
        if_running: Literal["follow", "fail", "request"] = "follow",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ds_id = ds_id
        self.path = path
        self.method = method
        self.token_in = token_in
        self.if_running = if_running

    def work(self, context: Context) -> dict[str, Any]:
        """Note the dataset's last update, ask for the next one, and wait for it."""
        noted = self._noted_before(context) or self._start(context)
        link_dataset(self, context, self.ds_id, noted["dataset"].get("parentDirId"))
        if not self.wait_for_completion:
            self._forget(context)
            self.done = dict(noted["dataset"])
            return self.done
        return self.wait(
            context,
            AnaplatDatasetRefreshTrigger,
            {},
            ds_id=self.ds_id,
            noted_utime=noted["utime"],
            noted_status=noted["dataset"]["status"],
        )

    def complete(self, context: Context, event: dict[str, Any] | None) -> dict[str, Any]:
        """End as the event of the wait says."""
        try:
            result = self.outcome(event, AnaplatDatasetRefreshTrigger.condition)
        except AirflowFailException:  # this refresh has ended; clearing the task asks for another
            self._forget(context)
            raise
        self._forget(context)
        self.log.info("Dataset %s was updated at %s", self.ds_id, result["utime"])
        self.done = result
        return result

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return what OpenLineage shall know; None where the dataset was not updated."""
        if self.done is None:
            return None
        from airflow_provider_anaplat.lineage import lineage_of_dataset

        name = self.dataset_name(self.done["dsId"])
        return lineage_of_dataset(name, self.done["name"], created=False, query=None, declared=self.inlets)

    def _look(self) -> Dataset:
        with closing(self.client()) as client:
            dataset = client.find_datasets([self.ds_id]).get(self.ds_id)
        if dataset is None:
            raise AnaplatNotFoundError(
                f"Dataset {self.ds_id} is not in the dataset list, so it was not refreshed. Check the id, and the "
                "rights of the connection's token."
            )
        return dataset

    def _is_running(self, dataset: Dataset) -> bool:
        states = StateTable(self.success_states, self.failure_states)
        return states.read(dataset.status) is State.WORKING

    def _start(self, context: Context) -> dict[str, Any]:
        """Ask for an update or find one that runs; return what to wait beyond."""
        dataset = self._look()
        # Of an update that runs, it is not known when the platform sets `utime`: its end is its status alone.
        follows = self._is_running(dataset) and self.if_running != "request"
        noted = {"dataset": dataset.summary(), "utime": None if follows else dataset.summary()["utime"]}
        if follows and self.if_running == "fail":
            raise AirflowFailException(f"Dataset {self.ds_id} is {dataset.status!r}: an update runs already.")
        store = context.get("task_state_store")
        if store is not None:
            store.set(_STATE_KEY, noted)
        if follows:
            self.log.info("Dataset %s is %r: following the update that runs", self.ds_id, dataset.status)
        else:
            self._ask_once(context, noted)
        return noted

    def _ask_once(self, context: Context, noted: dict[str, Any]) -> None:
        try:
            self._ask()
        except AnaplatOutcomeUnknownError as error:
            self.log.warning("%s", error)
            self._resolve(context, noted, str(error))
        except (AnaplatError, AirflowFailException):  # it was refused, or never left
            self._forget(context)
            raise

    def _ask(self) -> None:
        hook = AnaplatHook(self.anaplat_conn_id)
        path = self.path or hook.get_extension("refresh_path") or _PATH
        token_in = self.token_in or hook.get_extension("refresh_auth_in") or "body"
        if token_in not in ("body", "header", "query"):
            raise AirflowFailException(f"refresh_auth_in is {token_in!r}; it must be body, header or query.")
        with closing(hook.get_conn()) as client:
            client.call(
                path.replace("{dsId}", quote(self.ds_id, safe="")),
                method=self.method or hook.get_extension("refresh_method") or "POST",
                token_in=cast("TokenPlace", token_in),
            )
        self.log.info("The platform has accepted the refresh of dataset %s", self.ds_id)

    def _resolve(self, context: Context, noted: dict[str, Any], why: str) -> None:
        """Look whether a refresh whose answer was lost was accepted: something has changed, or is about to.

        :raises AirflowFailException: no sign of it is seen
        """
        for number in range(_LOOKS_AFTER_A_LOST_ANSWER):
            time.sleep(min(self.poll_interval, _BETWEEN_LOOKS) if number else 0)
            try:
                dataset = self._look()
            except AnaplatError as error:
                why = f"{why} {error}"
                continue
            changed = dataset.status != noted["dataset"]["status"] or self._is_later(dataset, noted["utime"])
            if changed or self._is_running(dataset):
                self.log.info("It was accepted: dataset %s is %r", self.ds_id, dataset.status)
                return
        self._forget(context)
        raise AirflowFailException(
            f"It is not known whether the refresh of dataset {self.ds_id} was accepted, and it was not asked for "
            f"again: no update was seen since. Look on the platform, then clear this task to ask again. {why}"
        )

    def _noted_before(self, context: Context) -> dict[str, Any] | None:
        """Return what an earlier attempt of this task noted before it asked; None where none has asked."""
        store = context.get("task_state_store")
        if store is None:
            return self._done_since_the_run_began(context)
        noted: Any = store.get(_STATE_KEY)
        if not isinstance(noted, dict) or noted["dataset"]["dsId"] != self.ds_id:
            return None
        self.log.info("An earlier attempt has asked for the refresh of dataset %s", self.ds_id)
        self._resolve(context, noted, "An earlier attempt ended before its answer came.")
        return noted

    def _done_since_the_run_began(self, context: Context) -> dict[str, Any] | None:
        ti, run = context.get("ti"), context.get("dag_run")
        if ti is None or run is None or ti.try_number < 2 or run.start_date is None:
            return None
        dataset = self._look()
        if not self._is_later(dataset, run.start_date.isoformat()) or self._is_running(dataset):
            return None
        self.log.info("Dataset %s was updated since the DAG run began; this counts", self.ds_id)
        return {"dataset": dataset.summary(), "utime": run.start_date.isoformat()}

    def _is_later(self, dataset: Dataset, utime: str | None) -> bool:
        return dataset.utime is not None and (utime is None or dataset.utime > moment("utime", utime))

    def _forget(self, context: Context) -> None:
        store = context.get("task_state_store")
        if store is not None:
            store.delete(_STATE_KEY)
