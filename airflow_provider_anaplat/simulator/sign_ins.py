"""The user tokens of the embedded platform: issued by a sign-in, until they expire or are displaced."""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_anaplat.simulator.replies import Reply, failure

__all__ = [
    "IssuedToken",
    "SignIns",
]


@dataclass
class IssuedToken:
    """A user token that a sign-in was answered with.

    :param login: loginId of its user
    :param ends: when it expires
    :param displaced: whether its user has signed in again since
    """

    value: str
    login: str
    ends: datetime
    displaced: bool = False


class SignIns:
    """Who has signed in, and with which token.

    ``lifetime`` is that of the tokens to come, ``displaces`` says whether a sign-in ends the earlier ones of the
    same user, and ``issued`` holds all tokens so far, the newest last.

    :param clock: what the platform's clock shows
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.lifetime = timedelta(days=14)
        self.displaces = True
        self.issued: list[IssuedToken] = []
        self._clock = clock

    def sign_in(self, login: str) -> dict[str, Any]:
        """Return the answer to a sign-in: a token of the shape of a JWT, and a time without a zone."""
        now = self._clock()
        for token in self.issued:
            token.displaced = token.displaced or (self.displaces and token.login == login)
        ends = now + self.lifetime
        claims = {"loginId": login, "iat": now.timestamp(), "exp": ends.timestamp()}
        parts = (b'{"alg":"HS256"}', json.dumps(claims).encode(), secrets.token_bytes(32))
        value = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
        self.issued.append(IssuedToken(value, login, ends))
        return {"token": value, "expireAt": f"{ends:%Y-%m-%d %H:%M:%S}.{ends.microsecond // 1000:03d}"}

    def expire(self) -> None:
        """Let all tokens be expired that were issued so far."""
        for token in self.issued:
            token.ends = self._clock() - timedelta(seconds=1)

    def refusal(self, value: str) -> Reply | None:
        """Return the answer to a request with such a token; None if the token is good."""
        token = next((token for token in self.issued if token.value == value), None)
        if token is not None and token.displaced:
            return failure("the user has logged in on another device", code=1017, status=401)
        if token is None or token.ends <= self._clock():
            return Reply(401, json.dumps({"status": 1018, "message": "Not Login or token expired"}).encode())
        return None
