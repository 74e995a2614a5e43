"""Who gained and who lost what since an earlier access report: every format, exactly, and what can go wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from upath import UPath

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.access.changes import changes_path_of
from airflow_provider_anaplat.errors import AnaplatEarlierReportError, AnaplatOutputError
from airflow_provider_anaplat.operators.access import AnaplatAccessReportOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]

FORMATS = ["csv", "csv.gz", "csv.zst", "ndjson", "jsonl.gz", "ndjson.zst", "parquet"]
KEYS = ["change", "uId", "resourceType", "resourceId", "name", "isOwner", "isInherit", "canExport", "sources"]


def right(number: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"ds{number}",
        "name": 'a "b",\nü',
        "isOwner": False,
        "isInherit": None,
        "canExport": True,
        **fields,
    }


def report(output_path: Any, user_ids: Any = ("u1", "u2"), **arguments: Any) -> Any:
    return run(str(output_path), user_ids, **arguments)


def run(output_path: Any, user_ids: Any = ("u1", "u2"), **arguments: Any) -> Any:
    operator = AnaplatAccessReportOperator(
        task_id="report", user_ids=user_ids, output_path=output_path, **arguments
    )
    return operator.execute({})


def read(path: Path) -> list[dict[str, Any]]:
    if "csv" in path.name:
        return pl.read_csv(path).to_dicts()
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    data = zstandard.ZstdDecompressor().decompressobj().decompress(data) if path.suffix == ".zst" else data
    return [json.loads(line) for line in data.splitlines()]


@pytest.fixture(autouse=True)
def datasets(connect: Connect, simulator: Simulator) -> dict[str, list[dict[str, Any]]]:
    connect(simulator, extra={"max_retries": 0})
    found: dict[str, list[dict[str, Any]]] = simulator.platform.authorized_datasets
    found["u1"] = [right(1), right(2), right(3)]
    found["u2"] = [right(1), right(4, isOwner=None, canExport=None)]
    return found


@pytest.mark.parametrize("before", FORMATS)
@pytest.mark.parametrize("name", ["a\rb\r\nc", "\r", "\ufeff a\x00\x0b\x85\u2028 "], ids=ascii)
def test_a_name_of_any_characters_is_the_same_as_before(
    datasets: Any, tmp_path: Path, before: str, name: str
) -> None:
    datasets["u1"] = [right(1, name=name, sources=[{"id": "g", "name": name}]), right(name)]
    report(tmp_path / f"old.{before}")
    result = report(tmp_path / f"new.{before}", compare_with=str(tmp_path / f"old.{before}"))
    assert (result["gained"], result["lost"]) == (0, 0)


@pytest.mark.parametrize("now", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("before", FORMATS)
def test_gained_and_lost_whatever_the_formats(datasets: Any, tmp_path: Path, before: str, now: str) -> None:
    old, new = tmp_path / f"old.{before}", tmp_path / f"new.{now}"
    report(old)
    datasets["u1"] = [
        right(3),
        right(1, name="renamed", sources=[{"id": "g"}]),
        right(2, canExport=False),
        right(1),
    ]
    datasets["u2"] = [right(4, isOwner=None, canExport=None), right(5)]
    result = report(new, compare_with=str(old))
    changes = tmp_path / f"new-changes.{now}"

    assert (result["gained"], result["lost"], result["changesPath"]) == (2, 2, str(changes))

    rows = read(changes)
    assert list(rows[0]) == KEYS
    assert [(row["uId"], row["change"], row["resourceId"], row["canExport"]) for row in rows] == [
        ("u1", "lost", "ds2", True),
        ("u1", "gained", "ds2", False),
        ("u2", "lost", "ds1", True),
        ("u2", "gained", "ds5", True),
    ]
    assert {(row["resourceType"], row["name"], row["isInherit"]) for row in rows} == {
        ("dataset", 'a "b",\nü', None)
    }
    assert {path.name for path in tmp_path.iterdir()} == {old.name, new.name, changes.name}


@pytest.mark.parametrize("file_format", FORMATS)
def test_no_change_makes_a_valid_file_and_no_failure(tmp_path: Path, file_format: str) -> None:
    report(tmp_path / f"old.{file_format}")
    new, changes = tmp_path / f"new.{file_format}", tmp_path / "made" / f"changes.{file_format}"
    old = str(tmp_path / f"old.{file_format}")
    result = report(new, compare_with=old, changes_path=str(changes), on_changes="fail")
    assert (result["gained"], result["lost"], result["changesPath"]) == (0, 0, str(changes))
    assert read(changes) == []


def test_on_changes_fail_names_them_when_both_files_are_there(datasets: Any, tmp_path: Path) -> None:
    report(tmp_path / "old.csv")
    datasets["u1"] += [right(number) for number in range(10, 17)]
    datasets["u2"] = []

    with pytest.raises(AirflowFailException) as raised:
        report(tmp_path / "new.csv", compare_with=str(tmp_path / "old.csv"), on_changes="fail")

    message = str(raised.value)
    assert message.startswith(
        f"7 rights were gained and 2 lost since {tmp_path}/old.csv: u1 gained dataset ds10 ("
    )
    assert "; and 4 more. All of them are in " + str(tmp_path / "new-changes.csv") in message
    assert "on_changes to 'pass'" in message
    assert len(read(tmp_path / "new-changes.csv")) == 9
    assert len(read(tmp_path / "new.csv")) == 10


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_to_compare_with_writes_no_changes(tmp_path: Path, nothing: Any) -> None:
    result = report(tmp_path / "new.csv", compare_with=nothing, on_changes="fail")
    assert (result["gained"], result["lost"], result["changesPath"]) == (None, None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_who_could_not_be_read_this_time_has_lost_nothing(simulator: Simulator, tmp_path: Path) -> None:
    report(tmp_path / "old.csv")
    simulator.inject("list_authorized_datasets", replies.refusal("no", code=1002), times=None,
                    when=lambda _: "/u2/" in simulator.requests("list_authorized_datasets")[-1].path)  # fmt: skip
    result = report(tmp_path / "new.csv", compare_with=str(tmp_path / "old.csv"), on_user_error="report",
                    concurrency=1)  # fmt: skip
    assert (result["failedUsers"], result["gained"], result["lost"]) == (["u2"], 0, 0)


def test_who_is_asked_for_no_more_has_lost_all(tmp_path: Path) -> None:
    report(tmp_path / "old.csv")
    result = report(tmp_path / "new.csv", ["u1"], compare_with=str(tmp_path / "old.csv"))
    assert (result["gained"], result["lost"]) == (0, 2)


@pytest.mark.parametrize("now", ["csv", "parquet"])
def test_ids_that_were_escaped_are_the_same(datasets: Any, tmp_path: Path, now: str) -> None:
    datasets["u1"] = [right("", id="=1+1"), right("", id="@a")]
    report(tmp_path / "old.csv", csv_formulas="escape")
    result = report(tmp_path / f"new.{now}", compare_with=str(tmp_path / "old.csv"), csv_formulas="escape")
    assert (result["gained"], result["lost"]) == (0, 0)


def test_rows_that_come_twice_count_once(tmp_path: Path) -> None:
    report(tmp_path / "old.ndjson")
    lines = (tmp_path / "old.ndjson").read_text()
    (tmp_path / "old.ndjson").write_text(lines * 2)
    result = report(tmp_path / "new.csv", [], compare_with=str(tmp_path / "old.ndjson"))
    assert (result["gained"], result["lost"]) == (0, 5)


def damages(data: bytes) -> list[bytes]:
    """Return the file cut off at many places, and empty."""
    return [data[:end] for end in range(0, len(data) - 1, max(1, len(data) // 15))]


@pytest.mark.parametrize("file_format", [name for name in FORMATS if name not in ("csv", "ndjson")])
def test_an_earlier_report_that_is_cut_off_is_an_error_before_any_request(
    simulator: Simulator, tmp_path: Path, file_format: str
) -> None:
    old = tmp_path / f"old.{file_format}"
    report(old)
    asked = len(simulator.ledger)
    why = "is no whole" if file_format == "parquet" else "its compression is damaged"
    for damaged in damages(old.read_bytes()):
        old.write_bytes(damaged)
        with pytest.raises(AirflowFailException, match=why):
            report(tmp_path / "new.csv", compare_with=str(old))

    assert len(simulator.ledger) == asked
    assert list(tmp_path.iterdir()) == [old]


HEADER = ",".join(KEYS[1:])


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.csv", b"", "its columns are none; they must be uId, resourceType"),
        ("x.csv", b"uId,name\nu1,n\n", "its columns are uId, name; they must be"),
        ("x.csv", f"{HEADER}\nu1,dataset,ds1".encode(), "ends in the middle of a row"),
        ("x.csv", f"{HEADER}\nu1,dataset,ds1\n".encode(), "row 1 has 3 fields in place of 8"),
        (
            "x.csv",
            f"{HEADER}\nu1,dataset,ds1,n,TRUE,,,\n".encode(),
            "row 1: isOwner, isInherit, canExport must be",
        ),
        ("x.csv", f'{HEADER}\nu1,dataset,ds1,"n,,,,\n'.encode(), "line 2: unexpected end"),
        ("x.csv", f"{HEADER}\n\xff".encode("latin-1"), "is not UTF-8"),
        ("x.ndjson", b'{"uId": "u1"}\n', "its columns are uId; they must be"),
        ("x.ndjson", b'{"uId": "u\n', "row 1 is not JSON"),
        ("x.ndjson", b"[" * 100_000 + b"]" * 100_000 + b"\n", "row 1 is not JSON"),
        ("x.ndjson", b"[]\n", "row 1 is no JSON object"),
        ("x.ndjson", b"{}", "ends in the middle of a row"),
        ("x.ndjson", json.dumps(dict.fromkeys(KEYS[1:])).encode() + b"\n", "row 1 has no text as one of uId"),
        ("x.ndjson", json.dumps(dict.fromkeys(KEYS[1:], "\ud800")).encode() + b"\n", "must be true or false"),
        ("x.csv.gz", b"no gzip", "its compression is damaged"),
        ("x.csv.zst", b"no zstandard", "its compression is damaged"),
        ("x.parquet", b"PAR1 and no more", "is no whole access report"),
    ],
)
def test_what_is_no_access_report_is_said(
    simulator: Simulator, tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AirflowFailException, match=why) as raised:
        report(tmp_path / "new.csv", compare_with=str(tmp_path / name))
    assert f"{tmp_path / name}, which compare_with names" in str(raised.value)
    assert simulator.ledger == []


def test_an_earlier_report_that_is_missing_is_an_error_that_says_what_to_do(
    simulator: Simulator, tmp_path: Path
) -> None:
    with pytest.raises(AirflowFailException, match=r"gone.csv, which is missing\. .* leave compare_with empty"):
        report(tmp_path / "new.csv", compare_with=str(tmp_path / "gone.csv"))
    assert (simulator.ledger, list(tmp_path.iterdir())) == ([], [])


def test_one_that_cannot_be_read_now_may_be_read_later(tmp_path: Path) -> None:
    loop = tmp_path / "loop.csv"
    loop.symlink_to(tmp_path / ("x" * 250))
    (tmp_path / ("x" * 250)).symlink_to(loop)
    with pytest.raises(AnaplatEarlierReportError, match=r"Cannot read .*loop\.csv.* Too many levels"):
        report(tmp_path / "new.csv", compare_with=str(loop))


@pytest.mark.parametrize(
    "arguments",
    [
        {"compare_with": "{folder}/new.csv"},
        {"compare_with": "{folder}/x/../new.csv"},
        {"compare_with": "{folder}/old.csv", "changes_path": "{folder}/new.csv"},
        {"compare_with": "{folder}/old.csv", "changes_path": "{folder}/old.csv"},
    ],
)
def test_no_report_is_compared_with_itself_or_written_over(
    simulator: Simulator, tmp_path: Path, arguments: dict[str, str]
) -> None:
    report(tmp_path / "old.csv")
    asked, before = len(simulator.ledger), (tmp_path / "old.csv").read_bytes()
    given = {name: value.format(folder=tmp_path) for name, value in arguments.items()}
    with pytest.raises(AirflowFailException, match="are the same file"):
        report(tmp_path / "new.csv", **given)
    assert (len(simulator.ledger), (tmp_path / "old.csv").read_bytes()) == (asked, before)


@pytest.mark.parametrize("name", ["compare_with", "changes_path"])
def test_a_path_without_a_format_is_named(simulator: Simulator, tmp_path: Path, name: str) -> None:
    given = {"compare_with": str(tmp_path / "old.csv"), name: str(tmp_path / "None")}
    with pytest.raises(AirflowFailException, match=f"end {name} in one of"):
        report(tmp_path / "new.csv", **given)
    assert simulator.ledger == []


def test_a_suffix_that_says_nothing_has_the_format_of_the_report(tmp_path: Path) -> None:
    report(tmp_path / "old", file_format="ndjson.gz")
    result = report(tmp_path / "new", ["u1"], file_format="ndjson.gz", compare_with=str(tmp_path / "old"))
    assert (result["lost"], result["changesPath"]) == (2, str(tmp_path / "new-changes"))
    assert len(gzip.decompress((tmp_path / "new-changes").read_bytes()).splitlines()) == 2


def test_changes_that_cannot_be_written_leave_those_of_before(tmp_path: Path) -> None:
    report(tmp_path / "old.csv")
    (tmp_path / "new-changes.csv").mkdir()
    with pytest.raises(AnaplatOutputError, match=r"new-changes\.csv: it exists and is no regular file"):
        report(tmp_path / "new.csv", compare_with=str(tmp_path / "old.csv"))
    assert {path.name for path in tmp_path.iterdir()} == {"old.csv", "new.csv", "new-changes.csv"}


@pytest.mark.parametrize("file_format", ["ndjson.zst", "parquet"])
def test_an_object_store_will_do(datasets: Any, tmp_path: Path, file_format: str) -> None:
    folder = UPath(f"memory://bucket{tmp_path}")
    old, new = folder / f"old.{file_format}", folder / f"new.{file_format}"
    run(old)
    datasets["u2"] = []
    result = run(new, compare_with=old)

    assert (result["gained"], result["lost"]) == (0, 2)
    assert result["changesPath"] == f"{folder}/new-changes.{file_format}"
    assert (folder / f"new-changes.{file_format}").stat().st_size > 100
    with pytest.raises(AirflowFailException, match="which is missing"):
        run(new, compare_with=folder / f"gone.{file_format}")


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/data.d/access.csv.gz", "/data.d/access-changes.csv.gz"),
        ("s3://c@bucket/a/access.parquet", "s3://c@bucket/a/access-changes.parquet"),
        ("access", "access-changes"),
        ("access.2026-01-31.csv", "access.2026-01-31-changes.csv"),
        (".csv", ".csv-changes"),
    ],
)
def test_the_default_path_of_the_changes(path: str, changes: str) -> None:
    assert changes_path_of(path) == changes
