"""Lists within lists, far deeper than a row has them: no answer ends the process."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from airflow_provider_anaplat.rows import decode

DEPTH = 200_000
HEAD = (
    b'{"result":"ok","response":{"dsId":"ds1","rowCount":1,"version":3,"utime":null,'
    b'"columns":[{"name":"a","fdType":"STRING"}],"preview":['
)
# What an answer of the platform makes of a whole export, in a process that may end.
EXPORT = """
import sys
from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.simulator.replies import Fault, Reply

body = sys.stdin.buffer.read()
packed = {"content-type": "application/json", "content-encoding": "gzip"}
with Simulator() as platform:
    platform.inject("read_rows", Fault(lambda _: Reply(200, body, packed)), times=None)
    try:
        list(PageReader(AnaplatClient(platform.url, platform.token, max_answer_mb=1024), RowQuery("ds1")).pages())
    except errors.AnaplatInvalidAnswerError as error:
        print(error)
"""
SHAPES = {
    "lists": (b"[", b"]"),
    "spaced lists": (b" [ ", b"\n]"),
    "objects": (b'{"a":', b"}"),
    "objects in lists": (b'[{"a":', b"}]"),
    "lists after cells": (b'["a",', b"]"),
    "lists after brackets in texts": (b'["]",', b"]"),
    "lists after what looks like two rows": (b'["],[",', b"]"),
    "lists after lists": (b'[["a"],', b"]"),
    "lists after escaped quotes": (b'["\\"],[\\"",', b"]"),
    "lists after odd ones": (b"[[],{},", b"]"),
}


def nested(shape: str, before: bytes = b"", depth: int = DEPTH) -> bytes:
    opening, closing = SHAPES[shape]
    return before + b'["x"],[' + opening * depth + b"1" + closing * depth + b"]"


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_that_is_nested_too_deep_is_refused(shape: str) -> None:
    body = gzip.compress(HEAD + nested(shape) + b"]}}", 1)
    done = subprocess.run([sys.executable, "-c", EXPORT], input=body, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert b"nested too deep" in done.stdout


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", [b"", b'["a"],' * 50_000, b'["]["],' * 50_000, b'["a"], ' * 50_000])
def test_each_shape_is_known(shape: str, before: bytes) -> None:
    assert decode._may_be_deep(nested(shape, before, 10_000))
    assert decode._may_be_deep(nested(shape, before, 10_000)[:-5000])


@pytest.mark.parametrize("row", ['["a"]', '["[", "{"]', '["]","}"]', '["\\"[", "[[{{"]', '["],["]', '["[]","{}"]'])
@pytest.mark.parametrize("between", [",", ", ", ",\n", " , "])
def test_rows_are_never_taken_for_deep(row: str, between: str) -> None:
    text = between.join([row] * 20_000).encode()
    assert not decode._may_be_deep(text)


@pytest.mark.parametrize("text", [b'["' + b"\\" * 999_999, b'["' + b'\\"' * 500_000, b'["a' * 300_000 + b"\\"])
def test_texts_without_an_end_take_no_long_time(text: bytes) -> None:
    decode._may_be_deep(b"[" * 20_000 + text)
