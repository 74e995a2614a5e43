"""Pages fit into the budget of memory, whatever rows weigh and however their answers arrive."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.budget import MEGABYTE, Budget
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table

ARRIVALS = ["with its length", "in pieces", "compressed"]
LIGHT, HEAVY = 100, 20_000  # bytes of a cell
ROOM = (256 - 32) * MEGABYTE  # beside what threads and buffers take


class Heavy:
    """A dataset whose rows weigh what they are told to."""

    def __init__(self, weights: list[int], arrival: str = "with its length") -> None:
        self.weights = weights
        self.arrival = arrival
        self.asked: list[tuple[int, int]] = []
        self.sent: list[tuple[int, int]] = []  # rows that were asked for, and bytes
        self.first: dict[int, Callable[[], object]] = {}  # what happens, once, before an offset is answered

    def answer(self, offset: int, limit: int) -> bytes:
        self.asked.append((offset, limit))
        weights = self.weights[offset : offset + limit]
        response = {
            "dsId": "ds1", "rowCount": len(self.weights), "version": 1, "utime": "2026-01-01 00:00:00+0000",
            "columns": [{"name": "n", "fdType": "LONG"}, {"name": "text", "fdType": "STRING"}],
        }  # fmt: skip
        rows = ",".join(f'["{number}","{"x" * weight}"]' for number, weight in enumerate(weights, offset))
        body = f'{{"result":"ok","response":{json.dumps(response)[:-1]},"preview":[{rows}]}}}}'.encode()
        self.sent.append((limit, len(body)))
        return body


class Same(Heavy):
    """A dataset whose cells are all the same."""

    def __init__(self, rows: int, names: list[str], cell: str | None = None) -> None:
        super().__init__([0] * rows)
        self.columns = [{"name": name, "fdType": "STRING"} for name in names]
        self.row = json.dumps([cell] * len(names), separators=(",", ":"))

    def answer(self, offset: int, limit: int) -> bytes:
        response = {
            "dsId": "ds1", "rowCount": len(self.weights), "version": 1, "utime": "2026-01-01 00:00:00+0000",
            "columns": self.columns,
        }  # fmt: skip
        rows = ",".join([self.row] * len(self.weights[offset : offset + limit]))
        return f'{{"result":"ok","response":{json.dumps(response)[:-1]},"preview":[{rows}]}}}}'.encode()


@contextmanager
def served(heavy: Heavy) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heavy.first.pop(asked["offset"], int)()
            body = heavy.answer(asked["offset"], asked["limit"])
            self.send_response(200)
            if heavy.arrival == "in pieces":
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            else:
                if heavy.arrival == "compressed":
                    body = gzip.compress(body, 1)
                    self.send_header("content-encoding", "gzip")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
            try:
                self.wfile.write(body)
            except ConnectionError:  # it was larger than the client reads
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def read(url: str, **query: Any) -> list[int]:
    reader = PageReader(AnaplatClient(url, "token", max_retries=0), RowQuery("ds1", **query))
    return [int(row[0]) for page in reader.pages() for row in page.frame.rows()]


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_the_first_page_is_small_and_the_others_as_large_as_fits(arrival: str) -> None:
    heavy = Heavy([LIGHT] * 5_000 + [HEAVY] * 1_000 + [LIGHT] * 5_000, arrival)
    with served(heavy) as url:
        assert read(url, memory_mb=64) == list(range(11_000))

    assert heavy.asked[0] == (0, 1000)

    budget = Budget(64, 50_000, 4, 256)
    budget.has_columns(2)
    assert max(limit for offset, limit in heavy.asked if offset == 1000) > 5_000

    read_to_the_end = [size for limit, size in heavy.sent if size <= budget.most_bytes(limit)]
    # The rows, few answers that were too large to be read, and what is asked for again to see that offsets count.
    assert sum(read_to_the_end) < 1.5 * (1_000 * HEAVY + 10_000 * (LIGHT + 30))
    assert len(heavy.asked) - len(read_to_the_end) <= 20


def test_a_page_size_and_a_concurrency_are_upper_bounds() -> None:
    heavy = Heavy([LIGHT] * 300)
    with served(heavy) as url:
        assert read(url, page_size=70, concurrency=2) == list(range(300))
    assert {limit for _, limit in heavy.asked} == {70}


def test_a_new_plan_begins_when_the_requests_of_the_old_one_have_ended() -> None:
    heavy = Heavy([LIGHT] * 21_000 + [HEAVY] * 6_000)
    planned = threading.Event()

    def slowly() -> None:
        planned.set()
        time.sleep(0.5)

    heavy.first = {21_000: partial(planned.wait, LONG), 23_000: partial(time.sleep, 0.5), 25_000: slowly}
    with served(heavy) as url:
        assert read(url, memory_mb=64, page_size=2_000, concurrency=3) == list(range(27_000))
    answered = [offset for offset, _ in heavy.asked]
    # Those two were planned before it was known what rows weigh from 21,000 on; the new plan begins behind a page.
    new_plan = next(number for number, offset in enumerate(answered) if 21_000 < offset < 23_000)
    assert max(answered.index(23_000), answered.index(25_000)) < new_plan


@pytest.mark.parametrize(("cell", "copies"), [(11, 14), (500, 14), (10_000, 14), (20_000, 32), (50_000, 32)])
def test_a_page_has_its_part_of_the_budget(cell: int, copies: int) -> None:
    """Beside four answers that wait for their turn."""
    budget = Budget(256, 50_000, 4, 256)
    budget.has_columns(20)
    budget.saw(10, 10 * 20 * cell)
    rows = budget.rows()

    assert rows == int(ROOM / (20 * ((4 + copies) * cell + 215)))
    assert 1.1 < budget.most_bytes(rows) / (20 * cell * rows) < 2
    assert budget.requests() == 4


@pytest.mark.parametrize(("memory_mb", "room"), [(256, 224 - 96), (96, 64 / 4), (64, 32 / 4)])
def test_a_page_of_lines_takes_a_few_copies_however_many_cells_it_has(memory_mb: int, room: float) -> None:
    budget = Budget(memory_mb, 50_000, 4, 256)
    budget.has_columns(20)
    budget.makes_lines(20)
    budget.saw(10, 10 * 20 * 100)
    rows = budget.rows()

    assert rows == pytest.approx(room * MEGABYTE / (20 * (4 + 6) * 100), rel=0.01)
    assert budget.most_bytes(rows) / (20 * 100 * rows) == pytest.approx(1.25, rel=0.01)
    assert budget.requests() == 4


def test_many_columns_take_room_from_lines_too() -> None:
    few, many = Budget(256, 50_000, 4, 256), Budget(256, 50_000, 4, 256)
    for budget, columns in ((few, 20), (many, 20_000)):
        budget.has_columns(columns)
        budget.makes_lines(columns)
        budget.saw(10, 10 * 100_000)

    assert many.rows() < few.rows() / 2


def test_until_the_columns_are_known_an_answer_may_have_many_short_cells() -> None:
    budget = Budget(256, 50_000, 4, 256)
    first = budget.most_bytes(1000)
    budget.has_columns(1)

    assert first == pytest.approx(1.25 * ROOM / (18 + 215 / 11), rel=0.01)
    assert budget.most_bytes(1000) > 2 * first


def test_rows_that_were_asked_for_before_their_columns_were_known_have_room_for_an_answer() -> None:
    budget = Budget(64, 50_000, 4, 256)
    budget.has_columns(5_000)
    budget.saw(100, MEGABYTE)

    assert budget.most_bytes(1000) >= MEGABYTE // 2


def test_a_page_leaves_room_for_heavier_rows_in_the_largest_answer() -> None:
    budget = Budget(256, 50_000, 4, max_answer_mb=3)
    budget.has_columns(1)
    budget.saw(1000, MEGABYTE)

    assert (budget.rows(), budget.most_bytes(2000)) == (2000, 3 * MEGABYTE)


def test_requests_in_flight_are_fewer_where_one_row_fills_them() -> None:
    budget = Budget(64, 50_000, 8, 256)
    budget.saw(1, 10 * MEGABYTE)

    assert (budget.rows(), budget.requests()) == (1, 1)

    for _ in range(8):  # the heavy one is forgotten
        budget.saw(1000, 100_000)

    assert budget.rows() > 1000
    assert budget.requests() == 8


@pytest.mark.parametrize(("memory_mb", "concurrency", "in_flight"), [(64, 4, 4), (64, 100, 9), (256, 400, 265)])
def test_requests_in_flight_fit_into_the_budget_however_many_may_be(
    memory_mb: int, concurrency: int, in_flight: int
) -> None:
    """No page is smaller than three quarters of a megabyte, so that more requests would take more memory."""
    budget = Budget(memory_mb, 50_000, concurrency, 256)
    budget.saw(1000, MEGABYTE)

    assert budget.requests() == in_flight
    assert budget.most_bytes(budget.rows()) > 1.2 * budget.rows() * MEGABYTE / 1000


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_a_row_that_is_larger_than_the_budget_is_read_all_the_same(
    arrival: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    heavy = Heavy([LIGHT, 30 * MEGABYTE, LIGHT], arrival)
    with served(heavy) as url:
        assert read(url, memory_mb=64) == [0, 1, 2]
    assert "row 2 alone has 30.0 MB" in caplog.text


def test_a_row_that_is_larger_than_an_answer_may_be_ends_the_export() -> None:
    with served(Heavy([LIGHT, 3 * MEGABYTE])) as url:
        reader = PageReader(AnaplatClient(url, "token", max_answer_mb=1), RowQuery("ds1"))
        with pytest.raises(errors.AnaplatAnswerTooLargeError, match="max_answer_mb"):
            list(reader.pages())


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(errors.AnaplatRequestError, match="memory_mb is 63; it must be at least 64"):
        Budget(63, 50_000, 4, 256)


PROGRAM = """
import sys
from pathlib import Path
from airflow_provider_anaplat._airflow.memory import keep_large_blocks_apart
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.output.formats import FORMATS, WriteOptions
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.cards import CardQuery, export_card
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget

def memory(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) / 1024

url, file_format, path, memory_mb = sys.argv[1:]
{prepare}
before = memory("VmRSS")
client = AnaplatClient(url, "simulator-token")
place = Place(Path(path), FORMATS[file_format].sink(WriteOptions()))
rows = {export}
print(rows, memory("VmHWM") - before)
"""
ROWS = {"prepare": "", "export": 'export_rows(client, ExportPlan(RowQuery("ds1"), FileTarget(place))).rows'}
CARD = {
    "prepare": "keep_large_blocks_apart()",  # as an operator does
    "export": 'export_card(client, CardQuery("card1", memory_mb=int(memory_mb)), place, "fail").rows',
}
tells_memory = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell what a process takes"
)


def growth(program: dict[str, str], url: str, file_format: str, path: Path, memory_mb: int) -> tuple[int, float]:
    """Export in a process of its own; return how many rows, and by how many megabytes it has grown."""
    code = PROGRAM.format(**program)
    command = [sys.executable, "-c", code, url, file_format, str(path), str(memory_mb)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows, grown = done.stdout.split()
    return int(rows), float(grown)


@tells_memory
@pytest.mark.parametrize("file_format", ["csv", "ndjson", "parquet"])
def test_a_process_grows_no_more_than_the_budget_says(tmp_path: Path, file_format: str) -> None:
    with served(Heavy([LIGHT] * 20_000 + [HEAVY] * 14_000)) as url:  # 280 MB
        rows, grown = growth(ROWS, url, file_format, tmp_path / "rows", 256)
    assert rows == 34_000
    assert grown < 256


@tells_memory
@pytest.mark.parametrize(("file_format", "name"), [("parquet", "c"), ("ndjson", "c" * 100)])
def test_nor_where_nothing_is_in_most_cells(tmp_path: Path, file_format: str, name: str) -> None:
    """Polars counts no byte of an empty cell; and a row of NDJSON holds all names, if nothing else."""
    with served(Same(25_000, [f"{name}{place}" for place in range(400)])) as url:
        rows, grown = growth(ROWS, url, file_format, tmp_path / "rows", 256)
    assert rows == 25_000
    assert grown < 256


@tells_memory
@pytest.mark.parametrize(
    ("rows", "columns", "cell"),
    [
        pytest.param(25_000, 20, "\\" * 300, id="where each character is escaped"),
        pytest.param(4_000, 20_000, None, id="where each column holds nothing"),
    ],
)
def test_nor_one_that_makes_lines(tmp_path: Path, rows: int, columns: int, cell: str | None) -> None:
    with served(Same(rows, [f"c{place}" for place in range(columns)], cell)) as url:
        exported, grown = growth(ROWS, url, "csv", tmp_path / "rows", 256)
    assert exported == rows
    assert grown < 256


@tells_memory
@pytest.mark.parametrize(
    ("columns", "cell"),
    [pytest.param(1_500, "1", id="wide"), pytest.param(2, "x" * 60_000, id="heavy")],
)
def test_nor_does_one_that_exports_a_card(simulator: Simulator, tmp_path: Path, columns: int, cell: str) -> None:
    kind = "INT" if cell == "1" else "STRING"
    rows = [[str(number), *[cell] * (columns - 1)] for number in range(500)]
    simulator.platform.add_card("large", Table.of_rows([(f"c{place}", kind) for place in range(columns)], rows))
    read, grown = growth(CARD, simulator.url, "csv", tmp_path / "card", 64)

    assert read == 500
    assert grown < 64
    assert len(simulator.requests("read_card")) < 45
