"""How often a character is in what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_anaplat.output.counting import occurrences


@given(st.binary(max_size=300), st.binary(min_size=1, max_size=1))
def test_it_is_what_python_counts(data: bytes, character: bytes) -> None:
    assert occurrences(data, character) == data.count(character)


@pytest.mark.parametrize("size", [0, 1, 255, 1 << 20])
def test_of_any_size(size: int) -> None:
    assert occurrences(b"\n" * size, b"\n") == size
    assert occurrences(b"\n" * size, b'"') == 0
