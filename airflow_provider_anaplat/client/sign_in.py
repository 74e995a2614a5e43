"""Signing in: from the application token and a loginId to a user token (an extension, not of the contract)."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import defaults
from airflow_provider_anaplat.client._http.checks import checked_path, checked_token
from airflow_provider_anaplat.client._http.envelope import Answer, read_payload, sentence
from airflow_provider_anaplat.client._http.redaction import secrets_in

__all__ = [
    "SignIn",
    "TokenStore",
    "UserToken",
    "read_user_token",
    "sign_in_error",
    "sign_in_of",
]

_PLACE = re.compile(r"\{(\w*)\}")
_PLACES = ("login", "token", "password", "password_base64")
_WITH_PASSWORD = '{"domain": "acme", "loginId": "{login}", "password": "{password_base64}"}'
_LONGEST_MARGIN = 300.0  # seconds before a token's end, at most, at which it is renewed
_ZONES_AHEAD = 14 * 3600.0  # seconds by which the clock on a wall is ahead of UTC at most


class TokenStore(Protocol):
    """Where the processes of a deployment share a user token; what is kept is a secret."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept last under a key; None if there is nothing, or if it cannot be had."""

    def set(self, key: str, kept: Mapping[str, Any]) -> None:
        """Keep this, if that is possible; it is plain JSON, and its ``token`` is a secret in any case."""


@dataclass(frozen=True, slots=True)
class UserToken:
    """A user token. Both times are seconds since the epoch, by the platform's clock.

    :param value: the token itself
    :param renew_at: when to renew it; None if nobody knows when it ends
    :param vain_until: until when it makes no sense to sign in again because it is refused: it was new then
    """

    value: str = field(repr=False)
    renew_at: float | None = None
    vain_until: float = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"token": self.value, "renew_at": self.renew_at, "vain_until": self.vain_until}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None) -> UserToken | None:
        """Return what :meth:`to_json` made, or None for anything else."""
        try:
            kept = kept or {}
            renew_at = None if kept["renew_at"] is None else float(kept["renew_at"])
            return cls(checked_token("token", kept["token"]), renew_at, float(kept["vain_until"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class SignIn:
    """How a deployment signs a user in.

    :param login: the user's loginId
    :param password: the user's password, if the body asks for it
    :param path: path below the base address
    :param body: the request's body; in its texts, ``{login}``, ``{token}``, ``{password}`` and
        ``{password_base64}`` stand for what they name
    """

    login: str
    password: str | None = field(default=None, repr=False)
    path: str = defaults.SIGN_IN_PATH
    body: Mapping[str, Any] = field(default_factory=lambda: defaults.SIGN_IN_BODY)

    def __post_init__(self) -> None:
        try:
            checked_path(self.path)
        except errors.AnaplatRequestError as error:
            raise errors.AnaplatSettingsError(f"sign_in_path: {error}") from None
        try:
            places = set(_places_in(self.body))
        except RecursionError:
            raise errors.AnaplatSettingsError("sign_in_body is unusable: it is nested too deep.") from None
        with_password = bool(places & {"password", "password_base64"})
        if unknown := sorted(places - set(_PLACES)):
            known = ", ".join(f"{{{place}}}" for place in _PLACES)
            problem = f"it holds {{{unknown[0]}}}, and {known} are what it may hold in braces"
        elif "login" not in places:
            problem = "it holds no {login}, which stands for the connection's login"
        elif any(not _PLACE.search(secret) for secret in secrets_in(self.body)):
            problem = "it holds a secret itself: put the password into user_password, and {password} here"
        elif with_password and not self.password:
            problem = "it holds {password}, and user_password is empty"
        elif self.password and not with_password:
            problem = (
                "user_password is given, and neither {password} nor {password_base64} stands in it; "
                f"for instance {_WITH_PASSWORD}"
            )
        else:
            return
        raise errors.AnaplatSettingsError(f"sign_in_body is unusable: {problem}.")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        return (self.password, _base64(self.password)) if self.password else ()

    def request(self, token: str) -> dict[str, Any]:
        """Return the body of the request.

        :param token: the application token
        """
        password = self.password or ""
        values = (self.login, token, password, _base64(password))
        filled: dict[str, Any] = _filled(self.body, dict(zip(_PLACES, values, strict=True)))
        return filled

    def digest(self, base_url: str, token: str) -> str:
        """Return what tells this user of this platform from others, without a secret.

        :param token: the application token
        """
        told_apart = json.dumps([base_url, self.login, self.path, self.request(token)], sort_keys=True)
        return hashlib.sha256(told_apart.encode()).hexdigest()[:32]


def sign_in_of(
    login: str | None, user_token: str | None, password: str | None, path: str, body: Mapping[str, Any]
) -> SignIn | None:
    """Return how to sign in; None if there is no login.

    :raises AnaplatSettingsError: what is given does not go together
    """
    if login and user_token:
        raise errors.AnaplatSettingsError(
            "The connection has both a login and a user_token. With a login, user tokens come from signing in and "
            "renew themselves; one that was pasted would be displaced by that. Remove one of the two."
        )
    if login:
        return SignIn(login, password, path, body)
    given = {
        "user_password": password,
        "sign_in_path": path != defaults.SIGN_IN_PATH,
        "sign_in_body": body != defaults.SIGN_IN_BODY,
    }
    if useless := [name for name, is_given in given.items() if is_given]:
        raise errors.AnaplatSettingsError(
            f"{' and '.join(useless)} do nothing without a login: put the loginId of the user whose rights count "
            "into the connection's login field."
        )
    return None


def read_user_token(answer: Answer, now: float) -> UserToken:
    """Return the token that a sign-in was answered with.

    :param now: seconds since the epoch, by the platform's clock
    :raises AnaplatSignInError: it holds none
    """
    answer = replace(answer, secrets=(*answer.secrets, *_secrets_of(answer)))
    payload = read_payload(answer)
    payload = payload if isinstance(payload, dict) else {}
    given = payload.get("token")
    try:
        value = checked_token("token", given if isinstance(given, str) else "")
    except errors.AnaplatSettingsError:
        raise answer.error(
            errors.AnaplatSignInError,
            "the platform took the sign-in, and its answer holds no `token` that a header can hold. Check the "
            "connection's `sign_in_path` and `sign_in_body`.",
        ) from None
    ends = (*_end_in_jwt(value), *_ends_in_text(payload.get("expireAt")))
    end = next((end for end in ends if end > now), None)
    if end is None:
        return UserToken(value)
    margin = 1 + min(_LONGEST_MARGIN, (end - now) / 10)  # an HTTP date is a second behind at most
    return UserToken(value, end - margin if end - margin > now else None)


def _secrets_of(answer: Answer) -> tuple[str, ...]:
    try:
        return tuple(secrets_in(answer.parsed()))
    except (ValueError, RecursionError, errors.AnaplatError):
        return ()


def sign_in_error(error: errors.AnaplatError, login: str) -> errors.AnaplatError:
    """Return what went wrong as somebody can read it who knows the connection, and not the platform.

    :param error: of the request; if the platform has not refused it, it says enough
    """
    if not isinstance(error, errors.AnaplatRefusedError) or isinstance(error, errors.AnaplatSignInError):
        return error
    code = "" if error.code is None else f", code {error.code}"
    said = f" {sentence(f'The platform says: {error.platform_message}')}" if error.platform_message else ""
    message = (
        f"sign_in: signing in as {login!r} was refused with HTTP {error.status}{code}.{said} {_what_to_do(error)}"
    )
    passes = isinstance(error, errors.AnaplatServerError | errors.AnaplatRateLimitedError)
    described = (type(error) if passes else errors.AnaplatSignInError)(message)
    vars(described).update(vars(error))
    return described


def _what_to_do(error: errors.AnaplatRefusedError) -> str:
    if isinstance(error, errors.AnaplatAuthenticationError):
        return (
            "The platform does not take the application token (or the user's password, if you sign in with "
            "one): check the connection's password field, and its extra `user_password`."
        )
    if isinstance(error, errors.AnaplatPermissionError):
        return (
            "The application token may not sign this user in, or the user is locked: ask the platform's "
            "administrator."
        )
    if isinstance(error, errors.AnaplatNotFoundError) and error.code is not None:
        return "The platform does not know this user: check the loginId in the connection's login field."
    if isinstance(error, errors.AnaplatRateLimitedError):
        return "Wait, or start fewer tasks at a time."
    return (
        "Check the loginId in the connection's login field and, if your platform signs in differently, the "
        "extras `sign_in_path` and `sign_in_body`."
    )


def _places_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _PLACE.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _places_in(item)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):  # in one go: what is put in may itself look like a place
        return _PLACE.sub(lambda place: values[place[1]], value)
    return {key: _filled(item, values) for key, item in value.items()} if isinstance(value, Mapping) else value


def _base64(text: str) -> str:
    return b64encode(text.encode(errors="replace")).decode()


def _end_in_jwt(token: str) -> Iterator[float]:
    try:
        middle = token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        yield _seconds(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):  # it can hold anything
        return


def _ends_in_text(moment: Any) -> Iterator[float]:
    """Yield what a time can mean, the likeliest to be in time first."""
    try:
        if not isinstance(moment, str):
            yield _seconds(moment)
            return
        read = datetime.fromisoformat(moment.strip())
    except (TypeError, ValueError, OverflowError):
        return
    if read.tzinfo is None:
        # The platform does not say of which zone: the earliest that it can mean or, if that is past, UTC.
        yield read.replace(tzinfo=UTC).timestamp() - _ZONES_AHEAD
        read = read.replace(tzinfo=UTC)
    yield read.timestamp()


def _seconds(epoch: Any) -> float:
    """Return seconds since the epoch; some platforms give milliseconds."""
    seconds = float(epoch)
    return seconds / 1000 if seconds > 1e11 else seconds
