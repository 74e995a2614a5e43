"""What stands between a sink and its file: a memory for failures, compression, encodings other than UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Literal, Protocol, cast

__all__ = [
    "COMPRESSIONS",
    "ZSTD_LEVEL",
    "Encoding",
    "Output",
    "Piece",
    "Writable",
    "as_file",
    "compressed",
    "encoded",
]

Encoding = Literal["utf-8", "utf-8-sig", "gb18030"]
Piece = bytes | memoryview


class Writable(Protocol):
    """Anything that takes bytes."""

    def write(self, data: Piece, /) -> int | None:
        """Take bytes, and return how many, if that is known; what holds them may be written to afterwards."""

    def flush(self) -> None:
        """Hand on what was taken."""


class Output:
    """What is written to: it takes whole pieces, and remembers a failure, whatever the writer makes of it.

    Some releases of Polars lose what a file says of a write. This has no more methods than Polars needs: a file's
    own number would let it write past what is in between.

    :param write: takes a piece, and returns how many bytes of it were taken, or None
    :param flush: called when the writer wants to flush
    :ivar bytes: bytes taken
    """

    def __init__(self, write: Callable[[Piece], int | None], flush: Callable[[], object] = lambda: None) -> None:
        self.bytes = 0
        self._write = write
        self._flush = flush
        self._failure: BaseException | None = None

    def write(self, data: Piece) -> int:
        """Take a piece.

        :raises OSError: no more than a part of it was taken
        """
        with self._remembered():
            left = data
            while left:
                taken = self._write(left)
                if taken == 0:
                    raise OSError(f"{len(data) - len(left):,} of {len(data):,} bytes were written")
                left = b"" if taken is None else left[taken:]
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Hand on what the writer wants to be flushed."""
        with self._remembered():
            self._flush()

    def break_off(self) -> None:
        """Let the next write fail: nobody wants what is written any more."""
        self._failure = self._failure or OSError("the write was broken off")

    def check(self) -> None:
        """Raise what a write has raised."""
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        self.check()  # what follows on a failure would leave a gap
        try:
            yield
        except BaseException as error:  # also of a task that is ended in here
            self._failure = error
            raise


def as_file(output: Writable) -> IO[bytes]:
    """Return an output as what the types of libraries ask for."""
    return cast("IO[bytes]", output)


COMPRESSIONS = (".gz", ".zst")
# Of ISA-L: in a tenth of the time that level 6 of zlib takes, files a twentieth larger. One more is twice as slow.
_GZIP_LEVEL = 2
_GZIP_WINDOW = 31  # the largest, with gzip's header and trailer
ZSTD_LEVEL = 2  # in two thirds of the time that level 3, the usual one, takes, files that are hardly larger
# Of Zstandard, whatever the machine has: each takes some 12 MB, which no budget knows of. One for each of 64 cores
# would take 760 MB where a container may use two of them.
_ZSTD_THREADS = 2


@contextmanager
def compressed(file: Writable, compression: str) -> Iterator[Writable]:
    """Compress what is written to a file.

    :param compression: one of :data:`COMPRESSIONS`, or ``""``
    """
    if compression == ".gz":
        from isal import isal_zlib

        # Without a name and a time in its header, the same rows give the same file.
        zipped = isal_zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WINDOW)
        output = Output(file.write)
        with _beside(lambda data: output.write(zipped.compress(data))) as write:
            yield Output(write)
        output.write(zipped.flush())
    elif compression == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(ZSTD_LEVEL, threads=_ZSTD_THREADS)
        with compressor.stream_writer(as_file(file), closefd=False) as squeezed, _beside(squeezed.write) as write:
            yield Output(write)
    else:
        yield file


@contextmanager
def _beside(write: Callable[[bytes], int]) -> Iterator[Callable[[Piece], int]]:
    """Let a thread write a piece while the next one is made.

    What it raises is raised at the next piece, or at the end.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="anaplat-compress") as pool:
        piece = pool.submit(write, b"")

        def hand_over(data: Piece) -> int:
            nonlocal piece
            piece.result()
            piece = pool.submit(write, bytes(data))  # the next text takes its memory
            return len(data)

        yield hand_over
        piece.result()


def encoded(output: Output, encoding: Encoding) -> Callable[[Piece], int | None]:
    """Return what takes UTF-8 and passes it on to an output in an encoding."""
    if encoding == "utf-8-sig":
        output.write(codecs.BOM_UTF8)
    if encoding != "gb18030":
        return output.write
    decoder = codecs.getincrementaldecoder("utf-8")()

    def write(data: Piece) -> None:
        output.write(decoder.decode(data).encode(encoding))

    return write
