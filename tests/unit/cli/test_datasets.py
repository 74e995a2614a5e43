"""Datasets and pages in a terminal: found by id or name, listed by what one looks for, shown whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from conftest import TEXTS, numbers
from support.commands import Anaplat

from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.simulator import Simulator, replies


def ids(listed: object) -> list[str]:
    assert isinstance(listed, list)
    return [Dataset.model_validate(one).ds_id for one in listed]


@pytest.fixture
def three(simulator: Simulator) -> Simulator:
    simulator.platform.add_dataset("Sales 2026", TEXTS)
    simulator.platform.add_dataset("sales 2025", numbers(3), ("FAILED",), parent_dir_id="old")
    simulator.platform.add_dataset("Stock", numbers(5), ("PROCESSING",))
    simulator.platform.datasets["ds2"].utime = datetime.now(UTC) - timedelta(days=9)
    return simulator


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["ds1", "ds3", "ds2"]),
        (["SALES*"], ["ds1", "ds2"]),
        (["sales 202?"], ["ds1", "ds2"]),
        (["--folder", "old"], ["ds2"]),
        (["--state", "failed"], ["ds2"]),
        (["--state", "working"], ["ds3"]),
        (["--state", "Finished"], ["ds1"]),
        (["--state", "done", "stock"], []),
    ],
)
def test_datasets_are_listed_by_name_folder_and_state(
    three: Simulator, anaplat: Anaplat, words: list[str], expected: list[str]
) -> None:
    ended = anaplat("datasets", *words, "--json")
    assert (ended.code, ids(ended.json)) == (0, expected)


def test_datasets_that_are_stale_were_not_updated_since(three: Simulator, anaplat: Anaplat) -> None:
    week_ago = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    assert ids(anaplat("datasets", "--stale-since", week_ago, "--json").json) == ["ds2"]
    three.platform.datasets["ds2"].utime = datetime.fromisoformat(week_ago).replace(microsecond=0)
    assert ids(anaplat("datasets", "--stale-since", week_ago[:19] + "+00:00", "--json").json) == []


def test_without_a_terminal_a_table_is_lines_of_cells(three: Simulator, anaplat: Anaplat) -> None:
    lines = [line.split("\t") for line in anaplat("datasets", "stock").out.splitlines()]
    assert lines[0] == ["id", "name", "folder", "state", "rows", "columns", "updated"]
    assert lines[1][:6] == ["ds3", "Stock", "root", "PROCESSING", "5", "2"]
    assert len(lines) == 2


def test_how_long_ago_is_said_in_words(three: Simulator, anaplat: Anaplat) -> None:
    for ago, said in {
        timedelta(seconds=70): "1 minute ago",
        timedelta(minutes=5): "5 minutes ago",
        timedelta(minutes=90): "90 minutes ago",
        timedelta(hours=3): "3 hours ago",
    }.items():
        three.platform.datasets["ds2"].utime = datetime.now(UTC) - ago
        assert f", {said}" in anaplat("show", "ds2").out


def test_show_says_state_freshness_columns_and_who_may_export(three: Simulator, anaplat: Anaplat) -> None:
    right = {"id": "ds2", "canExport": True}
    three.platform.authorized_datasets = {
        "u1": [right],
        "u2": [{**right, "canExport": False}],
        "u4": [{"id": "ds2"}],
    }
    users = [word for user in ("u1", "u2", "u3", "u4") for word in ("--user", user)]
    shown = anaplat("show", "sales 2025", *users)

    assert shown.code == 0
    for text in ("ds2", "FAILED (failed)", "9 days ago", "2 columns", "n     LONG", "User u1 may export it."):
        assert text in shown.out
    assert "User u2 may not export it." in shown.out

    described = anaplat("show", "ds2", *users, "--json").json
    assert described["mayExport"] == {"u1": True, "u2": False, "u3": False, "u4": None}
    assert [(column["name"], column["fdType"]) for column in described["columns"]] == [
        ("n", "LONG"), ("half", "DOUBLE"),
    ]  # fmt: skip
    assert (described["meaning"], described["rowCount"]) == ("failed", 3)


def test_head_shows_the_first_rows_as_the_platform_writes_them(three: Simulator, anaplat: Anaplat) -> None:
    shown = anaplat("head", "Sales 2026", "--rows", "2", "--json").json
    assert shown["rows"] == [["1", None], ["2", ""]]
    assert shown["columns"] == [{"name": "id", "fdType": "INT"}, {"name": "text", "fdType": "STRING"}]
    sorted_ = anaplat("head", "Sales 2026", "--sort-by", "id", "--sort-type", "desc", "--rows", "1")
    assert sorted_.out.splitlines() == ["id\ttext", '4\tquo"te, back\\slash\\nand 😀 中']
    assert anaplat("head", "Sales 2026", "--rows", "1").out.splitlines() == ["id\ttext", "1\tnull"]


def test_what_would_move_a_terminals_cursor_is_shown_and_not_sent(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.add_dataset("\x1b[2J\u202eevil\r\n", TEXTS)
    assert "\\x1b[2J\\u202eevil\\r\\n" in anaplat("datasets").out


def test_a_name_that_several_have_is_an_error_with_their_ids(simulator: Simulator, anaplat: Anaplat) -> None:
    for folder in ("a", "b"):
        simulator.platform.add_dataset("twice", TEXTS, parent_dir_id=folder)
    ended = anaplat("head", "twice")
    assert (ended.code, ended.out) == (3, "")
    assert "ds1 (in directory a), ds2 (in directory b)" in ended.err
    assert anaplat("head", "ds2").code == 0


def test_an_id_counts_more_than_a_name(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.add_dataset("ds2", TEXTS)
    simulator.platform.add_dataset("other", numbers(1))
    assert anaplat("head", "ds2", "--json").json["dsId"] == "ds2"


def test_an_unknown_dataset_is_an_error_that_names_what_is_close(three: Simulator, anaplat: Anaplat) -> None:
    ended = anaplat("export", "Sales 2027", "never.csv")
    assert (ended.code, ended.out) == (3, "")
    assert "'Sales 2026'" in ended.err
    assert not Path("never.csv").exists()


def test_refresh_asks_and_waits(three: Simulator, anaplat: Anaplat) -> None:
    before = three.platform.datasets["ds1"].version
    ended = anaplat("refresh", "Sales 2026", "--wait", "--poll-interval", "0.01", "--json")
    assert ended.code == 0
    assert (ended.json["taskId"], ended.json["status"]) == ("refresh-ds1", "FINISHED")
    assert three.platform.datasets["ds1"].version == before + 1
    assert "处理中" in ended.err  # what is seen meanwhile


def test_a_refresh_without_waiting_asks_alone(three: Simulator, anaplat: Anaplat) -> None:
    assert anaplat("refresh", "ds1").code == 0
    assert len(three.requests("refresh_dataset")) == 1
    assert len(three.requests("list_datasets")) == 2  # to find it, and to note its last update


def test_a_refresh_that_fails_or_lasts_too_long_ends_so(three: Simulator, anaplat: Anaplat) -> None:
    three.platform.refresh_statuses = ("处理中", "FAILED")
    failed = anaplat("refresh", "ds1", "--wait", "--poll-interval", "0.01")
    assert (failed.code, "'FAILED'" in failed.err) == (8, True)
    three.platform.refresh_statuses = ("处理中",) * 1000
    late = anaplat("refresh", "ds1", "--wait", "--poll-interval", "0.01", "--timeout", "0.05")
    assert (late.code, "Not done within 0.05 s" in late.err) == (6, True)


@pytest.mark.parametrize("option", ["--poll-interval", "--timeout"])
@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_refresh_takes_no_pace_at_which_nobody_can_wait(
    three: Simulator, anaplat: Anaplat, option: str, seconds: str
) -> None:
    ended = anaplat("refresh", "Sales", "--wait", option, seconds)
    assert (ended.code, three.ledger) == (2, [])
    assert f"{option} is {float(seconds)!r}; it must be a number of seconds above 0." in ended.err


def test_a_refresh_goes_where_the_extras_say(
    three: Simulator, anaplat: Anaplat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPLAT_EXTRA", '{"refresh_path": "/public-api/elsewhere/{dsId}"}')
    ended = anaplat("refresh", "ds1")
    assert (ended.code, three.requests("refresh_dataset")) == (3, [])


def test_a_refresh_whose_answer_is_lost_is_looked_for_and_then_in_doubt(
    three: Simulator, anaplat: Anaplat
) -> None:
    three.inject("refresh_dataset", replies.reset())
    ended = anaplat("refresh", "ds1", "--poll-interval", "0.01")
    assert ended.code == 5
    assert len(three.requests("refresh_dataset")) == 1


def test_pages_are_listed(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.pages = [
        {"pgId": "p2", "name": "Overview", "pgType": "OVERVIEW", "parentDirId": "root"},
        {"pgId": "p1", "name": "Detail"},
    ]

    assert [page["pgId"] for page in anaplat("pages", "--json").json] == ["p1", "p2"]
    assert [page["pgId"] for page in anaplat("pages", "over*", "--folder", "root", "--json").json] == ["p2"]
    assert anaplat("pages").out.splitlines()[1] == "p1\tDetail\tnull\tnull\tnull"


def test_the_cards_of_a_page_are_listed_by_its_id_or_name(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.pages = [{"pgId": "p1", "name": "Sales"}, {"pgId": "p2", "name": "Stock"}]
    card = simulator.platform.add_card("Revenue", TEXTS, pg_id="p1")

    assert [listed["cdId"] for listed in anaplat("cards", "Sales", "--json").json] == [card.cd_id]
    assert anaplat("cards", "p1").out.splitlines()[1].startswith(f"{card.cd_id}\tRevenue\t")
    assert anaplat("cards", "p2", "--json").json == []

    unknown = anaplat("cards", "Sale")
    assert (unknown.code, "No page has the id or the name 'Sale'. Close to it: 'Sales'" in unknown.err) == (
        3,
        True,
    )


def test_access_writes_a_report_and_tells_who_is_missing(
    three: Simulator, anaplat: Anaplat, tmp_path: Path
) -> None:
    three.platform.authorized_datasets = {"u1": [{"id": "ds1", "canExport": True}]}
    listed, report = tmp_path / "users.txt", tmp_path / "access.csv"
    listed.write_text("u1\n\nu2\n")
    ended = anaplat("access", report, "--users-from", listed, "--json")

    assert (ended.code, ended.json["users"], ended.json["datasets"]) == (0, 2, 1)
    assert pl.read_csv(report)["resourceId"].to_list() == ["ds1"]

    three.inject("list_authorized_datasets", replies.refusal("no"))
    ended = anaplat("access", report, "--users-from", listed, "--json")

    assert (ended.code, ended.json["failed"]) == (8, 1)
    assert anaplat("access", report).code == 2


def test_access_compares_with_an_earlier_report(anaplat: Anaplat, simulator: Simulator, tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv.gz", tmp_path / "new.ndjson"
    anaplat("access", old, "--user", "u1")
    simulator.platform.authorized_datasets["u1"] = [{"id": "ds9", "name": "n"}]
    given = ("access", new, "--user", "u1", "--compare-with", old)
    found = anaplat(*given, "--json").json

    assert (found["gained"], found["lost"], found["changesPath"]) == (1, 0, str(tmp_path / "new-changes.ndjson"))
    assert anaplat(*given, "--on-changes", "fail").code == 8
    assert anaplat("access", new, "--user", "u1", "--compare-with", tmp_path / "gone.csv").code == 7


@pytest.mark.parametrize("given", [("--on-changes", "fail"), ("--changes-path", "changes.csv")])
def test_what_is_said_of_a_comparison_needs_one(
    anaplat: Anaplat, simulator: Simulator, tmp_path: Path, given: tuple[str, str]
) -> None:
    ended = anaplat("access", tmp_path / "new.csv", "--user", "u1", *given)

    assert (ended.code, simulator.ledger) == (2, [])
    assert "need --compare-with" in ended.err
    assert anaplat("access", tmp_path / "new.csv", "--user", "u1", *given, "--compare-with", "").code == 0
