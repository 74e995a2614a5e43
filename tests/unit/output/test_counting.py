"""How often a character is in what was written."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_anaplat.output.counting import Counting, occurrences


@given(st.binary(max_size=300), st.binary(min_size=1, max_size=1))
def test_it_is_what_python_counts(data: bytes, character: bytes) -> None:
    assert occurrences(data, character) == data.count(character)


@pytest.mark.parametrize("size", [0, 1, 255, 1 << 20])
def test_of_any_size(size: int) -> None:
    assert occurrences(b"\n" * size, b"\n") == size
    assert occurrences(b"\n" * size, b'"') == 0


def test_an_output_adds_up_its_pieces() -> None:
    file = BytesIO()
    output = Counting(b"\n", file.write, file.flush)

    for piece in (b"a\nb", b"", b"\n\n"):
        output.write(piece)

    assert (output.counted, output.bytes, file.getvalue()) == (3, 5, b"a\nb\n\n")
