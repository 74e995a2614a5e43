"""A server of one table whose answers cost it next to nothing, so that clients are what is timed.

A GET of any path answers how many pages were asked for, and how many at the same time at most.
``python benchmarks/page_server.py TABLE LATENCY`` prints its address and serves until it is stopped; TABLE is the
name of a shape, or the number of rows of the usual table.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tables import SHAPES, Pages, bench


@contextmanager
def page_server(table: str | int, latency: float = 0) -> Iterator[str]:
    """Start a server in a process of its own and yield its address.

    :param table: name of a shape, or number of rows of the usual table
    :param latency: seconds that an answer takes
    """
    command = [sys.executable, __file__, str(table), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main() -> None:
    """Serve."""
    name, latency = sys.argv[1], float(sys.argv[2])
    pages = Pages(SHAPES[name] if name in SHAPES else bench(int(name)))
    lock = threading.Lock()
    counted = {"pages": 0, "now": 0, "most": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or the last bytes of an answer may wait 40 ms

        def do_POST(self) -> None:
            with lock:
                counted["pages"] += 1
                counted["now"] += 1
                counted["most"] = max(counted["most"], counted["now"])
            body = self.rfile.read(int(self.headers["content-length"]))
            offset, limit = (
                int(re.search(rb'"%s": ?(\d+)' % key, body)[1])  # type: ignore[index]  # always there
                for key in (b"offset", b"limit")
            )
            time.sleep(latency)
            answer = pages.answer(offset, limit)
            with lock:  # before the answer, after which the client may ask anew
                counted["now"] -= 1
            self._answer(answer)

        def do_GET(self) -> None:
            self._answer([json.dumps(counted).encode()])

        def _answer(self, answer: Sequence[bytes | memoryview]) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(sum(map(len, answer))))
            self.end_headers()
            for piece in answer:
                self.wfile.write(piece)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
