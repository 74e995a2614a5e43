"""Keeping secrets out of what a person reads."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

_MASK = "***"
_SECRET_KEYS = frozenset({"token", "password"})
_EXCERPT_LENGTH = 200
_SAME_IN_EVERY_FORM = re.compile(r"[A-Za-z0-9_.~-]+")


def secrets_in(request: Any) -> Iterator[str]:
    """Yield the values under secret keys, at any depth of a JSON request."""
    if isinstance(request, dict):
        for key, value in request.items():
            if isinstance(value, str):
                if key in _SECRET_KEYS:
                    yield value
            else:
                yield from secrets_in(value)
    elif isinstance(request, list | tuple):
        for item in request:
            if isinstance(item, dict | list | tuple):
                yield from secrets_in(item)


def without_secrets(value: Any) -> Any:
    """Return plain JSON with the values under secret keys masked, at any depth."""
    if isinstance(value, dict):
        return {
            key: _MASK if key in _SECRET_KEYS and item is not None else without_secrets(item)
            for key, item in value.items()
        }
    return [without_secrets(item) for item in value] if isinstance(value, list) else value


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret in the text, also where the text holds it escaped as JSON."""
    # No form of a secret is shorter than the secret.
    forms = {form for secret in secrets if 0 < len(secret) <= len(text) for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _MASK)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it may stand in a text: as it is, quoted, or as JSON, also as JSON within JSON."""
    if _SAME_IN_EVERY_FORM.fullmatch(secret):
        return (secret,)
    forms = [secret, repr(secret)[1:-1]]
    for address in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        forms += [address, re.sub("%..", lambda escape: escape.group().lower(), address)]
    for ascii_only in (True, False):
        form = secret
        for _ in range(3):
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            forms.append(form)
    return tuple(forms)


def without_half_characters(text: str) -> str:
    """Replace what JSON can hold and no log file or database can: one half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def without_userinfo(text: str) -> str:
    """Remove user and password from every address in a text."""
    return re.sub(r"//[^/\s]+@", f"//{_MASK}@", text)


def without_token_in_address(record: logging.LogRecord) -> bool:
    """Mask, as a filter of a logger, the token in the query of an address that is logged."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            re.sub(r"([?&]token=)[^&\s]*", rf"\1{_MASK}", value) if isinstance(value, str) else value
            for value in record.args
        )
    return True


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """Return the start of a body on one line, secrets removed before it is cut."""
    secrets = list(secrets)
    start = body[: _EXCERPT_LENGTH * 20]
    text = redact(start.decode("utf-8", errors="replace"), secrets)
    if len(body) > len(start):  # where the start ends, a secret may be cut in two
        text = text[: -max((len(form) for secret in secrets for form in _forms(secret)), default=0) or None]
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT_LENGTH else text[:_EXCERPT_LENGTH] + "…"
