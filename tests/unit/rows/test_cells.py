"""Characters that are escaped by their numbers: written out, where that changes nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_anaplat.rows.cells import written_out

TEXT = st.text(st.sampled_from('aUu0é中😀\ufeff\\"/\n\t \x7f\0[],') | st.characters(codec="utf-8"), max_size=8)


@given(texts=st.lists(TEXT))
def test_a_text_says_what_it_said(texts: list[str]) -> None:
    assert json.loads(bytes(written_out(memoryview(json.dumps(texts).encode())))) == texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'"\u5317\u4EAC"', '"北京"'),
        (rb'"caf\u00e9"', '"café"'),
        (rb'"\n\"\\\u5317"', r'"\n\"\\北"'),
        (rb'"\\u5317\u5317"', r'"\\u5317北"'),
        (rb'"C:\\Users\u5317"', r'"C:\\Users北"'),
    ],
)
def test_characters_take_the_place_of_their_numbers(text: bytes, expected: str) -> None:
    assert bytes(written_out(memoryview(text))).decode() == expected


@pytest.mark.parametrize(
    "text",
    [
        rb'"\u0022\u5317"',  # or the text would end here
        rb'"\u005cn\u5317"',
        rb'["\u5317"]\u002c["b"]',
        rb'\u007b"\u5317": 1\u007d',
        rb'"\U00005317"',
        rb'"\u5317\ud83d\ude00"',
        rb'"\u531"',
        '"\\u5317京"'.encode(),
    ],
)
def test_what_would_say_something_else_stays(text: bytes) -> None:
    assert bytes(written_out(memoryview(text))) == text
