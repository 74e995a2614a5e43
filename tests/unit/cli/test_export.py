"""The command that exports: the same file as a task's, its progress, and each way to fail."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import polars as pl
import pytest
from conftest import TEXTS, numbers
from support.commands import Anaplat, in_a_process

from airflow_provider_anaplat.simulator import Simulator, replies


def test_all_rows_are_in_the_file(simulator: Simulator, anaplat: Anaplat, tmp_path: Path) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    file = tmp_path / "texts.ndjson"
    ended = anaplat("export", "texts", file, "--json")

    assert ended.code == 0
    assert [json.loads(line)["text"] for line in file.read_text().splitlines()] == [
        None, "", "null", 'quo"te, back\\slash\nand 😀 中',
    ]  # fmt: skip
    assert ended.json == {
        "dsId": "ds1",
        "path": str(file),
        "rows": 4,
        "columns": 2,
        "version": 1,
        "utime": ended.json["utime"],
        "bytes": file.stat().st_size,
        "format": "ndjson",
    }


def test_elsewhere_than_on_a_terminal_the_lines_are_plain(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(7))
    ended = anaplat("export", "numbers", tmp_path / "numbers.parquet")
    assert ended.out.startswith("7 rows of dataset ds1 are in ")
    assert "Dataset ds1: exported 7 rows" in ended.err
    assert "\x1b" not in ended.out + ended.err


def test_the_options_are_those_of_the_operator(simulator: Simulator, anaplat: Anaplat, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(7))
    ended = anaplat(
        "export", "numbers", tmp_path / "parts", "--format", "csv.gz", "--rows-per-file", 2, "--max-rows", 5,
        "--sort-by", "n", "--sort-type", "desc", "--delimiter", ";", "--json",
    )  # fmt: skip

    assert (ended.code, ended.json["rows"]) == (0, 5)

    manifest = json.loads((tmp_path / "parts" / "_manifest.json").read_text())
    assert [part["rows"] for part in manifest["files"]] == [2, 2, 1]

    first = pl.read_csv(tmp_path / "parts" / "part-00001.csv.gz", separator=";")
    assert first["n"].to_list() == [6, 5]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["numbers.xlsx"], "end FILE in one of .csv, .ndjson, .jsonl, .parquet, or set --format to one of"),
        (["numbers.csv", "--filter", "[1]"], "--filter must be a JSON object"),
        (["numbers.csv", "--filter", "{"], "--filter must be a JSON object"),
        (["numbers.csv", "--filter", "[" * 50_000], "--filter must be a JSON object"),
        (["numbers.csv", "--sort-by", "nothing"], "nothing"),
        (["numbers.csv", "--max-rows", "-1"], "max_rows"),
    ],
)
def test_an_option_that_cannot_work_is_an_error(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path, words: list[str], said: str
) -> None:
    simulator.platform.add_dataset("numbers", numbers(7))
    ended = anaplat("export", "numbers", tmp_path / words[0], *words[1:])
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nowhere://me:passw0rd@x.csv", "is no path"),
        ("https://me:passw0rd@elsewhere/x.csv", "is no path"),
        ("file://me:passw0rd@elsewhere/x.csv", "another host"),
    ],
)
def test_a_url_that_names_no_place_is_an_error(
    simulator: Simulator, anaplat: Anaplat, url: str, said: str
) -> None:
    ended = anaplat("export", "numbers", url)
    assert ended.code == 2  # Airflow may print what it likes
    assert said in ended.err
    assert "passw0rd" not in ended.out + ended.err
    assert simulator.ledger == []


FAULTS = {
    "reset": (replies.reset(), 6),
    "cut off": (replies.cut(), 6),
    "html": (replies.content(b"<html>Sign in</html>", "text/html"), 8),
    "not a page": (replies.content(b'{"result": "ok", "response": 7}'), 8),
    "refused": (replies.refusal("not today"), 8),
    "forbidden": (replies.http_status(403), 4),
    "token": (replies.refusal("the token is invalid", code=1018, status=403), 4),
    "not found": (replies.http_status(404), 3),
    "busy": (replies.http_status(429), 6),
    "down": (replies.http_status(503), 6),
    "redirect": (replies.redirect("https://elsewhere.example.com/"), 8),
}


@pytest.mark.parametrize("operation", ["list_datasets", "read_rows"])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_fault_ends_with_its_code_and_leaves_nothing(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path, operation: str, kind: str, form: list[str]
) -> None:
    fault, code = FAULTS[kind]
    simulator.platform.add_dataset("numbers", numbers(7))
    simulator.inject(operation, fault)
    ended = anaplat("export", "numbers", tmp_path / "numbers.csv", *form)

    assert (ended.code, ended.out) == (code, "")
    assert list(tmp_path.iterdir()) == []

    if form:
        last = json.loads(ended.err.splitlines()[-1])
        assert (last["exit"], last["error"].startswith("Anaplat")) == (code, True)
    else:
        assert len(ended.err) > 20


@pytest.mark.parametrize("operation", ["list_datasets", "read_rows"])
def test_a_token_that_the_platform_repeats_is_masked(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path, operation: str
) -> None:
    simulator.platform.add_dataset("numbers", numbers(7))
    simulator.inject(operation, replies.refusal(f"bad token {simulator.token}"))
    assert "bad token ***" in anaplat("export", "numbers", tmp_path / "numbers.csv").err


def test_a_token_in_what_the_platform_lists_is_masked(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.add_dataset(f"for {simulator.token}", numbers(1))
    assert "for ***" in anaplat("datasets").out
    assert anaplat("datasets", "--json").json[0]["name"] == "for ***"
    assert "for ***" in anaplat("show", "ds1").out


def test_a_dataset_that_is_updated_is_exported_anew(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path
) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(6))
    simulator.platform.rows_per_answer = 2
    simulator.inject(
        "read_rows", replies.Fault(lambda reply: (simulator.platform.refresh(dataset.ds_id), reply)[1], True),
        when=lambda body: body.get("offset") == 2,
    )  # fmt: skip
    ended = anaplat("export", "numbers", tmp_path / "numbers.csv", "--concurrency", 1, "--json")

    assert (ended.code, ended.json["rows"], ended.json["version"]) == (0, 6, 2)


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_full_disk_is_named_and_nothing_is_left(simulator: Simulator, environment: None, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(50_000))
    writes_nothing_else = {"PYTHONDONTWRITEBYTECODE": "1", "COVERAGE_PROCESS_CONFIG": ""}
    ended = in_a_process(
        ["export", "numbers", tmp_path / "numbers.csv"], writes_nothing_else, preexec_fn=_small_files
    )

    assert ended.code == 7
    assert f"Cannot write {tmp_path / 'numbers.csv'}" in ended.err
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden ones, too
