"""The console script in a terminal of its own: bars, tables, questions and typed tokens; and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG, TEXTS, numbers
from support.commands import SCRIPT, TOKEN, Terminal, held, in_a_process

from airflow_provider_anaplat.simulator import Simulator, replies

pytestmark = pytest.mark.usefixtures("environment")


def test_an_export_shows_a_bar_with_rows_rate_and_time_left(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(200_000))
    with held(simulator, "read_rows", lambda body: body.get("offset", 0) >= 150_000) as last:
        terminal = Terminal("export", "numbers", tmp_path / "numbers.parquet")
        terminal.read_until("15[01],000 of 200,000 rows")
        last.set()
        code = terminal.end()
    shown = re.split(r"[\r\n]+", terminal.text)

    assert code == 0
    assert any(
        re.search(r" 7[56]% 15[01],000 of 200,000 rows [\d,]+ rows/s (\d\d:\d\d|--:--) left", line)
        for line in shown
    )
    assert any(re.search(r"100% 200,000 of 200,000 rows [\d,]+ rows/s 00:0\d left", line) for line in shown)
    assert "200,000 rows of dataset ds1 are in" in shown[-2]
    assert not any("exported" in line for line in shown)  # the lines that a bar takes the place of


def test_a_fault_below_the_bar_is_told_and_nothing_is_left(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(400))
    simulator.platform.rows_per_answer = 100
    simulator.inject("read_rows", replies.reset(), when=lambda body: body.get("offset") == 300)
    terminal = Terminal("export", "numbers", tmp_path / "numbers.parquet")

    assert terminal.end() == 6
    assert "read_rows: " in terminal.text
    assert list(tmp_path.iterdir()) == []
    assert (
        terminal.raw.rstrip().endswith((b"\x1b[?25h", b".")) or b"\x1b[?25h" in terminal.raw
    )  # the cursor is back


def test_a_restart_is_told_above_the_bar(simulator: Simulator, tmp_path: Path) -> None:
    dataset = simulator.platform.add_dataset("numbers", numbers(400))
    simulator.platform.rows_per_answer = 100
    refresh = replies.Fault(lambda reply: (simulator.platform.refresh(dataset.ds_id), reply)[1], True)
    simulator.inject("read_rows", refresh, when=lambda body: body.get("offset") == 100)
    terminal = Terminal("export", "numbers", tmp_path / "numbers.csv", "--concurrency", 1)

    assert terminal.end() == 0
    assert "Starting again from nothing" in " ".join(terminal.text.split())  # wherever the line is broken
    assert len((tmp_path / "numbers.csv").read_text().splitlines()) == 401


def test_a_table_is_framed_and_no_cell_is_cut(simulator: Simulator) -> None:
    simulator.platform.add_dataset(
        "a name that is so long that no terminal of thirty columns has it", numbers(12_000)
    )
    terminal = Terminal("datasets", columns=40)

    assert terminal.end() == 0
    assert "…" not in terminal.text

    wide = Terminal("datasets", columns=160)
    assert wide.end() == 0
    assert "12,000" in wide.text
    assert "a name that is so long that no terminal of thirty columns has it" in wide.text


def test_null_and_the_empty_text_look_different(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    terminal = Terminal("head", "texts")
    assert terminal.end() == 0
    assert b"\x1b[2mnull" in terminal.raw  # dim: the third row has the text "null"
    assert terminal.text.count("null") == 2


def test_a_token_can_be_typed_and_is_not_shown(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANAPLAT_TOKEN")
    terminal = Terminal("datasets")
    terminal.read_until("Application token: ")
    terminal.type(f"{TOKEN}\n")
    assert terminal.end() == 0
    assert "updated" in terminal.text


def test_users_are_created_after_a_question(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("loginId\nann\n")
    refused = Terminal("users", "create", file)
    refused.read_until(r"\[y/N\] ")
    refused.type("\n")

    assert (refused.end(), simulator.platform.users) == (2, {})

    agreed = Terminal("users", "create", file)
    agreed.read_until(r"\[y/N\] ")
    agreed.type("y\n")

    assert (agreed.end(), list(simulator.platform.users)) == (0, ["ann"])


def test_a_refresh_says_what_it_waits_for(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    terminal = Terminal("refresh", "texts", "--wait", "--poll-interval", "0.1")
    assert terminal.end() == 0
    assert "Dataset ds1 is '处理中'" in terminal.text
    assert "Dataset ds1 was updated at" in terminal.text


FAULTS = {
    "list_datasets": ["datasets"],
    "get_columns": ["show", "texts"],
    "read_rows": ["head", "texts"],
    "list_pages": ["pages"],
    "refresh_dataset": ["refresh", "texts", "--poll-interval", "0.1"],
    "list_authorized_datasets": ["show", "texts", "--user", "u1"],
}


@pytest.mark.parametrize("operation", FAULTS)
def test_a_token_in_a_fault_is_not_shown(simulator: Simulator, operation: str) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    page = f"<html><body>Token {TOKEN} or {TOKEN.replace('/', '%2F')} is unknown</body></html>"
    simulator.inject(operation, replies.content(page.encode(), "text/html"), times=None)
    terminal = Terminal(*FAULTS[operation])
    assert terminal.end() in (5, 8)
    assert operation in terminal.text


def test_it_can_be_interrupted_while_the_platform_is_silent(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(200_000))
    simulator.inject("read_rows", replies.slow(3600), when=lambda body: body.get("offset", 0) >= 150_000)
    patient = {"ANAPLAT_EXTRA": '{"read_timeout": 3600}'}
    terminal = Terminal("export", "numbers", tmp_path / "numbers.csv", environment=patient)
    terminal.read_until("15[01],000 of 200,000 rows")
    terminal.type("\x03")

    assert terminal.end() == 130
    assert "Interrupted." in terminal.text
    assert list(tmp_path.iterdir()) == []


def test_who_has_read_enough_ends_it_quietly(simulator: Simulator) -> None:
    for number in range(3000):
        simulator.platform.add_dataset(f"dataset {number}", TEXTS)
    process = subprocess.Popen([SCRIPT, "datasets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.readline()
    process.stdout.close()

    assert (process.stderr.read(), process.wait(LONG)) == (b"", 0)


def test_who_has_read_enough_changes_neither_what_is_done_nor_how_it_ends(
    simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    users, exported = tmp_path / "users.csv", tmp_path / "texts.csv"
    users.write_text("name,loginId\n" + "nobody,\n" * 20_000)

    def piped(command: str, reader: str) -> int:
        words = ["bash", "-c", f"set -o pipefail; {SCRIPT} {command} | {reader}"]
        return subprocess.run(words, capture_output=True, timeout=LONG).returncode

    assert piped(f"users check {users}", "head -1") == 8
    assert piped(f"export texts {exported} 2>&1", "true") == 0  # its progress is the first that nobody reads
    assert exported.exists()
    assert piped(f"export nothing {exported} 2>&1", "true") == 3
    assert piped(f"export texts {exported} >&- 2>&-", "true") == 0
    assert piped(f"export nothing {exported} 2>/dev/full", "true") == 3
    assert piped("datasets >/dev/full", "true") == 1


def test_airflow_is_not_imported_and_heavy_libraries_only_where_they_are_needed(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    code = """
import sys
from airflow_provider_anaplat.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""

    def imported(*words: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        return set(done.stderr.split())

    assert imported("--help") & {"airflow", "polars", "pydantic", "requests", "rich"} == set()
    for words in (["datasets"], ["show", "texts"], ["head", "texts", "--json"], ["test"], ["pages"]):
        assert imported(*words) & {"airflow", "polars", "rich"} == set()
    assert "airflow" not in imported("export", "texts", "/dev/null/nowhere.csv")


def test_the_shell_completes_ids_and_names(simulator: Simulator) -> None:
    simulator.platform.add_dataset("Sales", TEXTS)
    simulator.platform.add_dataset("Stock", TEXTS)

    def completed(line: str) -> list[str]:
        read, write = os.pipe()
        with os.fdopen(read, "rb") as answer:
            subprocess.run(
                ["bash", "-c", f"exec {SCRIPT} 8>&{write}"],
                env={**os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
                     "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SUPPRESS_SPACE": "1"},
                pass_fds=[write], check=True, capture_output=True,
            )  # fmt: skip
            os.close(write)
            return answer.read().decode().split()

    assert completed("anaplat show S") == ["Sales", "Stock"]
    assert completed("anaplat export ds") == ["ds1", "ds2"]
    simulator.platform.pages = [{"pgId": "p1", "name": "Overview"}]
    assert completed("anaplat cards O") == ["Overview"]
    simulator.inject("list_datasets", replies.http_status(403))
    assert completed("anaplat show S") == []


def test_the_script_runs_as_a_module_too(simulator: Simulator) -> None:
    module = [sys.executable, "-m", "airflow_provider_anaplat.cli.main", "pages"]
    assert subprocess.run(module, capture_output=True, check=True).stderr == b""
    assert in_a_process(["pages"], {"ANAPLAT_TOKEN": "another"}).code == 4
