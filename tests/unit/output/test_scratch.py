"""Memory that one text after another is written to."""

from __future__ import annotations

import json
import os
from io import BytesIO
from threading import Event

import polars as pl
import pytest
from conftest import LONG

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.formats import CsvSink, NdjsonSink
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.scratch import Scratch
from airflow_provider_anaplat.output.streams import _beside


@pytest.mark.parametrize("has_files_in_memory", [True, False])
def test_a_text_is_what_was_written_and_the_next_one_takes_its_memory(
    has_files_in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_files_in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with Scratch() as scratch:
        first = scratch.text(10, lambda file: file.write(b"first"))
        assert bytes(first) == b"first"
        second = scratch.text(4, lambda file: file.write(b"2nd"))
        assert bytes(second) == b"2nd"
        assert bytes(first) == b"2ndst"
        assert bytes(scratch.text(1000, lambda file: file.write(b"x" * 1000))) == b"x" * 1000


def test_a_text_that_is_longer_than_it_was_to_be_is_refused() -> None:
    with Scratch() as scratch, pytest.raises(ValueError, match="4 bytes were written, and no more than 3"):
        scratch.text(3, lambda file: file.write(b"four"))


# What grows most: quotation marks are doubled, and of a control character, six are made.
@pytest.mark.parametrize("cell", ["", None, '"', '"' * 12, '"' * 1000, "\1", "\1" * 12, "\1" * 1000, "a" * 12])
@pytest.mark.parametrize("names", [["\1"], ['"' * 500], [f"c{number}" for number in range(60)]])
def test_cells_that_grow_most_fit(cell: str | None, names: list[str]) -> None:
    columns = tuple(Column(name=name, fdType="STRING") for name in names)
    frame = pl.DataFrame({name: [cell] * 100 for name in names}, schema=dict.fromkeys(names, pl.String))
    text, lines = BytesIO(), BytesIO()
    CsvSink(header=False).write(iter([frame]), Caster(columns), text)
    NdjsonSink().write(iter([frame]), Caster(columns), lines)
    quoted = "" if cell is None else '"' + cell.replace('"', '""') + '"'
    plain = bool(cell) and '"' not in str(cell)
    assert text.getvalue().decode() == (",".join([cell if plain and cell else quoted] * len(names)) + "\n") * 100
    assert [json.loads(line) for line in lines.getvalue().splitlines()] == [dict.fromkeys(names, cell)] * 100


def test_what_is_compressed_meanwhile_is_what_was_handed_over() -> None:
    taken, overwritten = [], Event()

    def write(data: bytes) -> int:
        assert not data or overwritten.wait(LONG)
        taken.append(bytes(data))
        return len(data)

    memory = bytearray(b"first")
    with _beside(write) as hand_over:
        hand_over(memoryview(memory))
        memory[:] = b"other"
        overwritten.set()
    assert taken == [b"", b"first"]
