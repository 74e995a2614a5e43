"""The pictures of the documents are what a terminal shows.

To make them anew: ``ANAPLAT_TESTS_PICTURES=1 python -m pytest tests/unit/cli/test_pictures.py``
"""

from __future__ import annotations

import html
import os
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import numbers
from rich.console import Console
from rich.text import Text
from support.commands import Terminal, held

from airflow_provider_anaplat.simulator import Simulator, Table

IMAGES = Path(__file__).parents[3] / "docs" / "images"
COLUMNS = 90
FLIGHTS = [("day", "DATE"), ("carrier", "STRING"), ("flight", "INT"), ("distance", "DOUBLE")]
DRAWN_WITH = 15
pytestmark = [
    pytest.mark.usefixtures("environment"),
    pytest.mark.skipif(
        int(version("rich").split(".")[0]) != DRAWN_WITH,
        reason=f"the pictures are drawn with rich {DRAWN_WITH}, and another release draws a little differently",
    ),
]


def picture_of(screen: str) -> str:
    """Return what a terminal shows as SVG, without fonts that a reader's browser would fetch."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(screen.replace("\r\n", "\n")))
        svg = console.export_svg(title="anaplat", unique_id="anaplat")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def texts_of(svg: str) -> list[str]:
    """Return the texts of a picture; moments, durations and rates differ from one time to the next."""
    shown = [re.sub(r"<[^>]+>", "", text) for text in re.findall(r"<text.*?</text>", svg, re.DOTALL)]
    return [re.sub(r"\d[\d,:]*", "0", html.unescape(text)).replace("\xa0", " ").strip() for text in shown]


def check(name: str, screen: str, *shown: str) -> None:
    """See that a picture is the one of the documents, and that it shows what it is for."""
    svg = picture_of(screen)
    for text in shown:
        assert any(text in line for line in texts_of(svg))
    file = IMAGES / name
    if os.environ.get("ANAPLAT_TESTS_PICTURES"):
        file.write_text(svg)
    assert "url(http" not in svg
    assert texts_of(file.read_text()) == texts_of(svg)


def shown_by(*words: object) -> str:
    terminal = Terminal(*words, columns=COLUMNS)
    assert terminal.end() == 0
    quoted = " ".join(f"'{word}'" if " " in str(word) else str(word) for word in words)
    return f"$ anaplat {quoted}\n{terminal.raw.decode()}\n"


def test_the_picture_of_the_list_and_of_a_dataset(simulator: Simulator) -> None:
    flights = Table.of_rows(FLIGHTS, [["2026-01-01", "AA", "1", "80.5"]] * 2500)
    simulator.platform.add_dataset("Flights 2026", flights)
    simulator.platform.add_dataset("Flights 2025", flights, ("PROCESSING",), parent_dir_id="archive")
    simulator.platform.add_dataset("Stock", numbers(40), ("FAILED",))
    for dataset in simulator.platform.datasets.values():
        dataset.ctime = dataset.utime = datetime(2026, 1, 31, 6, tzinfo=UTC)
    simulator.platform.authorized_datasets = {"ann": [{"id": "ds1", "canExport": True}]}
    screen = shown_by("datasets") + shown_by("show", "Flights 2026", "--user", "ann", "--user", "bob")
    check("command-line-datasets.svg", screen, "PROCESSING", "User ann may export it.")


def test_the_picture_of_a_progress_bar(simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("Flights 2026", numbers(200_000))
    with held(simulator, "read_rows", lambda body: body.get("offset", 0) >= 150_000) as last:
        terminal = Terminal("export", "Flights 2026", tmp_path / "flights.parquet", columns=COLUMNS)
        terminal.read_until("15[01],000 of 200,000 rows")
        bar = re.split(r"\r\x1b\[2K", terminal.raw.decode())[-1]
        last.set()
        assert terminal.end() == 0
    check("command-line-export.svg", f"$ anaplat export 'Flights 2026' flights.parquet\n{bar}\n", "rows/s")
