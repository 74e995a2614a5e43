"""What waits to be read comes back, or whoever waits for it learns why not."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path

import pytest
from support.limits import quota

from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.output.files import named
from airflow_provider_anaplat.output.spill import Spill

PIECES = [bytes([number]) * 30_000 for number in range(100)]
SIZE = 3_000_000


def fill(spill: Spill) -> None:
    for piece in PIECES:
        spill.write(piece)


def test_bytes_come_back_from_any_place() -> None:
    with Spill() as spill:
        fill(spill)
        assert spill.size == SIZE
        assert spill.read(2_970_000, SIZE) == PIECES[99]
        assert spill.read(0, 60_000) == PIECES[0] + PIECES[1]


@pytest.mark.parametrize("missing", [1, 600, 9_000, SIZE])
def test_a_folder_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = f"Cannot write a temporary file to {tmp_path}: {os.strerror(errno.EFBIG)}. Set TMPDIR"
    with (
        pytest.raises(AnaplatOutputError, match=re.escape(said)),
        quota(SIZE - missing),
        named("what is written in the end"),
        Spill() as spill,
    ):
        fill(spill)
    assert list(tmp_path.iterdir()) == []


def test_few_bytes_need_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    monkeypatch.setattr(tempfile, "tempdir", str(gone))
    with Spill() as spill:
        spill.write(PIECES[0])
        assert spill.read(0, spill.size) == PIECES[0]
        said = f"Cannot write a temporary file to {gone}: {os.strerror(errno.ENOENT)}"
        with pytest.raises(AnaplatOutputError, match=said):
            fill(spill)
