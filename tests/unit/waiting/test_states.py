from __future__ import annotations

from collections.abc import Collection

import pytest

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.waiting.states import State, StateTable


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("FINISHED", State.DONE),
        (" finished ", State.DONE),
        ("处理中", State.WORKING),
        ("已提交", State.WORKING),
        ("RUNNING", State.WORKING),
        ("FAILED", State.FAILED),
        ("CANCELED", State.FAILED),
        ("已完成", State.UNKNOWN),
        ("", State.UNKNOWN),
        (None, State.UNKNOWN),
    ],
)
def test_words(word: str | None, state: State) -> None:
    assert StateTable().read(word) is state


def test_words_of_the_users_own() -> None:
    table = StateTable(success=("已完成",), failure=("失败",))
    assert table.read("已完成") is State.DONE
    assert table.read("失败") is State.FAILED
    assert table.read("FINISHED") is State.UNKNOWN


@pytest.mark.parametrize("words", [["FINISHED", ""], ("",), {" \t"}])
def test_no_status_is_no_word(words: Collection[str]) -> None:
    """Of a dataset that has no status yet, it would say that it is done."""
    for table in ({"success": words}, {"failure": words}):
        with pytest.raises(AnaplatRequestError, match="is empty"):
            StateTable(**table)  # type: ignore[arg-type]  # any collection may come
    assert StateTable(success=(), failure=()).read(None) is State.UNKNOWN


def test_a_word_that_is_failure_and_success_is_failure() -> None:
    assert StateTable(success=("X",), failure=("X",)).read("X") is State.FAILED
