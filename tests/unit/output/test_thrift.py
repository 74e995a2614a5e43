"""The compact protocol: what is written is read again, to the byte, and no damaged struct is read."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_anaplat.output import thrift
from airflow_provider_anaplat.output.thrift import STRUCT, Struct, read_struct, written

SIMPLE: dict[int, st.SearchStrategy[Any]] = {
    thrift.TRUE: st.just(value=True),
    thrift.FALSE: st.just(value=False),
    thrift.BYTE: st.binary(min_size=1, max_size=1),
    thrift.INT16: st.integers(-(2**15), 2**15 - 1),
    thrift.INT32: st.integers(-(2**31), 2**31 - 1),
    thrift.INT64: st.integers(-(2**63), 2**63 - 1),
    thrift.DOUBLE: st.binary(min_size=8, max_size=8),
    thrift.BINARY: st.binary(max_size=200),
}


def lists(kind: int, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[int, Any]]:
    in_list = st.sampled_from([b"\1", b"\2"]) if kind in (thrift.TRUE, thrift.FALSE) else values
    return st.lists(in_list, max_size=20).map(lambda items: (thrift.LIST, (kind, items)))


def structs(fields: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[Struct]:
    return st.dictionaries(st.integers(-40, 40), fields, max_size=5)


FIELDS = st.one_of([values.map(lambda value, kind=kind: (kind, value)) for kind, values in SIMPLE.items()])
STRUCTS = st.recursive(
    structs(FIELDS | st.one_of([lists(kind, values) for kind, values in SIMPLE.items()])),
    lambda inner: structs(FIELDS | inner.map(lambda value: (STRUCT, value)) | lists(STRUCT, inner)),
    max_leaves=10,
)


@given(struct=STRUCTS)
def test_what_is_written_is_read_again(struct: Struct) -> None:
    assert read_struct(written(STRUCT, struct)) == struct


@given(struct=STRUCTS, data=st.data())
def test_a_struct_that_is_cut_is_none(struct: Struct, data: st.DataObject) -> None:
    whole = written(STRUCT, struct)
    with pytest.raises(ValueError, match="no end"):
        read_struct(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_a_type_that_no_footer_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no type 13"):
        read_struct(b"\x1d\0")


def test_what_polars_writes_is_written_alike() -> None:
    file = BytesIO()
    pl.DataFrame({"n": [-1, 2], "text": ["a", None], "x": [0.5, None]}).write_parquet(file)
    content = file.getvalue()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    assert written(STRUCT, read_struct(footer)) == footer
