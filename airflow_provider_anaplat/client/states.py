"""The state table: what the platform's words say of a dataset that is being created or refreshed."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

# The contract shows FINISHED, 已提交 and 处理中 and calls no list complete. The English words for work in
# progress and for failure are those that platforms of this family are known to use.
WORKING_STATES = ("已提交", "处理中", "SUBMITTED", "CREATED", "PROCESSING", "RUNNING")
SUCCESS_STATES = ("FINISHED",)
FAILURE_STATES = ("FAILED", "CANCELED", "CANCELLED")


class State(Enum):
    """What a word means to those who wait."""

    WORKING = "still working"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


def read_state(
    word: str | None,
    success_states: Collection[str] = SUCCESS_STATES,
    failure_states: Collection[str] = FAILURE_STATES,
) -> State:
    """Return what the platform's word means; a word in no table is unknown, and never a success.

    :param word: the platform's word; None and the empty word are unknown
    :param success_states: words that mean done
    :param failure_states: words that mean failed
    """
    if word is None:
        return State.UNKNOWN
    word = _normalised(word)
    for state, words in (
        (State.FAILED, failure_states),
        (State.DONE, success_states),
        (State.WORKING, WORKING_STATES),
    ):
        if word in map(_normalised, words):
            return state
    return State.UNKNOWN


def _normalised(word: str) -> str:
    return word.strip().upper()
