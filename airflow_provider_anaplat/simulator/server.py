"""The embedded platform behind a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_anaplat.client.operations import (
    APPLICATION_TOKEN_HEADER,
    EXTENSIONS,
    GET_TASK,
    OPERATIONS,
    REFRESH_DATASET,
    SIGN_IN,
    TOKEN_HEADER,
    Operation,
    TokenPlace,
)
from airflow_provider_anaplat.simulator.connections import RememberingProtocol, reset_connection
from airflow_provider_anaplat.simulator.platform import Platform, Refused
from airflow_provider_anaplat.simulator.replies import LONGEST_HOLD, Fault, Reply, failure
from airflow_provider_anaplat.simulator.tables import Table

__all__ = [
    "DEFAULT_TOKEN",
    "Deployment",
    "ReceivedRequest",
    "Simulator",
    "served_by",
]

DEFAULT_TOKEN = "simulator-token"
Deployment = Literal["contract", "user-token", "get-refresh"]


def served_by(deployment: Deployment) -> tuple[Operation[Any], ...]:
    """Return the operations of a deployment."""
    if deployment == "user-token":
        return OPERATIONS + EXTENSIONS
    others = [operation for operation in EXTENSIONS if operation is not SIGN_IN]
    if deployment == "get-refresh":
        in_query = replace(REFRESH_DATASET, method="GET", token_in=GET_TASK.token_in)
        others = [in_query if operation is REFRESH_DATASET else operation for operation in others]
    return (*OPERATIONS, *others)


@dataclass(frozen=True)
class ReceivedRequest:
    """A line of the ledger: a request as the platform saw it.

    :param query: what follows the path's ``?``, as it was sent
    """

    operation: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class _PlannedFault:
    operation: str
    fault: Fault
    times: int | None
    after_act: bool
    when: Callable[[Mapping[str, Any]], bool]


class _Server(uvicorn.Server):
    """Stops at once: uvicorn's own looks ten times a second whether it shall, and then waits for as long again."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told: Future[None] = Future()

    def stop(self) -> None:
        """Stop, from any thread."""
        self._told.set_result(None)

    async def main_loop(self) -> None:
        """Serve until told to stop."""
        await self.on_tick(0)  # prepares the headers that all answers have
        await asyncio.wrap_future(self._told)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what is idle; what is being answered is cancelled when the loop ends, which is next."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()


class Simulator:
    """The embedded platform as a server on loopback, for the length of a ``with`` block.

    :param tables: the tables that creations find, by name
    :param creation_statuses: what successive dataset lists show of a new dataset, the last one for good;
        None hides it
    :param token: the application token that is accepted
    :param user_token: a user token that is also accepted in the header
    :param deployment: ``contract``, as the contract has it; ``user-token``, whose header takes nothing but tokens
        that a sign-in has brought (``platform.sign_ins``); or ``get-refresh``, whose refreshes are GETs with the
        token in the query
    :param port: TCP port; 0 takes a free one

    ``platform`` holds the datasets and users, ``ledger`` every request that came, and ``most_at_once`` is how many
    requests there were at the same time at most.
    """

    def __init__(
        self,
        tables: Mapping[str, Table] | None = None,
        *,
        creation_statuses: Sequence[str | None] = ("处理中", "处理中", "FINISHED"),
        token: str = DEFAULT_TOKEN,
        user_token: str | None = None,
        deployment: Deployment = "contract",
        port: int = 0,
    ) -> None:
        self.platform = Platform(tables, creation_statuses)
        self.token = token
        self.user_token = user_token
        self.deployment: Deployment = deployment
        self._served = served_by(deployment)
        self.ledger: list[ReceivedRequest] = []
        self.most_at_once = 0
        self._at_once = 0
        self._faults: list[_PlannedFault] = []
        self._lock = threading.Lock()
        self._port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address that a connection needs."""
        return f"http://127.0.0.1:{self._port}"

    def inject(
        self,
        operation: str,
        fault: Fault,
        *,
        times: int | None = 1,
        after_act: bool = False,
        when: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> None:
        """Let an operation fail.

        :param operation: name in the operation table
        :param fault: one of :mod:`airflow_provider_anaplat.simulator.replies`
        :param times: how often; None for ever
        :param after_act: carry the request out first, and spoil only the answer
        :param when: which requests, by their body
        """
        self._faults.append(_PlannedFault(operation, fault, times, after_act, when))

    def requests(self, operation: str) -> list[ReceivedRequest]:
        """Return the requests to an operation so far."""
        return [request for request in self.ledger if request.operation == operation]

    def app(self) -> ASGIApp:
        """Return the platform as an ASGI application."""
        platform = Starlette(
            routes=[
                Route(operation.path, self._endpoint(operation), methods=[operation.method])
                for operation in self._served
            ]
        )

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                await platform(scope, receive, send)
            except asyncio.CancelledError:  # the server stops; an answer with HTTP 500 would be one
                reset_connection(scope)
                raise
            finally:
                self._at_once -= 1

        return counted

    def __enter__(self) -> Simulator:
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(
            self.app(), http=RememberingProtocol, log_level="critical", lifespan="off", date_header=False
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="anaplat-simulator", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server and self._thread:
            self._server.stop()
            self._thread.join(timeout=10)

    def wait(self) -> None:
        """Serve until the server is stopped, or Ctrl-C interrupts the wait."""
        # Bit by bit: Polars sets a handler of SIGINT, after which a wait without an end goes on.
        while self._thread and self._thread.is_alive():
            self._thread.join(0.5)

    def _endpoint(self, operation: Operation[Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Any:
            try:
                body = await request.body()
            except ClientDisconnect:
                return Reply(400)
            reply = await run_in_threadpool(self._reply, operation, request, body)
            return replace(reply, clock_ahead=self.platform.clock_ahead.total_seconds())

        return endpoint

    def _reply(self, operation: Operation[Any], request: Request, raw: bytes) -> Reply:
        try:
            body = json.loads(raw) if raw or operation.method != "GET" else {}
        except ValueError:
            body = None
        with self._lock:
            self.ledger.append(
                ReceivedRequest(operation.name, request.url.path, request.url.query, dict(request.headers), body)
            )
            planned = self._next_fault(operation.name, body)
            if planned and not (planned.after_act or planned.fault.needs_answer):
                return planned.fault.spoil(Reply())
        if planned and planned.fault.acts_after:
            planned.fault.acts_after.wait(LONGEST_HOLD)
        with self._lock:
            reply = self._answer(operation, request, body)
        return planned.fault.spoil(reply) if planned else reply

    def _next_fault(self, operation: str, body: Any) -> _PlannedFault | None:
        for planned in self._faults:
            if planned.operation == operation and planned.times != 0 and planned.when(body or {}):
                if planned.times is not None:
                    planned.times -= 1
                return planned
        return None

    def _answer(self, operation: Operation[Any], request: Request, body: Any) -> Reply:
        if (
            request.method != "GET"
            and request.headers.get("content-type", "").partition(";")[0] != "application/json"
        ):
            return failure("the body is not application/json")
        if not isinstance(body, dict):
            return failure("the body is not a JSON object")
        refusal = self._refusal(operation, request, body)
        if refusal is not None:
            return refusal
        try:
            return self.platform.answer(operation.name, request.path_params, body, request.query_params)
        except Refused as refused:
            return failure(str(refused), code=refused.code)
        except (KeyError, TypeError, ValueError) as error:
            return failure(f"the request is malformed: {error!r}")

    def _refusal(self, operation: Operation[Any], request: Request, body: Mapping[str, Any]) -> Reply | None:
        """Return the answer to a request with such a token; None if the token is good."""
        in_header = operation.token_in == "header"
        places: dict[TokenPlace | None, str | None] = {
            "header": request.headers.get(TOKEN_HEADER),
            "token_header": request.headers.get(APPLICATION_TOKEN_HEADER),
            "query": request.query_params.get("token"),
        }
        token = places.get(operation.token_in, body.get("token"))
        if token is None:
            return failure("no token provided", code=1018, status=403)
        if in_header and self.deployment == "user-token":
            return self.platform.sign_ins.refusal(token)
        if token != self.token and not (in_header and self.user_token and token == self.user_token):
            return failure("the token is invalid or expired", code=1018, status=403)
        return None
