"""The access report, through a real socket, in every format and with users who fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import LONG, TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.errors import AnaplatAccessReportError, AnaplatOutputError
from airflow_provider_anaplat.operators.access import AnaplatAccessReportOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]

OWN = {"id": "ds1", "name": "sales", "sources": [{"isSelf": True, "id": "u1", "name": "Ann"}], "isOwner": True,
       "isInherit": False, "canExport": True}  # fmt: skip
INHERITED = {
    "id": "p1",
    "name": 'Über uns, "neu"\n首页',
    "isOwner": False,
    "isInherit": True,
    "canExport": False,
    "description": "d",
    "sources": [
        {"isSelf": False, "id": "g7", "name": "Sales"},
        {"isSelf": True, "id": "u1", "name": "Ann"},
        {"id": "g9"},
    ],
}
ROWS = [
    ("u1", "dataset", "ds1", "sales", True, False, True, "Ann (u1, self)"),
    ("u1", "page", "p1", 'Über uns, "neu"\n首页', False, True, False, "Sales (g7); Ann (u1, self); g9"),
]
NAMES = ["uId", "resourceType", "resourceId", "name", "isOwner", "isInherit", "canExport", "sources"]


def report(output_path: Any, user_ids: Any = ("u1",), **arguments: Any) -> Any:
    operator = AnaplatAccessReportOperator(
        task_id="report", user_ids=user_ids, output_path=str(output_path), **arguments
    )
    return operator.execute({})


@pytest.fixture(autouse=True)
def rights(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})
    simulator.platform.authorized_datasets["u1"] = [OWN]
    simulator.platform.authorized_pages["u1"] = [INHERITED]


def fails_for(simulator: Simulator, user_id: str, fault: replies.Fault, operation: str = "datasets") -> None:
    """Let the platform fail whenever it is asked for this user."""
    name = f"list_authorized_{operation}"

    def is_of_this_user(_: Any) -> bool:
        return simulator.requests(name)[-1].path.split("/")[-2] == user_id

    simulator.inject(name, fault, times=None, when=is_of_this_user)


def test_parquet_keeps_types_and_everything_else(simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "new" / "access.parquet"
    assert report(path) == {
        "path": str(path),
        "format": "parquet",
        "users": 1,
        "datasets": 1,
        "pages": 1,
        "bytes": path.stat().st_size,
        "failed": 0,
        "gained": None,
        "lost": None,
        "changesPath": None,
        "failedUsers": [],
    }

    frame = pl.read_parquet(path)
    assert frame.columns == NAMES
    assert frame.rows() == ROWS
    assert [frame.schema[name] for name in NAMES[4:7]] == [pl.Boolean] * 3
    assert simulator.requests("list_datasets") == simulator.requests("list_pages") == []


def test_ndjson(tmp_path: Path) -> None:
    report(tmp_path / "access.ndjson")
    assert pl.read_ndjson(tmp_path / "access.ndjson").rows() == ROWS


def test_csv_compressed(tmp_path: Path) -> None:
    report(tmp_path / "access.csv.gz")
    assert pl.read_csv(tmp_path / "access.csv.gz").rows() == ROWS


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "parquet"])
def test_many_users_in_their_order_and_each_once(simulator: Simulator, tmp_path: Path, suffix: str) -> None:
    users = [f"user{number}" for number in range(60)]
    for number, user in enumerate(users):
        simulator.platform.authorized_datasets[user] = [{"id": f"ds{n}", "name": "n"} for n in range(number)]
    path = tmp_path / f"access.{suffix}"
    result = report(path, [*users, *users[:9]], concurrency=7)

    assert (result["users"], result["datasets"], result["pages"]) == (60, sum(range(60)), 0)

    read: Any = {"csv": pl.read_csv, "ndjson": pl.read_ndjson, "parquet": pl.read_parquet}[suffix]
    expected = [(user, f"ds{n}") for number, user in enumerate(users) for n in range(number)]

    assert read(path).select("uId", "resourceId").rows() == expected
    assert len(simulator.requests("list_authorized_datasets")) == 60


def test_no_users_make_a_valid_file(tmp_path: Path) -> None:
    assert report(tmp_path / "access.csv", [])["users"] == 0
    assert (tmp_path / "access.csv").read_text() == ",".join(NAMES) + "\n"


def test_a_name_that_is_not_there_comes_from_the_lists(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    simulator.platform.pages = [{"pgId": "p1", "name": "home"}]
    for user in ("u1", "u2"):
        simulator.platform.authorized_datasets[user] = [{"id": "ds1"}, {"id": "gone", "name": ""}]
        simulator.platform.authorized_pages[user] = [{"id": "p1", "name": None}]
    report(tmp_path / "access.parquet", ["u1", "u2"])

    assert pl.read_parquet(tmp_path / "access.parquet")["name"].to_list() == ["sales", None, "home"] * 2
    assert len(simulator.requests("list_datasets")) == len(simulator.requests("list_pages")) == 1


def test_and_stays_away_where_a_list_cannot_be_had(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.authorized_datasets["u1"] = [{"id": "ds1"}]
    simulator.inject("list_datasets", replies.http_status(403), times=None)
    report(tmp_path / "access.parquet")
    assert pl.read_parquet(tmp_path / "access.parquet")["name"].to_list()[0] is None


def test_each_type_of_page_is_asked_for_and_no_page_comes_twice(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.authorized_pages["u1"] = [
        {"id": "p1", "name": "a", "pgType": "PAGE"},
        {"id": "p2", "name": "b", "pgType": "LARGE_SCREEN"},
        {"id": "p3", "name": "c"},
    ]
    result = report(tmp_path / "access.parquet", page_types=["PAGE", "LARGE_SCREEN"])

    assert result["pages"] == 3

    pages = pl.read_parquet(tmp_path / "access.parquet").filter(resourceType="page")
    assert pages["resourceId"].to_list() == ["p1", "p3", "p2"]


@pytest.mark.parametrize("operation", ["datasets", "pages"])
def test_a_user_who_fails_loses_no_other(simulator: Simulator, tmp_path: Path, operation: str) -> None:
    simulator.platform.authorized_datasets["u3"] = [OWN]
    fails_for(simulator, "u2", replies.refusal("no user u2", code=1002), operation)
    path = tmp_path / "access.parquet"

    with pytest.raises(AirflowFailException, match=r"1 users could not be read; those of 2 .* 'u2': .*no user u2"):
        report(path, ["u1", "u2", "u3"], concurrency=1)
    assert pl.read_parquet(path)["uId"].to_list() == ["u1", "u1", "u3"]

    path.unlink()
    result = report(path, ["u1", "u2", "u3"], concurrency=1, on_user_error="report")

    assert (result["users"], result["failed"], result["failedUsers"]) == (2, 1, ["u2"])
    assert pl.read_parquet(path)["uId"].to_list() == ["u1", "u1", "u3"]


def test_one_who_may_do_better_next_time_is_an_error_that_airflow_retries(
    simulator: Simulator, tmp_path: Path
) -> None:
    fails_for(simulator, "u2", replies.reset())
    with pytest.raises(AnaplatAccessReportError, match="'u2'"):
        report(tmp_path / "access.csv", ["u1", "u2"], concurrency=1)
    assert (tmp_path / "access.csv").exists()


def test_an_id_that_cannot_be_one_fails_alone(tmp_path: Path) -> None:
    assert report(tmp_path / "x.csv", ["u1", "a/b"], on_user_error="report")["failedUsers"] == ["a/b"]


@pytest.mark.parametrize("on_user_error", ["fail", "report"])
def test_where_nobody_can_be_read_nothing_is_written(
    simulator: Simulator, tmp_path: Path, on_user_error: Any
) -> None:
    path = tmp_path / "access.csv"
    path.write_text("before")
    simulator.inject("list_authorized_datasets", replies.refusal("no", code=1004), times=None)

    with pytest.raises(AirflowFailException, match="no"):
        report(path, ["u1", "u2"], on_user_error=on_user_error)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_token_that_is_no_good_ends_it_at_once(simulator: Simulator, connect: Connect, tmp_path: Path) -> None:
    connect(simulator, password="other", extra={"max_retries": 0})
    with pytest.raises(AirflowFailException, match="token"):
        report(tmp_path / "x.parquet", [f"u{number}" for number in range(100)], concurrency=2)
    assert len(simulator.ledger) < 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_platform_that_is_down_is_not_asked_for_every_user(
    simulator: Simulator, tmp_path: Path, suffix: str
) -> None:
    simulator.inject("list_authorized_pages", replies.http_status(503), times=None,
                    when=lambda _: len(simulator.requests("list_authorized_pages")) > 3)  # fmt: skip
    with pytest.raises(errors.AnaplatServerError):
        report(tmp_path / f"x.{suffix}", [f"u{number}" for number in range(500)], on_user_error="report")
    assert len(simulator.requests("list_authorized_pages")) < 80
    assert list(tmp_path.iterdir()) == []


def test_no_more_requests_are_in_flight_than_allowed(simulator: Simulator, tmp_path: Path) -> None:
    go_on = threading.Event()
    simulator.inject("list_authorized_datasets", replies.hold(go_on), times=None)
    in_flight: list[int] = []

    def look() -> None:
        deadline = time.monotonic() + LONG
        while len(simulator.ledger) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        # Three are on their way, and whoever could send a fourth has had the time to.
        go_on.wait(0.3)
        in_flight.append(len(simulator.ledger))
        go_on.set()

    thread = threading.Thread(target=look)
    thread.start()
    result = report(tmp_path / "x.csv", [f"u{number}" for number in range(9)], concurrency=3)
    thread.join(LONG)
    assert in_flight == [3]
    assert result["users"] == 9


@pytest.mark.parametrize("arguments", [{"user_ids": "u1"}, {"page_types": "PAGE"}, {"concurrency": 0}])
def test_an_argument_that_cannot_be_is_named_before_any_request(
    simulator: Simulator, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match=next(iter(arguments))):
        report(tmp_path / "x.csv", **arguments)
    assert simulator.ledger == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(AnaplatOutputError, match="no regular file"):
        report(tmp_path / "x.csv")


@pytest.mark.parametrize(("formulas", "begins"), [({}, "=1+1"), ({"csv_formulas": "escape"}, "'=1+1")])
def test_names_that_are_formulas(simulator: Simulator, tmp_path: Path, formulas: Any, begins: str) -> None:
    subjects = [{"id": "g7", "name": "Sales"}, {"id": "g8", "name": "=1+1"}]
    simulator.platform.authorized_datasets["u1"] = [{**OWN, "name": "=1+1", "sources": subjects}]
    simulator.platform.authorized_pages["u1"] = []
    report(tmp_path / "report.csv", **formulas)

    assert pl.read_csv(tmp_path / "report.csv").select("name", "sources").rows() == [
        (begins, f"Sales (g7); {begins} (g8)")
    ]


def test_another_word_for_formulas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="csv_formulas is 'drop'"):
        report(tmp_path / "report.csv", csv_formulas="drop")
    assert list(tmp_path.iterdir()) == []
