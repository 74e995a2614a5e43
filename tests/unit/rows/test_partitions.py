"""An export by several workers: all of one version, or nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from conftest import numbers
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import register_implementation
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import (
    AnaplatDatasetChangedError,
    AnaplatOutputError,
    AnaplatPermissionError,
    AnaplatRequestError,
    AnaplatRowCountError,
    AnaplatUnplannedError,
)
from airflow_provider_anaplat.output.formats import CsvSink, ParquetSink, Sink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.partitions import Partition, PartitionedExport, RowsOfPart, _split
from airflow_provider_anaplat.simulator import Simulator, Table, replies

OTHERS = Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [[str(n), "0"] for n in range(100, 130)])
CSV = RowsOfPart(RowQuery("ds1", page_size=10))
CSV_FILES = CsvSink()


def plan(
    client: AnaplatClient, folder: Path, key: str = "k", sink: Sink = CSV_FILES
) -> tuple[Any, list[Partition]]:
    export = PartitionedExport(Place(folder, sink), key)
    return export, export.plan(client, "ds1", partitions=3, page_size=10)


def export_parts(client: AnaplatClient, folder: Path, key: str = "k") -> tuple[Any, list[Partition]]:
    export, parts = plan(client, folder, key)
    for part in parts:
        export.export(client, CSV, part)
    return export, parts


def export_all(client: AnaplatClient, folder: Path, key: str = "k") -> dict[str, Any]:
    export, _ = export_parts(client, folder, key)
    manifest: dict[str, Any] = export.commit()
    return manifest


def published(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def column_n(folder: Path) -> list[int]:
    manifest = json.loads((folder / "_manifest.json").read_text())
    lines = [(folder / part["path"]).read_text().splitlines() for part in manifest["files"]]
    return [int(line.split(",")[0]) for part in lines for line in part[1:]]


@given(rows=st.integers(0, 3000), partitions=st.integers(1, 20), page_size=st.integers(1, 500))
def test_partitions_are_whole_pages_and_hold_each_row_once(rows: int, partitions: int, page_size: int) -> None:
    split = list(_split(rows, partitions, page_size))
    assert 1 <= len(split) <= partitions
    assert [part.number for part in split] == list(range(1, len(split) + 1))
    assert [part.offset for part in split] == [sum(p.rows for p in split[:n]) for n in range(len(split))]
    assert sum(part.rows for part in split) == rows
    assert all(part.offset % page_size == 0 for part in split)

    pages = [-(-part.rows // page_size) for part in split]
    assert max(pages) - min(pages) <= 1


@pytest.mark.parametrize("rows", [0, 1, 10, 95, 100])
def test_the_parts_hold_the_dataset(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, rows: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(rows))
    manifest = export_all(client, tmp_path)

    assert column_n(tmp_path) == list(range(rows))
    assert manifest == json.loads((tmp_path / "_manifest.json").read_text())
    assert (manifest["rows"], manifest["version"], manifest["format"]) == (rows, 1, "csv")
    assert manifest["bytes"] == sum(path.stat().st_size for path in tmp_path.glob("part-*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == published(tmp_path)


def test_compressed_and_typed_parts(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(25))
    export, parts = plan(client, tmp_path, sink=ParquetSink())
    how = RowsOfPart(RowQuery("ds1", page_size=10, sort_by="n"))
    for part in reversed(parts):
        export.export(client, how, part)
    export.commit()

    assert published(tmp_path) == ["_manifest.json", *(f"part-{n:05d}.parquet" for n in (1, 2, 3))]
    assert pl.read_parquet(tmp_path / "part-*.parquet")["n"].to_list() == list(range(25))


def test_a_part_that_is_replaced_is_not_readable_by_more_people(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export_all(client, tmp_path)
    part = tmp_path / "part-00001.csv"
    part.chmod(0o600)
    export_all(client, tmp_path)
    assert part.stat().st_mode & 0o777 == 0o600


def test_a_dataset_updated_after_the_plan_is_not_published(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export_all(client, tmp_path, key="before")
    export, parts = plan(client, tmp_path)
    export.export(client, CSV, parts[0])
    simulator.platform.refresh("ds1", numbers(40))

    with pytest.raises(AnaplatDatasetChangedError, match=r"version 1 became 2.*rowCount 30 became 40"):
        export.export(client, CSV, parts[1])
    with pytest.raises(AnaplatUnplannedError, match=r"Part 2 .* missing"):
        export.commit()
    assert column_n(tmp_path) == list(range(30))

    export_all(client, tmp_path)
    assert column_n(tmp_path) == list(range(40))
    assert sorted(path.name for path in tmp_path.iterdir()) == published(tmp_path)


def test_parts_of_another_plan_are_not_mixed_in(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)
    for part in parts:
        export.export(client, CSV, part)
    simulator.platform.refresh("ds1", numbers(30))
    plan(client, tmp_path)

    with pytest.raises(AnaplatUnplannedError, match=r"Part 1 .* missing"):
        export.commit()
    assert published(tmp_path) == []


def test_a_part_that_failed_is_exported_alone(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)
    export.export(client, CSV, parts[0])
    export.export(client, CSV, parts[2])
    simulator.inject("read_rows", replies.refusal("no", code=1004))

    with pytest.raises(AnaplatPermissionError):
        export.export(client, CSV, parts[1])

    asked = len(simulator.requests("read_rows"))
    export.export(client, CSV, parts[1])

    assert [request.body["offset"] for request in simulator.requests("read_rows")[asked:]] == [10, 30]

    export.commit()
    assert column_n(tmp_path) == list(range(30))


def test_a_commit_that_was_broken_off_can_be_run_again(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)
    for part in parts:
        export.export(client, CSV, part)
    in_the_way = tmp_path / "part-00002.csv"
    in_the_way.mkdir()

    with pytest.raises(AnaplatOutputError):
        export.commit()
    assert not (tmp_path / "_manifest.json").exists()

    in_the_way.rmdir()
    manifest = export.commit()

    assert column_n(tmp_path) == list(range(30))
    assert export.commit() == manifest


def test_a_commit_run_again_takes_no_part_of_another_export(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)
    for part in parts:
        export.export(client, CSV, part)
    in_the_way = tmp_path / "part-00002.csv"
    in_the_way.mkdir()

    with pytest.raises(AnaplatOutputError):
        export.commit()

    in_the_way.rmdir()
    simulator.platform.refresh("ds1", OTHERS)
    export_all(client, tmp_path, key="b")
    export.commit()

    assert column_n(tmp_path) == list(range(30))


def test_a_cleared_export_is_exported_anew(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export_all(client, tmp_path)
    simulator.platform.refresh("ds1", OTHERS)
    assert export_all(client, tmp_path)["version"] == 2
    assert column_n(tmp_path) == list(range(100, 130))
    assert sorted(path.name for path in tmp_path.iterdir()) == published(tmp_path)


def test_an_attempt_that_outlives_its_plan_disturbs_no_other(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)

    class LateSink(CsvSink):
        def write(self, *args: Any) -> None:
            super().write(*args)  # the rows of version 1
            simulator.platform.refresh("ds1", OTHERS)
            new, parts = plan(client, tmp_path)
            for part in parts:
                new.export(client, CSV, part)

    late = PartitionedExport(Place(tmp_path, LateSink()), "k")
    with contextlib.suppress(AnaplatOutputError):  # its place may be gone
        late.export(client, CSV, parts[0])
    export.commit()
    assert column_n(tmp_path) == list(range(100, 130))


def test_what_a_killed_attempt_left_is_removed(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path)
    export.export(client, CSV, parts[0])
    (waiting,) = tmp_path.glob(".anaplat-*/*/")
    (waiting / ".anaplat-0123456789abcdef.tmp").write_text("half a part")
    for part in parts:
        export.export(client, CSV, part)
    export.commit()

    assert sorted(path.name for path in tmp_path.iterdir()) == published(tmp_path)


def test_two_exports_to_one_folder_keep_apart(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = plan(client, tmp_path, key="a")
    for part in parts:
        export.export(client, CSV, part)
    simulator.platform.refresh("ds1", numbers(5))
    export_all(client, tmp_path, key="b")

    assert column_n(tmp_path) == list(range(5))

    export.commit()
    assert column_n(tmp_path) == list(range(30))


class Meeting(MemoryFileSystem):
    """An object store in which something else happens when a part is copied to its place."""

    protocol = "meeting"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    happens: ClassVar[dict[str, Callable[[], object]]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("meeting:")))

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        super().cp_file(path1, path2, **kwargs)
        self.happens.pop(path2.rpartition("/")[2], lambda: None)()


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:UPath .* filesystem not explicitly implemented")
def test_of_two_commits_at_once_the_later_one_stands(
    client: AnaplatClient, simulator: Simulator, number: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    register_implementation("meeting", Meeting, clobber=True)
    folder: Any = UPath(f"meeting://bucket/{number}")
    earlier, _ = export_parts(client, folder, key="a")
    simulator.platform.refresh("ds1", Table.of_rows([("n", "LONG")], [[str(n)] for n in range(100, 115)]))
    later, _ = export_parts(client, folder, key="b")
    Meeting.happens[f"part-{number:05d}.csv"] = later.commit

    with pytest.raises(AnaplatOutputError, match="has begun since"):
        earlier.commit()
    assert column_n(folder) == list(range(100, 115))
    assert published(folder) == ["_manifest.json", "part-00001.csv", "part-00002.csv"]

    assert earlier.commit()["rows"] == 30
    assert column_n(folder) == list(range(30))


def test_rows_beyond_the_platforms_count_are_found(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    dataset.row_count = 25
    export, parts = plan(client, tmp_path)
    export.export(client, CSV, parts[0])
    with pytest.raises(AnaplatRowCountError, match="too many"):
        export.export(client, CSV, parts[2])


def test_rows_that_are_missing_are_found(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    dataset.row_count = 45
    export, parts = plan(client, tmp_path)
    export.export(client, CSV, parts[0])
    with pytest.raises(AnaplatRowCountError, match="15 are missing"):
        export.export(client, CSV, parts[2])


DEEP = [pytest.param(b"[" * depth + b"]" * depth, id=f"{depth} deep") for depth in (1_000, 100_000)]
NO_VALUE: list[Any] = [..., None, 7, [7], {}]
NO_JSON = [b"", b"{", b"\xff", b"null", b"7", b'"id"', b"[]", b"{}", *DEEP]


def with_damage(path: Path, damage: bytes | dict[str, Any]) -> None:
    """Damage a file as a whole, or some of its values; one that is Ellipsis is missing."""
    if isinstance(damage, dict):
        values = json.loads(path.read_bytes()) | damage
        damage = json.dumps({key: value for key, value in values.items() if value is not ...}).encode()
    path.write_bytes(damage)


@pytest.mark.parametrize(
    "damage",
    [
        *NO_JSON,
        *[{key: value} for key in ("id", "dsId", "snapshot", "parts") for value in NO_VALUE],
        {"id": "../other"}, {"dsId": ""}, {"snapshot": {"version": 1}}, {"parts": [{"number": "1"}]},
    ],
)  # fmt: skip
def test_a_damaged_plan_is_named_and_made_anew(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, damage: Any
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = export_parts(client, tmp_path)
    with_damage(tmp_path / ".anaplat-k" / "plan.json", damage)

    for step in (export.planned_id, export.commit, lambda: export.export(client, CSV, parts[0])):
        with pytest.raises(AnaplatUnplannedError, match=r"plan\.json is damaged.*Clear the whole task group"):
            step()

    assert published(tmp_path) == []
    export_all(client, tmp_path)
    assert column_n(tmp_path) == list(range(30))


@pytest.mark.parametrize(
    "damage", [*NO_JSON, *[{key: value} for key in ("rows", "bytes") for value in (*NO_VALUE[:2], "7", 1.5, True)]]
)
def test_a_damaged_note_of_a_part_is_named(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, damage: Any
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, parts = export_parts(client, tmp_path)
    (note,) = tmp_path.glob(".anaplat-k/*/2.json")
    with_damage(note, damage)

    with pytest.raises(AnaplatUnplannedError, match=r"2\.json is damaged.*Nothing was published"):
        export.commit()

    assert published(tmp_path) == []
    export.export(client, CSV, parts[1])
    export.commit()
    assert column_n(tmp_path) == list(range(30))


@pytest.mark.parametrize("damage", [b"n,half\n1", b"", None], ids=["cut off", "empty", "gone"])
def test_a_part_that_is_not_whole_any_more_is_not_published(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, damage: bytes | None
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    before = export_all(client, tmp_path)
    export, parts = export_parts(client, tmp_path)
    (part,) = tmp_path.glob(".anaplat-k/*/part-00002.csv")
    part.unlink() if damage is None else part.write_bytes(damage)

    with pytest.raises(AnaplatUnplannedError, match=r"Part 2 .* missing, or not whole any more.*that part's"):
        export.commit()
    assert json.loads((tmp_path / "_manifest.json").read_text()) == before

    export.export(client, CSV, parts[1])
    assert export.commit()["rows"] == 30


@pytest.mark.parametrize(
    "manifest",
    [*NO_JSON, b'["export"]', b'{"export": null}', b'{"export": {}}', b'{"nodes": {}, "export": "k-0"}'],
)
def test_a_manifest_of_something_else_stops_no_export_and_is_none_of_its_own(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, manifest: bytes
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    path = tmp_path / "_manifest.json"
    path.write_bytes(manifest)
    export, parts = plan(client, tmp_path)
    assert export.published_id() == ""
    with pytest.raises(AnaplatUnplannedError, match="is gone"):
        export.published("")
    for part in parts:
        export.export(client, CSV, part)

    export.commit()

    assert column_n(tmp_path) == list(range(30))
    path.write_bytes(manifest)
    with pytest.raises(AnaplatUnplannedError, match=r"no plan.*Clear the whole task group"):
        export.commit()


@pytest.mark.parametrize("key", ["dsId", "format", "version", "utime", "rows", "bytes", "columns", "files"])
def test_a_manifest_that_is_not_whole_is_published_again(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, key: str
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export, _ = export_parts(client, tmp_path)
    whole: list[dict[str, Any]] = []

    def broken_off(_: Any) -> None:
        path = tmp_path / "_manifest.json"
        whole.append(json.loads(path.read_bytes()))
        with_damage(path, {key: ...})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export.commit(broken_off)

    assert export.commit() == whole[0]
    assert column_n(tmp_path) == list(range(30))


def test_parts_that_were_exported_in_several_ways_are_not_published(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    """As where the DAG file is changed between two parts: by another column, other rows would be in each."""
    rows = [[str(n), str(29 - n)] for n in range(30)]
    simulator.platform.add_dataset("numbers", Table.of_rows([("n", "LONG"), ("back", "LONG")], rows))
    export, parts = plan(client, tmp_path)
    for part in parts:
        column = "n" if part.number == 1 else "back"
        query = RowQuery("ds1", page_size=10, sort_by=column)
        export.export(client, RowsOfPart(query, fingerprint=f"by {column}"), part)

    with pytest.raises(AnaplatUnplannedError, match=r"not all exported in the same way.*Clear the whole"):
        export.commit()
    assert published(tmp_path) == []


def test_what_was_not_planned_is_refused(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export = PartitionedExport(Place(tmp_path, CsvSink()), "k")

    with pytest.raises(AnaplatUnplannedError, match="no plan"):
        export.export(client, CSV, Partition(1, 0, 30))
    with pytest.raises(AnaplatUnplannedError, match="no plan"):
        export.commit()
    with pytest.raises(AnaplatRequestError, match="partitions"):
        export.plan(client, "ds1", 0, 10)

    plan(client, tmp_path)
    with pytest.raises(AnaplatUnplannedError, match="no such partition"):
        export.export(client, CSV, Partition(1, 0, 30))
