"""Every format on object stores that speak their real protocols."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest
from conftest import LONG, numbers
from gcp_storage_emulator.server import create_server
from moto.server import ThreadedMotoServer
from support.exports import SINKS
from upath import UPath

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import AnaplatOutputError, AnaplatPermissionError
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.output.files import StagedFile
from airflow_provider_anaplat.output.formats import CsvSink, Sink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.partitions import PartitionedExport, RowsOfPart
from airflow_provider_anaplat.rows.targets import MANIFEST, FileTarget, PartsTarget
from airflow_provider_anaplat.rows.unchanged import LastExport
from airflow_provider_anaplat.simulator import Simulator, replies


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    options: dict[str, Any] = {
        "key": "key",
        "secret": "secret",
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"},
    }
    bucket = UPath("s3://bucket", **options)
    bucket.fs.mkdir("bucket")
    yield bucket
    server.stop()


@pytest.fixture(scope="module")
def gcs() -> Iterator[Any]:
    # gcsfs would ask for the bucket's kind through another protocol, which no emulator speaks.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    print_error = server._api._httpd.handle_error
    # Failing exports break connections off, which the emulator would print among the tests' dots.
    server._api._httpd.handle_error = lambda *given: (
        None if isinstance(sys.exception(), ConnectionError) else print_error(*given)
    )
    port = server._api._httpd.server_address[1]
    yield UPath("gs://bucket", endpoint_url=f"http://127.0.0.1:{port}", token="anon", project="project")
    server.stop()


@pytest.fixture(params=["s3", "gcs"])
def bucket(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param) / request.node.name.replace("[", "-").replace("]", "")


def contents(folder: Any) -> list[str]:
    folder.fs.invalidate_cache()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def column_n(path: Any, sink: Sink) -> list[int]:
    content = path.read_bytes()
    if sink.file_format == "parquet":
        return pl.read_parquet(content)["n"].to_list()
    if sink.file_format == "ndjson":
        return [json.loads(line)["n"] for line in content.splitlines()]
    return [int(line.split(",")[0]) for line in content.decode().splitlines()[1:]]


@pytest.mark.parametrize("sink", SINKS.values(), ids=lambda sink: sink.file_format)
def test_a_file(client: AnaplatClient, simulator: Simulator, bucket: Any, sink: Sink) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    path = bucket / "odd [name] *.data"
    simulator.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)
    plan = ExportPlan(RowQuery("ds1", page_size=10, concurrency=2), FileTarget(Place(path, sink)))

    with pytest.raises(AnaplatPermissionError):
        export_rows(client, plan)
    assert contents(bucket) == []

    summary = export_rows(client, plan)
    assert contents(bucket) == ["odd [name] *.data"]
    assert column_n(path, sink) == list(range(30))
    assert len(path.read_bytes()) == summary.bytes


@pytest.mark.parametrize("sink", SINKS.values(), ids=lambda sink: sink.file_format)
def test_parts(client: AnaplatClient, simulator: Simulator, bucket: Any, sink: Sink) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    suffix = f".{sink.file_format}"
    plan = ExportPlan(RowQuery("ds1", page_size=10), PartsTarget(Place(bucket, sink), rows_per_file=8))
    export_rows(client, plan)
    dataset.table = numbers(9)
    export_rows(client, plan)

    assert contents(bucket) == ["_manifest.json", f"part-00001{suffix}", f"part-00002{suffix}"]

    manifest = json.loads((bucket / "_manifest.json").read_text())
    read = [n for part in manifest["files"] for n in column_n(bucket / part["path"], sink)]

    assert read == list(range(9))


@pytest.mark.parametrize("rows_per_file", [None, 8])
def test_objects_are_known_again_until_others_take_their_place(
    client: AnaplatClient, simulator: Simulator, bucket: Any, rows_per_file: int | None
) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    place = Place(bucket if rows_per_file else bucket / "rows.csv", CsvSink())
    target = PartsTarget(place, rows_per_file) if rows_per_file else FileTarget(place)
    query = RowQuery("ds1")
    last = LastExport(query, place, split={"rows_per_file": rows_per_file} if rows_per_file else {})
    path = bucket / "part-00002.csv" if rows_per_file else place.path
    assert last.find_unchanged(client) is None
    summary = export_rows(client, ExportPlan(query, target))
    last.note(client, summary)

    found = last.find_unchanged(client)
    assert found is not None
    assert (found.rows, found.bytes, found.snapshot) == (30, summary.bytes, summary.snapshot)

    elsewhere = type(path.fs)(**path.fs.storage_options, skip_instance_cache=True)
    elsewhere.pipe_file(path.path, path.read_bytes().replace(b"1", b"7"))
    assert last.find_unchanged(client) is None


def left_of(path: Any, group: str = "") -> str:
    """Leave what a process leaves that is killed when its object is complete, and return its name."""
    staged = StagedFile(path, group)
    with staged.open() as file:
        file.write(b"complete")
    return str(staged._temporary.name)


@pytest.mark.parametrize("rows_per_file", [None, 10])
def test_what_killed_exports_left(
    client: AnaplatClient, simulator: Simulator, bucket: Any, rows_per_file: int | None
) -> None:
    simulator.platform.add_dataset("numbers", numbers(20))
    folder = bucket / "odd [name] *"
    path = folder / "numbers.csv"
    if rows_per_file is None:
        target: FileTarget | PartsTarget = FileTarget(Place(path, CsvSink()))
        left, group, foreign, expected = path, "", left_of(folder / "others.csv"), ["numbers.csv"]
    else:
        target = PartsTarget(Place(folder, CsvSink()), rows_per_file)
        left, group, foreign = folder / "part-00003.csv", MANIFEST, left_of(path)
        expected = ["_manifest.json", "part-00001.csv", "part-00002.csv"]
    left_of(left, group)

    assert len(list(folder.iterdir())) == 2  # what is remembered of it holds nothing of what comes from elsewhere

    elsewhere = type(folder.fs)(**folder.fs.storage_options, skip_instance_cache=True)
    elsewhere.pipe_file(StagedFile(left, group)._temporary.path, b"complete")
    export_rows(client, ExportPlan(RowQuery("ds1", page_size=10), target))

    assert contents(folder) == sorted([foreign, *expected])


def test_the_earlier_of_two_exports_of_parts_fails(
    client: AnaplatClient, simulator: Simulator, bucket: Any
) -> None:
    simulator.platform.add_dataset("numbers", numbers(20))
    plan = ExportPlan(RowQuery("ds1", page_size=10), PartsTarget(Place(bucket, CsvSink()), rows_per_file=10))
    asked, go_on = threading.Event(), threading.Event()
    simulator.inject("read_rows", replies.hold(go_on), when=lambda body: body["offset"] == 10 and not asked.set())
    with ThreadPoolExecutor() as pool:
        earlier = pool.submit(export_rows, client, plan)
        assert asked.wait(LONG)
        export_rows(client, plan)
        before = {name: (bucket / name).read_bytes() for name in contents(bucket) if not name.startswith(".")}
        go_on.set()
        with pytest.raises(AnaplatOutputError, match="has begun since"):
            earlier.result()

    assert contents(bucket) == ["_manifest.json", "part-00001.csv", "part-00002.csv"] == sorted(before)
    assert {name: (bucket / name).read_bytes() for name in contents(bucket)} == before


def test_parts_of_several_workers(client: AnaplatClient, simulator: Simulator, bucket: Any) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(30))
    how = RowsOfPart(RowQuery("ds1", page_size=10))
    folder = bucket / "odd [name] *"
    for rows, key in ((30, "a"), (9, "b"), (12, "b")):
        dataset.table = numbers(rows)
        export = PartitionedExport(Place(folder, CsvSink(), ".gz"), key)
        for part in export.plan(client, "ds1", 3, 10):
            export.export(client, how, part)
        manifest = export.commit()
        names = [part["path"] for part in manifest["files"]]
        assert contents(folder) == ["_manifest.json", *names]
        lines = [line for name in names for line in gzip.decompress((folder / name).read_bytes()).splitlines()[1:]]
        assert [int(line.split(b",")[0]) for line in lines] == list(range(rows))


def test_the_operator_writes_with_an_airflow_connection(
    simulator: Simulator, s3: Any, connect: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = s3.storage_options["client_kwargs"]["endpoint_url"]
    lake = {"conn_type": "aws", "login": "key", "password": "secret", "extra": {"endpoint_url": endpoint}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(lake))
    connect(simulator)
    simulator.platform.add_dataset("numbers", numbers(30))
    url = "s3://lake@bucket/airflow/numbers.parquet"
    result: Any = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=url).execute({})
    s3.fs.invalidate_cache()
    content = (s3 / "airflow" / "numbers.parquet").read_bytes()

    assert pl.read_parquet(content)["n"].to_list() == list(range(30))
    assert (result["path"], result["bytes"]) == (url, len(content))
    assert [path.name for path in (s3 / "airflow").iterdir()] == ["numbers.parquet"]
