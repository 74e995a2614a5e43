"""Refreshing without Airflow: asked for once, whatever happens to requests and workers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import TEXTS

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.tasks import RefreshCall
from airflow_provider_anaplat.datasets.refresh import Asked, Refresh, RefreshWish
from airflow_provider_anaplat.errors import (
    AnaplatDamagedStateError,
    AnaplatNeedsAPersonError,
    AnaplatNotFoundError,
    AnaplatNotSeenError,
    AnaplatOutcomeUnknownError,
    AnaplatRefusedError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import StoredDataset
from airflow_provider_anaplat.state import FolderStateStore
from airflow_provider_anaplat.waiting.states import StateTable

Attempt = Callable[..., Asked]


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> StoredDataset:
    return simulator.platform.add_dataset("sales", TEXTS)


@pytest.fixture
def refresh(simulator: Simulator, tmp_path: Path) -> Callable[..., Refresh]:
    """Make an attempt whose memory lasts."""
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    store = FolderStateStore(tmp_path)
    return lambda **wish: Refresh(client, store, RefreshWish(**{"ds_id": "ds1", "pause": 0, **wish}))


@pytest.fixture
def forgetful(simulator: Simulator) -> Callable[..., Refresh]:
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    return lambda **wish: Refresh(client, None, RefreshWish(**{"ds_id": "ds1", "pause": 0, **wish}))


def asked(simulator: Simulator) -> int:
    return len(simulator.requests("refresh_dataset"))


def test_what_was_there_before_is_noted(refresh: Any, dataset: StoredDataset) -> None:
    before = dataset.fields()["utime"]
    found = refresh().ask()
    assert (found.dataset["dsId"], found.utime, found.task_id) == ("ds1", found.dataset["utime"], "refresh-ds1")
    assert dataset.fields()["utime"] == before


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"taskId": "t", "status": "FAILED"}, "'FAILED'"),
        ({"taskId": "t", "status": "已提交", "result": " failed "}, "' failed '"),
        ({"taskId": "t", "status": "FINISHED", "result": {"error": "source is gone"}}, "source is gone"),
        ({"status": "失败"}, "'失败'"),
        ("CANCELED", "'CANCELED'"),
    ],
)
def test_an_update_that_is_accepted_and_has_failed_ends_there_and_is_asked_for_anew(
    refresh: Any, simulator: Simulator, said: Any, shown: str
) -> None:
    answer = json.dumps({"result": "ok", "response": said}).encode()
    simulator.inject("refresh_dataset", replies.content(answer))
    states = StateTable(failure=["失败"])

    with pytest.raises(AnaplatNeedsAPersonError, match=f"dataset ds1 and reports that it failed: .*{shown}"):
        refresh(states=states).ask()
    assert asked(simulator) == 1

    assert refresh(states=states).ask().accepted
    assert asked(simulator) == 2


@pytest.mark.parametrize(
    "said",
    [None, True, 7, "ok", [], ["FAILED"], {"status": 5, "result": ["FAILED"]}, {"result": {"error": ""}}],
)
def test_whatever_else_accepts_an_update_says_nothing_of_it(refresh: Any, simulator: Simulator, said: Any) -> None:
    answer = json.dumps({"result": "ok", "response": said}).encode()
    simulator.inject("refresh_dataset", replies.content(answer))

    found = refresh().ask()

    assert (found.accepted, found.task_id) == (True, None)


def test_an_update_is_asked_for_when_the_second_of_the_last_one_has_passed(
    refresh: Any, simulator: Simulator, dataset: StoredDataset
) -> None:
    dataset.utime = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    asked_at: list[datetime] = []
    simulator.inject("refresh_dataset", replies.reset(), when=lambda _: bool(asked_at.append(datetime.now(UTC))))

    refresh().ask()

    assert asked_at[0] >= dataset.utime + timedelta(seconds=1)


def test_a_last_update_that_is_far_ahead_is_not_waited_for(refresh: Any, dataset: StoredDataset) -> None:
    dataset.utime = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)

    assert refresh().ask().accepted


def test_a_body_goes_along(refresh: Any, simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    refresh(body={"partition": "2026-01"}).ask()

    assert caplog.messages == ["The platform has accepted the refresh of dataset ds1"]
    (request,) = simulator.requests("refresh_dataset")
    assert request.body == {"partition": "2026-01", "token": simulator.token}


def test_a_second_attempt_knows_that_the_first_was_answered(refresh: Any, simulator: Simulator) -> None:
    first = refresh().ask()
    looks = len(simulator.requests("list_datasets"))
    assert refresh().ask() == first
    assert (asked(simulator), len(simulator.requests("list_datasets"))) == (1, looks)


def test_a_second_attempt_looks_where_the_first_died_before_the_answer(refresh: Any, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    simulator.inject("list_datasets", replies.http_status(503), when=lambda _: asked(simulator) > 0)
    simulator.platform.refresh_statuses = ("处理中", "处理中", "处理中", "FINISHED")
    assert not refresh().ask().accepted
    assert not refresh().ask().accepted
    assert asked(simulator) == 1


def test_a_lost_request_is_a_person_s(
    refresh: Any, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.inject("refresh_dataset", replies.reset())
    with pytest.raises(AnaplatOutcomeUnknownError, match="clear this task to ask again"):
        refresh().ask()
    assert "it is not known whether the platform carried it out" in caplog.text
    assert asked(simulator) == 1


def test_an_update_is_seen_after_a_clock_that_was_ahead_is_set_back(
    refresh: Any, simulator: Simulator, dataset: StoredDataset
) -> None:
    now, dataset.utime = dataset.utime, dataset.utime + timedelta(days=365)

    def set_back(_: Any) -> bool:
        dataset.utime = now
        return True

    simulator.inject("refresh_dataset", replies.reset(), when=set_back)
    assert refresh().ask().dataset["dsId"] == "ds1"
    assert asked(simulator) == 1


def test_unless_it_may_be_sent_again(refresh: Any, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset())
    with pytest.raises(AnaplatNotSeenError, match="a retry of this task asks again"):
        refresh(in_doubt="resend").ask()
    assert refresh(in_doubt="resend").ask().accepted
    assert asked(simulator) == 2


def test_what_is_seen_is_not_sent_again_even_so(refresh: Any, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    assert refresh(in_doubt="resend", pause=86_400).ask().task_id is None  # the first look comes at once
    assert asked(simulator) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [(replies.reset(), AnaplatOutcomeUnknownError), (replies.refusal("busy", code=1012), AnaplatRefusedError)],
)
def test_a_store_that_fails_too_hides_no_failure(
    simulator: Simulator, tmp_path: Path, answer: Any, error: type[Exception]
) -> None:
    """Of an error of the store's, Airflow would run the task again, and ask again if the note is gone."""

    class Failing(FolderStateStore):
        def delete(self, key: str) -> None:
            super().delete(key)
            raise RuntimeError("the API server did not answer")

    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    simulator.inject("refresh_dataset", answer)
    with pytest.raises(error):
        Refresh(client, Failing(tmp_path), RefreshWish("ds1", pause=0)).ask()


def test_a_refusal_is_forgotten(refresh: Any, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.refusal("busy", code=1012))
    with pytest.raises(AnaplatRefusedError, match="busy"):
        refresh().ask()
    assert refresh().ask().accepted
    assert asked(simulator) == 2


@pytest.mark.parametrize(("if_running", "requests"), [("follow", 0), ("request", 1)])
def test_an_update_that_runs(
    refresh: Any, simulator: Simulator, dataset: StoredDataset, if_running: str, requests: int
) -> None:
    dataset.statuses = ["RUNNING"]
    found = refresh(if_running=if_running).ask()
    assert (found.utime is None, asked(simulator)) == (requests == 0, requests)


def test_an_update_that_runs_may_be_a_mistake(refresh: Any, simulator: Simulator, dataset: StoredDataset) -> None:
    dataset.statuses = ["RUNNING"]
    with pytest.raises(AnaplatNeedsAPersonError, match="an update is already running"):
        refresh(if_running="fail").ask()
    assert asked(simulator) == 0


def test_without_memory_an_update_since_a_moment_counts(
    forgetful: Any, simulator: Simulator, dataset: StoredDataset, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert forgetful(since=dataset.utime - timedelta(minutes=1)).ask().accepted
    assert caplog.messages == [f"Dataset ds1 was updated at {dataset.utime}; this update counts"]
    assert asked(simulator) == 0
    forgetful(since=dataset.utime + timedelta(minutes=1)).ask()
    assert asked(simulator) == 1


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_the_platforms_clock_decides_what_was_updated_since(
    forgetful: Any, simulator: Simulator, dataset: StoredDataset, hours: int
) -> None:
    simulator.platform.clock_ahead = timedelta(hours=hours)
    began = datetime.now(UTC)
    dataset.utime = began + timedelta(hours=hours, minutes=30)
    counted = forgetful(since=began).ask()
    assert asked(simulator) == 0
    assert timedelta(minutes=29) < dataset.utime - datetime.fromisoformat(counted.utime) < timedelta(minutes=31)

    dataset.utime = began + timedelta(hours=hours, minutes=-30)
    forgetful(since=began).ask()
    assert asked(simulator) == 1


def test_a_dataset_that_is_not_there(refresh: Any, simulator: Simulator) -> None:
    with pytest.raises(AnaplatNotFoundError, match="ds7"):
        refresh(ds_id="ds7").ask()
    assert asked(simulator) == 0


def test_the_styles() -> None:
    post, get = RefreshCall.of("post").operation("ds1"), RefreshCall.of("get").operation("d s")
    assert (post.method, post.token_in) == ("POST", "body")
    assert (get.method, get.token_in, get.path) == ("GET", "query", "/public-api/data-source/d%20s/refresh")
    other = RefreshCall.of("get", path="/public-api/x/{dsId}", method="put", auth_in="header").operation("a")
    assert (other.method, other.token_in, other.path) == ("PUT", "header", "/public-api/x/a")


@pytest.mark.parametrize("wrong", [{"style": "patch"}, {"auth_in": "cookie"}])
def test_a_word_that_is_none(wrong: dict[str, str]) -> None:
    with pytest.raises(AnaplatRequestError, match=f"refresh_{next(iter(wrong))}"):
        RefreshCall.of(**wrong)


@pytest.mark.parametrize("ds_id", ["", "..", "a/b", " ", "..;", "%2e%2e", "a\\b", "\uff0e\uff0e", "a%2fb"])
def test_an_id_that_is_none(ds_id: str) -> None:
    with pytest.raises(AnaplatRequestError, match="cannot be an id"):
        RefreshCall().operation(ds_id)


def test_what_the_platform_says_of_it_is_masked_and_cut(
    refresh: Any, simulator: Simulator, dataset: StoredDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    dataset.statuses = [f"RUNNING {simulator.token} {'x' * 100_000}"]
    simulator.inject("refresh_dataset", replies.reset())

    with pytest.raises(AnaplatOutcomeUnknownError):  # the status is the same as before, also as it was noted
        refresh().ask()
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    noted = refresh().ask()

    note = (tmp_path / "anaplat_refresh.json").read_text()
    assert noted.dataset["status"].startswith("RUNNING *** xxx")
    assert simulator.token not in note + caplog.text
    assert len(note) + len(caplog.text) < 5_000


NOTED: dict[str, Any] = {
    "dataset": {
        "dsId": "ds1", "name": "sales", "parentDirId": None, "status": "FINISHED", "rowCount": 4, "colCount": 2,
        "ctime": None, "utime": "2026-03-01 12:00:00+0000",
    },
    "utime": "2026-03-01 12:00:00+0000",
    "task_id": None,
    "accepted": True,
    "platform": None,
}  # fmt: skip


def without(key: str, *, of_dataset: bool = False) -> str:
    note = json.loads(json.dumps(NOTED))
    del (note["dataset"] if of_dataset else note)[key]
    return json.dumps(note)


def with_(values: dict[str, Any], *, of_dataset: bool = False) -> str:
    return json.dumps(NOTED | ({"dataset": NOTED["dataset"] | values} if of_dataset else values))


NO_TEXT: list[Any] = [-7.5, [], {"a": []}, "\ud800"]


DAMAGED = {
    "kinds": [
        "", "null", "7", "0", '""', '"dataset"', "[]", '["dataset"]', "{}", '{"dataset": {"dsId": "ds1"}}',
        '{"dataset": {}}', '{"dataset": "ds1"}', '{"dataset": null}',
    ],
    "depths": [f'{{"dataset": {"[" * depth}{"]" * depth}}}' for depth in (500, 1_000, 100_000)],
    "fields that are missing": [
        *[without(key) for key in NOTED],
        *[without(key, of_dataset=True) for key in NOTED["dataset"]],
    ],
    "fields of another kind": [
        *[with_({key: value}) for key in NOTED for value in NO_TEXT],
        *[with_({key: value}, of_dataset=True) for key in NOTED["dataset"] for value in NO_TEXT],
        *[with_({key: "x"}) for key in ("dataset", "utime", "accepted", "more")],
        *[with_({key: "2026-03-01 12:00:00"}, of_dataset=True) for key in ("utime", "more")],
    ],
}  # fmt: skip


@pytest.mark.parametrize("notes", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_note_is_no_reason_to_ask_again(
    refresh: Any, simulator: Simulator, tmp_path: Path, notes: list[str]
) -> None:
    path = tmp_path / "anaplat_refresh.json"
    for note in notes:
        path.write_text(note)
        with pytest.raises(AnaplatDamagedStateError, match=rf"{re.escape(str(path))}.*Look on .*remove it"):
            refresh().ask()

    assert simulator.ledger == []


def test_a_whole_note_is_one_of_this_refresh_or_of_none(
    refresh: Any, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("other", TEXTS)
    (tmp_path / "anaplat_refresh.json").write_text(json.dumps(NOTED))

    assert refresh().ask() == Asked(**NOTED)
    assert asked(simulator) == 0
    assert refresh(ds_id="ds2").ask().dataset["dsId"] == "ds2"


def test_what_another_platform_was_asked_for_is_asked_for_on_this_one(
    refresh: Any, simulator: Simulator, tmp_path: Path
) -> None:
    (tmp_path / "anaplat_refresh.json").write_text(with_({"platform": "http://wrong.example"}))

    assert refresh().ask().platform == simulator.url
    assert asked(simulator) == 1


def test_the_same_platform_in_another_spelling_is_not_asked_again(
    refresh: Any, simulator: Simulator, tmp_path: Path
) -> None:
    """Somebody writes the host of the connection in another way while a task waits for its next attempt."""
    (tmp_path / "anaplat_refresh.json").write_text(
        with_({"platform": simulator.url.replace("http://", "HTTP://"), "accepted": True})
    )
    refresh().ask()
    assert asked(simulator) == 0


NOON, LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:00:05Z"


@pytest.mark.parametrize(
    ("status", "utime", "seen"),
    [("FINISHED", LATER, True), ("FAILED", NOON, True), ("FINISHED", NOON, False), ("FAILED", LATER, True)],
)
def test_either_another_time_or_another_status_shows_that_it_was_accepted(
    refresh: Any, simulator: Simulator, status: str, utime: str, seen: bool
) -> None:
    def listed(status: str, utime: str) -> replies.Fault:
        shown = [{"dsId": "ds1", "name": "sales", "status": status, "utime": utime}]
        return replies.content(json.dumps({"result": "ok", "response": shown}).encode())

    simulator.inject("list_datasets", listed("FINISHED", NOON), times=None, when=lambda _: not asked(simulator))
    simulator.inject("list_datasets", listed(status, utime), times=None, when=lambda _: asked(simulator) > 0)
    simulator.inject("refresh_dataset", replies.reset())

    if seen:
        assert not refresh().ask().accepted
    else:
        with pytest.raises(AnaplatOutcomeUnknownError):
            refresh().ask()

    assert asked(simulator) == 1
