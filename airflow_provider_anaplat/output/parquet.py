"""One Parquet file out of many, so that a long or wide one takes no more memory than a small one.

Each library keeps kilobytes for each column of each row group until the file ends: gigabytes when a wide dataset
has some ten thousand pages. Here a file ends after some columns of one row group, and what stays of them is their
entry in the footer, some 80 bytes for each column, and in a temporary file if that comes to a megabyte. The
indexes of their pages are left out: they name places in the file once more, and tell little if a column of a row
group is a page or two.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain

from arro3.core import Schema, Table
from arro3.io import write_ipc_stream

from airflow_provider_anaplat.output.spill import Spill
from airflow_provider_anaplat.output.streams import Writable
from airflow_provider_anaplat.output.thrift import (
    BINARY,
    INT64,
    LIST,
    STRUCT,
    Reader,
    Rules,
    binary,
    integer,
    list_head,
    struct,
)

__all__ = [
    "JoinedParquet",
]

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4  # of the footer's length, which stands between the footer and the last magic
_COPIED = 1 << 20  # bytes at a time

# Field numbers of Parquet's FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_FILE_ROWS, _FILE_GROUPS, _FILE_METADATA = 3, 4, 5
_GROUP_CHUNKS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED = 1, 2, 3, 5, 6
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_CHUNK_INDEX_OFFSETS, _CHUNK_INDEX_SIZES = (4, 6), (5, 7)
_COLUMN_OFFSETS = (9, 10, 11, 14)  # of its data, index and dictionary pages and its Bloom filter


class JoinedParquet:
    """Writes a Parquet file whose row groups come from others; a context manager.

    :param file: where it goes; it need not be able to seek
    :param empty: a Parquet file of all columns and no rows
    :param schema: the columns as Arrow describes them, with the metadata of each
    """

    def __init__(self, file: Writable, empty: bytes, schema: Schema) -> None:
        file.write(_MAGIC)
        self._file = file
        self._position = len(_MAGIC)
        self._columns = len(schema)
        self._rows = 0
        self._groups = 0
        footer, _ = _footer_of(empty)
        self._footer: dict[int, tuple[int, Iterable[bytes]]] = {
            number: (kind, [footer.skipped(kind)]) for number, kind in footer.fields()
        }
        self._footer[_FILE_METADATA] = LIST, _arrow_entries(schema)
        self._entries = Spill()

    def __enter__(self) -> JoinedParquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def add(self, parts: Iterable[bytes]) -> int:
        """Write a row group, and return how many rows it has.

        :param parts: Parquet files that hold the same rows, in one row group, and one after the other all columns
        :raises ValueError: they are no such files
        :raises AnaplatOutputError: a temporary file cannot be written
        """
        group = _GroupEntry(self._position)
        for part in parts:
            footer, end = _footer_of(part)
            end = group.add(footer, self._position - len(_MAGIC), end)
            self._file.write(memoryview(part)[len(_MAGIC) : end])
            self._position += end - len(_MAGIC)
        rows, entry = group.entry(self._columns)
        self._entries.write(entry)
        self._groups += 1
        self._rows += rows
        return rows

    def finish(self) -> None:
        """Write the footer; the file stays open."""
        fields = {
            **self._footer,
            _FILE_ROWS: (INT64, [integer(self._rows)]),
            _FILE_GROUPS: (LIST, chain([list_head(STRUCT, self._groups)], self._moved_entries())),
        }
        size = 0
        for piece in struct(fields):
            self._file.write(piece)
            size += len(piece)
        self._file.write(size.to_bytes(_LENGTH_BYTES, "little") + _MAGIC)

    def _moved_entries(self) -> Iterator[bytes]:
        for begin in range(0, self._entries.size, _COPIED):
            yield self._entries.read(begin, begin + _COPIED)


class _GroupEntry:
    """The entry of a row group that is put together of others, which move: no index stays, and no number.

    :param offset: where it begins in the file
    """

    def __init__(self, offset: int) -> None:
        self._numbers = {_GROUP_BYTES: 0, _GROUP_OFFSET: offset, _GROUP_COMPRESSED: 0}
        self._chunks: list[bytes] = []
        self._heights: list[int] = []

    def add(self, footer: Reader, distance: int, end: int) -> int:
        """Take the columns of a file's row group, and return where its pages end; the indexes follow.

        :param distance: bytes by which they move
        :param end: of what the file holds before its footer
        """

        def moved(place: int) -> int:
            return place and place + distance  # some write 0 for what is nowhere

        def index(place: int) -> None:
            nonlocal end
            end = min(end, place)

        rules: Rules = {
            _CHUNK_OFFSET: moved,
            _CHUNK_METADATA: dict.fromkeys(_COLUMN_OFFSETS, moved),
            **dict.fromkeys(_CHUNK_INDEX_OFFSETS, index),
            **dict.fromkeys(_CHUNK_INDEX_SIZES, _left_out),
        }
        for number, kind in footer.fields():
            if number == _FILE_GROUPS:
                for _ in footer.items():
                    self._take(footer, rules)
            else:
                footer.skipped(kind)
        return end

    def _take(self, footer: Reader, rules: Rules) -> None:
        for number, kind in footer.fields():
            if number == _GROUP_CHUNKS:
                self._chunks += [footer.edited(rules) for _ in footer.items()]
            elif number == _GROUP_ROWS:
                self._heights.append(footer.integer())
            elif number in (_GROUP_BYTES, _GROUP_COMPRESSED):
                self._numbers[number] += footer.integer()
            else:
                footer.skipped(kind)

    def entry(self, columns: int) -> tuple[int, bytes]:
        """Return how many rows it has, and what the footer says of it.

        :raises ValueError: it has not this many columns, or one has more rows than another
        """
        heights = set(self._heights)
        if len(self._chunks) != columns or len(heights) != 1:
            raise ValueError(f"{len(self._chunks):,} of {columns:,} columns, of {heights} rows, are no row group")
        (rows,) = heights
        chunks = [list_head(STRUCT, columns), *self._chunks]
        numbers = {**self._numbers, _GROUP_ROWS: rows}
        fields = {number: (INT64, [integer(value)]) for number, value in numbers.items()}
        return rows, b"".join(struct({**fields, _GROUP_CHUNKS: (LIST, chunks)}))


def _left_out(_: int) -> None:
    return None


def _footer_of(part: bytes) -> tuple[Reader, int]:
    """Return a file's footer, and where it begins."""
    end = len(part) - len(_MAGIC) - _LENGTH_BYTES
    begin = end - int.from_bytes(part[end : end + _LENGTH_BYTES], "little")
    return Reader(part[begin:end]), begin


def _arrow_entries(schema: Schema) -> list[bytes]:
    """Return the file's metadata: the entry in which Arrow's readers look for the schema."""
    stream = BytesIO()
    write_ipc_stream(Table([], schema=schema), stream)
    entry = {1: (BINARY, [binary(b"ARROW:schema")]), 2: (BINARY, [binary(b64encode(stream.getvalue()))])}
    return [list_head(STRUCT, 1), *struct(entry)]
