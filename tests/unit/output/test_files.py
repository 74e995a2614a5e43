"""A file that is being written: what others see of it, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec import AbstractFileSystem

from airflow_provider_anaplat.output.files import StagedFile, _give_name, identity_of, write_file

KILLED = """
import os, signal, sys
from pathlib import Path
from airflow_provider_anaplat.output.files import StagedFile
with StagedFile(Path(sys.argv[1])).open() as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("of yesterday")
    return tmp_path / "rows.csv"


@pytest.fixture(params=["nameless", "hidden"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where files are nameless while they are written, and where they cannot be, as on macOS."""
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no nameless files")
    if request.param == "hidden":
        monkeypatch.delattr(os, "O_TMPFILE")
    return str(request.param)


def test_a_file_appears_when_it_is_complete(target: Path, place: str) -> None:
    staged = StagedFile(target)
    with staged.open() as file:
        file.write(b"of today")
        assert target.read_text() == "of yesterday"
        others = [path.name for path in target.parent.iterdir() if path != target]
        assert all(name.startswith(".anaplat-") and name.endswith(".tmp") for name in others)
        assert len(others) == (place == "hidden")
    identity = staged.publish()

    assert target.read_text() == "of today"
    assert identity == identity_of(target)
    assert list(target.parent.iterdir()) == [target]


def test_a_file_is_as_readable_as_the_umask_says(tmp_path: Path, place: str) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "new.csv", b"of today")
    finally:
        os.umask(before)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o640


@pytest.mark.usefixtures("place")
def test_a_file_that_is_given_up_leaves_no_trace(target: Path) -> None:
    staged = StagedFile(target)
    with pytest.raises(ZeroDivisionError), staged.open() as file:
        file.write(b"%d" % (1 // 0))

    staged.discard()
    staged = StagedFile(target)
    with staged.open() as file:
        file.write(b"complete")
    staged.discard()

    assert list(target.parent.iterdir()) == [target]
    assert target.read_text() == "of yesterday"


@pytest.mark.parametrize("said", [{"ETag": '"opaque"'}, {}])
def test_of_a_store_whose_tags_say_nothing_nobody_can_tell(said: dict[str, str]) -> None:
    """The file systems of some stores take a tag for a number, and others give none."""

    class Store(AbstractFileSystem):
        def checksum(self, path: str) -> int:
            return int(said["ETag"].strip('"'), 16)

    class Object:
        fs = Store()
        path = "bucket/rows.csv"

    assert identity_of(Object()) is None


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no nameless files")
def test_a_file_that_cannot_be_named_is_copied(tmp_path: Path) -> None:
    with (tmp_path / "gone").open("wb") as file:
        file.write(b"complete")
        file.flush()
        (tmp_path / "gone").unlink()  # what had a name once is given none again
        _give_name(file, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"complete"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no nameless files")
def test_a_killed_process_leaves_no_trace(target: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(target.parent.iterdir()) == [target]
    assert target.read_text() == "of yesterday"
