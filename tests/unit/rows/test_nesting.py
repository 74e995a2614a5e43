"""Lists within lists, far deeper than a row has them: no answer ends the process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG

from airflow_provider_anaplat.rows import cells

DEPTH = 200_000
HEAD = (
    b'{"result":"ok","response":{"dsId":"ds1","rowCount":1,"version":3,"utime":null,'
    b'"columns":[{"name":"a","fdType":"STRING"}],"preview":['
)
# What answers of the platform make of whole exports, in a process that may end.
EXPORTS = """
import sys
from pathlib import Path
from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.simulator.replies import Fault, Reply

def answered(path):
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    return Fault(lambda _: Reply(200, path.read_bytes(), packed))

with Simulator() as platform:
    client = AnaplatClient(platform.url, platform.token, max_answer_mb=1024)
    for path in map(Path, sys.argv[1:]):
        platform.inject("read_rows", answered(path))
        try:
            list(PageReader(client, RowQuery("ds1")).pages())
        except errors.AnaplatInvalidAnswerError as error:
            print(path.name, error, sep=": ", flush=True)
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


def test_an_answer_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    for shape in SHAPES:
        (tmp_path / shape).write_bytes(gzip.compress(HEAD + nested(shape) + b"]}}", 1))
    command = [sys.executable, "-c", EXPORTS, *(str(tmp_path / shape) for shape in SHAPES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)

    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(SHAPES), done.stderr[-2000:]
    assert done.stdout.count("nested too deep") == len(SHAPES)
    assert done.returncode == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", [b"", b'["a"],' * 50_000, b'["]["],' * 50_000, b'["a"], ' * 50_000])
def test_each_shape_is_known(shape: str, before: bytes) -> None:
    assert cells._may_be_deep(nested(shape, before, 10_000))
    assert cells._may_be_deep(nested(shape, before, 10_000)[:-5000])


@pytest.mark.parametrize("row", ['["a"]', '["[", "{"]', '["]","}"]', '["\\"[", "[[{{"]', '["],["]', '["[]","{}"]'])
@pytest.mark.parametrize("between", [",", ", ", ",\n", " , "])
def test_rows_are_never_taken_for_deep(row: str, between: str) -> None:
    text = between.join([row] * 20_000).encode()
    assert not cells._may_be_deep(text)


@pytest.mark.parametrize("text", [b'["' + b"\\" * 999_999, b'["' + b'\\"' * 500_000, b'["a' * 300_000 + b"\\"])
def test_texts_without_an_end_take_no_long_time(text: bytes) -> None:
    cells._may_be_deep(b"[" * 20_000 + text)
