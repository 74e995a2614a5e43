"""What the embedded platform answers, and the faults that change an answer."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

from starlette.types import Receive, Scope, Send

from airflow_provider_anaplat.simulator.connections import reset_connection

__all__ = [
    "LONGEST_HOLD",
    "Fault",
    "Reply",
    "act_later",
    "content",
    "cut",
    "failure",
    "flat_refusal",
    "hold",
    "http_status",
    "redirect",
    "refusal",
    "reset",
    "slow",
    "success",
]

LONGEST_HOLD = 120.0  # seconds; a test that forgets to release an answer ends nevertheless


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, or what a broken network makes of one.

    :param status: HTTP status
    :param body: the whole body
    :param headers: further headers
    :param delay: seconds before the answer starts
    :param held_by: the answer waits until this event is set
    :param reset: the connection is reset instead of answered
    :param sent: share of the body that is sent before the connection breaks; 1 for all
    :param clock_ahead: seconds by which the ``Date`` header is ahead of this machine's clock
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    delay: float = 0
    held_by: threading.Event | None = None
    reset: bool = False
    sent: float = 1
    clock_ahead: float = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer (ASGI)."""
        await asyncio.sleep(self.delay)
        if self.held_by is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.held_by.wait, LONGEST_HOLD)
        if self.reset:
            reset_connection(scope)
            return
        date = formatdate(time.time() + self.clock_ahead, usegmt=True)
        headers = {"date": date, **self.headers, "content-length": str(len(self.body))}
        await send(
            {
                "type": "http.response.start",
                "status": self.status,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        body = self.body[: int(len(self.body) * self.sent)]
        await send({"type": "http.response.body", "body": body, "more_body": self.sent < 1})
        if self.sent < 1:
            reset_connection(scope, gently=True)


@dataclass(frozen=True)
class Fault:
    """A way in which an answer goes wrong.

    :param spoil: makes the spoilt answer of the true one
    :param needs_answer: the fault is in how a true answer arrives, so the request is always carried out
    :param acts_after: the request is carried out when this event is set
    """

    spoil: Callable[[Reply], Reply]
    needs_answer: bool = False
    acts_after: threading.Event | None = None


def success(response: Any) -> Reply:
    """Return the success envelope around a response."""
    return Reply(body=json.dumps({"result": "ok", "response": response}, ensure_ascii=False).encode())


def failure(message: str, *, code: int = 5001, status: int = 500) -> Reply:
    """Return the failure envelope."""
    error = {"status": code, "message": message, "detail": {}}
    body = {"result": "fail", "response": None, "error": error}
    return Reply(status, json.dumps(body, ensure_ascii=False).encode())


def refusal(message: str, *, code: int = 5001, status: int = 200) -> Fault:
    """Answer with a failure envelope; by default on HTTP 200, as such platforms do."""
    return Fault(lambda _: failure(message, code=code, status=status))


def flat_refusal(message: str, *, code: int, status: int = 200) -> Fault:
    """Answer with the flat shape of an error."""
    body = json.dumps({"error_code": code, "error_message": message}).encode()
    return Fault(lambda _: Reply(status, body))


def http_status(status: int, *, retry_after: str | None = None, body: bytes = b"") -> Fault:
    """Answer with a bare HTTP status."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Fault(lambda _: Reply(status, body, headers))


def content(body: bytes, content_type: str = "application/json") -> Fault:
    """Answer with HTTP 200 and this body: HTML, an empty one, anything."""
    return Fault(lambda _: Reply(200, body, {"content-type": content_type}))


def redirect(location: str, status: int = 302) -> Fault:
    """Answer with a redirect."""
    return Fault(lambda _: Reply(status, b"", {"location": location}))


def reset() -> Fault:
    """Reset the connection instead of answering."""
    return Fault(lambda reply: replace(reply, reset=True))


def cut(share: float = 0.5) -> Fault:
    """Break off after this share of the answer's body."""
    return Fault(lambda reply: replace(reply, sent=share), needs_answer=True)


def slow(seconds: float) -> Fault:
    """Answer after this many seconds."""
    return Fault(lambda reply: replace(reply, delay=seconds), needs_answer=True)


def act_later(until: threading.Event) -> Fault:
    """Carry the request out, and answer, when the event is set; what else comes in is served meanwhile."""
    return Fault(lambda reply: reply, needs_answer=True, acts_after=until)


def hold(until: threading.Event) -> Fault:
    """Carry the request out at once, and answer when the event is set."""
    return Fault(lambda reply: replace(reply, held_by=until), needs_answer=True)
