"""The TCP connection behind a request, which ASGI hides: a reset is one of the faults to show."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = [
    "RememberingProtocol",
    "reset_connection",
]

# By the addresses of both ends: two servers may talk to clients of the same port.
_OPEN: dict[tuple[Any, ...], asyncio.Transport] = {}


class RememberingProtocol(H11Protocol):
    """Uvicorn's HTTP protocol, which can be asked for the connection of a client's address."""

    def connection_made(self, transport: Any) -> None:
        """Remember the connection."""
        self._peer = (*transport.get_extra_info("peername")[:2], *transport.get_extra_info("sockname")[:2])
        _OPEN[self._peer] = transport
        # An event loop may leave it out; each answer would then wait 40 ms for the client's system.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        _OPEN.pop(self._peer, None)
        super().connection_lost(exc)


def reset_connection(scope: Scope, *, gently: bool = False) -> None:
    """End the request's connection.

    :param gently: send what is in the buffers and then FIN, instead of RST at once
    """
    transport = _OPEN.get((*scope["client"], *scope["server"]))
    if transport is None:  # the client was faster
        return
    if gently:
        transport.close()
        return
    linger_for_no_time = struct.pack("ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_no_time)
    transport.abort()
