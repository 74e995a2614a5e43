"""One Parquet file out of many, so that a long one takes no more memory than a short one.

Polars keeps some 3 kB for each column of each row group until the file ends: gigabytes where a wide dataset has
some ten thousand pages. Here a file ends after a few row groups, and what stays of them is their entry in the
footer, which takes some 80 bytes for each column. The indexes of their pages are left out: they name places in
the file once more, and tell little where a column of a row group is a page or two.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO

from arro3.core import Schema, Table
from arro3.io import write_ipc_stream

from airflow_provider_anaplat.output.streams import Writable
from airflow_provider_anaplat.output.thrift import BINARY, INT64, LIST, STRUCT, Struct, read_struct, written

__all__ = [
    "JoinedParquet",
]

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4  # of the footer's length, which stands between the footer and the last magic

# Field numbers of Parquet's FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_FILE_ROWS, _FILE_GROUPS, _FILE_METADATA = 3, 4, 5
_GROUP_CHUNKS, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_NUMBER = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_CHUNK_INDEX_OFFSETS, _CHUNK_INDEXES = (4, 6), (4, 5, 6, 7)
_COLUMN_OFFSETS = (9, 10, 11, 14)  # of its data, index and dictionary pages and its Bloom filter


class JoinedParquet:
    """Writes a Parquet file that holds the row groups of others, one after the other.

    :param file: where it goes; it need not be able to seek
    :param schema: the columns as Arrow describes them, with the metadata of each
    :ivar parts: how many files it is joined of so far
    """

    def __init__(self, file: Writable, schema: Schema) -> None:
        file.write(_MAGIC)
        self.parts = 0
        self._file = file
        self._schema = schema
        self._position = len(_MAGIC)
        self._groups: list[bytes] = []
        self._rows = 0
        self._footer: Struct = {}

    def add(self, part: bytes) -> int:
        """Write the row groups of a Parquet file, and return how many rows they have.

        :param part: all of it; its columns are those of the others
        """
        footer_end = len(part) - len(_MAGIC) - _LENGTH_BYTES
        footer_size = int.from_bytes(part[footer_end : footer_end + _LENGTH_BYTES], "little")
        self._footer = read_struct(part[footer_end - footer_size : footer_end])
        groups: list[Struct] = self._footer[_FILE_GROUPS][1][1]
        rows = sum(int(group[_GROUP_ROWS][1]) for group in groups)
        end = min(_places_of_indexes(groups), default=footer_end - footer_size)
        for group in groups:
            _move(group, self._position - len(_MAGIC))
            self._groups.append(written(STRUCT, group))
        self._file.write(part[len(_MAGIC) : end])
        self._position += end - len(_MAGIC)
        self._rows += rows
        self.parts += 1
        return rows

    def finish(self) -> None:
        """Write the footer, which has the columns of a part; the file stays open."""
        fields = {
            **self._footer,
            _FILE_ROWS: (INT64, self._rows),
            _FILE_GROUPS: (LIST, (STRUCT, self._groups)),
            _FILE_METADATA: (LIST, (STRUCT, [_arrow_entry(self._schema)])),
        }
        footer = written(STRUCT, dict(sorted(fields.items())))
        self._file.write(footer)
        self._file.write(len(footer).to_bytes(_LENGTH_BYTES, "little") + _MAGIC)


def _arrow_entry(schema: Schema) -> Struct:
    """Return the entry of the file's metadata in which Arrow's readers look for the schema."""
    stream = BytesIO()
    write_ipc_stream(Table([], schema=schema), stream)
    return {1: (BINARY, b"ARROW:schema"), 2: (BINARY, b64encode(stream.getvalue()))}


def _chunks(group: Struct) -> list[Struct]:
    chunks: list[Struct] = group[_GROUP_CHUNKS][1][1]
    return chunks


def _places_of_indexes(groups: list[Struct]) -> Iterator[int]:
    for group in groups:
        for chunk in _chunks(group):
            yield from (chunk[number][1] for number in _CHUNK_INDEX_OFFSETS if number in chunk)


def _move(group: Struct, distance: int) -> None:
    """Add a distance to all places in the file that a row group names, and let it name no index and no number."""
    group.pop(_GROUP_NUMBER, None)
    _move_places(group, (_GROUP_OFFSET,), distance)
    for chunk in _chunks(group):
        for number in _CHUNK_INDEXES:
            chunk.pop(number, None)
        _move_places(chunk, (_CHUNK_OFFSET,), distance)
        _move_places(chunk[_CHUNK_METADATA][1], _COLUMN_OFFSETS, distance)


def _move_places(fields: Struct, numbers: tuple[int, ...], distance: int) -> None:
    for number in numbers:
        if number in fields and fields[number][1]:  # some write 0 for what is nowhere
            kind, place = fields[number]
            fields[number] = kind, place + distance
