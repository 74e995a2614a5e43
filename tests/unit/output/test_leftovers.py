"""What killed exports left, and exports to one place at a time, on each kind of path."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, numbers
from support.exports import export_rows
from upath import UPath

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.output.files import StagedFile
from airflow_provider_anaplat.output.formats import CsvSink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.rows.partitions import PartitionedExport, RowsOfPart
from airflow_provider_anaplat.rows.targets import MANIFEST, PartsTarget
from airflow_provider_anaplat.simulator import Simulator, replies

QUERY = RowQuery("ds1", page_size=10, concurrency=1)
PARTS = [MANIFEST, "part-00001.csv", "part-00002.csv", "part-00003.csv"]


@pytest.fixture(params=["nameless", "hidden", "object"])
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An empty folder where files are nameless while they are written, or hidden, or are objects."""
    if request.param == "object":
        folder = UPath(f"memory://{secrets.token_hex(8)}")
        folder.mkdir()
        return folder
    if request.param == "hidden":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def thirty_rows(simulator: Simulator) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))


def left_of(path: Any, group: str = "") -> str:
    """Leave what a process leaves that is killed when its file is complete, and return its name."""
    staged = StagedFile(path, group)
    with staged.open() as file:
        file.write(b"complete")
    return str(staged._temporary.name)


def names(folder: Any) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_export_removes_what_killed_ones_to_the_same_file_left(client: AnaplatClient, folder: Any) -> None:
    mine = {left_of(folder / "rows.csv") for _ in range(2)}
    others = {left_of(folder / "rows.csv.gz"), left_of(folder / "part-00001.csv", MANIFEST)}
    others.add(".anaplat-0123456789abcdef")  # the place of an export by several workers
    (folder / ".anaplat-0123456789abcdef").mkdir()
    (folder / ".anaplat-0123456789abcdef" / "plan.json").write_text("{}")

    assert {*names(folder)} == mine | others

    export_rows(client, QUERY, folder / "rows.csv", "csv")
    assert {*names(folder)} == others | {"rows.csv"}


def test_an_export_of_parts_removes_those_of_killed_ones(client: AnaplatClient, folder: Any) -> None:
    left_of(folder / MANIFEST)
    for number in range(1, 6):
        left_of(folder / f"part-{number:05d}.ndjson", MANIFEST)
    foreign = {left_of(folder / "rows.csv"), ".anaplat-of-mine.tmp", ".hidden.tmp"}
    for name in foreign:
        (folder / name).write_text("somebody's")

    assert len(names(folder)) == 9

    export_rows(client, QUERY, folder, "csv", rows_per_file=10)
    assert {*names(folder)} == foreign | {*PARTS}


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def begun(simulator: Simulator, go_on: threading.Event) -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Begin something that asks for rows 20 and on, and return when it has; the answer waits for ``go_on``."""
    with ThreadPoolExecutor() as pool:

        def begin(work: Callable[[], Any]) -> Future[Any]:
            asked = threading.Event()
            simulator.inject(
                "read_rows", replies.hold(go_on), when=lambda body: body["offset"] == 20 and not asked.set()
            )
            future = pool.submit(work)
            assert asked.wait(LONG)
            return future

        yield begin
        go_on.set()


def test_of_two_exports_of_parts_the_later_one_stands(
    client: AnaplatClient, folder: Any, begun: Callable[..., Any], go_on: threading.Event
) -> None:
    earlier = begun(lambda: export_rows(client, QUERY, folder, "csv", rows_per_file=8))
    export_rows(client, QUERY, folder, "csv", rows_per_file=10)
    later = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
    go_on.set()

    with pytest.raises(AnaplatOutputError, match="Another export to the same place has begun since"):
        earlier.result()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == later
    assert sorted(later) == PARTS


@dataclass
class OvertakenReader:
    """A reader whose export is overtaken when all its parts have their names."""

    of: PageReader
    overtake: Callable[[], Any]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.of.columns

    @property
    def snapshot(self) -> Snapshot:
        return self.of.snapshot

    @property
    def ds_id(self) -> str:
        self.overtake()
        return self.of.ds_id


def test_an_export_that_is_overtaken_at_its_end_writes_no_manifest(client: AnaplatClient, folder: Any) -> None:
    reader = PageReader(client, QUERY)
    whole = OvertakenReader(reader, lambda: export_rows(client, QUERY, folder, "csv", rows_per_file=10))

    with pytest.raises(AnaplatOutputError, match="Another export to the same place has begun since"):
        PartsTarget(Place(folder, CsvSink()), 8).write(
            (page.frame for page in reader.pages()),
            whole,  # type: ignore[arg-type]  # of which a target reads these three
            Caster(reader.columns),
        )

    manifest = json.loads((folder / MANIFEST).read_text())
    assert [part["rows"] for part in manifest["files"]] == [10, 10, 10]
    assert names(folder) == PARTS
    assert [(folder / name).stat().st_size for name in PARTS[1:]] == [part["bytes"] for part in manifest["files"]]


def test_what_cannot_be_removed_does_not_keep_the_rest(
    client: AnaplatClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = [left_of(tmp_path / "rows.csv") for _ in range(3)]
    for name in left[:2]:
        (tmp_path / name).unlink()
        (tmp_path / name).mkdir()
    export_rows(client, QUERY, tmp_path / "rows.csv", "csv")

    assert names(tmp_path) == sorted([*left[:2], "rows.csv"])
    assert caplog.text.count("Could not remove the temporary file") == 2


def test_of_two_exports_to_one_file_each_is_whole(
    client: AnaplatClient, folder: Any, begun: Callable[..., Any], go_on: threading.Event
) -> None:
    path = folder / "rows.csv"
    earlier = begun(lambda: export_rows(client, QUERY, path, "csv"))
    export_rows(client, RowQuery("ds1", page_size=5), path, "csv")
    whole = path.read_bytes()
    path.write_text("of the later one")
    go_on.set()
    if earlier.exception() is None:  # nothing that could be removed was there of it
        assert path.read_bytes() == whole
    else:
        assert "has begun since" in str(earlier.exception())
        assert path.read_text() == "of the later one"

    assert names(folder) == ["rows.csv"]


def test_parts_of_several_workers_at_one_time_disturb_none(
    client: AnaplatClient, folder: Any, begun: Callable[..., Any], go_on: threading.Event
) -> None:
    export = PartitionedExport(Place(folder, CsvSink()), "k")
    how = RowsOfPart(RowQuery("ds1", page_size=5, concurrency=1))
    first, second = export.plan(client, "ds1", 2, 5)
    last = begun(lambda: export.export(client, how, second))  # of three pages; its file has the first of them
    export.export(client, how, first)
    go_on.set()

    assert last.result().rows == 15
    assert [part["path"] for part in export.commit()["files"]] == PARTS[1:3]
    assert names(folder) == PARTS[:3]


def test_a_commit_leaves_nothing_of_one_that_was_killed(client: AnaplatClient, folder: Any) -> None:
    export = PartitionedExport(Place(folder, CsvSink()), "k")
    how = RowsOfPart(QUERY)
    for part in export.plan(client, "ds1", 3, 10):
        export.export(client, how, part)
    left_of(folder / MANIFEST)
    export.commit()

    assert names(folder) == PARTS
