"""An export by two Celery workers: all parts of one version, or nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import numbers
from support.deployment import Deployment, Task
from support.running import RELEASE, wait_until

from airflow_provider_anaplat.simulator import Simulator, replies

DAGS = Path(__file__).parent / "dags" / "anaplat_partitioned.py"
ROWS = {"parquet": 6000, "csv": 6000, "killed": 1200, "refreshed": 1200, "shrunk": 400}
GROUP = ["export.plan", "export.part", "export.commit"]


class Exports:
    """A deployment, and an embedded platform with a dataset for each DAG."""

    def __init__(self, deployment: Deployment, platforms: dict[str, Simulator], output: Path) -> None:
        self.deployment = deployment
        self.platforms = platforms
        self.output = output

    def start(self, name: str) -> None:
        self.deployment.trigger(f"partitioned_{name}")

    def ends(self, name: str, state: str) -> None:
        self.deployment.wait_for(f"partitioned_{name}", state)

    def clear(self, name: str) -> None:
        self.deployment.clear(f"partitioned_{name}", GROUP)

    def tasks(self, name: str, task_id: str = "export.part") -> list[Task]:
        """Return the tasks of this id in the latest run; those of the partitions in their order."""
        tasks = self.deployment.tasks(f"partitioned_{name}")
        return [task for task in tasks if task.task_id == task_id]

    def until(self, name: str, **states: int) -> None:
        """Wait until at least so many parts are in these states."""

        def reached() -> bool:
            found = [task.state for task in self.tasks(name)]
            return all(found.count(state) >= count for state, count in states.items())

        wait_until(reached, lambda: self.tasks(name))

    def folder(self, name: str) -> Path:
        return self.output / name

    def offsets(self, name: str) -> list[int]:
        """Return the first rows of all pages that were asked for."""
        return [request.body.get("offset", 0) for request in self.platforms[name].requests("read_rows")]


@pytest.fixture(scope="module")
def exports(servers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exports]:
    home = tmp_path_factory.mktemp("partitioned")
    output = tmp_path_factory.mktemp("output")
    with ExitStack() as stack:
        platforms = {name: stack.enter_context(Simulator()) for name in ROWS}
        for name, platform in platforms.items():
            platform.platform.add_dataset("numbers", numbers(ROWS[name]))
        connections = {
            f"AIRFLOW_CONN_ANAPLAT_{name.upper()}": json.dumps(
                {"conn_type": "anaplat", "host": platform.url, "password": platform.token}
            )
            for name, platform in platforms.items()
        }
        settings = {**connections, "ANAPLAT_TEST_OUTPUT": str(output)}
        deployment = stack.enter_context(Deployment(home, [DAGS], settings))
        yield Exports(deployment, platforms, output)


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """An event that lets a held answer go, at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "_manifest.json").read_text())
    return content


def exported(folder: Path) -> pl.DataFrame:
    """Return the rows of the files that the manifest names, and see that there are no others."""
    names = [file["path"] for file in manifest(folder)["files"]]
    assert sorted(path.name for path in folder.iterdir()) == ["_manifest.json", *names]
    schema = {"n": pl.Int64, "half": pl.Float64}
    return pl.concat(
        pl.read_csv(folder / name, schema=schema) if name.endswith(".csv") else pl.read_parquet(folder / name)
        for name in names
    )


def dataset(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"n": range(rows)}).with_columns(half=pl.col("n") / 2)


@pytest.mark.parametrize(("file_format", "partitions"), [("parquet", 12), ("csv", 4)])
def test_both_workers_export(exports: Exports, held: threading.Event, file_format: str, partitions: int) -> None:
    platform, folder = exports.platforms[file_format], exports.folder(file_format)
    # The plan asks for a single row. The first part waits until others are done, all by the other worker.
    platform.inject("read_rows", replies.hold(held), when=lambda body: body["limit"] > 1)
    exports.start(file_format)
    exports.until(file_format, success=2, running=1)
    held.set()
    exports.ends(file_format, "success")

    parts = exports.tasks(file_format)
    assert [(part.map_index, part.attempt) for part in parts] == [(index, 1) for index in range(partitions)]
    assert {exports.deployment.worker_of(part) for part in parts} == {"worker-1", "worker-2"}
    assert exported(folder).equals(dataset(6000))
    content = manifest(folder)
    assert (content["rows"], content["version"], content["format"]) == (6000, 1, file_format)
    assert [(file["path"], file["rows"], file["bytes"]) for file in content["files"]] == [
        (name, 6000 // partitions, (folder / name).stat().st_size)
        for name in (f"part-{number:05d}.{file_format}" for number in range(1, partitions + 1))
    ]
    result = exports.deployment.xcom(f"partitioned_{file_format}", "export.commit")
    assert (result["rows"], result["parts"], result["path"]) == (6000, partitions, str(folder))
    log = exports.deployment.log(f"partitioned_{file_format}", "export.part")
    assert f"{6000 // partitions:,} rows" in log
    assert platform.token not in log


def test_a_part_whose_worker_is_killed_is_exported_again_alone(exports: Exports, held: threading.Event) -> None:
    deployment = exports.deployment
    exports.platforms["killed"].inject(
        "read_rows", replies.hold(held), when=lambda body: body.get("offset") == 400
    )
    exports.start("killed")
    exports.until("killed", success=3, running=1)
    victim = deployment.worker_of(exports.tasks("killed")[1])
    deployment.kill_worker(victim)
    try:
        exports.ends("killed", "success")
    finally:
        deployment.start_worker(victim)
    parts = exports.tasks("killed")

    assert [part.attempt for part in parts] == [1, 2, 1, 1]
    assert deployment.worker_of(parts[1]) != victim
    for task_id in ("export.plan", "export.commit"):
        assert [task.attempt for task in exports.tasks("killed", task_id)] == [1]

    pages = [0, *range(0, 1200, 100)]  # the plan's, and those of the parts
    behind = [1200] * 4  # each part that ends asks whether the platform heeds offsets

    assert sorted(exports.offsets("killed")) == sorted([*pages, 300, 400, *behind])
    assert exported(exports.folder("killed")).equals(dataset(1200))


def test_a_dataset_refreshed_amid_the_parts_is_not_published(exports: Exports) -> None:
    folder = exports.folder("refreshed")
    refresh_amid_the_parts(exports, rows=1300)
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == []
    exports.clear("refreshed")
    exports.ends("refreshed", "success")
    assert exported(folder).equals(dataset(1300))
    assert (manifest(folder)["version"], manifest(folder)["rows"]) == (2, 1300)

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refresh_amid_the_parts(exports, rows=1250)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    exports.clear("refreshed")
    exports.ends("refreshed", "success")
    assert exported(folder).equals(dataset(1250))


@pytest.mark.skipif(RELEASE < (3, 3), reason="Airflow before 3.3 takes mapped tasks that are gone for failed ones")
def test_a_partitioned_export_of_fewer_parts_than_before(exports: Exports) -> None:
    platform, folder = exports.platforms["shrunk"].platform, exports.folder("shrunk")
    exports.start("shrunk")
    exports.ends("shrunk", "success")

    assert len(manifest(folder)["files"]) == 4

    platform.refresh("ds1", numbers(100))
    exports.clear("shrunk")
    exports.ends("shrunk", "success")

    assert exported(folder).equals(dataset(100))


def refresh_amid_the_parts(exports: Exports, rows: int) -> None:
    """Update the dataset while the workers wait in the first part and the third, and the second is done.

    The pages that they wait for are as they were before.
    """
    platform, asked, held = exports.platforms["refreshed"], len(exports.offsets("refreshed")), threading.Event()
    third = 600  # the first row of the third part: twelve or thirteen pages make four parts
    platform.inject("read_rows", replies.hold(held), times=2, when=lambda body: body.get("offset") in (100, third))
    exports.start("refreshed")
    try:
        wait_until(lambda: {100, third} <= set(exports.offsets("refreshed")[asked:]))
        platform.platform.refresh("ds1", numbers(rows))
    finally:
        held.set()
    exports.ends("refreshed", "failed")
    assert [(part.state, part.attempt) for part in exports.tasks("refreshed")] == [
        ("failed", 1), ("success", 1), ("failed", 1), ("failed", 1),
    ]  # fmt: skip
    states = exports.deployment.task_states("partitioned_refreshed")
    assert (states["export.plan", -1], states["export.commit", -1]) == ("success", "upstream_failed")
    assert "clear the whole task group" in exports.deployment.log("partitioned_refreshed", "export.part")
