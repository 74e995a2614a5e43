"""The compact protocol: what no rule names stays as it is, to the byte, and no damaged struct is read."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import thrift as whole
from support.thrift import LIST, STRUCT, Struct, read_struct, written

from airflow_provider_anaplat.output.thrift import Reader, Rules, binary, integer, list_head, struct

SIMPLE: dict[int, st.SearchStrategy[Any]] = {
    whole.TRUE: st.just(value=True),
    whole.FALSE: st.just(value=False),
    whole.BYTE: st.binary(min_size=1, max_size=1),
    whole.INT16: st.integers(-(2**15), 2**15 - 1),
    whole.INT32: st.integers(-(2**31), 2**31 - 1),
    whole.INT64: st.integers(-(2**63), 2**63 - 1),
    whole.DOUBLE: st.binary(min_size=8, max_size=8),
    whole.BINARY: st.binary(max_size=200),
}


def lists(kind: int, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[int, Any]]:
    in_list = st.sampled_from([b"\1", b"\2"]) if kind in (whole.TRUE, whole.FALSE) else values
    return st.lists(in_list, max_size=20).map(lambda items: (LIST, (kind, items)))


def structs(fields: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[Struct]:
    return st.dictionaries(st.integers(-40, 40), fields, max_size=5)


FIELDS = st.one_of([values.map(lambda value, kind=kind: (kind, value)) for kind, values in SIMPLE.items()])
STRUCTS = st.recursive(
    structs(FIELDS | st.one_of([lists(kind, values) for kind, values in SIMPLE.items()])),
    lambda inner: structs(FIELDS | inner.map(lambda value: (STRUCT, value)) | lists(STRUCT, inner)),
    max_leaves=10,
)
PLAIN = st.integers(-(2**40), 2**40)


@given(fields=STRUCTS, rest=st.binary(max_size=3))
def test_without_a_rule_a_struct_stays_as_it_is(fields: Struct, rest: bytes) -> None:
    data = written(STRUCT, fields)
    assert Reader(data + rest).edited({}) == data
    assert Reader(data + rest).skipped(STRUCT) == data


@given(
    fields=STRUCTS,
    integers=st.dictionaries(st.integers(41, 80), PLAIN, max_size=6),
    left_out=st.sets(st.integers(41, 80)),
)
def test_integers_change_or_are_left_out_by_the_rules_at_every_depth(
    fields: Struct, integers: dict[int, int], left_out: set[int]
) -> None:
    def with_integers(changed: dict[int, int]) -> Struct:
        inner = {number: (whole.INT64, value) for number, value in changed.items()}
        return {**inner, 90: (STRUCT, inner), 91: (LIST, (STRUCT, [inner] * 16)), **fields}

    rules: dict[int, Any] = {
        number: (lambda _: None) if number in left_out else (lambda n: n + 7) for number in range(41, 81)
    }
    changed = {number: value + 7 for number, value in integers.items() if number not in left_out}
    edited = Reader(written(STRUCT, with_integers(integers))).edited({**rules, 90: rules, 91: rules})
    assert edited == written(STRUCT, with_integers(changed))


@given(fields=STRUCTS, data=st.data())
def test_a_struct_that_is_cut_is_none(fields: Struct, data: st.DataObject) -> None:
    of_all = written(STRUCT, fields)
    cut = of_all[: data.draw(st.integers(0, len(of_all) - 1))]
    with pytest.raises(ValueError, match="no end"):
        Reader(cut).edited({})
    with pytest.raises(ValueError, match="no end"):
        Reader(cut).skipped(STRUCT)


def test_a_type_that_no_footer_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no type 13"):
        Reader(b"\x1d\0").edited({})


@given(number=PLAIN, text=st.binary(max_size=300), size=st.integers(0, 40))
def test_what_is_written_is_what_another_reader_reads(number: int, text: bytes, size: int) -> None:
    items = [list_head(whole.INT64, size), *(integer(item) for item in range(size))]
    fields = {40: (LIST, items), 1: (whole.INT64, [integer(number)]), 2: (whole.BINARY, [binary(text)])}
    expected = {1: (whole.INT64, number), 2: (whole.BINARY, text), 40: (LIST, (whole.INT64, [*range(size)]))}
    assert read_struct(b"".join(struct(fields))) == expected


def test_a_footer_of_polars_without_its_indexes_is_what_another_writer_makes_of_it() -> None:
    file = BytesIO()
    pl.DataFrame({"n": [-1, 2], "text": ["a", None], "x": [0.5, None]}).write_parquet(file)
    content = file.getvalue()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    indexes: Rules = dict.fromkeys((4, 5, 6, 7), lambda _: None)
    expected = read_struct(footer)
    for group in expected[4][1][1]:
        for chunk in group[1][1][1]:
            for number in indexes:
                chunk.pop(number, None)

    assert Reader(footer).edited({4: {1: indexes}}) == written(STRUCT, expected)
