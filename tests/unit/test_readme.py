"""The README's Python runs as it stands, and the tests that the documents name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
SAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_there_are_samples() -> None:
    assert len(SAMPLES) == 4


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_runs(sample: str) -> None:
    exec(compile(sample, "README.md", "exec"), {})


def test_the_fault_table_names_tests_that_are_there() -> None:
    table = (README.parent / "docs" / "faults.md").read_text()
    named = re.findall(r"::(test_\w+)", table)
    tests = "".join(path.read_text() for path in (README.parent / "tests").rglob("test_*.py"))
    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in tests] == []
