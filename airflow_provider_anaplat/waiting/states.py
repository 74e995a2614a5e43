"""The state table: what the platform's words say of a dataset that is being created or refreshed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.errors import AnaplatRequestError

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.models import TaskStatus

__all__ = [
    "FAILURE_STATES",
    "NOT_SENT_STATES",
    "SENT_STATES",
    "SUCCESS_STATES",
    "WORKING_STATES",
    "State",
    "StateTable",
    "is_list_of_texts",
]

# The contract shows FINISHED, 已提交 and 处理中 and calls no list complete. The English words for work in
# progress and for failure are those that platforms of this family are known to use.
WORKING_STATES = ("已提交", "处理中", "SUBMITTED", "CREATED", "PROCESSING", "RUNNING")
SUCCESS_STATES = ("FINISHED",)
FAILURE_STATES = ("FAILED", "CANCELED", "CANCELLED")
# Of a subscription's last send, the contract shows SUCCESS alone.
SENT_STATES = ("SUCCESS",)
NOT_SENT_STATES = ("FAILED", "FAIL", "FAILURE", "ERROR")


class State(Enum):
    """What a word means to those who wait."""

    WORKING = "still working"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StateTable:
    """Which words mean what; a word in no column is unknown, and never a success.

    :param success: words that mean done
    :param failure: words that mean failed
    """

    success: Sequence[str] = SUCCESS_STATES
    failure: Sequence[str] = FAILURE_STATES

    def __post_init__(self) -> None:
        for words in (self.success, self.failure):
            if not is_list_of_texts(words):
                raise AnaplatRequestError(
                    f"success_states and failure_states must be lists of words; {words!r} is none."
                )
            if not all(map(_normalised, words)):  # such as of "FINISHED,", split at its comma
                raise AnaplatRequestError(
                    f"success_states and failure_states must be lists of words; one in {words!r} is empty, and "
                    "would be the status of every dataset that has none."
                )

    def read(self, word: str | None) -> State:
        """Return what the platform's word means."""
        word = _normalised(word or "")
        for state, words in (
            (State.FAILED, self.failure),
            (State.DONE, self.success),
            (State.WORKING, WORKING_STATES),
        ):
            if word in map(_normalised, words):
                return state
        return State.UNKNOWN

    def failed_at_once(self, task: TaskStatus) -> bool:
        """Tell whether the answer that accepts a creation or refresh says that it failed, in a word or an object.

        A word that the package knows as a failure stays one, whatever the user's are: where no wait follows,
        nobody else would see it.
        """
        states = StateTable(self.success, (*self.failure, *FAILURE_STATES))
        return bool(task.error) or any(states.read(word) is State.FAILED for word in task.words)


def is_list_of_texts(given: Any) -> bool:
    """Tell whether something is a list of texts; one text, whose characters are texts too, is none."""
    if isinstance(given, str) or not isinstance(given, Collection):
        return False
    return all(isinstance(item, str) for item in given)


def _normalised(word: str) -> str:
    return word.strip().upper()
