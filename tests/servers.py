"""Small servers for what the embedded platform's own cannot be: behind TLS or a proxy, on IPv6, or out of bounds."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Handle = Callable[[socket.socket], None]


@contextmanager
def serving(handle: Handle, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve each connection in a thread of its own, and yield the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:

        def serve(connection: socket.socket) -> None:
            with suppress(OSError):  # whoever is connected may leave at any time
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                with connection:
                    handle(connection)
            connection.close()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=[connection], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def read_head(connection: socket.socket) -> bytes:
    """Read a request up to the end of its headers, and what came along of its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError("no request came")
        received += piece
    return received


def relay(connection: socket.socket, port: int, first: bytes = b"") -> None:
    """Hand on what comes from either side, to and from a port on loopback."""
    with socket.create_connection(("127.0.0.1", port)) as target:
        target.sendall(first)
        back = threading.Thread(target=_pump, args=[target, connection], daemon=True)
        back.start()
        _pump(connection, target)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
