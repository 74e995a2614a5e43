"""What a connection holds, made into what the client takes. A ``ValueError`` never says the value."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from string import Formatter
from typing import Any
from urllib.parse import urlsplit

__all__ = [
    "at_least_one",
    "body",
    "call",
    "certificate",
    "count",
    "proxies",
    "seconds",
    "text",
    "url_template",
    "verify",
    "without_login",
]

_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


def text(value: Any) -> str:
    """Return a text without blanks around it."""
    if not isinstance(value, str):
        raise ValueError("it must be a text")
    return value.strip()


def seconds(value: Any) -> float:
    """Return a number of seconds above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("it must be a number of seconds") from None
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ValueError("it must be a number of seconds above 0")
    return number


def count(value: Any) -> int:
    """Return a whole number, 0 or more."""
    if isinstance(value, bool) or not str(value).strip().isdigit():
        raise ValueError("it must be a whole number, 0 or more")
    return int(value)


def at_least_one(value: Any) -> int:
    """Return a whole number, 1 or more."""
    if isinstance(value, bool) or not str(value).strip().isdigit() or int(value) < 1:
        raise ValueError("it must be a whole number, 1 or more")
    return int(value)


def verify(value: Any) -> bool | str:
    """Return whether certificates are checked, or the path of a CA bundle."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("it must be true, false, or the path of a CA bundle")
    word = value.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else value.strip()


def certificate(value: Any) -> str | tuple[str, str]:
    """Return the path of a client certificate with its key, or the paths of both."""
    parts = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list | tuple) or len(parts) != 2 or not all(isinstance(p, str) for p in parts):
        raise ValueError("it must be a path, or a list of the certificate's and the key's path")
    return parts[0], parts[1]


def proxies(value: Any) -> dict[str, str]:
    """Return proxy addresses by scheme."""
    found = _parsed(value) if isinstance(value, str) else value
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise ValueError('it must be a JSON object of proxy addresses, such as {"https": "http://proxy:3128"}')
    return found


def call(value: Any) -> dict[str, Any]:
    """Return how an operation is called that a deployment has elsewhere."""
    found = _parsed(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise ValueError('it must be a JSON object, such as {"path": "/public-api/task/status"}')
    return found


def body(value: Any) -> dict[str, Any]:
    """Return the body of a request."""
    found = _parsed(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise ValueError('it must be a JSON object, such as {"domain": "acme", "loginId": "{login}"}')
    return found


def url_template(value: Any, in_braces: Collection[str]) -> str:
    """Return the template of a web address.

    :param in_braces: the names that may stand in braces
    """
    template = text(value)
    names = ", ".join(f"{{{name}}}" for name in sorted(in_braces))
    if not {name for _, name, _, _ in Formatter().parse(template) if name is not None} <= set(in_braces):
        raise ValueError(f"it may hold {names} in braces, and nothing else")
    if not template.startswith(("http://", "https://", "{base_url}")):
        raise ValueError("it must start with http://, https:// or {base_url}")
    return template


def without_login(address: str) -> str:
    """Return a web address without a user and a password, which everybody would see who sees the address."""
    shown = re.sub(r"^(https?://)[^/?#]*@", r"\1", address)
    try:
        urlsplit(shown).port  # noqa: B018 - a password with a slash in it would stand here
    except ValueError:
        raise ValueError("it must have a host, and perhaps a port, before its path") from None
    return shown


def _parsed(json_text: str) -> Any:
    """Return what JSON text stands for, or None, which no option takes."""
    try:
        return json.loads(json_text)
    except (ValueError, RecursionError):
        return None
