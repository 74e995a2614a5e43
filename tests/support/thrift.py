"""Thrift's compact protocol, without a schema: Parquet's footers as objects, for tests to look into.

A struct is a dict from field number to type and value, in the order that it was read in. A value is a bool, an
int, bytes (also those of a float, which nobody looks into), a struct, or a list with the type of its items.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "Struct",
    "read_struct",
    "rows_of_groups",
    "written",
]

TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)
_INTEGERS = (INT16, INT32, INT64)
_LISTS = (LIST, SET)

Struct = dict[int, tuple[int, Any]]


def read_struct(data: bytes) -> Struct:
    """Return the struct that the data begins with.

    :raises ValueError: there is none
    """
    try:
        fields: Struct = _Reader(data).value(STRUCT)
        return fields
    except IndexError as error:
        raise ValueError("a struct has no end") from error


def rows_of_groups(file: bytes) -> list[int]:
    """Return how many rows each row group of a Parquet file has."""
    footer = read_struct(file[-8 - int.from_bytes(file[-8:-4], "little") : -8])
    return [group[3][1] for group in footer[4][1][1]]


def written(kind: int, value: Any) -> bytes:
    """Return a value's bytes; a struct may be bytes already, those that it was written as."""
    if isinstance(value, bytes) and kind == STRUCT:
        return value
    if kind in (BYTE, DOUBLE):
        return bytes(value)
    if kind in _INTEGERS:
        return _varint(value << 1 ^ value >> 63)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    return _written_list(*value) if kind in _LISTS else _written_struct(value)


def _written_struct(fields: Struct) -> bytes:
    parts = []
    last = 0
    for number, (kind, value) in fields.items():
        delta = number - last
        parts.append(bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + written(INT16, number))
        if kind not in (TRUE, FALSE):
            parts.append(written(kind, value))
        last = number
    return b"".join([*parts, b"\0"])


def _written_list(kind: int, items: list[Any]) -> bytes:
    size = len(items)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
    return b"".join([head, *(bytes(item) if kind in (TRUE, FALSE) else written(kind, item) for item in items)])


def _varint(number: int) -> bytes:
    low = []
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):  # of a field: its type says it all
            return kind == TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == BYTE:
            return self._bytes(1)
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind in _LISTS:
            return self._list()
        if kind == STRUCT:
            return self._struct()
        raise ValueError(f"there is no type {kind} in a Parquet footer")

    def _struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = head & 0xF, self.value(head & 0xF)
        return fields

    def _list(self) -> tuple[int, list[Any]]:
        head = self._byte()
        size, kind = head >> 4, head & 0xF
        size = self._varint() if size == 0xF else size
        one_byte = kind in (TRUE, FALSE)
        return kind, [self._bytes(1) if one_byte else self.value(kind) for _ in range(size)]

    def _integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (low := self._byte()) > 0x7F:
            number |= (low & 0x7F) << shift
            shift += 7
        return number | low << shift

    def _byte(self) -> int:
        self._position += 1
        return self._data[self._position - 1]

    def _bytes(self, size: int) -> bytes:
        self._position += size
        if self._position > len(self._data):
            raise IndexError
        return self._data[self._position - size : self._position]
