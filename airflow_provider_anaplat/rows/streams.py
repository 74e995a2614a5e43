"""What stands between a sink and its file: compression, and encodings other than UTF-8."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal, Protocol, cast

Encoding = Literal["utf-8", "utf-8-sig", "gb18030"]


class Writer(Protocol):
    """Anything that takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


class _Funnel:
    """The least that Polars needs to write to; a file's own number would let it write past what is in between."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def write(self, data: bytes) -> int:
        self._write(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file behind is flushed at its end."""


@contextmanager
def compressed(file: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Compress what is written to the file, where its name's suffix says so (``.gz``, ``.zst``)."""
    if name.endswith(".gz"):
        # Without a name and a time in its header, the same rows give the same file.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as stream:
            yield _as_file(stream)
    elif name.endswith(".zst"):
        import zstandard

        with zstandard.ZstdCompressor(threads=-1).stream_writer(file, closefd=False) as stream:
            yield _as_file(stream)
    else:
        yield file


def encoded(file: BinaryIO, encoding: Encoding) -> BinaryIO:
    """Return a file that takes UTF-8 and passes it on in another encoding."""
    if encoding == "utf-8":
        return file
    if encoding == "utf-8-sig":
        file.write(codecs.BOM_UTF8)
        return file
    decoder = codecs.getincrementaldecoder("utf-8")()
    return cast("BinaryIO", _Funnel(lambda data: file.write(decoder.decode(data).encode(encoding))))


def _as_file(writer: Writer) -> BinaryIO:
    return cast("BinaryIO", _Funnel(writer.write))
