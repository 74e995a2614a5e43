"""Keeping secrets out of what a person reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

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
    forms = {form for secret in secrets if secret for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _MASK)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    return secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")


def without_userinfo(text: str) -> str:
    """Remove user and password from every address in a text."""
    return re.sub(r"//[^/@\s]+@", f"//{_MASK}@", text)


def excerpt(body: bytes, secrets: Iterable[str]) -> str:
    """Return the start of a body on one line, secrets removed before it is cut."""
    text = redact(body[: _EXCERPT_LENGTH * 20].decode("utf-8", errors="replace"), secrets)
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT_LENGTH else text[:_EXCERPT_LENGTH] + "…"
