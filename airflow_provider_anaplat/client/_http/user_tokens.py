"""The user token of a connection: had by signing in, shared, renewed before its end and when it is refused."""

from __future__ import annotations

import logging
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.envelope import DISPLACED, is_known_refusal, is_token_refused
from airflow_provider_anaplat.client.sign_in import TokenStore, UserToken

log = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_TOKENS = 5  # that one request is sent with; others may displace each of them
_VAIN_FOR = 600.0  # seconds without a further sign-in if a new token was refused at once
_BETWEEN_LOOKS = 0.05  # seconds between two looks whether another process has done with signing in
_LONGEST_PAUSE = 1.0  # seconds at most before a sign-in that follows on a displacement


@dataclass(slots=True)
class _Held:
    """What the clients of a connection in this process know together.

    :param ahead: seconds by which the platform's clock is ahead of ours; None before its first answer
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    token: UserToken | None = None
    known: tuple[str, ...] = ()
    ahead: float | None = None


_lock = threading.Lock()
_held: dict[str, _Held] = {}


class UserTokens:
    """The user token of a connection, one for all its clients in this process.

    At most one thread of a process signs in, and of the processes of a machine that share a store, one. Whoever
    waited takes what the other has got.

    :param digest: tells the user and the platform from others
    :param sign_in: asks the platform for a token
    :param store: shares the token with other processes; None keeps it in this one
    :param pause: waits for that many seconds, or less if the client is closed
    :param patience: seconds to wait for another process that signs in
    """

    def __init__(
        self,
        digest: str,
        sign_in: Callable[[], UserToken],
        store: TokenStore | None,
        pause: Callable[[float], None],
        patience: float,
    ) -> None:
        self._digest = digest
        self._sign_in = sign_in
        self._store = store
        self._pause = pause
        self._patience = patience
        with _lock:
            self._held = _held.setdefault(digest, _Held())

    @property
    def known(self) -> tuple[str, ...]:
        """All user tokens that this process has seen lately: what no message may show."""
        return self._held.known

    def note_clock(self, ahead: float) -> None:
        """Note by how many seconds the platform's clock is ahead of ours."""
        self._held.ahead = ahead

    def sign_in(self) -> None:
        """Sign in, whatever token there is, and share what comes of it.

        :raises AnaplatError: it failed
        """
        with self._held.lock, self._alone_on_this_machine():
            self._get_new()

    def send(self, attempt: Callable[[str], T], *, repeatable: bool) -> T:
        """Return what an attempt with a user token brings; if the token is refused, repeat it with another one.

        :param attempt: sends a request with a token
        :param repeatable: whether the request may be sent again, whatever the refusal proves
        :raises AnaplatError: that of the last attempt, or of the sign-in
        """
        refused: set[str] = set()
        sign_ins = 0  # because this request's token was refused
        token, _ = self._other_than(refused, displaced=False, may_sign_in=True)
        while True:
            try:
                return attempt(token.value)
            except errors.AnaplatError as error:
                if not is_token_refused(error) or not (repeatable or is_known_refusal(error)):
                    raise
                refused.add(token.value)
                displaced = error.code == DISPLACED
                if sign_ins and not displaced:
                    self._note_vain(token)
                # Others who share the store may have signed in at the same moment; a second one settles it.
                most = 2 if displaced and self._store is not None else 1
                token, is_new = self._other_than(refused, displaced=displaced, may_sign_in=sign_ins < most)
                if token.value in refused:
                    _explain(error)
                    raise
                log.warning("%s: the platform refuses the user token; signing in for another one", error.operation)
            sign_ins += is_new

    def _other_than(self, refused: set[str], *, displaced: bool, may_sign_in: bool) -> tuple[UserToken, bool]:
        """Return a token that is none of the refused ones, and whether it took a sign-in.

        If none can be had, it is a refused one.

        :param displaced: whether the last of them ended because somebody has signed in since
        """
        with self._held.lock:
            if (held := self._good(refused)) is not None:
                return held, False
            with self._alone_on_this_machine():
                self._look()
                if displaced and self._store is not None and self._good(refused) is None:
                    # By another machine, which is about to share its token. Each waits for another while.
                    self._pause(random.uniform(0.1, _LONGEST_PAUSE))  # noqa: S311 - no secret hangs on it
                    self._look()
                if (held := self._good(refused)) is not None:
                    return held, False
                held = self._held.token
                is_vain = len(refused) >= _MOST_TOKENS or (self._is_vain(refused) and not displaced)
                if held is not None and (is_vain or not may_sign_in):
                    return held, False
                return self._get_new(), True

    def _get_new(self) -> UserToken:
        token = self._sign_in()
        self._keep(token)
        log.info("Signed in for a user token")
        if self._store is not None:
            self._store.set(self._digest, token.to_json())
        return token

    def _look(self) -> None:
        """Take the token that another process may have shared."""
        shared = UserToken.from_json(self._store.get(self._digest)) if self._store is not None else None
        if shared is not None:
            self._keep(shared)

    def _keep(self, token: UserToken) -> None:
        self._held.token = token
        if token.value not in self._held.known:
            self._held.known = (*self._held.known[-31:], token.value)

    def _good(self, refused: set[str]) -> UserToken | None:
        """Return the token that is held, unless it is refused, or known to end soon."""
        token, ahead = self._held.token, self._held.ahead
        if token is None or token.value in refused:
            return None
        # Before the platform's first answer, its clock is not known: what it says of a token counts then.
        is_due = ahead is not None and token.renew_at is not None and time.time() + ahead >= token.renew_at
        return None if is_due else token

    def _note_vain(self, token: UserToken) -> None:
        """Note that a new token was refused as well: whatever is wrong, signing in does not mend it."""
        noted = replace(token, vain_until=self._platform_time() + _VAIN_FOR)
        with self._held.lock:
            if self._held.token is not None and self._held.token.value == token.value:
                self._held.token = noted
                if self._store is not None:
                    self._store.set(self._digest, noted.to_json())

    def _is_vain(self, refused: set[str]) -> bool:
        token = self._held.token
        return token is not None and token.value in refused and self._platform_time() < token.vain_until

    def _platform_time(self) -> float:
        return time.time() + (self._held.ahead or 0)

    @contextmanager
    def _alone_on_this_machine(self) -> Iterator[None]:
        """Wait until no other process signs in on this machine; without a store, there is nothing to wait for.

        If that lasts longer than a sign-in may, or there is no lock to be had, do not: a sign-in may displace
        another one then, and who is displaced looks again. A process that hangs would hold all others up.
        """
        if self._store is None:
            yield
            return
        path = Path(tempfile.gettempdir(), f"anaplat-{os.getuid()}-{self._digest}.lock")
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.info("The sign-in could not be locked: %s", error)
            yield
            return
        try:
            self._lock(file, path)
            yield
        finally:
            os.close(file)

    def _lock(self, file: int, path: Path) -> None:
        """Lock a file, if it can be had in time."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        end = time.monotonic() + self._patience
        while time.monotonic() < end:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                self._pause(_BETWEEN_LOOKS)
            except OSError as error:
                log.info("The sign-in could not be locked: %s", error)
                return
            else:
                return
        log.warning(
            "Another process of this machine has been signing in for more than %g s (it holds %s); it is waited "
            "for no longer. If this comes again, look for a process that hangs.",
            self._patience,
            path,
        )


def _explain(error: errors.AnaplatError) -> None:
    """Add to an error what else the reader must know."""
    error.args = (
        f"{error} The user token came from signing in as the connection's login says; a new one is refused as "
        "well. Ask the platform's administrator what this user may do, and whether somebody else signs in as it.",
    )
