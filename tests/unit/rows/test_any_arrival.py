"""However pages arrive, break and change: a file holds the whole of one version, or what was there before."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from support.exports import SINKS

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatError
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget, PartsTarget
from airflow_provider_anaplat.simulator import Simulator, Table, replies
from airflow_provider_anaplat.simulator.replies import Fault

FAULTS = [
    replies.reset(),
    replies.cut(0.2),
    replies.cut(0.9),
    replies.http_status(503),
    replies.content(b""),
    replies.content(b"<html>", "text/html"),
    replies.refusal("no", code=1004),
    Fault(lambda reply: replace(reply, body=reply.body.replace(b'["', b'["x","', 1)), needs_answer=True),
]


def version(number: int, rows: int) -> Table:
    return Table.of_rows(
        [("version", "INT"), ("n", "STRING")], [[str(number), None if n % 3 else str(n)] for n in range(rows)]
    )


@dataclass(frozen=True)
class Course:
    """What happens in the course of an export: which request breaks, is late or comes after an update."""

    rows: int
    page_size: int
    rows_per_answer: int
    concurrency: int
    faults: dict[int, int]
    updates: dict[int, int | None]  # to so many rows, or as many as before
    delays: list[float]

    def take(self, simulator: Simulator) -> list[Table]:
        """Set the platform up; return the versions of the dataset, which grow with each update."""
        versions = [version(1, self.rows)]
        simulator.platform.add_dataset("d", versions[0])
        simulator.platform.rows_per_answer = self.rows_per_answer
        asked: list[Any] = []

        def update(body: Any) -> bool:
            asked.append(body)
            if len(asked) in self.updates:
                rows = self.updates[len(asked)]
                versions.append(version(len(versions) + 1, self.rows if rows is None else rows))
                simulator.platform.refresh("ds1", versions[-1])
            return False

        simulator.inject("read_rows", replies.reset(), times=None, when=update)
        for request, number in self.faults.items():
            simulator.inject("read_rows", FAULTS[number], when=lambda _, at=request: len(asked) == at)
        for request, delay in enumerate(self.delays, 1):
            simulator.inject("read_rows", replies.slow(delay), when=lambda _, at=request: len(asked) == at)
        return versions


REQUESTS = st.integers(1, 8)
COURSES = st.builds(
    Course,
    rows=st.integers(0, 25),
    page_size=st.integers(3, 12),
    rows_per_answer=st.integers(3, 30),
    concurrency=st.integers(1, 4),
    faults=st.dictionaries(REQUESTS, st.integers(0, len(FAULTS) - 1), max_size=2),
    updates=st.dictionaries(REQUESTS, st.none() | st.integers(0, 25), max_size=2),
    delays=st.lists(st.sampled_from([0.0, 0.0, 0.03]), max_size=8),
)


def read(path: Path, file_format: str) -> pl.DataFrame:
    if file_format == "parquet":
        return pl.read_parquet(BytesIO(path.read_bytes())).cast(pl.String)
    if file_format == "ndjson":
        schema = {"version": pl.Int64, "n": pl.String}
        return pl.read_ndjson(BytesIO(path.read_bytes()), schema=schema).cast(pl.String)
    return pl.read_csv(path, infer_schema=False)


AS_IT_HAPPENS = settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # to shrink what waits between restarts takes minutes
    suppress_health_check=list(HealthCheck),
)


@AS_IT_HAPPENS
@given(course=COURSES, file_format=st.sampled_from(sorted(SINKS)), restarts=st.integers(0, 1))
def test_a_file_is_the_whole_of_one_version_or_as_it_was(course: Course, file_format: str, restarts: int) -> None:
    with Simulator() as simulator, tempfile.TemporaryDirectory() as folder:
        versions = course.take(simulator)
        path = Path(folder) / "rows"
        path.write_text("as it was")
        query = RowQuery("ds1", page_size=course.page_size, concurrency=course.concurrency)
        plan = ExportPlan(query, FileTarget(Place(path, SINKS[file_format])), max_restarts=restarts)
        try:
            summary = export_rows(AnaplatClient(simulator.url, simulator.token, max_retries=1), plan)
        except AnaplatError as error:
            event(type(error).__name__)
            assert course.faults or course.updates
            assert path.read_text() == "as it was"
        else:
            event("a file")
            expected = versions[(summary.version or 0) - 1].frame
            assert read(path, file_format).rows() == expected.rows()
            assert summary.rows == expected.height
        assert list(Path(folder).iterdir()) == [path]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def parts_before(folder: Path, number: int, file_format: str) -> dict[str, bytes]:
    """Put the parts of an earlier export and their manifest into a folder, and return what is in it then."""
    for index in range(number):
        (folder / f"part-{index + 1:05d}.{file_format}").write_text("as it was")
    (folder / "_manifest.json").write_text("{}")
    (folder / "somebody's").write_text("own")
    return contents(folder)


@AS_IT_HAPPENS
@given(
    course=COURSES,
    file_format=st.sampled_from(sorted(SINKS)),
    restarts=st.integers(0, 1),
    rows_per_file=st.integers(1, 30),
    before=st.integers(0, 4),
)
def test_parts_are_together_the_whole_of_one_version_or_as_they_were(
    course: Course, file_format: str, restarts: int, rows_per_file: int, before: int
) -> None:
    with Simulator() as simulator, tempfile.TemporaryDirectory() as name:
        versions = course.take(simulator)
        folder = Path(name)
        earlier = parts_before(folder, before, file_format)
        query = RowQuery("ds1", page_size=course.page_size, concurrency=course.concurrency)
        target = PartsTarget(Place(folder, SINKS[file_format]), rows_per_file)
        client = AnaplatClient(simulator.url, simulator.token, max_retries=1)
        try:
            summary = export_rows(client, ExportPlan(query, target, max_restarts=restarts))
        except AnaplatError as error:
            event(type(error).__name__)
            assert course.faults or course.updates
            assert contents(folder) == earlier
            return
        event("parts")
        expected = versions[(summary.version or 0) - 1].frame
        manifest = json.loads((folder / "_manifest.json").read_text())
        assert [manifest[key] for key in ("version", "rows", "bytes")] == [
            summary.version, expected.height, summary.bytes
        ]  # fmt: skip
        pieces = [expected.slice(at, rows_per_file) for at in range(0, max(expected.height, 1), rows_per_file)]
        for part, piece in zip(manifest["files"], pieces, strict=True):
            assert read(folder / part["path"], file_format).rows() == piece.rows()
            assert (part["rows"], part["bytes"]) == (piece.height, (folder / part["path"]).stat().st_size)
        assert sorted(contents(folder)) == sorted(
            ["_manifest.json", "somebody's", *(part["path"] for part in manifest["files"])]
        )
