"""Memory and time of the row export for tables of many shapes, with the operator's defaults.

``python benchmarks/shapes.py [SHAPE ...]`` prints the growth of the process beside the budget, and the time beside
that of fixed page sizes, for which the budget is lifted. Each figure is of one run in a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rows import measure

DIFFERENT_ROWS = 997
FIXED = (500, 5_000, 50_000)
LIFTED_MB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A table.

    :param cell: bytes of a cell
    :param heavy_from: number of the first row whose cells weigh a hundred times as much
    """

    rows: int
    columns: int
    cell: int
    heavy_from: int | None = None


SHAPES = {
    "20 columns of 8 bytes": Shape(500_000, 20, 8),
    "100 columns of 8 bytes": Shape(200_000, 100, 8),
    "300 columns of 8 bytes": Shape(100_000, 300, 8),
    "1,000 columns of 8 bytes": Shape(50_000, 1_000, 8),
    "5,000 columns of 8 bytes": Shape(10_000, 5_000, 8),
    "20 columns of 500 bytes": Shape(100_000, 20, 500),
    "1 column": Shape(5_000_000, 1, 8),
    "heavy at the end": Shape(1_050_000, 20, 8, heavy_from=1_000_000),
    "cells of 5 MB": Shape(60, 2, 5_000_000),
}


class Rows:
    """The rows of a shape, rendered once."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        different = max(2, min(DIFFERENT_ROWS, 100_000_000 // (shape.columns * shape.cell)))
        self._light = [self._row(number, shape.cell) for number in range(different)]
        heavy = min(different, 97) if shape.heavy_from is not None else 0
        self._heavy = [self._row(number, 100 * shape.cell) for number in range(heavy)]
        self._head = json.dumps({
            "dsId": "bench", "name": "bench", "status": "FINISHED", "version": 1, "rowCount": shape.rows,
            "colCount": shape.columns, "utime": "2026-01-01 00:00:00+0000",
            "columns": [{"name": f"c{number}", "fdType": "STRING"} for number in range(shape.columns)],
        })  # fmt: skip

    def page(self, offset: int, limit: int) -> bytes:
        """Return an answer."""
        heavy_from = self.shape.rows if self.shape.heavy_from is None else self.shape.heavy_from
        numbers = range(offset, min(offset + limit, self.shape.rows))
        rows = b",".join(
            self._light[n % len(self._light)] if n < heavy_from else self._heavy[n % len(self._heavy)]
            for n in numbers
        )
        head = self._head[:-1].encode()
        return b'{"result":"ok","response":' + head + b',"preview":[' + rows + b"]}}"

    def _row(self, number: int, size: int) -> bytes:
        cells = [f"{number * 7919 + column:0{size}d}"[-size:] for column in range(self.shape.columns)]
        return json.dumps(cells, separators=(",", ":")).encode()


def serve(shape: Shape) -> None:
    """Answer with the rows of a shape until the process is stopped."""
    rows = Rows(shape)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            offset, limit = (int(re.search(rb'"%s": ?(\d+)' % key, body)[1]) for key in (b"offset", b"limit"))  # type: ignore[index]  # always there
            answer = rows.page(offset, limit)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


@contextmanager
def server_of(name: str) -> Iterator[str]:
    """Start a server and yield its address."""
    with subprocess.Popen(
        [sys.executable, __file__, "--serve", name], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main(names: list[str]) -> None:
    """Measure."""
    print(f"{'shape':<26}{'way':<18}{'seconds':>9}{'growth':>10}   fixed pages of " + ", ".join(map(str, FIXED)))
    for name in names or SHAPES:
        with server_of(name) as url:
            for way in ("operator csv", "operator parquet", "operator ndjson"):
                seconds, growth = measure(way, url, SHAPES[name].rows, 50_000)
                line = f"{name:<26}{way:<18}{seconds:>9.2f}{growth:>7.0f} MB"
                print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(SHAPES[sys.argv[2]])
    else:
        main(sys.argv[1:])
