"""One DAG run creates at most one dataset, whatever happens to its requests."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import CreateDatasetRequest, CreationTask, TableQuery
from airflow_provider_anaplat.datasets.creation import Creation, Wish
from airflow_provider_anaplat.errors import AnaplatDamagedStateError, AnaplatDatasetExistsError
from airflow_provider_anaplat.simulator import Simulator, Table, replies
from airflow_provider_anaplat.simulator.replies import Fault
from airflow_provider_anaplat.state import FolderStateStore

EMPTY = Table.of_rows([], [])


class Run:
    """The attempts of one task of one DAG run.

    :param folder: what they remember; None before Airflow 3.3
    """

    def __init__(self, simulator: Simulator, folder: Path | None) -> None:
        self.platform = simulator
        self.folder = folder
        self.began = datetime.now(UTC)
        simulator.platform.tables["t"] = EMPTY

    def attempt(
        self,
        directory: str | None = "dir",
        settling_time: float = 0.2,
        name: str = "sales",
        patience: float = LONG,
        **wish: Any,
    ) -> CreationTask:
        client = AnaplatClient(self.platform.url, self.platform.token, max_retries=0, read_timeout=patience)
        store = FolderStateStore(self.folder) if self.folder else None
        request = CreateDatasetRequest(
            ac_id="a", name=name, table_query=TableQuery(table="t"), parent_dir_id=directory
        )
        given: dict[str, Any] = {"if_exists": "reuse", "since": self.began, **wish}
        return Creation(client, store, Wish(request, settling_time=settling_time, **given)).find_or_create()

    def add(self, age: float = 3600, directory: str = "dir", name: str = "sales") -> str:
        """Let someone else have created a dataset, this many seconds ago."""
        dataset = self.platform.platform.add_dataset(name, EMPTY, parent_dir_id=directory)
        dataset.ctime -= timedelta(seconds=age)
        return dataset.ds_id

    @property
    def sent(self) -> int:
        return len(self.platform.requests("create_dataset"))

    @property
    def created(self) -> int:
        return len(self.platform.platform.datasets)


@pytest.fixture(params=["remembers", "forgets"])
def run(request: pytest.FixtureRequest, simulator: Simulator, tmp_path: Path) -> Run:
    return Run(simulator, tmp_path if request.param == "remembers" else None)


@pytest.fixture
def remembering(simulator: Simulator, tmp_path: Path) -> Run:
    return Run(simulator, tmp_path)


@pytest.fixture
def forgetful(simulator: Simulator) -> Run:
    return Run(simulator, None)


TOO_LATE = replies.slow(LONG)
PATIENCE = 3.0  # seconds, for what comes too late; what else is asked for is answered within them
NO_ANSWER = [
    pytest.param(replies.reset(), id="reset"),
    pytest.param(replies.cut(), id="cut off"),
    pytest.param(TOO_LATE, id="too late"),
    pytest.param(replies.http_status(500), id="HTTP 500"),
    pytest.param(replies.http_status(502), id="HTTP 502"),
    pytest.param(replies.content(b"<html>", "text/html"), id="HTML"),
]


@pytest.mark.parametrize("if_exists", ["reuse", "fail", "create"])
def test_attempts_of_one_run_create_one_dataset(
    run: Run, if_exists: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first = run.attempt(if_exists=if_exists)
    assert (first.task_id, first.status, first.result) == ("task-ds1", "已提交", "处理中")
    again = run.attempt(if_exists=if_exists)
    assert again.ds_id == first.ds_id
    assert again.task_id == ("task-ds1" if run.folder else None)
    known = "An earlier attempt of this DAG run has created dataset ds1"
    assert (known in caplog.messages) is (run.folder is not None)
    assert (run.sent, run.created) == (1, 1)


@pytest.mark.parametrize("if_exists", ["reuse", "fail", "create"])
@pytest.mark.parametrize("fault", NO_ANSWER)
def test_what_was_created_without_an_answer_is_adopted(run: Run, fault: Fault, if_exists: str) -> None:
    run.platform.inject("create_dataset", fault, after_act=True)
    other = run.add() if if_exists == "create" else None
    task = run.attempt(if_exists=if_exists, patience=PATIENCE if fault is TOO_LATE else LONG)

    assert task.ds_id != other
    assert (task.task_id, task.result) == (None, None)
    assert run.attempt(if_exists=if_exists).ds_id == task.ds_id
    assert (run.sent, run.created) == (1, 1 + (other is not None))


def test_a_dataset_that_the_list_shows_late_is_waited_for(remembering: Run) -> None:
    remembering.platform.platform.creation_statuses = (None, None, "FINISHED")
    remembering.platform.inject("create_dataset", replies.reset(), after_act=True)
    assert remembering.attempt(settling_time=20).status == "FINISHED"
    assert remembering.sent == 1


@pytest.mark.parametrize("fault", [replies.reset(), replies.http_status(500)])
def test_what_does_not_appear_is_not_sent_again_by_the_attempt(run: Run, fault: Fault) -> None:
    run.platform.inject("create_dataset", fault)
    with pytest.raises(
        errors.AnaplatOutcomeUnknownError, match=r"'sales' in directory dir did not appear .* 0\.2 s"
    ):
        run.attempt()
    assert (run.sent, run.created) == (1, 0)
    assert run.attempt().task_id == "task-ds1"  # cleared by a person who has looked
    assert (run.sent, run.created) == (2, 1)


def test_a_malformed_record_of_another_dataset_does_not_matter(run: Run) -> None:
    other: Any = run.platform.platform.datasets[run.add(name="other")]
    fields = other.fields()
    other.fields = lambda: {**fields, "rowCount": -1, "utime": "noon"}
    run.platform.inject("create_dataset", replies.reset(), after_act=True)
    assert run.attempt().ds_id != other.ds_id
    assert (run.sent, run.created) == (1, 2)


@pytest.mark.parametrize("ds_id", [None, 7, "", " "])
def test_a_dataset_of_the_name_without_an_id_is_not_created_once_more(run: Run, ds_id: Any) -> None:
    there: Any = run.platform.platform.datasets[run.add()]
    fields = there.fields()
    there.fields = lambda: {**fields, "dsId": ds_id}
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"the record of {ds_id!r} .*: dsId: "):
        run.attempt()
    assert (run.sent, run.created) == (0, 1)


def test_a_dataset_of_the_name_whose_directory_cannot_be_read_is_not_created_once_more(run: Run) -> None:
    there: Any = run.platform.platform.datasets[run.add()]
    fields = there.fields()
    there.fields = lambda: {**fields, "parentDirId": 5}
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"the record of 'ds1' .*: parentDirId: "):
        run.attempt("5")
    assert (run.sent, run.created) == (0, 1)


def answered(ds_id: str) -> Fault:
    response = {"taskId": "t", "dsId": ds_id, "status": "已提交", "result": "处理中"}
    body = json.dumps({"result": "ok", "response": response}).encode()
    return Fault(lambda _: replies.Reply(200, body), needs_answer=True)


@pytest.mark.parametrize("ds_id", ["", " \t"])
def test_a_creation_that_is_answered_without_an_id_is_looked_for(run: Run, ds_id: str) -> None:
    run.platform.inject("create_dataset", answered(ds_id))
    assert run.attempt().ds_id == "ds1"
    assert (run.sent, run.created) == (1, 1)


def test_and_is_no_success_where_it_does_not_appear(run: Run) -> None:
    run.platform.inject("create_dataset", answered(""))
    run.platform.inject("list_datasets", replies.content(b'{"result": "ok", "response": []}'), times=None)
    with pytest.raises(errors.AnaplatOutcomeUnknownError, match=r"dsId: .* did not appear"):
        run.attempt()
    assert run.sent == 1


def test_a_list_that_cannot_be_had_leaves_the_outcome_unknown(remembering: Run) -> None:
    remembering.platform.inject("create_dataset", replies.reset(), after_act=True)
    remembering.platform.inject(
        "list_datasets", replies.http_status(503), times=None, when=lambda _: remembering.sent > 0
    )

    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        remembering.attempt()

    remembering.platform._faults.clear()
    assert remembering.attempt(if_exists="create").ds_id == "ds1"
    assert remembering.sent == 1


UNREADABLE = [replies.content(b"<html>", "text/html"), replies.refusal("expired", code=1018, status=401)]


@pytest.mark.parametrize("answer", UNREADABLE)
def test_a_list_that_cannot_be_read_leaves_the_outcome_unknown(run: Run, answer: Fault) -> None:
    run.platform.inject("create_dataset", replies.reset())
    run.platform.inject("list_datasets", answer, times=None, when=lambda _: run.sent > 0)
    with pytest.raises(errors.AnaplatOutcomeUnknownError, match="was not sent again"):
        run.attempt()


def test_what_appears_after_the_last_look_is_adopted(remembering: Run) -> None:
    remembering.platform.inject("create_dataset", replies.reset())
    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        remembering.attempt(if_exists="create")
    looks = len(remembering.platform.requests("list_datasets"))

    def appears(_: Any) -> bool:
        if len(remembering.platform.requests("list_datasets")) == looks + 2:
            remembering.add(age=0)
        return False

    remembering.platform.inject("list_datasets", replies.reset(), times=None, when=appears)
    assert remembering.attempt(if_exists="create", settling_time=0).ds_id == "ds1"
    assert (remembering.sent, remembering.created) == (1, 1)


def test_what_is_carried_out_late_is_adopted_by_the_next_attempt(run: Run) -> None:
    act = threading.Event()
    run.platform.inject("create_dataset", replies.act_later(act))

    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        run.attempt(if_exists="create", patience=PATIENCE)

    act.set()
    wait_until(lambda: run.created == 1)

    assert run.attempt(if_exists="create").ds_id == "ds1"
    assert (run.sent, run.created) == (1, 1)


def test_an_attempt_that_died_is_given_time(remembering: Run) -> None:
    act = threading.Event()
    remembering.platform.inject("create_dataset", replies.act_later(act))

    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        remembering.attempt(settling_time=0.1, patience=PATIENCE)

    looks = len(remembering.platform.requests("list_datasets"))
    found: list[CreationTask] = []
    next_attempt = threading.Thread(target=lambda: found.append(remembering.attempt(settling_time=60)))
    next_attempt.start()
    wait_until(lambda: len(remembering.platform.requests("list_datasets")) > looks)
    act.set()
    next_attempt.join(LONG)

    assert [task.ds_id for task in found] == ["ds1"]
    assert (remembering.sent, remembering.created) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (replies.refusal("same-named file", code=1012, status=500), errors.AnaplatRefusedError),
        (replies.refusal("no account", code=1002), errors.AnaplatNotFoundError),
        (replies.http_status(429), errors.AnaplatRateLimitedError),
    ],
)
def test_a_refusal_leaves_nothing_to_look_for(run: Run, fault: Fault, error: type[Exception]) -> None:
    run.platform.inject("create_dataset", fault)
    with pytest.raises(error):
        run.attempt()
    looks = len(run.platform.requests("list_datasets"))
    assert run.attempt(settling_time=60).task_id == "task-ds1"
    assert len(run.platform.requests("list_datasets")) == looks + 1


def test_an_existing_dataset_is_reused(run: Run) -> None:
    ds_id = run.add()
    run.add(directory="other")
    run.add(name="Sales")
    task = run.attempt()
    assert (task.ds_id, task.status, task.task_id) == (ds_id, "FINISHED", None)
    assert run.sent == 0


def test_an_existing_dataset_is_an_error_where_asked(run: Run) -> None:
    ds_id = run.add()
    with pytest.raises(
        AnaplatDatasetExistsError, match=rf"'sales' in directory dir exists already: {ds_id} \(created 20"
    ):
        run.attempt(if_exists="fail")
    assert run.sent == 0


def test_one_more_is_created_where_asked(run: Run) -> None:
    ds_id = run.add()
    first = run.attempt(if_exists="create")
    assert first.ds_id != ds_id
    assert run.attempt(if_exists="create").ds_id == first.ds_id
    assert (run.sent, run.created) == (1, 2)


def test_several_that_fit_are_named(run: Run) -> None:
    first, second = run.add(), run.add()
    with pytest.raises(AnaplatDatasetExistsError, match=rf"exists 2 times \({first} .*, {second} "):
        run.attempt()
    assert run.sent == 0


@pytest.mark.parametrize(("listed", "reused"), [("root", True), ("", True), ("dir", False)])
def test_without_a_directory_the_root_counts(run: Run, listed: str, reused: bool) -> None:
    run.add(directory=listed)
    task = run.attempt(directory=None)
    assert (task.task_id is None) == reused
    assert run.sent == (0 if reused else 1)


def test_without_a_directory_its_own_is_found_wherever_it_is_listed(run: Run) -> None:
    run.platform.inject("create_dataset", replies.reset(), after_act=True)
    run.platform.inject("list_datasets", replies.slow(0), when=lambda _: run.created > 0 and move(run))
    assert run.attempt(directory=None, if_exists="create").ds_id == "ds1"
    assert run.sent == 1


def move(run: Run) -> bool:
    """Let the platform show the root under an id of its own."""
    for dataset in run.platform.platform.datasets.values():
        dataset.parent_dir_id = "d3f2"
    return True


@pytest.mark.parametrize("hours", [-5, 5])
def test_the_platforms_clock_decides_what_is_younger_than_the_run(forgetful: Run, hours: int) -> None:
    forgetful.platform.platform.clock_ahead = timedelta(hours=hours)
    before = forgetful.platform.platform.add_dataset("sales", EMPTY, parent_dir_id="dir")
    before.ctime -= timedelta(minutes=1)
    own = forgetful.attempt(if_exists="create")

    assert own.ds_id != before.ds_id
    assert forgetful.attempt(if_exists="create").ds_id == own.ds_id
    assert (forgetful.sent, forgetful.created) == (1, 2)


def test_with_a_memory_only_its_own_is_adopted(remembering: Run) -> None:
    younger = remembering.add(age=-60)
    assert remembering.attempt(if_exists="create").ds_id != younger


def test_outside_of_a_dag_run_nothing_is_its_own(forgetful: Run) -> None:
    forgetful.add(age=-60)
    forgetful.attempt(if_exists="create", since=None)
    assert forgetful.created == 2


def test_what_the_platform_says_of_it_is_masked_and_cut(
    remembering: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    token = remembering.platform.token
    remembering.add()
    for dataset in remembering.platform.platform.datasets.values():
        dataset.statuses = [f"FINISHED\n{token} {'x' * 100_000}"]

    task = remembering.attempt()

    assert task.status is not None
    assert task.status.startswith("FINISHED\n*** xxx")
    assert len(task.status) <= 1_000
    assert remembering.folder
    note = (remembering.folder / "anaplat_dataset.json").read_text()
    assert token not in note + caplog.text
    assert len(note) + len(caplog.text) < 3_000
    assert remembering.attempt().status == task.status


@pytest.mark.parametrize(
    "result", ["y" * 100_000, {"error": "y" * 100_000}, {"error": {"a": ["y" * 100_000] * 3}}]
)
def test_what_the_platform_answers_is_cut(remembering: Run, result: Any) -> None:
    answer = {"taskId": "t", "dsId": "ds1", "status": "x" * 100_000, "result": result}
    remembering.platform.inject(
        "create_dataset", replies.content(json.dumps({"result": "ok", "response": answer}).encode())
    )

    task = remembering.attempt()

    assert type(task.result) is type(result)
    assert remembering.folder
    assert len((remembering.folder / "anaplat_dataset.json").read_text()) < 5_000
    assert remembering.attempt() == task


DEEP = [
    *[
        pytest.param(f'{{"known": {"[" * depth}{"]" * depth}}}', id=f"{depth} deep")
        for depth in (500, 1_000, 100_000)
    ],
    pytest.param('{"created": {"dsId": "ds1", "result": ' + '{"a":' * 500 + "1" + "}" * 502, id="a deep result"),
]


def test_what_was_created_on_another_platform_is_none_of_this_one(remembering: Run, tmp_path: Path) -> None:
    remembering.attempt()
    with Simulator() as other:
        again = Run(other, tmp_path)
        with pytest.raises(
            AnaplatDamagedStateError, match=f"dataset of {remembering.platform.url}, .* {other.url}"
        ):
            again.attempt()
        assert other.ledger == []


def test_the_same_platform_in_another_spelling_is_this_one(remembering: Run) -> None:
    remembering.attempt()
    assert remembering.folder
    path = remembering.folder / "anaplat_dataset.json"
    path.write_text(path.read_text().replace("http://", "HTTP://"))
    assert remembering.attempt().task_id == "task-ds1"


@pytest.mark.parametrize(
    "note",
    [
        "", "null", "7", "0", "false", '""', '"created"', '"known"', "[]", '["created"]', "{}", '{"known": null}',
        '{"known": "ds1"}', '{"known": [1]}', '{"known": {"ds1": 1}}', '{"created": null}', '{"created": "ds1"}',
        '{"created": {}}', '{"created": {"dsId": null}}', '{"created": {"dsId": 1}}', '{"created": {"dsId": " "}}',
        '{"created": {"dsId": "ds1", "status": 1}}', r'{"created": {"dsId": "\ud800"}}', r'{"known": ["\ud800"]}',
        *DEEP,
    ],
)  # fmt: skip
def test_a_damaged_note_is_no_reason_to_create_another(remembering: Run, note: str) -> None:
    assert remembering.folder
    path = remembering.folder / "anaplat_dataset.json"
    path.write_text(note)

    with pytest.raises(AnaplatDamagedStateError, match=rf"{re.escape(str(path))}.*Look on .*remove it"):
        remembering.attempt(if_exists="create")

    assert remembering.platform.ledger == []
    path.unlink()
    assert remembering.attempt().ds_id == "ds1"


def wait_until(true: Callable[[], bool]) -> None:
    end = datetime.now(UTC) + timedelta(seconds=LONG)
    while not true():
        assert datetime.now(UTC) < end
        threading.Event().wait(0.01)


def test_a_lost_request_may_be_sent_again(run: Run) -> None:
    run.platform.inject("create_dataset", replies.reset())
    with pytest.raises(errors.AnaplatNotSeenError, match="a retry of this task looks once more"):
        run.attempt(in_doubt="resend")
    assert run.attempt(in_doubt="resend").ds_id == "ds1"
    assert (run.sent, run.created) == (2, 1)


def test_what_appears_late_is_adopted_even_so(run: Run) -> None:
    run.platform.inject("create_dataset", replies.reset(), after_act=True)
    run.platform.inject("list_datasets", replies.http_status(503), when=lambda _: run.sent > 0)
    assert run.attempt(in_doubt="resend", settling_time=20).ds_id == "ds1"
    assert (run.sent, run.created) == (1, 1)


@pytest.mark.parametrize("fault", [replies.http_status(404), replies.content(b"<html>", "text/html")])
def test_an_ingress_that_answers_in_its_place_for_a_while_hides_nothing(run: Run, fault: Fault) -> None:
    run.platform.inject("create_dataset", replies.reset(), after_act=True)
    run.platform.inject("list_datasets", fault, when=lambda _: run.sent > 0)
    assert run.attempt(settling_time=20).ds_id == "ds1"
    assert (run.sent, run.created) == (1, 1)


def test_an_attempt_whose_first_look_finds_no_platform_ends_at_once(remembering: Run) -> None:
    remembering.platform.inject("create_dataset", replies.reset())
    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        remembering.attempt()
    looks = len(remembering.platform.requests("list_datasets"))
    remembering.platform.inject("list_datasets", replies.http_status(404), times=None)

    with pytest.raises(errors.AnaplatNotFoundError):
        remembering.attempt(settling_time=LONG)

    assert len(remembering.platform.requests("list_datasets")) == looks + 1
    assert remembering.sent == 1


def test_another_directory_after_a_lost_answer_sends_nothing(remembering: Run, simulator: Simulator) -> None:
    """A name or a directory that a template gives may be another at each attempt."""
    simulator.inject("create_dataset", replies.reset())
    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        remembering.attempt()

    with pytest.raises(AnaplatDamagedStateError, match=r"\['sales', 'dir'\] was asked for.*Nothing was sent"):
        remembering.attempt("another")
    assert remembering.sent == 1
    assert remembering.attempt().ds_id == "ds1"


@pytest.mark.parametrize("if_exists", ["reuse", "fail", "create"])
@pytest.mark.parametrize("other", [{"name": "costs"}, {"directory": "another"}, {"directory": None}])
def test_a_dataset_of_another_name_is_not_taken_for_this_one(
    remembering: Run, if_exists: str, other: dict[str, Any]
) -> None:
    """A mapped task that is cleared may have another name by then, and so may one whose DAG file was edited."""
    remembering.attempt(if_exists=if_exists)
    with pytest.raises(AnaplatDamagedStateError, match=r"dataset ds1, which is \['sales', 'dir'\].* new run"):
        remembering.attempt(if_exists=if_exists, **other)
    assert (remembering.sent, remembering.created) == (1, 1)
    assert remembering.attempt(if_exists=if_exists).task_id == "task-ds1"


def test_what_was_reused_is_not_taken_for_another_either(remembering: Run) -> None:
    remembering.add()
    remembering.attempt()
    with pytest.raises(AnaplatDamagedStateError, match="is wanted now"):
        remembering.attempt(name="costs")
    assert remembering.sent == 0


def test_a_note_of_before_still_counts(remembering: Run) -> None:
    """Earlier releases did not note the name."""
    assert remembering.folder
    (remembering.folder / "anaplat_dataset.json").write_text('{"created": {"dsId": "ds9"}}')
    assert remembering.attempt().ds_id == "ds9"
