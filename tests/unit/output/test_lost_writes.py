"""What a file says of a write counts, whatever the library that writes makes of it: no export loses rows."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import polars as pl
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.registry import register_implementation
from support.limits import quota
from upath import UPath

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.output.files import copy_file, write_file
from airflow_provider_anaplat.output.formats import CsvSink, NdjsonSink, ParquetSink, Sink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.streams import Output, Piece, compressed

COLUMNS = (Column(name="n", fd_type="LONG"), Column(name="text", fd_type="STRING"))
SINKS = {
    "csv": CsvSink(),
    "csv in gb18030": CsvSink(encoding="gb18030"),
    "ndjson": NdjsonSink(),
    "parquet": ParquetSink(row_group_size=5_000),
}
EVERY_KIND = [
    pytest.param(sink, suffix, id=f"{name}{suffix}")
    for (name, sink), suffix in product(SINKS.items(), ("", ".gz", ".zst"))
]
every_kind = pytest.mark.parametrize(("sink", "suffix"), EVERY_KIND)


def frames(count: int = 4) -> Iterator[pl.DataFrame]:
    """Yield pages of 10,000 rows that compress badly."""
    for page in range(count):
        numbers = [(n * 2_654_435_761) % 2**32 for n in range(page * 10_000, (page + 1) * 10_000)]
        frame = pl.DataFrame({"n": numbers, "text": [f"{n:x}" for n in numbers]})
        yield frame.cast(pl.String)


def write(sink: Sink, suffix: str, file: BinaryIO) -> None:
    with compressed(file, suffix) as stream:
        sink.write(frames(), Caster(COLUMNS), stream)


@every_kind
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_is_full_from_the_start(sink: Sink, suffix: str) -> None:
    with (
        open("/dev/full", "wb", buffering=0) as file,  # noqa: PTH123 - unlike Path.open(), without a check of types
        pytest.raises(OSError, match=os.strerror(errno.ENOSPC)),
    ):
        write(sink, suffix, file)


@every_kind
@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_a_quota_that_is_reached_leaves_what_was_there(tmp_path: Path, sink: Sink, suffix: str, size: int) -> None:
    path = tmp_path / "numbers"
    path.write_text("of yesterday")
    with quota(size), pytest.raises(AnaplatOutputError, match=f"Cannot write {path}: File too large\\."):
        Place(path, sink, suffix).write(frames(), Caster(COLUMNS))
    assert path.read_text() == "of yesterday"
    assert [found.name for found in tmp_path.iterdir()] == ["numbers"]


@every_kind
def test_a_pipe_that_its_reader_closes(sink: Sink, suffix: str) -> None:
    reader, writer = os.pipe()

    def read_a_little() -> None:
        os.read(reader, 1_000)
        os.close(reader)

    thread = threading.Thread(target=read_a_little)
    thread.start()
    with pytest.raises(BrokenPipeError), os.fdopen(writer, "wb", buffering=0) as file:
        write(sink, suffix, file)
    thread.join()


class Store(MemoryFileSystem):
    """An object store that takes so many bytes of an object, and then does what its kind does."""

    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    room = 0

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        file = super().open(path, mode, **kwargs)
        return self.Object(self, self._strip_protocol(path), file.getvalue()) if mode == "wb" else file

    class Object(MemoryFile):
        def write(self, data: bytes) -> int:
            if self.tell() + len(data) > Store.room:
                self.beyond(data)
            return super().write(data)

        def beyond(self, data: bytes) -> None: ...

        def __exit__(self, *_: object) -> None:
            self.close()

        def close(self) -> None:
            self.commit()


class Refusing(Store):
    """It refuses a part of an upload."""

    protocol = "refusing"

    class Object(Store.Object):
        def beyond(self, data: bytes) -> None:
            raise OSError("SlowDown: reduce your request rate")


class RefusingTheEnd(Store):
    """It refuses to complete an upload."""

    protocol = "refusingtheend"

    class Object(Store.Object):
        def close(self) -> None:
            raise OSError("InternalError: we encountered an internal error")


class Losing(Store):
    """It keeps what was uploaded so far, and says nothing."""

    protocol = "losing"

    class Object(Store.Object):
        def close(self) -> None:
            self.truncate(Store.room)
            self.commit()


class TakingLess(Store):
    """It takes a part of what it is given, and says how much."""

    protocol = "takingless"

    class Object(Store.Object):
        def write(self, data: bytes) -> int:
            return super().write(data[: max(0, Store.room - self.tell())])


@every_kind
@pytest.mark.parametrize(
    ("store", "said"),
    [
        (Refusing, "SlowDown"),
        (RefusingTheEnd, "InternalError"),
        (Losing, "bytes were written, and 70,000 are there"),
        (TakingLess, "of .* bytes were written"),
    ],
)
@pytest.mark.filterwarnings("ignore:UPath .* filesystem not explicitly implemented")
def test_an_object_store_that_fails(sink: Sink, suffix: str, store: type[Store], said: str) -> None:
    register_implementation(store.protocol, store, clobber=True)
    folder = UPath(f"{store.protocol}://bucket")
    Store.room = 70_000
    with pytest.raises(AnaplatOutputError, match=f"Cannot write {folder}/numbers: .*{said}"):
        Place(folder / "numbers", sink, suffix).write(frames(), Caster(COLUMNS))
    assert not folder.fs.exists("/bucket/numbers")


class LosingCopies(Store):
    """It copies some bytes of an object, and says nothing."""

    protocol = "losingcopies"
    kept = 0

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        if self.kept:
            self.pipe_file(path2, self.cat_file(path1)[: self.kept])


@pytest.mark.parametrize("kept", [0, 10])
@pytest.mark.filterwarnings("ignore:UPath .* filesystem not explicitly implemented")
def test_an_object_store_that_loses_what_it_copies(kept: int) -> None:
    register_implementation(LosingCopies.protocol, LosingCopies, clobber=True)
    folder: Any = UPath(f"{LosingCopies.protocol}://bucket/{kept}")
    Store.room, LosingCopies.kept = 1000, kept
    (folder / "part").write_bytes(b"a whole part")

    said = f"12 bytes were copied, and {kept} are there"
    with pytest.raises(AnaplatOutputError, match=said):
        write_file(folder / "file", b"a whole file")
    with pytest.raises(OSError, match=said):
        copy_file(folder / "part", folder / "published")


def test_an_output_remembers_a_failure_that_its_writer_forgets() -> None:
    taken = []

    def write(data: Piece) -> int:
        taken.append(data)
        raise OSError("no room")

    output = Output(write)
    for _ in range(2):
        with pytest.raises(OSError, match="no room"):
            output.write(b"data")
    with pytest.raises(OSError, match="no room"):
        output.flush()
    with pytest.raises(OSError, match="no room"):
        output.check()
    assert (taken, output.bytes) == ([b"data"], 0)


def test_what_ends_a_task_in_a_write_ends_it_though_the_writer_goes_on() -> None:
    def write(data: Piece) -> int:
        raise KeyboardInterrupt

    output = Output(write)
    with pytest.raises(KeyboardInterrupt):
        output.write(b"data")
    with pytest.raises(KeyboardInterrupt):
        output.check()


class LosingTheLastRow(pl.DataFrame):
    """What a library would do that loses what it could not write."""

    def write_csv(self, *arguments: Any, **options: Any) -> Any:
        return pl.DataFrame(self.head(self.height - 1)).write_csv(*arguments, **options)

    def write_ndjson(self, *arguments: Any, **options: Any) -> Any:
        return pl.DataFrame(self.head(self.height - 1)).write_ndjson(*arguments, **options)


class LeftAsTheyAre(Caster):
    """Hands on what loses rows."""

    def typed(self, frames: Iterator[pl.DataFrame], *, finite: bool = False) -> Iterator[pl.DataFrame]:
        return frames


@pytest.mark.parametrize("sink", [CsvSink(header=False), CsvSink(), NdjsonSink()])
@pytest.mark.parametrize("cell", ["a", "a\nb", 'a"', '""\n"\n""', ""])
def test_rows_that_are_not_in_the_file_are_missed(tmp_path: Path, sink: Sink, cell: str) -> None:
    frame = LosingTheLastRow({"n": ["1", "2", "3"], "text": [cell, None, ""]})
    with pytest.raises(AnaplatOutputError, match=r"of .*(3 rows|6 cells) were written"):
        Place(tmp_path / "numbers", sink).write(iter([frame]), LeftAsTheyAre(COLUMNS))
    assert list(tmp_path.iterdir()) == []
