"""Secrets are masked in whatever form an answer, a header or a lower library's log repeats them."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import product
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.redaction import excerpt, redact
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser, TableQuery
from airflow_provider_anaplat.simulator import Simulator, replies

SECRETS = ["p&ss=w/ord+<1>", 'quo"te\\back', "dGVzdA/+b==", "密码 with 😀", "it's 100%41", "x" * 40]
Escape = Callable[[str], str]


def units(text: str) -> list[int]:
    encoded = text.encode("utf-16-be")
    return [int.from_bytes(encoded[place : place + 2], "big") for place in range(0, len(encoded), 2)]


def escaped_half(escapes: Iterable[str]) -> str:
    """Escape the second half of a text for an address, wherever that begins."""
    text = "".join(escapes)
    return text[: len(text) // 2] + "".join(f"%{byte:02x}" for byte in text[len(text) // 2 :].encode())


ESCAPES: dict[str, Escape] = {
    "as it is": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, lower": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "a form's": quote_plus,
    "a form's, every other letter": lambda text: "".join(
        quote_plus(letter) if number % 2 or letter == " " else "".join(f"%{byte:02x}" for byte in letter.encode())
        for number, letter in enumerate(text)
    ),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON, all of it": lambda text: "".join(f"\\u{unit:04x}" for unit in units(text)),
    "JSON, all of it, capitals": lambda text: "".join(f"\\u{unit:04X}" for unit in units(text)),
    "JSON of a careful writer": lambda text: (
        json.dumps(text)[1:-1].replace("&", "\\u0026").replace("=", "\\u003d")
    ),
    "JavaScript": lambda text: "".join(f"\\u{{{ord(character):x}}}" for character in text),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[1:-1],
    "JSON four times": lambda text: json.dumps(json.dumps(json.dumps(json.dumps(text)))),
    "Python": lambda text: repr(text)[1:-1],
    "HTML": html.escape,
    "HTML, decimal": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(character):X};" for character in text),
    "HTML, with zeros": lambda text: "".join(f"&#{ord(character):05};" for character in text),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "octal without zeros": lambda text: "".join(f"\\{byte:o}" for byte in text.encode()),
    "hexadecimal in braces": lambda text: "".join(f"\\x{{{ord(character):x}}}" for character in text),
    "bytes": lambda text: repr(text.encode())[2:-1],
    "bytes, one character each": lambda text: text.encode().decode("latin-1"),
    "bytes, one character each of Windows": lambda text: "".join(
        bytes([byte]).decode("cp1252" if byte not in b"\x81\x8d\x8f\x90\x9d" else "latin-1")
        for byte in text.encode()
    ),
    "percent and u": lambda text: "".join(f"%u{unit:04x}" for unit in units(text)),
    "half of it twice": lambda text: escaped_half(f"&#{ord(character):05};" for character in text),
    "half of it in two ways": lambda text: escaped_half(f"\\u{unit:04x}" for unit in units(text)),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)),
    "HTML in an address in JSON": lambda text: json.dumps(quote(html.escape(text))),
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_no_form_of_a_secret_is_shown(secret: str, escape: Escape) -> None:
    shown = redact(f"before {escape(secret)} behind", ["other", secret])
    assert escape(secret) not in shown
    assert "***" in shown


@pytest.mark.parametrize("of_one", ["''", "'\\''"], ids=["a database", "a shell"])
def test_nor_is_one_as_others_quote_what_is_in_quotes(of_one: str) -> None:
    for secret, doubled in (("it's-mine", f"it{of_one}s-mine"), ('my-"pass"', 'my-""pass""')):
        assert redact(f"near {doubled}!", [secret]) == "near ***!"


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_nor_is_one_that_is_quoted_and_then_escaped(escape: Escape) -> None:
    for secret, doubled in (("it's ümine", "it''s ümine"), ('my-"päss"', 'my-""päss""')):
        shown = redact(f"near {escape(doubled)}!", [secret])
        assert escape(doubled) not in shown
        assert "***" in shown


@example("password À", ["bytes, one character each", "HTML, decimal"])
@given(
    st.text(st.characters(exclude_categories=["Cc", "Cn", "Cs"]), min_size=6),
    st.lists(st.sampled_from(sorted(ESCAPES)), max_size=3),
)
def test_nor_is_one_within_another(secret: str, names: list[str]) -> None:
    text = secret
    for name in names:
        text = ESCAPES[name](text)
    assert "***" in redact(f"<{text}>", [secret])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_nor_is_one_of_another_encoding(encoding: str) -> None:
    body = '{"token": "dGVzdA/+b==", "is": "wrong"}'.encode(encoding)
    shown = excerpt(body, ["dGVzdA/+b=="])
    assert (shown.replace("\0", "").count("dGV"), "***" in shown) == (0, True)


@pytest.mark.parametrize("secret", ["\ud800", "hunter\udc80", "\ud83d\ude00 apart"])
def test_half_a_character_of_a_secret_is_masked_too(secret: str) -> None:
    assert redact(f"<{secret}> {json.dumps(secret)}", [secret]) == '<***> "***"'


def test_the_longest_secret_is_masked_first() -> None:
    assert redact("secret-and-more", ["secret", "secret-and-more"]) == "***"


PIECES = ["\\u0025", "%5c", "&amp;", "&#92;", "%26", "\\x41", "Ã©", "41;"]
MANY_ESCAPES = " ".join(map("".join, product(PIECES, repeat=4)))


def test_a_long_text_is_read_where_an_escape_can_be_part_of_a_secret_alone() -> None:
    secrets = ["the-t0ken-of-an-application", "hunter2-and-a-few-characters-more"]
    assert redact(MANY_ESCAPES, secrets) == MANY_ESCAPES
    for secret in secrets:
        assert redact(f"{MANY_ESCAPES} {secret[:3]}{escaped(secret[3:])}", secrets) == "***"


def escaped(text: str) -> str:
    return "".join(f"%5cu{ord(character):04x}" for character in text)


def test_of_what_nobody_can_read_to_its_end_nothing_is_shown() -> None:
    assert redact("".join(map("".join, product(PIECES, repeat=4))), ["hunter2"]) == "***"


def test_what_holds_no_secret_stays_as_it_is() -> None:
    text = 'C:\\temp &amp; 50% of "a+b" \\u00e9'
    assert redact(text, ["token", "hunter2"]) == text


def test_a_huge_message_of_the_platform_is_cut_in_no_time(simulator: Simulator) -> None:
    """Were all of it searched for each of 200 passwords, this would take minutes."""
    users = [NewUser(login_id=f"u{n}", password=f"pass&word{n:03}") for n in range(200)]
    simulator.inject("create_users", replies.refusal("pass&word007 " * 600_000, code=1012))
    client = AnaplatClient(simulator.url, simulator.token)

    with closing(client), pytest.raises(errors.AnaplatRefusedError) as raised:
        client.create_users(users)
    assert len(str(raised.value)) < 4_000
    assert "pass&word" not in str(raised.value) + str(vars(raised.value))


@pytest.mark.parametrize("logger", ["connection", "connectionpool", "poolmanager", "response", "util.retry"])
def test_no_logger_of_urllib3_shows_the_token_of_an_address(logger: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    log = logging.getLogger(f"urllib3.{logger}")
    log.warning("Failed (url=%s): %s", "http://h/p?taskId=1&token=t0%2Fken", ValueError("/p?token=t0ken&a=b"))
    log.warning("GET http://h/p?token=t0ken HTTP/1.1")
    assert "t0" not in caplog.text
    assert caplog.text.count("token=***") == 3


def test_what_repeats_the_request_is_not_remembered(simulator: Simulator) -> None:
    token = "dGVzdA/+b=="
    echo = {"taskId": "t", "dsId": "d", "result": {"request": {"auth": token, token: [f"Bearer {token}"]}}}
    body = json.dumps({"result": "ok", "response": echo}).replace("/", "\\/").encode()
    client = AnaplatClient(simulator.url, token)
    request = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))
    asked: dict[str, Callable[[], object]] = {
        "create_dataset": lambda: client.create_dataset(request).model_dump(),
        "get_task": lambda: client.find_task(["t"]).get("t"),
        "refresh_dataset": lambda: client.call("/public-api/data-source/d/refresh"),
    }
    for operation, ask in asked.items():
        simulator.inject(operation, replies.content(body))
        answer = ask()
        assert "dGV" not in str(answer), operation
        assert "Bearer ***" in str(answer), operation
