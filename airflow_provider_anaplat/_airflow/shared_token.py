"""A user token that the tasks of a deployment share: a Variable of Airflow, sealed with the application token."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

    from airflow_provider_anaplat.client.sign_in import TokenStore

log = logging.getLogger(__name__)

T = TypeVar("T")

# Airflow hides the value of a Variable whose name has this word, in its pages and in logs.
_PREFIX = "anaplat_user_token_"
_LONGEST = 60.0  # seconds for an event loop to answer


class SharedInVariable:
    """Keeps user tokens as Variables.

    If Airflow gives or takes none (no database, no right), there is nothing to share, and each process signs in
    for itself. Whatever token passes here is masked in all that Airflow logs from then on.

    Others hand a Variable on without knowing what to mask: Airflow's supervisor writes it to the worker's log at
    level DEBUG, and Airflow before 3.3 to its audit log. So nobody can read it without the application token.

    :param token: the application token
    """

    def __init__(self, token: str) -> None:
        self._token = token

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept last under a key."""
        from airflow_provider_anaplat._airflow.releases import Variable

        try:
            kept = json.loads(self._seal().decrypt(Variable.get(_PREFIX + key)))
        except Exception as error:  # noqa: BLE001 - each release has its own for a Variable that is not there
            log.debug("No user token is shared: %s", type(error).__name__)
            return None
        if not isinstance(kept, dict):
            return None
        _mask(kept)
        return kept

    def set(self, key: str, kept: Mapping[str, Any]) -> None:
        """Keep this under a key."""
        from airflow_provider_anaplat._airflow.releases import Variable

        _mask(kept)
        try:
            Variable.set(_PREFIX + key, self._seal().encrypt(json.dumps(kept).encode()).decode())
        except Exception as error:  # noqa: BLE001 - the token is good, whether it is shared or not
            log.info("The user token is not shared with other tasks: %s", type(error).__name__)

    def _seal(self) -> Fernet:
        from cryptography.fernet import Fernet

        return Fernet(urlsafe_b64encode(hashlib.sha256(f"user token\0{self._token}".encode()).digest()))


class AskedOnLoop:
    """Has another store asked on the event loop, for the threads of a trigger, which touch nothing of Airflow.

    :param store: what is asked; made, like this, on the event loop
    """

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return what was kept last under a key."""
        return self._on_loop(self._store.get, key)

    def set(self, key: str, kept: Mapping[str, Any]) -> None:
        """Keep this under a key."""
        self._on_loop(self._store.set, key, kept)

    def _on_loop(self, call: Callable[..., T], *arguments: Any) -> T | None:
        from asgiref.sync import sync_to_async

        # Of all threads, Airflow's supervisor answers those that asgiref has started.
        asked = sync_to_async(call)(*arguments)
        try:
            answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError:  # it has ended, and the client with it
            asked.close()
            return None
        try:
            return answer.result(_LONGEST)
        except Exception as error:  # noqa: BLE001 - it is busy, or ends: nothing is shared
            answer.cancel()
            log.info("The event loop does not answer: %s", type(error).__name__)
            return None


def _mask(kept: Mapping[str, Any]) -> None:
    from airflow_provider_anaplat._airflow.releases import mask_secret

    if isinstance(token := kept.get("token"), str):
        mask_secret(token)
