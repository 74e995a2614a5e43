"""The project's Markdown, taken apart into its blocks of code."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

# It came with 3.1; before, a few names stood elsewhere.
is_written_for_this_airflow = pytest.mark.skipif(
    importlib.util.find_spec("airflow.dag_processing.dagbag") is None,
    reason="the tutorial and the how-tos are written for the Airflow of today",
)
PROJECT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of code in a document.

    :param document: path of the document below the project
    :param line: its line in the document
    :param language: the word after the fence
    :param not_run: why the tests do not run it; empty where they do
    """

    document: str
    line: int
    language: str
    text: str
    not_run: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def documents() -> list[Path]:
    docs = (path for path in (PROJECT / "docs").rglob("*.md") if "_build" not in path.parts)
    return [*sorted(PROJECT.glob("*.md")), *sorted(docs)]


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text()
    return [
        Block(
            str(document.relative_to(PROJECT)),
            text.count("\n", 0, found.start()) + 1,
            found["language"].strip(),
            found["text"],
            found["reason"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def blocks() -> list[Block]:
    """Return all blocks but those of translations, which are those of the originals, says test_translations.py."""
    return [block for document in documents() if ".zh-CN" not in document.name for block in blocks_of(document)]
