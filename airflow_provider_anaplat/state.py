"""What a task remembers from one attempt to the next: small JSON values by key."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from secrets import token_hex
from typing import Any, Protocol, TypeVar

from airflow_provider_anaplat.errors import AnaplatDamagedStateError
from airflow_provider_anaplat.output.files import named, remove_file

__all__ = [
    "FolderStateStore",
    "StateStore",
    "damaged",
    "forget_failed",
    "read_note",
]

log = logging.getLogger(__name__)

T = TypeVar("T")
# What a note may be, so that it is told from none.
_NONE = object()


class StateStore(Protocol):
    """Keeps values over the retries of one task of one DAG run; Airflow 3.3's ``task_state_store`` is one."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default."""

    def set(self, key: str, value: Any) -> None:
        """Keep a JSON value other than None."""

    def delete(self, key: str) -> None:
        """Forget a value; one that is not there is no error."""


def read_note(store: StateStore | None, key: str, what: str, read: Callable[[Any], T]) -> T | None:
    """Return what an earlier attempt noted; None if it noted nothing, or if there is no store.

    A note that is there and cannot be read never counts as none: what it tells of would be sent once more.

    :param what: what the note must be, for the error
    :param read: makes of the note what the caller needs; one that it cannot be made of is damaged
    :raises AnaplatDamagedStateError: the note is damaged
    """
    if store is None:
        return None
    try:
        note = store.get(key, _NONE)
        if note is _NONE:
            return None
        json.dumps(note, ensure_ascii=False).encode()  # else it is nested too deeply, or holds half a character
        return read(note)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise damaged(store, key, f"it is no {what}") from None


def damaged(store: StateStore, key: str, what: str) -> AnaplatDamagedStateError:
    """Return the error that says which note cannot be used, and why."""
    where = store.path(key) if isinstance(store, FolderStateStore) else f"the task state store (key {key!r})"
    return AnaplatDamagedStateError(
        f"What an earlier attempt noted in {where} cannot be used: {what}. Nothing was sent. Look on the "
        "platform what that attempt has done there; restore the note, or remove it to begin anew; then clear the "
        "task."
    )


def forget_failed(store: StateStore | None, key: str) -> None:
    """Forget the note of what has failed; a store that fails as well must not hide why, and have it repeated."""
    if store is None:
        return
    try:
        store.delete(key)
    except Exception as error:  # noqa: BLE001 - each store has its own
        log.warning("The note %r may still be there: %s", key, error)


class FolderStateStore:
    """Keeps each value in a file of its own, so that it outlives the process; not, perhaps, a loss of power.

    :param folder: a :class:`pathlib.Path`, or an ``ObjectStoragePath`` (any universal path); it is made at need

    Every method raises :class:`AnaplatOutputError` if the folder can't be used, and ``get`` raises
    :class:`AnaplatDamagedStateError` if a file holds no value.
    """

    def __init__(self, folder: Any) -> None:
        self._folder = folder

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        path = self.path(key)
        with named(path):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                return default
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise damaged(self, key, "it is no JSON") from None

    def set(self, key: str, value: Any) -> None:
        """Keep a value; a reader sees the old one or the new one, nothing between."""
        path = self.path(key)
        content = json.dumps(value, ensure_ascii=False).encode()
        with named(path):
            if hasattr(type(path), "fs"):
                path.write_bytes(content)  # an object appears when it is complete
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{token_hex(8)}")
            try:
                with temporary.open("xb") as file:  # which never opens what is there, nor a link
                    file.write(content)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        """Forget a value."""
        path = self.path(key)
        with named(path):
            remove_file(path)

    def path(self, key: str) -> Any:
        """Return the path of a value's file."""
        return self._folder / f"{key}.json"
