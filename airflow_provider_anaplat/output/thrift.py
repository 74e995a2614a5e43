"""Thrift's compact protocol, as far as a Parquet footer is copied: what is not changed stays the bytes it is.

To make objects of all of it takes several times as long, and a footer may have thousands of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Union

__all__ = [
    "BINARY",
    "INT64",
    "LIST",
    "STRUCT",
    "Reader",
    "Rules",
    "binary",
    "integer",
    "list_head",
    "struct",
]

TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)
_SIZES = {BYTE: 1, DOUBLE: 8}
_IN_LISTS = {**_SIZES, TRUE: 1, FALSE: 1}  # of a field, the type says whether it is true

# By the number of a field: what becomes of its integer, None if the field is left out; or the rules of its struct,
# or of each struct of its list. All other fields stay.
Rules = Mapping[int, Union[Callable[[int], int | None], "Rules"]]


class Reader:
    """Reads bytes from the front; what a field or an item holds has to be taken before the next one.

    :raises ValueError: what is read is no struct of the compact protocol, or not all of one
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 0xF

    def items(self) -> Iterator[int]:
        """Yield the type of each item of a list."""
        head = self._byte()
        size, kind = head >> 4, head & 0xF
        for _ in range(self._varint() if size == 0xF else size):
            yield kind

    def skipped(self, kind: int) -> bytes:
        """Take a field's value, and return its bytes."""
        start = self._position
        self._skip(kind, _SIZES)
        return self._data[start : self._position]

    def edited(self, rules: Rules) -> bytes:
        """Take a struct, and return its bytes with fields as the rules make them."""
        pieces: list[bytes] = []
        data, last, unchanged_from = self._data, 0, self._position
        read = 0
        start = self._position
        for number, kind in self.fields():
            rule = rules.get(number)
            if rule is None and last == read:
                self._skip(kind, _SIZES)
                last = number
            else:
                pieces.append(data[unchanged_from:start])
                value = self._value(kind, rule)
                if value is not None:
                    pieces += _field_head(number - last, number, kind), value
                    last = number
                unchanged_from = self._position
            read, start = number, self._position
        pieces += data[unchanged_from : self._position - 1], b"\0"
        return b"".join(pieces)

    def _value(self, kind: int, rule: Callable[[int], int | None] | Rules | None) -> bytes | None:
        """Take a field's value, and return what becomes of it."""
        if rule is None:
            return self.skipped(kind)
        if callable(rule):
            changed = rule(self.integer())
            return None if changed is None else integer(changed)
        if kind == STRUCT:
            return self.edited(rule)
        items = [self.edited(rule) for _ in self.items()]
        return b"".join([list_head(STRUCT, len(items)), *items])

    def _skip(self, kind: int, sizes: dict[int, int]) -> None:
        if INT16 <= kind <= INT64:
            while self._byte() > 0x7F:
                pass
        elif kind == BINARY:
            self._pass(self._varint())
        elif kind in sizes:
            self._pass(sizes[kind])
        elif kind == STRUCT:
            for _, inner in self.fields():
                self._skip(inner, _SIZES)
        elif kind in (LIST, SET):
            for inner in self.items():
                self._skip(inner, _IN_LISTS)
        elif kind not in (TRUE, FALSE):
            raise ValueError(f"there is no type {kind} in a Parquet footer")

    def integer(self) -> int:
        """Take an integer."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (low := self._byte()) > 0x7F:
            number |= (low & 0x7F) << shift
            shift += 7
        return number | low << shift

    def _byte(self) -> int:
        self._pass(1)
        return self._data[self._position - 1]

    def _pass(self, size: int) -> None:
        self._position += size
        if self._position > len(self._data):
            raise ValueError("a struct has no end")


def struct(fields: Mapping[int, tuple[int, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield the bytes of a struct.

    :param fields: type and bytes of each, by its number
    """
    last = 0
    for number, (kind, pieces) in sorted(fields.items()):
        yield _field_head(number - last, number, kind)
        yield from pieces
        last = number
    yield b"\0"


def list_head(kind: int, size: int) -> bytes:
    """Return what stands before the items of a list."""
    return bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)


def integer(value: int) -> bytes:
    """Return an integer's bytes."""
    return _varint(value << 1 ^ value >> 63)


def binary(value: bytes) -> bytes:
    """Return the bytes of bytes, which tell their number."""
    return _varint(len(value)) + value


def _field_head(delta: int, number: int, kind: int) -> bytes:
    return bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + integer(number)


def _varint(number: int) -> bytes:
    low = []
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])
