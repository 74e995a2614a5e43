"""From the fields of an Airflow connection to the arguments of a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_anaplat.connection_form import BY_NAME, Option
from airflow_provider_anaplat.errors import AnaplatSettingsError

__all__ = [
    "client_arguments",
    "option_value",
]

log = logging.getLogger(__name__)


def client_arguments(
    *,
    host: str | None,
    schema: str | None,
    port: int | str | None,
    password: str | None,
    extra: Mapping[str, Any],
    login: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of :class:`AnaplatClient` for a connection.

    :param host: host, also with scheme, port and path prefix
    :param schema: ``http`` or ``https``, if the host names no scheme; ``https`` by default
    :param port: TCP port, if the host names none
    :param password: the application token
    :param extra: the extras; a string in place of a number is converted, an empty one is as if not given
    :param login: loginId of the user to sign in; empty to sign nobody in
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
    if (login or "").strip():
        arguments["login"] = (login or "").strip()
    for key, given in _object(extra).items():
        option = BY_NAME.get(key)
        if option is None:
            log.warning("The connection's extra %r is not known to Anaplat, and does nothing", key)
            continue
        value = _value(option, given)
        if value is not None and option.read_by == "client":
            arguments[key] = value
    return arguments


def option_value(name: str, extra: Mapping[str, Any]) -> Any:
    """Return the value of an option, or its default if it is not given.

    :param name: of a row of :data:`~airflow_provider_anaplat.connection_form.OPTIONS`
    :param extra: the extras; an empty one is as if not given
    :raises AnaplatSettingsError: it is unusable
    """
    option = BY_NAME[name]
    value = _value(option, _object(extra).get(name))
    return option.default if value is None else value


def _object(extra: Any) -> Mapping[str, Any]:
    """Return the extras, for which Airflow takes any JSON."""
    if not isinstance(extra, Mapping):
        raise AnaplatSettingsError(
            'The connection\'s extra is no object: give one such as {"read_timeout": 120}, or leave it empty.'
        )
    return extra


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


def _value(option: Option, given: Any) -> Any:
    if (given.strip() if isinstance(given, str) else given) in (None, "", {}):
        return None
    try:
        return option.kind.convert(given)
    except (TypeError, ValueError) as error:
        # The value could be a secret in the wrong place, so it is not shown.
        raise AnaplatSettingsError(f"The connection's extra {option.name!r} is unusable: {error}.") from None
