"""Whether the settings of a client, a call's path and an answer's rows can be right; no secret is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from airflow_provider_anaplat.client.models import DatasetData
from airflow_provider_anaplat.client.operations import PATH_PREFIX
from airflow_provider_anaplat.errors import (
    AnaplatInvalidAnswerError,
    AnaplatRequestError,
    AnaplatSettingsError,
)

_NEVER_IN_A_PATH = re.compile(r"[?#%;\\\s\x00-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
_ENCRYPTED = re.compile(rb"^(-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: *4, *ENCRYPTED)", re.MULTILINE)
# What requests looks up; "ftp" and "no" are among the environment's.
_PROXIED = ("http", "https", "all", "no_proxy", "ftp", "no")
_TOO_LONG = 10**9  # seconds; a socket's time-out ends at some nine times as many


def checked_base_url(base_url: str) -> str:
    """Return the platform's address without a slash at its end."""
    if not base_url.isprintable() or " " in base_url:  # which lower layers leave out, or escape
        raise AnaplatSettingsError(
            "base_url holds a space, a line break or another character that is not printed."
        )
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018 - reading it tells whether it is one
    except ValueError:
        raise AnaplatSettingsError("base_url is not an address; check its port and brackets.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AnaplatSettingsError("base_url needs http:// or https:// and a host.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise AnaplatSettingsError("base_url holds more than scheme, host, port and path prefix.")
    return base_url.rstrip("/")


def is_same_address(one: str, other: str) -> bool:
    """Tell whether two addresses lead to one platform, in whatever case and with or without the usual port."""
    try:
        return _address_parts(one) == _address_parts(other)
    except ValueError:  # of what is no address; it may come from a file
        return one == other


def _address_parts(address: str) -> tuple[Any, ...]:
    parts = urlsplit(address)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, parts.path.rstrip("/")


def check_limits(
    connect_timeout: float,
    read_timeout: float,
    max_retries: int,
    max_connections: int | None,
    max_answer_mb: int,
) -> None:
    """Make sure that a request can be made within these limits."""
    if not (0 < connect_timeout < _TOO_LONG and 0 < read_timeout < _TOO_LONG) or max_retries < 0:
        raise AnaplatSettingsError(
            f"time-outs must be above 0 seconds and below {_TOO_LONG:,}, and max_retries at least 0."
        )
    if (max_connections is not None and max_connections < 1) or max_answer_mb < 1:
        raise AnaplatSettingsError("max_connections and max_answer_mb must be at least 1.")


def check_files(verify: bool | str, cert: str | tuple[str, str] | None) -> None:
    """Make sure that the named files of certificates are there."""
    named = {
        "verify": [verify] if isinstance(verify, str) else [],
        "cert": [cert] if isinstance(cert, str) else cert,
    }
    for name, paths in named.items():
        for path in paths or []:
            if "-----BEGIN" in str(path):  # a key among it is a secret
                raise AnaplatSettingsError(
                    f"{name} holds a certificate or key; it must be the path of such a file."
                )
            if not path or not _is_there(Path(path)):  # an empty one would turn the check off
                raise AnaplatSettingsError(f"{name}: there is no file {path}.")
    for path in named["cert"] or []:
        if _is_encrypted(Path(path)):  # OpenSSL would ask for the password, and wait for somebody to type it
            raise AnaplatSettingsError(
                f"cert: the private key in {path} is encrypted, and nobody is there to type its password. Give a "
                "file with a key that is not, and that the worker's user alone can read."
            )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as of a name that is too long
        return False


def _is_encrypted(path: Path) -> bool:
    try:
        return _ENCRYPTED.search(path.read_bytes()) is not None
    except OSError:  # whoever sends the first request says so
        return False


def check_proxies(proxies: Mapping[str, str]) -> None:
    """Make sure that each proxy has an address, and is used."""
    for scheme, address in proxies.items():
        if str(scheme).partition("://")[0] not in _PROXIED:  # it may be an address with a password
            raise AnaplatSettingsError(
                "proxies: a name is none of http, https and all, in small letters, so its proxy would not be used."
            )
        try:
            urlsplit(address)
        except ValueError:  # whose text may hold the proxy's password
            raise AnaplatSettingsError(f"proxies: what is given for {scheme} is no address.") from None


def checked_token(name: str, token: str) -> str:
    """Return a token that a header can hold."""
    # A header with such characters would be refused by lower layers, with the token in their message.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise AnaplatSettingsError(f"{name} is empty, or holds a space, a line break or a character beyond ASCII.")
    return token


def checked_path(path: str) -> str:
    """Return the path of a call that leads nowhere but to the Public API.

    :raises AnaplatRequestError: it may lead elsewhere
    """
    # As a server or a proxy may read it; some decode twice, or treat characters that are much alike as the same.
    plain = normalize("NFKC", unquote(path))
    dots = {".", ".."}.intersection(plain.split("/"))
    if not path.startswith(PATH_PREFIX) or dots or _NEVER_IN_A_PATH.search(plain):
        shown = re.split(r"[?#]", path)[0]  # what follows may hold a token
        raise AnaplatRequestError(
            f"The path {shown!r} is refused: it must start with {PATH_PREFIX} and hold no `..`, no query "
            "(use params), no space, and none of % ; \\, escaped or not."
        )
    return path


def check_method(operation: str, method: str) -> None:
    """See that a method is one.

    :raises AnaplatRequestError: it is none
    """
    if not (method.isascii() and method.isalpha()):
        raise AnaplatRequestError(
            f"{operation}: the method {method!r:.40} is no word such as POST; nothing was sent.",
            operation=operation,
        )


def check_rows(data: DatasetData, ds_id: str, limit: int) -> DatasetData:
    """Return rows that were asked for.

    :raises AnaplatInvalidAnswerError: they are of another dataset, or more
    """
    if data.ds_id != ds_id:
        what = f"dataset {ds_id} was asked for, and the answer is of another one"
    elif len(data.preview) > limit:
        what = f"the answer has {len(data.preview):,} rows, which are more than the {limit:,} that were asked for"
    else:
        return data
    raise AnaplatInvalidAnswerError(f"read_rows: {what}.", operation="read_rows")
