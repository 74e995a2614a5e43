"""Large blocks come from the system, each by itself, once a process has read rows."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info
if sys.argv[1] == "rows":
    with Simulator() as platform:
        platform.platform.add_dataset("sales", Table.of_rows([("a", "STRING")], [["1"]]))
        reader = PageReader(AnaplatClient(platform.url, platform.token), RowQuery("ds1"))
        assert sum(page.frame.height for page in reader.pages()) == 1
bytes(8 << 20)  # one comes and goes
before = library.mallinfo2().hblkhd
block = bytes(8 << 20)
print(library.mallinfo2().hblkhd - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 or newer tells")
@pytest.mark.parametrize(("what", "apart"), [("nothing", False), ("rows", True)])
def test_a_large_block_comes_from_the_system(what: str, apart: bool) -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM, what], check=True, capture_output=True, text=True)
    assert (int(output.stdout) >= 8 << 20) is apart
