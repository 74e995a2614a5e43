"""A small answer that unpacks to many rows, or to what are none, takes little memory."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG
from support.servers import read_request, serving

MEGABYTE = 1 << 20
SIZE = 24 * MEGABYTE  # of the body, unpacked
HEAD = (
    b'{"result":"ok","response":{"dsId":"ds1","rowCount":1,"version":3,"utime":null,'
    b'"columns":[{"name":"a","fdType":"STRING"}],"preview":['
)
EXPORT = """
import sys
from pathlib import Path
from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery

def memory(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) / 1024

before = memory("VmRSS")
try:
    list(PageReader(AnaplatClient(sys.argv[1], "token", max_answer_mb=64), RowQuery("ds1")).pages())
except (errors.AnaplatInvalidAnswerError, errors.AnaplatAnswerTooLargeError):
    print(memory("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process takes")
@pytest.mark.parametrize("item", ["1", "[1]", '{"a":1}', '["b"]'])
def test_many_of_anything_take_little_memory(item: str) -> None:
    body = gzip.compress(HEAD + ((item + ",") * (SIZE // (len(item) + 1)) + item).encode() + b"]}}", 1)

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )

    with serving(handle) as port:
        command = [sys.executable, "-c", EXPORT, f"http://127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)

    assert done.returncode == 0, done.stderr[-2000:]
    # The body in pieces and as one, and a few slices: 60 to 110 MB, as the allocator and the threads have it.
    # As Python's objects, the same rows alone take 100 to 650 MB.
    assert float(done.stdout) < 6 * SIZE / MEGABYTE
