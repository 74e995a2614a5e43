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
_SIZES = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}  # of a field, the type says whether it is true
_SIZES_IN_LISTS = {**_SIZES, TRUE: 1, FALSE: 1}

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
        self._skip(kind)
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
                self._skip(kind)
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

    def integer(self) -> int:
        """Take an integer."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        start = self._position
        self._skip(INT64)
        return _number(self._data[start : self._position])

    def _byte(self) -> int:
        self._position += 1
        if self._position > len(self._data):
            raise _has_no_end()
        return self._data[self._position - 1]

    def _skip(self, kind: int) -> None:
        try:
            self._position = _end(self._data, self._position, kind)
        except IndexError:
            raise _has_no_end() from None
        if self._position > len(self._data):
            raise _has_no_end()


def _has_no_end() -> ValueError:
    return ValueError("a struct has no end")


def _end(data: bytes, position: int, kind: int) -> int:
    """Return where a value ends: behind all bytes, if its own size says so.

    :param position: where it begins
    :raises IndexError: it has no end
    """
    if INT16 <= kind <= INT64:
        while data[position] > 0x7F:
            position += 1
        return position + 1
    if kind == BINARY:
        size, position = _size(data, position)
        return position + size
    if kind == STRUCT:
        while head := data[position]:
            position = _end(data, position + 1 if head >> 4 else _end(data, position + 1, INT16), head & 0xF)
        return position + 1
    if kind in (LIST, SET):
        return _end_of_list(data, position)
    if kind in _SIZES:
        return position + _SIZES[kind]
    raise ValueError(f"there is no type {kind} in a Parquet footer")


def _end_of_list(data: bytes, position: int) -> int:
    head = data[position]
    kind = head & 0xF
    size, position = _size(data, position + 1) if head >> 4 == 0xF else (head >> 4, position + 1)
    if kind in _SIZES_IN_LISTS:
        return position + size * _SIZES_IN_LISTS[kind]
    for _ in range(size):
        position = _end(data, position, kind)
    return position


def _size(data: bytes, position: int) -> tuple[int, int]:
    """Return a size, and where what it is of begins."""
    end = _end(data, position, INT64)
    return _number(data[position:end]), end


def _number(varint: bytes) -> int:
    number = 0
    for byte in reversed(varint):
        number = number << 7 | byte & 0x7F
    return number


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
