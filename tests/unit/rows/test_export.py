"""Whole exports: all of a file or nothing of it, whatever happens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, numbers
from support.exports import FORMATS, export_rows, read_back
from upath import UPath

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import (
    AnaplatCellError,
    AnaplatDatasetChangedError,
    AnaplatNotFoundError,
    AnaplatOutputError,
    AnaplatPermissionError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.output.formats import FileFormat
from airflow_provider_anaplat.output.whole import MANY_COLUMNS
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table, replies


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_failed_export_leaves_the_file_as_it_was(
    simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
    simulator.platform.add_dataset("numbers", numbers(30))
    simulator.inject("read_rows", replies.reset(), when=lambda body: body["offset"] == 20)
    path = tmp_path / f"numbers.{file_format}"
    path.write_text("as it was")

    with pytest.raises(Exception, match="broke the connection"):
        export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_update_in_the_middle_publishes_nothing(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    refresh_at(simulator, offset=20, times=1)
    with pytest.raises(AnaplatDatasetChangedError, match="version 1 became 2"):
        export_rows(client, QUERY, tmp_path / "x", file_format, on_change="fail")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_or_starts_again_from_nothing(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    refresh_at(simulator, offset=20, times=2, table=numbers(25))
    summary = export_rows(client, QUERY, tmp_path / f"x.{file_format}", file_format, max_restarts=2)
    assert (summary.rows, summary.version) == (25, 3)
    assert len(read_back(tmp_path / f"x.{file_format}")) == 25


def test_restarts_end(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    refresh_at(simulator, offset=20, times=9)
    with pytest.raises(AnaplatDatasetChangedError, match="version 2 became 3"):
        export_rows(client, QUERY, tmp_path / "x.csv", "csv", max_restarts=1)
    assert list(tmp_path.iterdir()) == []


QUERY = RowQuery("ds1", page_size=10, concurrency=1)


def refresh_at(simulator: Simulator, offset: int, times: int, table: Table | None = None) -> None:
    """Let the platform update its dataset just before it answers this page, so many times."""
    left = iter(range(times))

    def refresh(body: Any) -> bool:
        if body["offset"] == offset and next(left, None) is not None:
            simulator.platform.refresh("ds1", table)
        return False

    simulator.inject("read_rows", replies.reset(), times=None, when=refresh)


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_object_appears_when_it_is_complete(
    client: AnaplatClient, simulator: Simulator, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    path = UPath(f"memory://exports/{file_format}/numbers")
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)

    with pytest.raises(Exception, match="refused"):
        export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert not path.exists()

    summary = export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert summary.bytes == path.stat().st_size > 0


def test_a_place_that_cannot_be_written_is_named(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(3))
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "below.csv", tmp_path, Path("/proc/none/x.csv"), Path("/dev/null")):
        with pytest.raises(AnaplatOutputError, match=str(path)):
            export_rows(client, RowQuery("ds1"), path, "csv")
    assert Path("/dev/null").is_char_device()


DISK_FULL = """
import resource, signal, sys
from pathlib import Path
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.targets import FileTarget
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.output.formats import CsvSink, NdjsonSink, ParquetSink
from airflow_provider_anaplat.output.place import Place
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
url, token, path, file_format = sys.argv[1:]
sink = {"csv": CsvSink, "ndjson": NdjsonSink, "parquet": ParquetSink}[file_format]()
plan = ExportPlan(RowQuery("ds1", page_size=1000), FileTarget(Place(Path(path), sink)))
export_rows(AnaplatClient(url, token), plan)
"""


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_full_disk_is_named_and_nothing_is_left(
    simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("numbers", numbers(20_000))
    path = tmp_path / "numbers"
    arguments = [simulator.url, simulator.token, str(path), file_format]
    result = subprocess.run(
        [sys.executable, "-c", DISK_FULL, *arguments], capture_output=True, text=True, check=False
    )

    assert result.returncode == 1
    assert f"AnaplatOutputError: Cannot write {path}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_written_through(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(3))
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    export_rows(client, RowQuery("ds1"), tmp_path / "link.csv", "csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("n,half\n0,")


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("rows_per_file", [4, 10, 30, 100])
def test_parts(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat, rows_per_file: int
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    folder = tmp_path / "parts"
    summary = export_rows(client, QUERY, folder, file_format, rows_per_file=rows_per_file)
    manifest = json.loads((folder / "_manifest.json").read_text())
    names = [part["path"] for part in manifest["files"]]

    assert names == [f"part-{i + 1:05d}.{file_format}" for i in range(-(-30 // rows_per_file))]
    assert sorted(path.name for path in folder.iterdir()) == ["_manifest.json", *names]

    rows = [read_back(folder / name) for name in names]
    assert [len(part) for part in rows] == [part["rows"] for part in manifest["files"]]
    assert [int(row["n"]) for part in rows for row in part] == list(range(30))
    assert [part["bytes"] for part in manifest["files"]] == [(folder / name).stat().st_size for name in names]
    assert (manifest["rows"], manifest["bytes"], manifest["version"]) == (30, summary.bytes, 1)
    assert manifest["columns"] == [{"name": "n", "fdType": "LONG"}, {"name": "half", "fdType": "DOUBLE"}]


@pytest.mark.parametrize("odd", ["plain", "", "a, b", 'a "b"', "a\nb", "a\rb"])
@pytest.mark.parametrize("of_page", [0, 2])
@pytest.mark.parametrize("rows_per_file", [None, 7])
def test_rows_of_many_columns(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, odd: str, of_page: int, rows_per_file: int | None
) -> None:
    rows = [[f"{row}/{column}" if column % 5 else None for column in range(MANY_COLUMNS)] for row in range(30)]
    rows[of_page * 10 + 5][7] = odd
    simulator.platform.add_dataset(
        "wide", Table.of_rows([(f"c{of}", "STRING") for of in range(len(rows[0]))], rows)
    )

    export_rows(client, QUERY, tmp_path / "x", "csv", rows_per_file=rows_per_file)

    files = sorted((tmp_path / "x").glob("part-*")) if rows_per_file else [tmp_path / "x"]
    quoted = odd if odd == "plain" else '"{}"'.format(odd.replace('"', '""'))
    lines = [",".join(quoted if cell is odd else cell or "" for cell in row) + "\n" for row in rows]
    header = ",".join(f"c{of}" for of in range(len(rows[0]))) + "\n"
    assert [path.read_bytes().decode() for path in files] == [
        header + "".join(lines[first : first + (rows_per_file or 30)])
        for first in range(0, 30, rows_per_file or 30)
    ]


@pytest.mark.parametrize("options", [{"rows_per_file": 0}, {"rows_per_file": -1}, {"max_restarts": -1}])
def test_impossible_options_are_refused(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, options: dict[str, int]
) -> None:
    with pytest.raises(AnaplatRequestError, match="at least"):
        export_rows(client, QUERY, tmp_path, "csv", **options)
    assert simulator.ledger == []


def test_a_dataset_without_rows_has_one_part(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(0))
    export_rows(client, QUERY, tmp_path, "csv", rows_per_file=10)
    assert (tmp_path / "part-00001.csv").read_text() == "n,half\n"


def test_fewer_parts_than_before_leave_none_of_the_old(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    (tmp_path / "someone-elses.csv").touch()
    export_rows(client, QUERY, tmp_path, "csv", rows_per_file=10)
    dataset.table = numbers(15)
    export_rows(client, QUERY, tmp_path, "csv", rows_per_file=10)
    names = ["_manifest.json", "part-00001.csv", "part-00002.csv", "someone-elses.csv"]

    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_parts_of_an_export_that_died_while_it_published_are_removed(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(15))
    (tmp_path / "part-00009.csv").write_text("left by a process that died; no manifest names it")
    (tmp_path / "_manifest.json").write_text('{"files": [{"path": "../elsewhere"}]')
    (tmp_path.parent / "elsewhere").touch()
    export_rows(client, QUERY, tmp_path, "csv", rows_per_file=10)
    names = ["_manifest.json", "part-00001.csv", "part-00002.csv"]

    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path.parent / "elsewhere").exists()


def test_a_failed_export_sends_no_more_requests(simulator: Simulator, tmp_path: Path) -> None:
    rows = [["x"], *([[str(i)] for i in range(99)])]
    simulator.platform.add_dataset("bad", Table.of_rows([("n", "INT")], rows))
    simulator.inject("read_rows", replies.http_status(503, retry_after="60"), times=None, when=_is_late)
    client = AnaplatClient(simulator.url, simulator.token)
    before = set(threading.enumerate())

    with pytest.raises(AnaplatCellError), closing(client):
        export_rows(client, RowQuery("ds1", page_size=10), tmp_path / "x.parquet", "parquet")

    started = {thread for thread in threading.enumerate() if thread.name.startswith("anaplat-")} - before
    for thread in started:
        thread.join(LONG)
        assert not thread.is_alive()


def test_an_export_whose_first_page_fails_leaves_no_thread(simulator: Simulator, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    client = AnaplatClient(simulator.url, simulator.token)

    with pytest.raises(AnaplatNotFoundError):
        export_rows(client, RowQuery("no such dataset"), tmp_path / "x.csv", "csv")

    started = {thread for thread in threading.enumerate() if thread.name.startswith("anaplat-")} - before
    for thread in started:
        thread.join(LONG)
        assert not thread.is_alive()


def _is_late(body: Any) -> bool:
    return bool(body["offset"])


def test_parts_that_fail_leave_the_folder_as_it_was(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    export_rows(client, QUERY, tmp_path, "csv", rows_per_file=10)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)

    with pytest.raises(AnaplatPermissionError):
        export_rows(client, QUERY, tmp_path, "csv", rows_per_file=7)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_log_says_what_the_export_came_to(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.platform.add_dataset("numbers", numbers(1234))
    with caplog.at_level("INFO"):
        export_rows(client, RowQuery("ds1"), tmp_path / "x.csv", "csv")
    assert "Dataset ds1: exported 1,234 rows" in caplog.text


def test_a_long_export_says_how_far_it_is(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.platform.add_dataset("numbers", numbers(20))
    simulator.inject("read_rows", replies.slow(5.5), when=lambda body: body["offset"] == 10)
    with caplog.at_level("INFO"):
        export_rows(client, QUERY, tmp_path / "x.csv", "csv")
    lines = [record.getMessage() for record in caplog.records if "left" in record.getMessage()]

    assert len(lines) == 1
    assert lines[0].startswith("Dataset ds1: 20 of 20 rows (100 %)")


TIMED_OUT = """
import signal, sys
from pathlib import Path
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.targets import FileTarget
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.output.formats import CsvSink, NdjsonSink, ParquetSink
from airflow_provider_anaplat.output.place import Place
class TimedOut(BaseException): pass
def ring(*_): raise TimedOut
signal.signal(signal.SIGUSR1, ring)
url, token, path, file_format = sys.argv[1:]
sink = {"csv": CsvSink, "ndjson": NdjsonSink, "parquet": ParquetSink}[file_format]()
try:
    plan = ExportPlan(RowQuery("ds1", page_size=10), FileTarget(Place(Path(path), sink)))
    export_rows(AnaplatClient(url, token), plan)
except TimedOut:
    print("timed out", flush=True)
"""


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_signal_ends_an_export(simulator: Simulator, tmp_path: Path, file_format: FileFormat) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    asked, go_on = threading.Event(), threading.Event()
    simulator.inject("read_rows", replies.hold(go_on), times=None, when=lambda body: body["offset"] == 20)
    simulator.inject("read_rows", replies.slow(0), times=None, when=lambda _: bool(asked.set()))
    arguments = [simulator.url, simulator.token, str(tmp_path / "numbers"), file_format]
    with subprocess.Popen(
        [sys.executable, "-c", TIMED_OUT, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while len(simulator.requests("read_rows")) < 3:
            assert asked.wait(LONG)
            assert process.poll() is None
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "timed out\n"
        assert list(tmp_path.iterdir()) == []
        go_on.set()

    assert process.returncode == 0
