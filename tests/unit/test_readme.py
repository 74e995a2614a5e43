"""The documents' Python runs as it stands, their commands exist, and the tests that they name are there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.markdown import PROJECT, Block, blocks, documents, is_written_for_this_airflow
from support.running import for_this_release

from airflow_provider_anaplat.simulator import Simulator

BLOCKS = blocks()
PYTHON = [block for block in BLOCKS if block.language == "python" and not block.not_run]
SHELL = [block for block in BLOCKS if block.language in ("sh", "") and not block.not_run]
SHOWN = {"text", "python", "sh", ""}  # what is printed, and what is run; the README's commands have no language
TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
OFFICIAL = re.compile(r"https://[\w./]+/airflow/constraints-[\d.]+/constraints-3\.\d+\.txt")
EXTRAS = set(tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_there_are_blocks() -> None:
    assert len(PYTHON) >= 10
    assert len(SHELL) >= 10
    assert {block.document for block in PYTHON} > {"README.md", "docs/tutorial.md"}


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    odd = [str(block) for block in BLOCKS if block.language not in SHOWN and not block.language.startswith("{")]
    assert odd == []


def test_few_blocks_are_not_run() -> None:
    assert len([block for block in BLOCKS if block.not_run]) <= 3


def _sample(block: Block) -> Any:
    new = block.document == "docs/tutorial.md"
    return pytest.param(block, id=str(block), marks=[is_written_for_this_airflow] if new else [])


@pytest.mark.parametrize("sample", [_sample(block) for block in PYTHON])
def test_a_sample_runs(sample: Block, simulator: Simulator, connect: Callable[..., None]) -> None:
    connect(simulator)
    exec(compile(for_this_release(sample.text), str(sample), "exec"), {"__name__": "sample"})


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_the_commands_of_a_block_exist(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True, capture_output=True)
    for command in _commands(block.text):
        check = next((check for head, check in CHECKS.items() if command[: len(head)] == list(head)), None)
        assert check is not None, f"{block}: {shlex.join(command)} is none of the commands that are known here"
        check(command)


def _commands(script: str) -> Iterator[list[str]]:
    """Return the words of each command; a line may end within quotes, or after a backslash."""
    script = re.sub(r"<<'END'\n.*?^END$", "", script, flags=re.DOTALL | re.MULTILINE).replace("\\\n", " ")
    text = ""
    for line in script.splitlines():
        text += f"{line}\n"
        try:
            words = shlex.split(text, comments=True)
        except ValueError:  # the quotes are still open
            continue
        text = ""
        while "&&" in words:
            yield words[: words.index("&&")]
            words = words[words.index("&&") + 1 :]
        if words:
            yield words
    assert not text.strip()


def _makes(command: list[str]) -> None:
    assert set(command[1:]) <= TARGETS


def _installs(command: list[str]) -> None:
    words = iter(command[2:])
    for requirement in words:
        if requirement == "--constraint":
            assert OFFICIAL.fullmatch(next(words))
            continue
        name, extras = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        assert name == "airflow-provider-anaplat"
        assert set((extras or "").split(",")) - {""} <= EXTRAS


def _is_understood_by_airflow(command: list[str]) -> None:
    from airflow.cli.cli_parser import get_parser

    arguments = get_parser().parse_args(command[1:])
    assert json.loads(getattr(arguments, "conn_extra", None) or "{}") is not None


def _is_understood_by_the_simulator(command: list[str]) -> None:
    module = [sys.executable, "-m", "airflow_provider_anaplat.simulator"]
    help_text = subprocess.run([*module, "--help"], check=True, capture_output=True, text=True).stdout
    assert {word for word in command if word.startswith("--")} <= set(re.findall(r"--[a-z]+", help_text))


def _is_understood_by_the_command_line(command: list[str]) -> None:
    from airflow_provider_anaplat.cli.main import parser

    assert parser().parse_args(command[1:]).command


def _is_a_shells(command: list[str]) -> None:
    assert command


CHECKS: dict[tuple[str, ...], Callable[[list[str]], None]] = {
    ("make",): _makes,
    ("pip", "install"): _installs,
    ("anaplat",): _is_understood_by_the_command_line,
    ("airflow",): _is_understood_by_airflow,
    ("python", "-m", "airflow_provider_anaplat.simulator"): _is_understood_by_the_simulator,
    ("python", "-m", "pytest"): _is_a_shells,
    **{(word,): _is_a_shells for word in (".", "cat", "cd", "eval", "export", "mkdir", "unset")},
}


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_what_a_document_links_to_is_there(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_the_fault_table_names_tests_that_are_there() -> None:
    # A name without its file is of the file that was named last, in the same table.
    named = re.findall(r"(?:(test_\w+\.py))?::(test_\w+)", (PROJECT / "docs" / "faults.md").read_text())
    tests = [(path.name, path.read_text()) for path in (PROJECT / "tests").rglob("test_*.py")]

    assert len(named) > 60

    file, missing = "", []
    for of_file, test in named:
        file = of_file or file
        if not any(name == file and f"def {test}(" in text for name, text in tests):
            missing.append(f"{file}::{test}")

    assert missing == []
