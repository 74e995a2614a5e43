"""A server that answers every page of a dataset with bytes rendered in advance, so that clients are what is timed.

A GET of any path answers how many pages were asked for, and how many at the same time at most.
``python benchmarks/page_server.py ROWS PAGE_SIZE LATENCY`` prints its address and serves until it is stopped.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COLUMNS = [
    *({"name": f"int_{i}", "fdType": "LONG"} for i in range(6)),
    *({"name": f"double_{i}", "fdType": "DOUBLE"} for i in range(4)),
    *({"name": f"text_{i}", "fdType": "STRING"} for i in range(8)),
    *({"name": f"day_{i}", "fdType": "DATE"} for i in range(2)),
]
DIFFERENT_PAGES = 10  # a dataset of more pages repeats their rows


def rendered(rows: int, page_size: int, number: int) -> bytes:
    """Render a page with cells of many lengths, some null and some empty."""
    return rendered_rows(rows, page_size, number * page_size, page_size)


def rendered_rows(rows: int, page_size: int, first: int, limit: int) -> bytes:
    """Render rows from any one on, which a client may ask for that looks whether its offsets count."""
    head = {
        "dsId": "bench", "name": "bench", "status": "FINISHED", "version": 1, "rowCount": rows,
        "colCount": len(COLUMNS), "utime": "2026-01-01 00:00:00+0000", "columns": COLUMNS, "preview": [],
    }  # fmt: skip
    cells = [_row(n % (DIFFERENT_PAGES * page_size)) for n in range(first, min(first + limit, rows))]
    text = json.dumps({"result": "ok", "response": head}, separators=(",", ":"))
    preview = json.dumps(cells, separators=(",", ":"), ensure_ascii=False)
    return text.replace('"preview":[]', f'"preview":{preview}').encode()


def _row(n: int) -> list[str | None]:
    return [
        *(str((n * (i + 7919)) % 10 ** (i + 3)) for i in range(6)),
        *(str((n * (i + 31)) % 100_000 / 64) for i in range(4)),
        None if n % 11 == 0 else f"customer {n % 5000}",
        "" if n % 13 == 0 else f"ключ-{n % 977}",
        f"{n:012d}", "EUR", f"text, with a comma {n % 89}", "北京" if n % 2 else "上海", f"sku-{n % 3511}", "x",
        f"20{n % 24 + 10}-{n % 12 + 1:02d}-{n % 28 + 1:02d}", "2026-01-31",
    ]  # fmt: skip


def main() -> None:
    """Serve."""
    rows, page_size, latency = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    pages = -(-rows // page_size)

    @cache
    def page(number: int) -> bytes:
        return rendered(rows, page_size, number)

    for number in range(min(pages, DIFFERENT_PAGES)):
        page(number)
    if rows % page_size:
        page(pages - 1)

    lock = threading.Lock()
    counted = {"pages": 0, "now": 0, "most": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with lock:
                counted["pages"] += 1
                counted["now"] += 1
                counted["most"] = max(counted["most"], counted["now"])
            body = self.rfile.read(int(self.headers["content-length"]))
            offset = int(re.search(rb'"offset": ?(\d+)', body)[1])  # type: ignore[index]  # always there
            limit = int(re.search(rb'"limit": ?(\d+)', body)[1])  # type: ignore[index]  # likewise
            number = offset // page_size
            partial = number == pages - 1 and rows % page_size
            time.sleep(latency)
            if offset % page_size or limit < page_size:
                answer = rendered_rows(rows, page_size, offset, limit)
            else:
                answer = page(number if partial else number % DIFFERENT_PAGES)
            with lock:  # before the answer, after which the client may ask anew
                counted["now"] -= 1
            self._answer(answer)

        def do_GET(self) -> None:
            self._answer(json.dumps(counted).encode())

        def _answer(self, answer: bytes) -> None:
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


if __name__ == "__main__":
    main()
