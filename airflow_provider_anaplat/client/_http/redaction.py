"""Keeping secrets out of what a person reads."""

from __future__ import annotations

import html
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, cast
from urllib.parse import quote, quote_plus, unquote_plus

_MASK = "***"
_SECRET_KEYS = frozenset({"token", "password"})
_EXCERPT_LENGTH = 200
LONGEST_WORDS = 2_000  # characters of what the platform says of a task, or of what it did
_LONG_SECRET = 8  # characters
_MOST_READINGS = 200
_MOST_READ = 8_000_000  # characters of readings, for which a processor works some seconds
_ESCAPED = re.compile(r"[\\%&+\0\x80-\xff]")
_BACKSLASH = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|[ux]\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})"
    r"|([0-3]?[0-7]{1,2})|(.))",
    re.DOTALL,
)
_OCTAL, _PLAIN = 5, 6  # their groups
_TO_JOIN = re.compile(r"[\\\0\ud800-\udfff]")
# What stands for a byte that was read as a character of its own: HTML, as most of the world, takes 0x80 for the €.
_BYTE_OF = {ord(said): byte for byte in range(0x80, 0xA0) if (said := bytes([byte]).decode("cp1252", "ignore"))}
_OF_BYTES = f"\x80-\xff{''.join(map(chr, _BYTE_OF))}"
_BYTES = re.compile(f"[{_OF_BYTES}]{{2,}}")
_OF_ESCAPES = rf"\\%&#;{{}}\0a-zA-Z0-9\ud800-\udfff{_OF_BYTES}"  # what an escape of any kind is made of
_PERCENT_U = re.compile("%u([0-9a-fA-F]{4})")  # which old browsers' scripts write
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SAME_IN_EVERY_FORM = re.compile(r"[A-Za-z0-9_.~-]+")


def secrets_in(request: Any) -> Iterator[str]:
    """Yield the values under secret keys, at any depth of a JSON request."""
    waiting = [request] if isinstance(request, Mapping | list | tuple) else []
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield from (part[key] for key in _SECRET_KEYS & part.keys() if isinstance(part[key], str))
        items = part.values() if isinstance(part, Mapping) else part
        waiting.extend(item for item in items if isinstance(item, Mapping | list | tuple))


def brief(words: Any, length: int = _EXCERPT_LENGTH) -> str:
    """Return words of the platform's, masked already, on one line that a log or an error can take.

    :param words: a text, or what has one
    :param length: characters at most
    """
    text = str(words)
    shown = " ".join(text[: length * 20].split())
    return shown if len(shown) <= length and len(text) <= length * 20 else shown[:length] + "…"


def without_secrets(value: Any) -> Any:
    """Return plain JSON with the values under secret keys masked, at any depth."""
    if isinstance(value, dict):
        return {
            key: _MASK if key in _SECRET_KEYS and item is not None else without_secrets(item)
            for key, item in value.items()
        }
    return [without_secrets(item) for item in value] if isinstance(value, list) else value


def without_values(value: Any, secrets: Iterable[str]) -> Any:
    """Return plain JSON with the secrets masked wherever a text or a key holds one."""
    return _without(value, _Mask(secrets))


def without_echo(value: Any, body: bytes, secrets: Iterable[str]) -> Any:
    """Return what a body means with the secrets masked that it holds in one of their usual forms.

    To look in the bytes for what all of these forms have in common costs next to nothing, and most bodies hold
    none. What is short is left: data can hold it by chance.
    """
    long = [secret for secret in secrets if len(secret) >= _LONG_SECRET]
    cores = [max(_SAME_IN_EVERY_FORM.findall(secret), key=len, default="").encode() for secret in long]
    # Of UTF-16, which JSON may be in, no form would be found.
    return without_values(value, long) if b"\0" in body or any(core in body for core in cores) else value


def _without(value: Any, mask: _Mask) -> Any:
    if isinstance(value, dict):
        return {mask.put_on(key): _without(item, mask) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, mask) for item in value]
    return mask.put_on(value) if isinstance(value, str) else value


def redact(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret in a text.

    If the text holds one escaped (for an address, as JSON, as HTML, or one within another), in a form that is
    not among the usual ones, nothing of the text is left.
    """
    # No form of a secret is shorter than the secret.
    return _Mask(secret for secret in secrets if len(secret) <= len(text)).put_on(text)


class _Mask:
    """Masks secrets in any number of texts.

    :param secrets: the secrets
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [form for secret in secrets if secret for form in _quoted(secret)]
        self._forms = sorted({form for secret in self._secrets for form in _forms(secret)}, key=len, reverse=True)

    def put_on(self, text: str) -> str:
        """Return a text without the secrets."""
        for form in self._forms:
            text = text.replace(form, _MASK)
        return _MASK if self._secrets and _ESCAPED.search(text) and self._may_be_hidden(text) else text

    def _may_be_hidden(self, text: str) -> bool:
        """Tell whether a text holds a secret in an unusual form, or so many escapes that nobody can tell."""
        read = 0
        shortest, of_either = self._of_either
        for run in of_either.finditer(text):
            if not _ESCAPED.search(run[0]):
                continue
            readings: list[str] = []
            for reading in islice(_readings(run[0], shortest), _MOST_READINGS):
                readings.append(reading)
                read += len(reading)
                if len(readings) == _MOST_READINGS or read > _MOST_READ:
                    return True
            plain = _plain(run[0])
            if any(_is_in(readings, plain, secret) for secret in self._secrets):
                return True
        return False

    @cached_property
    def _of_either(self) -> tuple[int, re.Pattern[str]]:
        """What finds all in a text that can be a secret with an escape in it, and the characters of the shortest.

        An escape is no shorter than what it stands for; and between two characters of a secret, or their
        escapes, stands nothing that is part of neither. To read a whole text in every way takes half a minute
        for a megabyte.
        """
        spelt = {*self._secrets, *filter(None, map(_plain, self._secrets))}
        characters = set("".join(spelt))
        if " " in characters:  # which addresses have a plus for
            characters.add("+")
        any_of, shortest = re.escape("".join(sorted(characters))), min(map(len, spelt))
        return shortest, re.compile(f"[{_OF_ESCAPES}{any_of}]{{{shortest},}}")


def _quoted(secret: str) -> set[str]:
    """Return a secret as it is, and as databases, tables and shells quote a quotation mark in it."""
    return {secret, secret.replace("'", "''"), secret.replace('"', '""'), secret.replace("'", r"'\''")}


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it mostly stands in a text: as it is, quoted, as JSON (also within JSON), or as HTML."""
    if _SAME_IN_EVERY_FORM.fullmatch(secret):
        return (secret,)
    forms = [secret, repr(secret)[1:-1], html.escape(secret), html.escape(secret, quote=False)]
    octets = secret.encode(errors="surrogatepass")  # what an answer holds may be half a character
    for address in (quote(octets, safe=""), quote(octets), quote_plus(octets)):
        forms += [address, re.sub("%..", lambda escape: escape.group().lower(), address)]
    for ascii_only in (True, False):
        form = secret
        for _ in range(3):
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            forms += [form, form.replace("/", r"\/")]
    return tuple(forms)


def _is_in(readings: Sequence[str], text: str, secret: str) -> bool:
    # If a secret ends in a backslash, what follows it in the text is taken for escaped.
    plain = _plain(secret)
    return (plain != "" and plain in text) or any(secret in reading for reading in readings)


def _readings(text: str, shortest: int) -> Iterator[str]:
    """Yield a text, and what is left of it as escapes of JSON, HTML and addresses are undone, in every order.

    Half of an escape may be escaped in another way than the other half.

    :param shortest: characters of a reading at least; undoing never makes one longer
    """
    readings = [text]
    for reading in readings:  # which grows meanwhile
        yield reading
        undone = (undo(reading) for undo in _UNDO)
        readings += [other for other in undone if len(other) >= shortest and other not in readings]


def _plain(text: str) -> str:
    """Return what is left of a text when no escape is left, and no backslash."""
    before = None
    while text != before:
        before = text
        for undo in _UNDO:
            text = undo(text)
    return text.replace("\\", "")


def _without_backslashes(text: str) -> str:
    return _whole(_BACKSLASH.sub(_character, text).replace("\0", "")) if _TO_JOIN.search(text) else text


def _whole(text: str) -> str:
    """Put together halves of characters that were escaped apart."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    kind, code = cast(int, escape.lastindex), escape[cast(int, escape.lastindex)]
    if kind == _PLAIN:
        return _CONTROLS.get(code, code)
    return chr(int(code, 8)) if kind == _OCTAL else chr(min(int(code, 16), sys.maxunicode))


def _without_percents(text: str) -> str:
    if "%" in text:
        text = _whole(_PERCENT_U.sub(lambda escape: chr(int(escape[1], 16)), text))
    return unquote_plus(text)


def _without_bytes(text: str) -> str:
    """Read as UTF-8 what was read, or escaped, byte by byte."""
    return _BYTES.sub(lambda read: read[0].translate(_BYTE_OF).encode("latin-1").decode(errors="replace"), text)


_UNDO = (_without_backslashes, html.unescape, _without_percents, _without_bytes)


def without_half_characters(text: str) -> str:
    """Replace what JSON can hold and no log file or database can: one half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def without_userinfo(text: str) -> str:
    """Remove user and password from every address in a text."""
    return re.sub(r"//[^/\s]+@", f"//{_MASK}@", text)


def without_token_in_address(record: logging.LogRecord) -> bool:
    """Mask, as a filter of a logger, the token in the query of an address that is logged."""
    said = record.getMessage()
    shown = re.sub(r"([?&]token=)[^&\s]*", rf"\1{_MASK}", said)
    if shown != said:
        record.msg, record.args = shown, ()
    return True


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """Return the start of a body on one line, secrets removed before it is cut."""
    start = body[: _EXCERPT_LENGTH * 20]
    text = start.decode(json.detect_encoding(start), errors="replace")
    return shortened(text, secrets, _EXCERPT_LENGTH, is_cut=len(body) > len(start))


def shortened(text: str, secrets: Iterable[str], length: int, *, is_cut: bool = False) -> str:
    """Return the start of a text on one line, secrets removed before it is cut.

    :param length: characters at most
    :param is_cut: whether the text is itself the start of a longer one
    """
    secrets = list(secrets)
    start = text[: length * 20]
    shown = redact(start, secrets)
    if is_cut or len(text) > len(start):  # where the start ends, a secret may be cut in two
        forms = (form for secret in secrets for quoted in _quoted(secret) for form in _forms(quoted))
        shown = shown[: -max(map(len, forms), default=0) or None]
    return brief(shown, length)
