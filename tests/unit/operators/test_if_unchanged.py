"""An export whose dataset, query, format and file are those of the last one is not done again; any other is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import numbers
from support.unchanged import BELOW_7, asked, name_no_state

from airflow_provider_anaplat import AnaplatExportRowsOperator
from airflow_provider_anaplat._airflow.releases import (
    AirflowFailException,
    AirflowSkipException,
)
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatError, AnaplatUnplannedError
from airflow_provider_anaplat.operators.partitioned import _CommitOperator, _PartOperator, _PlanOperator
from airflow_provider_anaplat.output.files import Written
from airflow_provider_anaplat.rows.export import export_rows
from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget
from airflow_provider_anaplat.simulator import Simulator, replies

Export = Callable[..., dict[str, Any]]
DEEP = [pytest.param(b"[" * depth + b"]" * depth, id=f"{depth} deep") for depth in (1_000, 100_000)]


@pytest.fixture(autouse=True)
def dataset(simulator: Simulator) -> Any:
    return simulator.platform.add_dataset("numbers", numbers(30))


@pytest.fixture
def export(connect: Callable[..., None], simulator: Simulator, tmp_path: Path) -> Export:
    connect(simulator, extra={"max_retries": 0})

    def export(run: str | None = None, **arguments: Any) -> dict[str, Any]:
        arguments = {
            "ds_id": "ds1",
            "output_path": str(tmp_path / "rows.csv"),
            "if_unchanged": "return",
            **arguments,
        }
        instance: Any = SimpleNamespace(dag_id="dag", run_id=run, task_id="export", map_index=-1)
        task = AnaplatExportRowsOperator(task_id="export", **arguments)
        result: dict[str, Any] = task.execute({} if run is None else {"ti": instance})
        return result

    return export


@pytest.mark.parametrize("parts", [{}, {"rows_per_file": 10}], ids=["file", "parts"])
@pytest.mark.parametrize("file_format", ["csv", "ndjson.gz", "parquet"])
def test_nothing_is_done_twice(
    export: Export, simulator: Simulator, tmp_path: Path, parts: dict[str, int], file_format: str
) -> None:
    arguments = {"output_path": str(tmp_path / "rows"), "file_format": file_format, **parts}
    first = export(**arguments)
    before = len(asked(simulator))

    second = export(**arguments)

    assert asked(simulator)[before:] == [(0, 1)]
    assert second == {**first, "unchanged": True}
    assert "unchanged" not in first


def test_a_task_is_skipped_where_that_is_wished(export: Export) -> None:
    export()

    with pytest.raises(AirflowSkipException, match="ds1 has not changed"):
        export(if_unchanged="skip")


def test_by_default_it_is_done_again_and_nothing_is_left_beside(export: Export, tmp_path: Path) -> None:
    export(if_unchanged="export")
    assert "unchanged" not in export(if_unchanged="export")

    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize(
    "other",
    [
        {"sort_by": "n"},
        {"sort_by": "n", "sort_type": "desc"},
        {"filter": BELOW_7},
        {"max_rows": 7},
        {"on_cast_error": "null"},
        {"delimiter": ";"},
        {"header": False},
        {"encoding": "gb18030"},
        {"csv_formulas": "escape"},
        {"file_format": "ndjson"},
        {"file_format": "csv.gz"},
    ],
    ids=str,
)
def test_another_query_or_format_is_exported(export: Export, other: dict[str, Any]) -> None:
    export()

    assert "unchanged" not in export(**other)
    assert export(**other)["unchanged"]


def test_another_way_to_ask_is_not_another_query(export: Export) -> None:
    export()

    assert export(concurrency=1, memory_mb=512)["unchanged"]


def test_another_dataset_is_exported(export: Export, simulator: Simulator) -> None:
    simulator.platform.add_dataset("others", numbers(30))
    export()

    assert "unchanged" not in export(ds_id="ds2")


def test_the_same_id_on_another_platform_is_exported(
    export: Export, connect: Callable[..., None], simulator: Simulator
) -> None:
    export()
    connect(host=f"{simulator.url.replace('127.0.0.1', 'localhost')}", password=simulator.token)

    assert "unchanged" not in export()


def test_a_file_that_was_gone_when_it_was_noted_is_written(export: Export, tmp_path: Path) -> None:
    export()
    (note,) = tmp_path.glob(".anaplat-export-*.json")
    note.write_text(json.dumps({**json.loads(note.read_bytes()), "files": {"rows.csv": None}}))
    (tmp_path / "rows.csv").unlink()

    assert "unchanged" not in export()


def test_an_updated_dataset_is_exported(export: Export, simulator: Simulator) -> None:
    export()
    simulator.platform.refresh("ds1", numbers(31))

    found = export()

    assert (found["rows"], "unchanged" in found) == (31, False)


def test_a_file_that_was_changed_or_is_gone_is_written_again(export: Export, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    export()
    whole = path.read_bytes()

    path.write_bytes(whole.replace(b"1", b"7"))
    assert "unchanged" not in export()
    assert path.read_bytes() == whole

    path.unlink()
    assert "unchanged" not in export()
    assert path.read_bytes() == whole

    os.utime(path, (0, 0))
    assert "unchanged" not in export()


def test_a_part_that_is_gone_is_written_again(export: Export, tmp_path: Path) -> None:
    arguments = {"output_path": str(tmp_path / "rows"), "file_format": "csv", "rows_per_file": 10}
    export(**arguments)
    (tmp_path / "rows" / "part-00002.csv").unlink()

    assert "unchanged" not in export(**arguments)
    assert (tmp_path / "rows" / "part-00002.csv").exists()


def test_a_part_too_many_is_a_reason_to_export(export: Export, tmp_path: Path) -> None:
    arguments = {"output_path": str(tmp_path / "rows"), "file_format": "csv", "rows_per_file": 10}
    export(**arguments)
    (tmp_path / "rows" / "part-00004.csv").write_text("n,half\n")

    assert "unchanged" not in export(**arguments)
    assert not (tmp_path / "rows" / "part-00004.csv").exists()


def test_what_a_task_has_written_in_its_run_is_written_again(export: Export) -> None:
    """As a retry or a cleared task: were it skipped, what follows it would never see what was written."""
    export("monday")

    assert "unchanged" not in export("monday")
    assert "unchanged" in export("tuesday")
    assert "unchanged" in export("tuesday")


@pytest.mark.parametrize("split", [{}, {"rows_per_file": 10}], ids=["file", "parts"])
def test_what_another_has_put_there_before_it_is_noted_is_seen(
    export: Export, simulator: Simulator, tmp_path: Path, split: dict[str, int]
) -> None:
    arguments: dict[str, Any] = {"output_path": str(tmp_path / "rows"), "file_format": "csv", **split}
    path = tmp_path / "rows" / ("part-00001.csv" if split else "")
    target = PartsTarget if split else FileTarget

    class Overtaken(target):  # type: ignore[valid-type]  # one of two
        def write(self, frames: Any, *others: Any) -> Written:
            written = super().write(frames, *others)
            (tmp_path / "others").write_bytes(path.read_bytes())
            (tmp_path / "others").replace(path)
            return written

    task = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", if_unchanged="return", **arguments)
    last = task.last_export("ds1", split, None)
    with closing(task.client()) as client:
        summary = export_rows(client, task.plan(Overtaken(task.place(), *split.values()), "ds1"))
        last.note(client, summary)

    assert "unchanged" not in export(**arguments)
    assert "unchanged" in export(**arguments)


def test_what_another_user_may_see_is_exported(tmp_path: Path) -> None:
    task = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=str(tmp_path / "rows.csv"))
    last = task.last_export("ds1", {}, None)
    users: list[dict[str, Any]] = [
        {"token": "a" * 20},
        {"token": "b" * 20},
        {"token": "a" * 20, "user_token": "c" * 20},
        {"token": "a" * 20, "login": "ann"},
        {"token": "a" * 20, "login": "bob"},
    ]

    fingerprints = [last.fingerprint(AnaplatClient("https://bi.example.com", **user)) for user in users]

    assert len(set(fingerprints)) == len(users)
    assert last.fingerprint(AnaplatClient("https://bi.example.com", **users[0])) == fingerprints[0]


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"null", b'{"files": {}}', b"\xff", *DEEP, {"summary": {}}, {"summary": []},
        {"summary": {"rows": "x"}}, {"files": []}, {"files": {"rows.csv": 1}}, {"snapshot": []}, {"by": {}},
        {"fingerprint": None},
    ],
)  # fmt: skip
def test_a_damaged_note_is_none(export: Export, tmp_path: Path, damage: bytes | dict[str, Any]) -> None:
    export()
    (path,) = tmp_path.glob(".anaplat-export-*.json")
    note = json.loads(path.read_bytes())
    if isinstance(damage, dict):
        if damage.get("summary"):
            damage = {"summary": note["summary"] | damage["summary"]}
        damage = json.dumps(note | damage).encode()
    path.write_bytes(damage)

    assert "unchanged" not in export()
    assert export()["unchanged"]


def test_a_platform_that_names_neither_version_nor_time_is_never_taken_for_unchanged(
    export: Export, simulator: Simulator
) -> None:
    name_no_state(simulator)

    results = [export(), export()]

    assert results[0] == results[1]
    assert "unchanged" not in results[1]


@pytest.mark.parametrize("field", ["version", "utime"])
def test_one_of_them_is_enough(export: Export, simulator: Simulator, field: str) -> None:
    name_no_state(simulator, field)

    results = [export(), export()]

    assert "unchanged" not in results[0]
    assert results[1]["unchanged"]


def test_an_export_that_fails_notes_nothing(export: Export, simulator: Simulator) -> None:
    export()
    simulator.platform.refresh("ds1", numbers(30))
    simulator.inject("read_rows", replies.reset(), when=lambda body: body["limit"] > 1)

    with pytest.raises(AnaplatError):
        export()

    assert "unchanged" not in export()


def test_a_misspelt_word_falls_open_nowhere(export: Export, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="if_unchanged is 'Skip'"):
        export(if_unchanged="Skip")

    assert asked(simulator) == []


@pytest.fixture
def work(connect: Callable[..., None], simulator: Simulator, tmp_path: Path) -> Callable[..., Any]:
    """Run a task of a partitioned export in a DAG run."""
    connect(simulator)
    told: dict[str, Any] = {}

    def work(kind: Any, run: str, **arguments: Any) -> Any:
        arguments = {
            "ds_id": "ds1", "output_path": str(tmp_path / "rows"), "file_format": "csv", "page_size": 10,
            "if_unchanged": "return", "partitions": 3, **arguments,
        }  # fmt: skip

        def push(key: str, value: Any) -> None:
            told[f"{run} {key}"] = value

        instance = SimpleNamespace(dag_id="dag", run_id=run, task_id="export.task", map_index=-1, xcom_push=push)
        found = {"found": told.get(f"{run} found", "")} if kind is _CommitOperator else {}
        return kind(task_id="task", **found, **arguments).execute({"ti": instance})

    return work


@pytest.fixture
def by_several(work: Callable[..., Any]) -> Export:
    """Run all tasks of a partitioned export."""

    def by_several(run: str, **arguments: Any) -> dict[str, Any]:
        for part in work(_PlanOperator, run, **arguments):
            work(_PartOperator, run, partition=part, **arguments)
        result: dict[str, Any] = work(_CommitOperator, run, **arguments)
        return result

    return by_several


def test_several_workers_do_nothing_twice(by_several: Export, simulator: Simulator) -> None:
    first = by_several("monday")
    before = len(asked(simulator))

    second = by_several("tuesday")

    assert asked(simulator)[before:] == [(0, 1)]
    assert second == {**first, "unchanged": True}
    with pytest.raises(AirflowSkipException, match="ds1 has not changed"):
        by_several("wednesday", if_unchanged="skip")


@pytest.mark.parametrize(
    "other", [{"partitions": 2}, {"sort_by": "n"}, {"delimiter": ";"}, {"file_format": "ndjson"}], ids=str
)
def test_several_workers_export_what_is_another(by_several: Export, other: dict[str, Any]) -> None:
    by_several("monday")

    assert "unchanged" not in by_several("tuesday", **other)
    assert "unchanged" in by_several("wednesday", **other)


def test_several_workers_export_what_has_changed(
    by_several: Export, export: Export, simulator: Simulator, tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    by_several("monday")
    simulator.platform.refresh("ds1", numbers(31))
    assert by_several("tuesday")["rows"] == 31

    (folder / "part-00002.csv").unlink()
    assert "unchanged" not in by_several("wednesday")
    assert (folder / "part-00002.csv").exists()

    export(output_path=str(folder), file_format="csv", rows_per_file=7)
    assert "unchanged" not in by_several("thursday")


def test_several_workers_note_nothing_by_default(by_several: Export, tmp_path: Path) -> None:
    by_several("monday", if_unchanged="export")

    assert not [path for path in (tmp_path / "rows").iterdir() if path.name.startswith(".")]
    assert "unchanged" not in by_several("tuesday")


def test_a_commit_that_finds_itself_done_takes_no_file_for_its_own(
    by_several: Export, work: Callable[..., Any], tmp_path: Path
) -> None:
    by_several("monday", if_unchanged="export")
    path = tmp_path / "rows" / "part-00002.csv"
    path.write_text(path.read_text().replace("1", "7"))

    assert work(_CommitOperator, "monday")["rows"] == 30

    assert "unchanged" not in by_several("tuesday")


@pytest.mark.parametrize("meanwhile", ["gone", "of another run"])
def test_a_commit_returns_what_its_plan_has_found_and_nothing_else(
    by_several: Export, work: Callable[..., Any], simulator: Simulator, tmp_path: Path, meanwhile: str
) -> None:
    by_several("monday")
    work(_PlanOperator, "tuesday")
    if meanwhile == "gone":
        (tmp_path / "rows" / "_manifest.json").unlink()
    else:
        simulator.platform.refresh("ds1", numbers(31))
        by_several("wednesday")

    with pytest.raises(AnaplatUnplannedError, match="another export may be writing there"):
        work(_CommitOperator, "tuesday")


def test_a_manifest_that_was_changed_unseen_is_exported_again(by_several: Export, tmp_path: Path) -> None:
    by_several("monday")
    manifest = tmp_path / "rows" / "_manifest.json"
    seen = manifest.stat()
    manifest.write_bytes(b" " * seen.st_size)
    os.utime(manifest, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    assert "unchanged" not in by_several("tuesday")
    assert "unchanged" in by_several("wednesday")


def test_a_commit_that_is_run_again_returns_the_same(by_several: Export, work: Callable[..., Any]) -> None:
    first = by_several("monday")
    assert work(_CommitOperator, "monday") == first

    second = by_several("tuesday")
    assert work(_CommitOperator, "tuesday") == second


def test_what_a_group_has_written_in_its_run_is_written_again_when_it_is_cleared(by_several: Export) -> None:
    by_several("monday")

    assert "unchanged" not in by_several("monday")
    assert "unchanged" in by_several("tuesday")


def test_parts_that_were_exported_in_several_ways_are_not_published(
    work: Callable[..., Any], tmp_path: Path
) -> None:
    """As where the DAG file is changed between two parts."""
    first, *others = work(_PlanOperator, "monday", if_unchanged="export")
    work(_PartOperator, "monday", partition=first, if_unchanged="export", sort_type="desc", sort_by="n")
    for part in others:
        work(_PartOperator, "monday", partition=part, if_unchanged="export", sort_by="n")

    with pytest.raises(AnaplatUnplannedError, match="not all exported in the same way"):
        work(_CommitOperator, "monday", if_unchanged="export", sort_by="n")
    assert not list((tmp_path / "rows").glob("part-*"))


def test_parts_that_were_exported_in_another_way_are_not_noted(
    by_several: Export, work: Callable[..., Any]
) -> None:
    """As where the DAG file is changed before the commit."""
    for part in work(_PlanOperator, "monday"):
        work(_PartOperator, "monday", partition=part, delimiter=";")
    work(_CommitOperator, "monday")

    assert "unchanged" not in by_several("tuesday")
    assert "unchanged" in by_several("wednesday")
