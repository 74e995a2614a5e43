"""Small servers for what the embedded platform cannot be: behind TLS or a proxy, on IPv6, or out of bounds."""

from __future__ import annotations

import re
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
                    connection = _secure(connection, tls)
                with connection:
                    handle(connection)
            connection.close()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=[connection], daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):  # a system that cannot wake up who accepts
                listener.shutdown(socket.SHUT_RDWR)
                # Or it could take a connection of the next server, whose socket may get the same number.
                accepting.join()


def _secure(connection: socket.socket, tls: ssl.SSLContext) -> socket.socket:
    secure = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    try:
        secure.do_handshake()
    except ssl.SSLError:  # leaves the client the time to read why
        with socket.socket(fileno=secure.detach()) as plain:
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(65_536):
                pass
        raise
    return secure


def read_request(connection: socket.socket) -> bytes:
    """Read a whole request: a connection that is closed before that is reset, with what was answered."""
    received = b""
    while b"\r\n\r\n" not in received or len(received) < _length(received):
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError("no request came")
        received += piece
    return received


def _length(received: bytes) -> int:
    head = received.partition(b"\r\n\r\n")[0]
    body = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return len(head) + 4 + (int(body[1]) if body else 0)


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
