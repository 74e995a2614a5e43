"""Bytes that wait to be read again: in memory or, if they are many, in a temporary file."""

from __future__ import annotations

import tempfile
from contextlib import suppress

from airflow_provider_anaplat.errors import AnaplatOutputError

__all__ = [
    "Spill",
]

_IN_MEMORY = 1 << 20  # bytes at most


class Spill:
    """Takes bytes, and gives them back once all are there; a context manager.

    :ivar size: how many there are
    """

    def __init__(self) -> None:
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - this is a context manager itself

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget all."""
        with suppress(OSError):  # of what could not be written, which nobody wants any more
            self._file.close()

    def write(self, data: bytes) -> None:
        """Take bytes.

        :raises AnaplatOutputError: a temporary file cannot be written
        """
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise AnaplatOutputError(
                f"Cannot write a temporary file to {tempfile.tempdir or 'any folder'}: {error.strerror or error}. "
                "Set TMPDIR to a folder that is writable and has room, then run the task again."
            ) from error
        self.size += len(data)

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes from one place to another."""
        self._file.seek(begin)
        return self._file.read(end - begin)
