from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import numbers
from support.thrift import rows_of_groups

from airflow_provider_anaplat._airflow.paths import place_of
from airflow_provider_anaplat._airflow.releases import AirflowFailException, ObjectStoragePath
from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.output.formats import WriteOptions
from airflow_provider_anaplat.simulator import Simulator

Connect = Callable[..., None]


def export(output_path: Any, **arguments: Any) -> Any:
    return AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=output_path, **arguments).execute(
        {}
    )


@pytest.fixture(autouse=True)
def dataset(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    simulator.platform.add_dataset("numbers", numbers(30))


def test_the_summary(simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "numbers.parquet"
    assert export(str(path)) == {
        "dsId": "ds1",
        "path": str(path),
        "format": "parquet",
        "rows": 30,
        "columns": 2,
        "version": 1,
        "utime": simulator.platform.datasets["ds1"].fields()["utime"],
        "bytes": path.stat().st_size,
    }
    assert pl.read_parquet(path)["n"].to_list() == list(range(30))


def test_small_pages_make_no_small_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    export(str(path), page_size=4)
    assert rows_of_groups(path.read_bytes()) == [30]


@pytest.mark.parametrize("path", ["numbers.parquet", "numbers.ndjson"])
def test_the_format_knows_how_much_memory_there_is(path: str) -> None:
    operator = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=path, memory_mb=64)
    assert operator.place() == place_of(path, None, WriteOptions(memory_mb=64))
    assert operator.place() != place_of(path, None)


@pytest.mark.parametrize(
    ("name", "file_format", "expected"),
    [
        ("x.csv", None, "csv"),
        ("x.NDJSON", None, "ndjson"),
        ("x.jsonl", None, "ndjson"),
        ("x.parquet", None, "parquet"),
        ("x.txt", "csv", "csv"),
        ("x", "ndjson", "ndjson"),
        ("x.csv.gz", None, "csv"),
        ("x.ndjson.zst", None, "ndjson"),
        ("x", "csv.gz", "csv"),
        ("x.gz", "csv", "csv"),
    ],
)
def test_the_format(tmp_path: Path, name: str, file_format: Any, expected: str) -> None:
    assert export(str(tmp_path / name), file_format=file_format)["format"] == expected


@pytest.mark.parametrize(
    ("name", "file_format"), [("x.txt", None), ("x", None), ("x.csv", "xlsx"), ("x.parquet.gz", None)]
)
def test_no_format_is_an_error_before_any_request(
    simulator: Simulator, tmp_path: Path, name: str, file_format: Any
) -> None:
    with pytest.raises(AirflowFailException, match="set file_format"):
        export(str(tmp_path / name), file_format=file_format)
    assert simulator.ledger == []


def test_what_a_retry_cannot_mend_is_not_retried(connect: Connect, simulator: Simulator, tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="has no column 'nope'"):
        export(str(tmp_path / "x.csv"), sort_by="nope")
    connect(simulator, password="wrong")
    with pytest.raises(AirflowFailException, match="token"):
        export(str(tmp_path / "x.csv"))
    assert list(tmp_path.iterdir()) == []


def test_an_object_store(tmp_path: Path) -> None:
    path = ObjectStoragePath(f"file://{tmp_path}/numbers.csv")
    assert export(path)["path"] == str(path)
    assert path.read_text().startswith("n,half\n0,0.0\n1,0.5\n")
    assert [found.name for found in path.parent.iterdir()] == ["numbers.csv"]


def test_a_file_url(tmp_path: Path) -> None:
    export(f"file://{tmp_path}/numbers.csv")
    assert (tmp_path / "numbers.csv").exists()


@pytest.mark.parametrize("home", ["~/numbers.csv", "~somebody/numbers.csv", "~", Path("~/numbers.csv")])
def test_a_home_that_a_shell_alone_knows_is_no_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AirflowFailException, match="name the folder itself"):
        export(home)
    assert list(tmp_path.iterdir()) == []

    export("~numbers.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["~numbers.csv"]


def test_a_path_object_of_a_local_file_is_written_as_one(tmp_path: Path) -> None:
    file, folder = tmp_path / "numbers.csv", tmp_path / "folder.csv"
    file.touch(0o600)
    folder.mkdir()
    (tmp_path / "link.csv").symlink_to(file)
    export(ObjectStoragePath(f"file://{tmp_path}/link.csv"))
    assert file.read_text().startswith("n,half\n0,0.0\n")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(AnaplatOutputError, match="no regular file"):
        export(ObjectStoragePath(f"file://{folder}"))
    assert list(folder.iterdir()) == []


def test_the_query_is_passed_on(simulator: Simulator, tmp_path: Path) -> None:
    condition = {"type": "condition", "value": {"name": "n", "filterType": "LT", "filterValue": [8]}}
    result = export(
        str(tmp_path / "x.parquet"),
        sort_by="n",
        sort_type="desc",
        filter={"combineType": "AND", "conditions": [condition]},
        page_size=3,
        concurrency=2,
        max_rows=5,
    )

    assert result["rows"] == 5
    assert pl.read_parquet(tmp_path / "x.parquet")["n"].to_list() == [7, 6, 5, 4, 3]
