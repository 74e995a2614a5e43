"""Large blocks come from the system, each by itself, once a task has read rows."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, json, os, sys

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info
if sys.argv[1] == "rows":
    from airflow_provider_anaplat import AnaplatExportRowsOperator
    from airflow_provider_anaplat.simulator import Simulator, Table

    with Simulator() as platform:
        platform.platform.add_dataset("sales", Table.of_rows([("a", "STRING")], [["1"]]))
        connection = {"conn_type": "anaplat", "host": platform.url, "password": platform.token}
        os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(connection)
        task = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=sys.argv[2])
        assert task.execute({})["rows"] == 1
bytes(8 << 20)  # one comes and goes
before = library.mallinfo2().hblkhd
block = bytes(8 << 20)
print(library.mallinfo2().hblkhd - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 or newer tells")
@pytest.mark.parametrize(("what", "apart"), [("nothing", False), ("rows", True)])
def test_a_large_block_comes_from_the_system(tmp_path: Path, what: str, apart: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, what, str(tmp_path / "rows.csv")]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (int(output.stdout.splitlines()[-1]) >= 8 << 20) is apart
