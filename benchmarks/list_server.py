"""A platform of many datasets, none of them done, that counts requests; its answers are rendered in advance.

``python benchmarks/list_server.py DATASETS`` prints its address and serves until it is stopped.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def rendered(datasets: int) -> bytes:
    """Render the dataset list."""
    listed = [
        {
            "dsId": f"ds{number}", "name": f"销售 sales of region {number}", "displayType": "POSTGRESQL",
            "domId": "company", "uId": f"u{number % 97:032d}", "parentDirId": f"d{number % 211:032d}",
            "config": {"tableQuery": None}, "rowCount": number * 17, "colCount": number % 60, "status": "处理中",
            "ctime": "2026-01-01 00:00:00+0800", "utime": "2026-11-01 06:30:00+0800", "cardCount": number % 9,
        }
        for number in range(datasets)
    ]  # fmt: skip
    return json.dumps({"result": "ok", "response": listed}, ensure_ascii=False).encode()


def main() -> None:
    """Serve."""
    answer = rendered(int(sys.argv[1]))
    counted = {"list": 0, "missing": 0}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self._answer("list", 200, answer)

        def do_GET(self) -> None:
            if self.path == "/counted":
                self._answer("counted", 200, json.dumps(counted).encode())
            else:
                self._answer("missing", 404, b'{"result": "fail"}')

        def _answer(self, name: str, status: int, body: bytes) -> None:
            if name in counted:
                with lock:
                    counted[name] += 1
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 4096

        def handle_error(self, *_: Any) -> None:
            """Say nothing of clients that go away."""

    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
