"""From the fields of an Airflow connection to the arguments of a client."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Set
from string import Formatter
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_anaplat.connection_form import URL_TEMPLATES
from airflow_provider_anaplat.errors import AnaplatSettingsError

log = logging.getLogger(__name__)

# Extras that say where a deployment has what the contract names without describing; operators read them.
EXTENSION_EXTRAS = frozenset({"refresh_style", "refresh_path", "refresh_method", "refresh_auth_in"})

# What may stand in braces in the extras that are templates of web addresses.
_IN_BRACES = {"dataset_url": {"base_url", "dirId", "dsId"}, "page_url": {"base_url", "pgId"}}

_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


def client_arguments(
    *,
    host: str | None,
    schema: str | None,
    port: int | str | None,
    password: str | None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments of :class:`AnaplatClient` for a connection.

    :param host: host, also with scheme, port and path prefix
    :param schema: ``http`` or ``https``, where the host names no scheme; ``https`` by default
    :param port: TCP port, where the host names none
    :param password: the application token
    :param extra: the extras; a string where a number is due is converted, an empty one is as if not given
    :raises AnaplatSettingsError: a field is missing or unusable; it is named
    """
    if not (password or "").strip():
        raise AnaplatSettingsError(
            "The connection has no token: put the application token into its password field."
        )
    arguments: dict[str, Any] = {
        "base_url": _base_url((host or "").strip(), (schema or "").strip(), port),
        "token": (password or "").strip(),
    }
    for key, value in extra.items():
        if key in EXTENSION_EXTRAS:
            continue
        if key in URL_TEMPLATES:
            url_template(key, extra)
            continue
        convert = _EXTRAS.get(key)
        if convert is None:
            log.warning("The connection's extra %r is not known to Anaplat, and does nothing", key)
        elif value not in (None, "", {}):
            arguments[key] = _converted(key, value, convert)
    return arguments


def url_template(key: str, extra: Mapping[str, Any]) -> str:
    """Return the template of a web address.

    :param key: ``dataset_url`` or ``page_url``
    :param extra: the extras; an empty one is as if not given
    :raises AnaplatSettingsError: it is no web address, or holds something else in braces
    """
    given = extra.get(key)
    return _converted(key, given, lambda value: _url(value, _IN_BRACES[key])) if given else URL_TEMPLATES[key]


def _base_url(host: str, schema: str, port: int | str | None) -> str:
    if not host:
        raise AnaplatSettingsError("The connection has no host: put the platform's address into its host field.")
    if "://" not in host:
        host = f"{schema or 'https'}://{host}"
    try:
        parts = urlsplit(host)
        given_port = parts.port
    except ValueError:  # whose text may hold a password that stands in the host
        raise AnaplatSettingsError("The connection's host is no address; check its port and brackets.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AnaplatSettingsError(
            "The connection's scheme is neither http nor https, or its host is no host name."
        )
    # Airflow's form and some of its releases give 0 for a port that was left empty.
    netloc = parts.netloc if given_port or not port or int(port) == 0 else f"{parts.netloc}:{int(port)}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def _converted(key: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        # The value could be a secret in the wrong place, so it is not shown.
        raise AnaplatSettingsError(f"The connection's extra {key!r} is unusable: {error}.") from None


def _seconds(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise ValueError("it must be a number of seconds") from None
    if isinstance(value, bool) or not 0 < seconds < float("inf"):
        raise ValueError("it must be a number of seconds above 0")
    return seconds


def _count(value: Any) -> int:
    if isinstance(value, bool) or not str(value).strip().isdigit():
        raise ValueError("it must be a whole number, 0 or more")
    return int(value)


def _at_least_one(value: Any) -> int:
    if isinstance(value, bool) or not str(value).strip().isdigit() or int(value) < 1:
        raise ValueError("it must be a whole number, 1 or more")
    return int(value)


def _verify(value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("it must be true, false, or the path of a CA bundle")
    word = value.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else value.strip()


def _cert(value: Any) -> str | tuple[str, str]:
    parts = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list | tuple) or len(parts) != 2 or not all(isinstance(p, str) for p in parts):
        raise ValueError("it must be a path, or a list of the certificate's and the key's path")
    return parts[0], parts[1]


def _proxies(value: Any) -> dict[str, str]:
    proxies = _parsed(value) if isinstance(value, str) else value
    if not isinstance(proxies, dict) or not all(isinstance(v, str) for v in proxies.values()):
        raise ValueError('it must be a JSON object of proxy addresses, such as {"https": "http://proxy:3128"}')
    return proxies


def _task_status(value: Any) -> dict[str, Any]:
    call = _parsed(value) if isinstance(value, str) else value
    if not isinstance(call, dict):
        raise ValueError('it must be a JSON object, such as {"path": "/public-api/task/status"}')
    return call


def _parsed(text: str) -> Any:
    """Return what JSON text stands for, or None, which no extra takes."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _url(value: Any, in_braces: Set[str]) -> str:
    template = _text(value)
    names = ", ".join(f"{{{name}}}" for name in sorted(in_braces))
    if not {name for _, name, _, _ in Formatter().parse(template) if name is not None} <= in_braces:
        raise ValueError(f"it may hold {names} in braces, and nothing else")
    if not template.startswith(("http://", "https://", "{base_url}")):
        raise ValueError("it must start with http://, https:// or {base_url}")
    return template


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it must be a text")
    return value.strip()


# Each of the extras has its field in the connection form.
_EXTRAS: dict[str, Callable[[Any], Any]] = {
    "user_token": _text,
    "connect_timeout": _seconds,
    "read_timeout": _seconds,
    "max_retries": _count,
    "max_connections": _at_least_one,
    "max_answer_mb": _at_least_one,
    "verify": _verify,
    "cert": _cert,
    "proxies": _proxies,
    "task_status": _task_status,
}

KNOWN_EXTRAS = frozenset({*_EXTRAS, *EXTENSION_EXTRAS, *URL_TEMPLATES})
