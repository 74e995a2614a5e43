"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
SAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_there_are_samples() -> None:
    assert len(SAMPLES) == 3


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_runs(sample: str) -> None:
    exec(compile(sample, "README.md", "exec"), {})
