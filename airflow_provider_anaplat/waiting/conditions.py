"""What a wait is for: each condition says which records it needs, and judges what the platform shows of them.

A condition's fields are plain JSON. The sensor that pokes and the trigger that waits in its place judge with the
same condition, which is why they end alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from airflow_provider_anaplat.client._http.redaction import LONGEST_WORDS, brief
from airflow_provider_anaplat.client.names import check_one_given, id_of
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.waiting.moments import by_its_clock, is_later, moment
from airflow_provider_anaplat.waiting.states import (
    FAILURE_STATES,
    NOT_SENT_STATES,
    SENT_STATES,
    SUCCESS_STATES,
    State,
    StateTable,
    is_list_of_texts,
)

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.client.models import Dataset, SubscriptionPlan, TaskStatus

__all__ = [
    "Condition",
    "DatasetDone",
    "DatasetFresh",
    "DatasetRefreshed",
    "Request",
    "SubscriptionsSent",
    "UnknownState",
    "Verdict",
]

C = TypeVar("C", bound="Condition")
UnknownState = Literal["wait", "fail"]
Request = Literal["find_datasets", "find_subscriptions", "find_task"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a condition makes of one look.

    :param state: WORKING to wait on; DONE, FAILED or UNKNOWN to end
    :param seen: what the platform shows, for a person to read
    :param result: what the waiting task returns, if it is DONE
    """

    state: State
    seen: str
    result: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Base of all conditions.

    :cvar shared_request: the method of the client that finds the records of all who wait, by their ids
    """

    shared_request: ClassVar[Request]

    @classmethod
    def of(cls: type[C], holder: object) -> C:
        """Return the condition whose fields are the attributes of a sensor or trigger."""
        return cls(**{field.name: getattr(holder, field.name) for field in fields(cls)})

    @property
    def request(self) -> Request:
        """The method of the client that finds the records by their ids."""
        return self.shared_request

    @property
    def arguments(self) -> dict[str, Any]:
        """What that method takes besides the ids; plain JSON. With any, the request is shared with nobody."""
        return {}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the records to look at."""
        raise NotImplementedError

    def check(self) -> None:
        """See that the fields can be right, whatever the platform shows.

        :raises AnaplatRequestError: one cannot
        """
        raise NotImplementedError

    def judge(self, lookup: Lookup[Any]) -> Verdict:
        """Say what one look means.

        :raises AnaplatInvalidAnswerError: a record that is waited for breaks the contract
        """
        raise NotImplementedError

    def is_result(self, result: Any) -> bool:
        """Tell whether something is a result of this very condition."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _OfOneDataset(Condition):
    shared_request = "find_datasets"

    ds_id: str | None = None
    dataset: str | None = None
    success_states: Sequence[str] = SUCCESS_STATES
    failure_states: Sequence[str] = FAILURE_STATES
    unknown_state: UnknownState = "wait"

    @property
    def ids(self) -> tuple[str, ...]:
        """The dataset's id; none if its name is given, which is searched for in each look at the list."""
        return (self.ds_id,) if self.ds_id else ()

    @property
    def called(self) -> str:
        """What the dataset is called in a message."""
        return self.ds_id or repr(self.dataset)

    def is_result(self, result: Any) -> bool:
        """Tell whether something is the summary of this dataset."""
        return isinstance(result, dict) and (not self.ds_id or result.get("dsId") == self.ds_id)

    def check(self) -> None:
        """See that one dataset is named, and that the words of states are words."""
        check_one_given(self.ds_id, self.dataset)
        StateTable(self.success_states, self.failure_states)

    def judge(self, lookup: Lookup[Dataset]) -> Verdict:
        """Read the dataset's status word.

        :raises AnaplatDatasetExistsError: the name is given, and several datasets have it
        """
        self.check()
        states = StateTable(self.success_states, self.failure_states)
        ds_id = self.ds_id or id_of(self.dataset or "", lookup)
        dataset = None if ds_id is None else lookup.get(ds_id)
        if dataset is None:
            return Verdict(State.WORKING, f"dataset {self.called} is not in the list")
        state = self._judge(states.read(dataset.status), dataset, lookup.clock_ahead)
        seen = (
            f"dataset {self.called} is {brief(repr(dataset.status))}{self._also_seen(dataset, lookup.clock_ahead)}"
        )
        if state is State.UNKNOWN and self.unknown_state == "wait":
            return Verdict(State.WORKING, f"{seen}, which no table of states knows")
        return Verdict(state, seen, dataset.summary() if state is State.DONE else None)

    def _judge(self, state: State, dataset: Dataset, clock_ahead: timedelta) -> State:
        """Return what the meaning of the dataset's word means to this condition."""
        raise NotImplementedError

    def _also_seen(self, dataset: Dataset, clock_ahead: timedelta) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class _OfOneTask(_OfOneDataset):
    """Of a dataset, or of the platform's task that works on it, if a deployment can be asked for that.

    :param probe: what is looked at: the dataset in the ``list``, or the ``task``
    :param platform_task_id: id of that task; without one, the list is looked at
    :param task_status: how to ask for the task, before what the connection says
    """

    probe: Literal["list", "task"] = "list"
    platform_task_id: str | None = None
    task_status: Mapping[str, Any] | None = None

    @property
    def _task_id(self) -> str | None:
        return self.platform_task_id if self.probe == "task" else None

    @property
    def request(self) -> Request:
        """The dataset list, or the status of the task."""
        return "find_task" if self._task_id else "find_datasets"

    @property
    def arguments(self) -> dict[str, Any]:
        """How to ask for the task."""
        return {"call": {} if self.task_status is None else self.task_status} if self._task_id else {}

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the task, or of the dataset."""
        return (self._task_id,) if self._task_id else super().ids

    def judge(self, lookup: Lookup[Any]) -> Verdict:
        """Read the words of the task, or the dataset's status word."""
        if not self._task_id:
            return super().judge(lookup)
        task: TaskStatus = lookup.get(self._task_id)  # type: ignore[assignment]  # what was asked for is there
        result = brief(repr(task.error or task.result), LONGEST_WORDS)
        seen = f"task {self._task_id} is {brief(repr(task.status))}, its result {result}"
        state = self._judge_task(task)
        if state is State.UNKNOWN and self.unknown_state == "wait":
            return Verdict(State.WORKING, f"{seen}; no table of states knows one of these")
        summary = {"dsId": self.ds_id, "taskId": self._task_id, "status": task.status, "result": task.result}
        return Verdict(state, seen, summary if state is State.DONE else None)

    def _judge_task(self, task: TaskStatus) -> State:
        """Read ``status`` and ``result``; what the latter says of the work counts more than "submitted"."""
        if task.error:
            return State.FAILED
        states = StateTable(self.success_states, self.failure_states)
        read = [states.read(word) for word in task.words] or [State.UNKNOWN]
        return next((state for state in (State.FAILED, State.UNKNOWN) if state in read), read[-1])


@dataclass(frozen=True, kw_only=True)
class DatasetDone(_OfOneTask):
    """A dataset that is being created is done; one that is not in the list yet is waited for.

    :param ds_id: id of the dataset
    :param dataset: its name in place of its id, also as ``directory/name``
    :param success_states: words that mean done
    :param failure_states: words that mean failed
    :param unknown_state: at a word in no table, ``wait`` or ``fail``
    :param probe: what is looked at: the dataset in the ``list``, or the ``task`` that creates it
    :param platform_task_id: id of that task; without one, the list is looked at
    :param task_status: how to ask for the task, before what the connection says
    """

    def _judge(self, state: State, dataset: Dataset, clock_ahead: timedelta) -> State:
        return state


@dataclass(frozen=True, kw_only=True)
class DatasetFresh(_OfOneDataset):
    """A dataset's last update is at or after a moment of our clock, and its status is a success.

    What its status says counts from that moment on: a failure of an earlier update is no end.

    :param newer_than: the moment (ISO 8601; UTC if it names no zone)
    """

    newer_than: str | datetime

    def check(self) -> None:
        """See that ``newer_than`` is a moment, too."""
        super().check()
        moment("newer_than", self.newer_than)

    def _judge(self, state: State, dataset: Dataset, clock_ahead: timedelta) -> State:
        since = moment("newer_than", self.newer_than)
        fresh = dataset.utime is not None and dataset.utime - since >= clock_ahead
        return state if fresh else State.WORKING

    def _also_seen(self, dataset: Dataset, clock_ahead: timedelta) -> str:
        return f", last updated {dataset.utime or 'never'}{by_its_clock(clock_ahead)}"


@dataclass(frozen=True, kw_only=True)
class DatasetRefreshed(_OfOneTask):
    """A dataset's last update is after the one that was noted before a refresh, and its status is a success.

    :param noted_utime: the last update that was noted (ISO 8601); None if there was none
    :param noted_status: the status that was noted. If it was a failure already, a failure counts only
        once there is a later update, since until then it may be the old one

    With ``probe="task"``, what the platform says of the update's task counts instead.
    """

    noted_utime: str | None
    noted_status: str | None = None

    def _judge(self, state: State, dataset: Dataset, clock_ahead: timedelta) -> State:
        noted = moment("noted_utime", self.noted_utime) if self.noted_utime else None
        if is_later(dataset.utime, noted, datetime.now(UTC) + clock_ahead):
            return state
        failed_now = state is State.FAILED and dataset.status != self.noted_status
        return State.FAILED if failed_now else State.WORKING

    def _also_seen(self, dataset: Dataset, clock_ahead: timedelta) -> str:
        return f", last updated {dataset.utime or 'never'}"


@dataclass(frozen=True, kw_only=True)
class SubscriptionsSent(Condition):
    """Each of these subscriptions was last sent at or after a moment of our clock, with success.

    A plan that does not exist or is disabled will never be sent: it is a failure at once.

    :param subscription_ids: ids of the plans
    :param sent_after: the moment (ISO 8601; UTC if it names no zone)
    :param success_states: words of ``lastSendStatus`` that mean sent
    :param failure_states: words that mean failed
    :param unknown_state: at a word in no table, ``wait`` or ``fail``
    """

    shared_request = "find_subscriptions"

    subscription_ids: Sequence[str]
    sent_after: str | datetime
    success_states: Sequence[str] = SENT_STATES
    failure_states: Sequence[str] = NOT_SENT_STATES
    unknown_state: UnknownState = "wait"

    @property
    def ids(self) -> tuple[str, ...]:
        """The plans' ids, each once.

        :raises AnaplatRequestError: something else was given, such as a text, whose characters are no ids
        """
        if not is_list_of_texts(self.subscription_ids):
            what = "the text" if isinstance(self.subscription_ids, str) else "the value"
            raise AnaplatRequestError(
                f"subscription_ids is {what} {self.subscription_ids!r}; it must be a list of ids. A template "
                "gives one if the DAG has render_template_as_native_obj=True."
            )
        return tuple(dict.fromkeys(self.subscription_ids))

    def is_result(self, result: Any) -> bool:
        """Tell whether something holds a summary of each of these plans."""
        plans = result.get("subscriptions") if isinstance(result, dict) else None
        if not isinstance(plans, list) or not all(isinstance(plan, dict) for plan in plans):
            return False
        found = [plan.get("scId") for plan in plans]
        # A set is in another order in the process that resumes.
        return len(found) == len(self.ids) and all(sc_id in found for sc_id in self.ids)

    def check(self) -> None:
        """See that plans are named, ``sent_after`` is a moment, and the words of states are words."""
        if not self.ids:  # of no plan, it could only be said that all were sent
            raise AnaplatRequestError("subscription_ids is empty: there is nothing to wait for.")
        moment("sent_after", self.sent_after)
        StateTable(self.success_states, self.failure_states)

    def judge(self, lookup: Lookup[SubscriptionPlan]) -> Verdict:
        """Read what each plan says of its last send; one that failed is enough to end."""
        self.check()
        plans = {sc_id: lookup.get(sc_id) for sc_id in self.ids}
        read = {sc_id: self._judge(sc_id, plan, lookup.clock_ahead) for sc_id, plan in plans.items()}
        for state in (State.FAILED, State.UNKNOWN):
            ended = [seen for found, seen in read.values() if found is state]
            if ended:
                return Verdict(state, "; ".join(ended))
        waiting = [seen for found, seen in read.values() if found is State.WORKING]
        if waiting:
            return Verdict(State.WORKING, "; ".join(waiting))
        sent = [plan.summary() for plan in plans.values() if plan is not None]
        return Verdict(State.DONE, f"all {len(sent)} subscriptions were sent", {"subscriptions": sent})

    def _judge(self, sc_id: str, plan: SubscriptionPlan | None, clock_ahead: timedelta) -> tuple[State, str]:
        if plan is None:
            return State.FAILED, f"subscription {sc_id} does not exist"
        name = f"subscription {sc_id} ({brief(plan.name)})"
        if plan.enabled is False:
            return State.FAILED, f"{name} is disabled"
        since = moment("sent_after", self.sent_after)
        if plan.last_send_time is None or plan.last_send_time - since < clock_ahead:
            last = f"{plan.last_send_time or 'never'}{by_its_clock(clock_ahead)}"
            return State.WORKING, f"{name} was last sent {last}"
        seen = f"{name} was sent {plan.last_send_time} with {brief(repr(plan.last_send_status))}"
        state = StateTable(self.success_states, self.failure_states).read(plan.last_send_status)
        unknown_waits = state is State.UNKNOWN and self.unknown_state == "wait"
        return (State.WORKING if unknown_waits else state), seen
