"""How many requests a process sends to a platform at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from airflow_provider_anaplat.errors import AnaplatClosedError


class Slots:
    """A number of slots for requests; each is taken for the length of a ``with`` block.

    :param most: number of slots; None for as many as are asked for
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._taken = 0
        self._changed = threading.Condition()

    @contextmanager
    def one(self, closed: Callable[[], bool]) -> Iterator[None]:
        """Wait for a slot, and take it.

        :param closed: whether to wait no longer; :meth:`wake` has it asked again
        :raises AnaplatClosedError: no slot was free until then
        """
        if self._most is None:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._is_free() or closed())
            if not self._is_free():
                raise AnaplatClosedError(
                    f"The client was closed while a request waited for one of the connection's {self._most} "
                    "slots (extra `max_connections`); the request was not sent."
                )
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify_all()  # one that is woken may have been closed meanwhile

    def wake(self) -> None:
        """Have all who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def _is_free(self) -> bool:
        return self._most is None or self._taken < self._most


_lock = threading.Lock()
_slots: WeakValueDictionary[Hashable, Slots] = WeakValueDictionary()


def shared_slots(most: int | None, connection: Hashable) -> Slots:
    """Return the slots that all clients of a connection share in this process.

    :param most: number of slots; None for no limit
    :param connection: what tells the connection from others
    """
    if most is None:
        return Slots(None)
    with _lock:
        return _slots.setdefault((most, connection), Slots(most))
