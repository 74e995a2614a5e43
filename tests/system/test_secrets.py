"""After everything that can go wrong, at logging level DEBUG, no secret is anywhere."""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from conftest import numbers
from cryptography.fernet import Fernet, InvalidToken
from support.backends import BROKER
from support.production import MARKS, PASSWORD, PLANTED, SECRET_FAULTS, TOKEN, USER_TOKEN, Production

from airflow_provider_anaplat.simulator import Simulator, replies

LOWER = re.sub("%..", lambda escape: escape.group().lower(), quote_plus(TOKEN))
# As the platform might write it, and as it stands in addresses.
TOKENS = f"you sent {TOKEN} {quote(TOKEN)} {quote(TOKEN, safe='')} {LOWER}"
USERS_TOO = f"{TOKENS} and {PASSWORD} {quote(PASSWORD)} {quote_plus(PASSWORD)}"


def says(text: str) -> bytes:
    """Return a text as JSON, as the platform would write it."""
    return replies.refusal(text).spoil(replies.Reply()).body


def spoilt(echo: str) -> dict[str, replies.Fault]:
    """Return the bad answers that repeat a text, by the fault's name."""
    malformed = says(echo).replace(b'"fail"', b'"ok"').replace(b"null", says(echo))
    return {
        "http_500": replies.http_status(500, body=says(echo)),
        "http_401": replies.flat_refusal(echo, code=1003, status=401),
        "reset": replies.reset(),
        "rejected": replies.refusal(echo, code=1012),
        "redirect": replies.redirect(f"https://elsewhere.example/?token={quote(echo)}"),
        "html": replies.content(f"<html>{echo}</html>".encode(), "text/html"),
        "malformed": replies.content(malformed),
    }


FAILED = (
    "users", "export", "create", "wrong_token", "deferred", "asks_for_a_task", "pokes_for_a_task",
    "load_of_a_fault", "load_that_does_not_fit", "load_to_nowhere", "access", "schema", "call", "refresh",
    "subscription", "by_proxy", "deferred_by_proxy", "plant", "signed_export", "signed_deferred",
)  # fmt: skip

SUCCEEDED = ("users_of_a_query", "whole.plan", "whole.part", "whole.commit", "load", "signed")


def spoil(simulator: Simulator) -> None:
    assert tuple(spoilt(TOKENS)) == SECRET_FAULTS
    for name in SECRET_FAULTS:
        for operation, echo, is_meant in (
            ("create_users", USERS_TOO, lambda body, name=name: body["users"][0]["loginId"] == name),
            (
                "read_rows",
                f"{TOKENS} {USER_TOKEN} {quote(USER_TOKEN)}",
                lambda body, name=name: body.get("filter", {}).get("fault") == name,
            ),
            ("create_dataset", TOKENS, lambda body, name=name: body["name"] == name),
        ):
            simulator.inject(operation, spoilt(echo)[name], times=None, when=is_meant)
    simulator.inject(
        "refresh_dataset", spoilt(USERS_TOO)["rejected"], times=None, when=lambda body: "password" in body
    )
    answers = spoilt(TOKENS)
    # Of two users' rights and of two parts, one.
    simulator.inject("list_authorized_datasets", answers["http_500"])
    simulator.inject(
        "read_rows",
        answers["rejected"],
        times=None,
        when=lambda body: (body.get("offset"), body.get("limit")) == (15, 15),
    )
    for operation, name in (
        ("get_columns", "malformed"), ("refresh_dataset", "rejected"), ("get_subscriptions", "html"),
    ):  # fmt: skip
        simulator.inject(operation, answers[name], times=None)


def spoil_signed(simulator: Simulator) -> None:
    """Let a platform that signs users in repeat what it was sent, and end a token amid an export."""
    simulator.platform.add_dataset("numbers", numbers(30))
    issued = simulator.platform.sign_ins.issued
    coded = base64.b64encode(PASSWORD.encode()).decode()

    def repeating(name: str) -> replies.Fault:
        def spoil(reply: replies.Reply) -> replies.Reply:
            asked = [
                request for request in simulator.ledger if (request.body or {}).get("filter") == {"fault": name}
            ]
            tokens = asked[-1].headers["x-auth-token"] if asked else ""  # what it was sent, and nobody else
            return spoilt(f"{USERS_TOO} {coded} {quote(coded)} {tokens} {quote(tokens)}")[name].spoil(reply)

        return replies.Fault(spoil)

    def expire(reply: replies.Reply) -> replies.Reply:
        simulator.platform.sign_ins.expire()
        return reply

    for name in SECRET_FAULTS:
        fault = replies.reset() if name == "reset" else repeating(name)
        simulator.inject(
            "read_rows",
            fault,
            times=None,
            when=lambda body, name=name: body.get("filter", {}).get("fault") == name,
        )
    simulator.inject(
        "read_rows", replies.Fault(expire, needs_answer=True), when=lambda body: body.get("offset") == 10
    )
    echo = f"{USERS_TOO} {coded} {quote(coded)}"
    simulator.inject("sign_in", replies.http_status(503, body=says(echo)), when=lambda _: bool(issued))


@contextmanager
def overheard() -> Iterator[list[bytes]]:
    """Collect all that is sent to Redis."""
    import redis

    said: list[bytes] = []
    end = secrets.token_hex()
    with redis.Redis.from_url(BROKER) as broker, broker.monitor() as monitor:

        def listen() -> None:
            for command in monitor.listen():
                said.append(command["command"].encode())
                if end in command["command"]:  # so everything before it was heard
                    return

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield said
        finally:
            broker.echo(end)
            listener.join()


@pytest.fixture(scope="module", autouse=True)
def sent_to_redis(running: Production) -> list[bytes]:
    """Let everything fail; what Redis was sent meanwhile."""
    simulator = running.platforms["secrets"]
    simulator.platform.add_dataset("numbers", numbers(30))
    spoil(simulator)
    spoil_signed(running.platforms["signed"])
    running.platforms["failing"].inject("list_datasets", spoilt(TOKENS)["http_500"], times=None)
    simulator.platform.tasks["t1"] = [{"taskId": "t1", "status": "FAILED", "result": {"error": TOKENS}}]
    with overheard() as said:
        running.start("secrets")
        running.deployment.wait_for("secrets", "failed")
    return said


def test_what_was_meant_to_fail_failed(running: Production) -> None:
    states = running.states("secrets")
    assert {name: set(found) for name, found in states.items()} == {
        **{name: {"failed"} for name in FAILED},
        **{name: {"success"} for name in SUCCEEDED},
        "broken.plan": {"success"}, "broken.part": {"success", "failed"}, "broken.commit": {"upstream_failed"},
    }  # fmt: skip
    for name, words in {
        "by_proxy": "407", "deferred_by_proxy": "407", "load_that_does_not_fit": "columns",
        "load_to_nowhere": "refused", "access": "those of 1 are in the file", "schema": "read", "plant": PLANTED,
    }.items():  # fmt: skip
        assert words in running.deployment.log("secrets", name), name

    sent = running.platforms["secrets"].requests("create_users")
    assert {user["password"] for request in sent for user in request.body["users"]} == {PASSWORD}


def test_the_user_tokens_were_had_by_signing_in(running: Production) -> None:
    platform = running.platforms["signed"]
    sent = platform.requests("sign_in")

    assert {request.body["secret"] for request in sent} == {base64.b64encode(PASSWORD.encode()).decode()}

    issued = {token.value for token in platform.platform.sign_ins.issued}
    assert len(issued) > 1
    for operation in ("read_rows", "get_columns"):  # those of workers, and those of a trigger
        assert {request.headers["x-auth-token"] for request in platform.requests(operation)} & issued, operation
    assert "signing in for another one" in running.deployment.log("secrets", "signed")

    kept = running.deployment.rows("SELECT val, is_encrypted FROM variable WHERE key LIKE 'anaplat_user_token_%%'")
    assert [is_encrypted for _, is_encrypted in kept] == [True]
    # Neither Airflow nor who has its key reads it there.
    assert traces(running.fernet.decrypt(kept[0][0].encode()), issued_marks(running)) == []


def test_no_log_and_no_other_file_holds_a_secret(running: Production) -> None:
    files = [path for path in running.deployment.airflow.home.rglob("*") if path.is_file()]
    assert len([path for path in files if path.suffix == ".log"]) > 30
    assert b"[debug " in b"".join(path.read_bytes() for path in files if path.name == "triggerer.log")
    assert '"level":"debug"' in running.deployment.log("secrets", "export")

    exported = [path for path in running.output.rglob("*") if path.is_file()]
    assert running.output / "secrets" / "access.csv" in exported

    files += exported
    assert [path for path in files if PLANTED.encode() in path.read_bytes() and path.suffix == ".log"]

    marks = (*MARKS, *issued_marks(running))
    found = [(str(path), traces(path.read_bytes(), marks)) for path in files]

    assert [(path, of_it) for path, of_it in found if of_it] == []


def test_no_event_of_openlineage_holds_a_secret(running: Production) -> None:
    written = (running.deployment.airflow.home / "lineage").read_bytes()
    failed = [event for event in map(json.loads, written.splitlines()) if event["eventType"] == "FAIL"]
    names = {event["job"]["name"].removeprefix("secrets.") for event in failed}
    assert {*FAILED, "broken.part"} <= names
    assert traces(written, (PLANTED,)) == [PLANTED]
    assert traces(written, (*MARKS, *issued_marks(running))) == []


def test_nothing_that_redis_is_sent_holds_a_secret(running: Production, sent_to_redis: list[bytes]) -> None:
    assert any(b"celery" in command for command in sent_to_redis)
    marks = (*MARKS, *issued_marks(running))
    assert {mark for command in sent_to_redis for mark in traces(command, marks)} == set()


def test_what_redis_is_sent_is_searched(running: Production) -> None:
    import redis

    with overheard() as said, redis.Redis.from_url(BROKER) as broker:
        body = base64.b64encode(json.dumps({"planted": TOKEN}).encode()).decode()  # as Celery packs its messages
        broker.set(f"{running.deployment.name}-planted", json.dumps({"body": body}))
    assert {mark for command in said for mark in traces(command)} == {MARKS[0]}


def test_no_table_holds_a_secret(running: Production) -> None:
    rows = running.deployment.rows
    tables = [name for (name,) in rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]

    assert {"connection", "xcom", "trigger", "rendered_task_instance_fields", "celery_taskmeta"} <= {*tables}
    assert len(rows("SELECT 1 FROM connection WHERE is_encrypted AND password IS NOT NULL")) > 10

    marks = (*MARKS, *issued_marks(running), PLANTED)
    found = {
        (table, mark)
        for table in tables
        for row in rows(f'SELECT * FROM public."{table}"')
        for value in row
        for content in contents(value, None if table in ("connection", "variable") else running.fernet)
        for mark in traces(content, marks)
    }

    assert found == {("xcom", PLANTED)}


def test_no_address_holds_a_secret_but_that_of_a_task(running: Production) -> None:
    requests = [request for platform in running.platforms.values() for request in platform.ledger]
    marks = (*MARKS, *issued_marks(running))
    assert {request.operation for request in requests if traces(request.path.encode(), marks)} == set()
    assert {request.operation for request in requests if traces(request.query.encode(), marks)} == {"get_task"}


@pytest.mark.parametrize("shift", range(3))
def test_the_search_finds_a_secret_in_every_form(shift: int) -> None:
    text = "x" * shift + TOKEN
    packed = zlib.compress(text.encode())
    for form in (text, quote(text), repr(text), base64.b64encode(text.encode()).decode(), memoryview(packed)):
        assert any(traces(content) == [MARKS[0]] for content in contents(form)), form


def issued_marks(running: Production) -> list[str]:
    """Return a part of each user token that a sign-in has brought: letters, digits, lines and dashes."""
    return [issued.value[-24:] for issued in running.platforms["signed"].platform.sign_ins.issued]


def traces(content: bytes, marks: Sequence[str] = MARKS) -> list[str]:
    """Return the marks of which a content holds a trace.

    A mark is letters and digits, the same in an address, in JSON and in Python's notation; in Base64, it depends
    on what comes before it.
    """
    return [mark for mark in marks if any(form in content for form in _forms(mark.encode()))]


def _forms(mark: bytes) -> list[bytes]:
    forms = [mark]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + mark)
        # Without the characters that hold bits of its neighbours.
        forms.append(encoded[shift and shift + 1 : len(encoded) - 4])
    return forms


def contents(value: Any, fernet: Fernet | None = None) -> Iterator[bytes]:
    """Yield what a value of a table holds, also where Airflow has packed or encrypted it."""
    content = bytes(value) if isinstance(value, memoryview) else str(value).encode()
    yield content
    with suppress(zlib.error):
        yield zlib.decompress(content)
    if fernet is not None:
        with suppress(InvalidToken):
            yield fernet.decrypt(content)
