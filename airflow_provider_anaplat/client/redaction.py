"""Keeping secrets out of what a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_MASK = "***"
_SECRET_KEYS = frozenset({"token", "password"})
_EXCERPT_LENGTH = 200


def secrets_in(request: Any) -> Iterator[str]:
    """Yield the values under secret keys, at any depth of a JSON request."""
    if isinstance(request, Mapping):
        for key, value in request.items():
            if key in _SECRET_KEYS and isinstance(value, str):
                yield value
            else:
                yield from secrets_in(value)
    elif isinstance(request, list | tuple):
        for item in request:
            yield from secrets_in(item)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret in the text, also where the text holds it escaped as JSON."""
    forms = {form for secret in secrets if secret for form in (secret, json.dumps(secret)[1:-1])}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _MASK)
    return text


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """Return the start of a body on one line, secrets removed before it is cut."""
    text = redact(body[: _EXCERPT_LENGTH * 20].decode("utf-8", errors="replace"), secrets)
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT_LENGTH else text[:_EXCERPT_LENGTH] + "…"
