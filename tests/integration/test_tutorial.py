"""The tutorial, followed to the letter in a home of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG
from support.markdown import PROJECT, Block, blocks_of, is_written_for_this_airflow
from support.running import free_port

from airflow_provider_anaplat.client import AnaplatClient

TUTORIAL = PROJECT / "docs" / "tutorial.md"
ACTIVATE = ". .venv/bin/activate"
SIMULATOR = "python -m airflow_provider_anaplat.simulator"


@is_written_for_this_airflow
def test_what_it_says_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tutorial lives in a new shell, which knows nothing of the tests' Airflow.
    for name in [name for name in os.environ if name.startswith(("AIRFLOW", "PYTEST"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT", str(LONG))  # a slow machine is no failure
    port, token = free_port(), "simulator-token"
    blocks = [_on_port(block, port) for block in blocks_of(TUTORIAL)]
    demo, prepare, serve, *commands = [text for language, text in blocks if language == "sh"]
    demo_end, served, exported = [text for language, text in blocks if language == "text"]
    assert demo == "make demo\n"
    assert "export_parquet" in demo_end
    home = tmp_path / "anaplat-tutorial"

    assert ACTIVATE in prepare
    _run(prepare.replace(ACTIVATE, f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"), PROJECT)
    for language, text in blocks:
        if language == "python":
            (home / text.splitlines()[0].removeprefix("# ")).write_text(text)

    assert serve.startswith(SIMULATOR)
    arguments = [sys.executable, *shlex.split(serve)[1:], "--port", str(port)]
    with subprocess.Popen(arguments, cwd=home, stderr=subprocess.PIPE, text=True) as simulator:
        try:
            assert simulator.stderr is not None
            assert "".join(simulator.stderr.readline() for _ in served.splitlines()) == served
            printed = _run("\n".join(commands), home)
            datasets = AnaplatClient(f"http://127.0.0.1:{port}", token).list_datasets()
        finally:
            simulator.terminate()
    assert exported in printed
    assert "1 passed" in printed
    assert [dataset.name for dataset in datasets] == ["sales", "sales 2026-01-02"]


def _on_port(block: Block, port: int) -> tuple[str, str]:
    return block.language, block.text.replace("8765", str(port))


def _run(script: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
