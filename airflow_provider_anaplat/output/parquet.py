"""One Parquet file out of many, so that a long one takes no more memory than a short one.

Each library keeps kilobytes for each column of each row group until the file ends: gigabytes when a wide dataset
has some ten thousand pages. Here a file ends after a few row groups, and what stays of them is their entry in the
footer, some 80 bytes for each column, and in a temporary file if that comes to a megabyte. The indexes of their
pages are left out: they name places in the file once more, and tell little if a column of a row group is a page
or two.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from tempfile import SpooledTemporaryFile

from arro3.core import Schema, Table
from arro3.io import write_ipc_stream

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
# Bytes of the footer's entries that are kept in memory; more of them wait in a temporary file.
_ENTRIES_IN_MEMORY = 1 << 20
_COPIED = 1 << 20  # bytes at a time

# Field numbers of Parquet's FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_FILE_ROWS, _FILE_GROUPS, _FILE_METADATA = 3, 4, 5
_GROUP_CHUNKS, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_NUMBER = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_CHUNK_INDEX_OFFSETS, _CHUNK_INDEX_SIZES = (4, 6), (5, 7)
_COLUMN_OFFSETS = (9, 10, 11, 14)  # of its data, index and dictionary pages and its Bloom filter


class JoinedParquet:
    """Writes a Parquet file that holds the row groups of others, one after the other; a context manager.

    :param file: where it goes; it need not be able to seek
    :param schema: the columns as Arrow describes them, with the metadata of each
    :ivar parts: how many files it is joined of so far
    """

    def __init__(self, file: Writable, schema: Schema) -> None:
        file.write(_MAGIC)
        self.parts = 0
        self._file = file
        self._position = len(_MAGIC)
        self._rows = 0
        self._groups = 0
        self._footer: dict[int, tuple[int, Iterable[bytes]]] = {_FILE_METADATA: (LIST, _arrow_entries(schema))}
        self._entries = SpooledTemporaryFile(_ENTRIES_IN_MEMORY)  # noqa: SIM115 - this is a context manager itself

    def __enter__(self) -> JoinedParquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def add(self, part: bytes) -> int:
        """Write the row groups of a Parquet file, and return how many rows they have.

        :param part: all of it; its columns are those of the others
        """
        footer_end = len(part) - len(_MAGIC) - _LENGTH_BYTES
        footer_size = int.from_bytes(part[footer_end : footer_end + _LENGTH_BYTES], "little")
        move = _Move(self._position - len(_MAGIC), footer_end - footer_size)
        footer = Reader(part[footer_end - footer_size : footer_end])
        for number, kind in footer.fields():
            if number == _FILE_GROUPS:
                for _ in footer.items():
                    self._entries.write(footer.edited(move.rules))
                    self._groups += 1
            else:
                self._footer.setdefault(number, (kind, [footer.skipped(kind)]))
        self._file.write(part[len(_MAGIC) : move.end])
        self._position += move.end - len(_MAGIC)
        self._rows += move.rows
        self.parts += 1
        return move.rows

    def finish(self) -> None:
        """Write the footer, which has the columns of the first part; the file stays open."""
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
        self._entries.seek(0)
        while piece := self._entries.read(_COPIED):
            yield piece


class _Move:
    """What becomes of the entries of row groups that move by some bytes: no index stays, and no number.

    :ivar rules: how their fields change
    :ivar rows: of those that the rules were applied to
    :ivar end: of their pages; the indexes follow
    """

    def __init__(self, distance: int, end: int) -> None:
        def moved(place: int) -> int:
            return place and place + distance  # some write 0 for what is nowhere

        column = dict.fromkeys(_COLUMN_OFFSETS, moved)
        chunk: Rules = {
            _CHUNK_OFFSET: moved,
            _CHUNK_METADATA: column,
            **dict.fromkeys(_CHUNK_INDEX_OFFSETS, self._index),
            **dict.fromkeys(_CHUNK_INDEX_SIZES, _left_out),
        }
        self.rules: Rules = {
            _GROUP_CHUNKS: chunk,
            _GROUP_ROWS: self._counted,
            _GROUP_OFFSET: moved,
            _GROUP_NUMBER: _left_out,
        }
        self.rows = 0
        self.end = end

    def _counted(self, rows: int) -> int:
        self.rows += rows
        return rows

    def _index(self, place: int) -> None:
        self.end = min(self.end, place)


def _left_out(_: int) -> None:
    return None


def _arrow_entries(schema: Schema) -> list[bytes]:
    """Return the file's metadata: the entry in which Arrow's readers look for the schema."""
    stream = BytesIO()
    write_ipc_stream(Table([], schema=schema), stream)
    entry = {1: (BINARY, [binary(b"ARROW:schema")]), 2: (BINARY, [binary(b64encode(stream.getvalue()))])}
    return [list_head(STRUCT, 1), *struct(entry)]
