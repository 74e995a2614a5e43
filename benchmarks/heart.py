"""A trigger that beats in a triggerer's event loop, and writes down for how long it could not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

BEAT = 0.005  # seconds between two beats


class HeartTrigger(BaseTrigger):
    """Append a line each second: the longest time in milliseconds by which a beat came late.

    :param path: the file
    """

    def __init__(self, path: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow leaves it without types
        self.path = path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the argument."""
        return "heart.HeartTrigger", {"path": self.path}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Beat for ever."""
        while True:
            longest, end = 0.0, time.perf_counter() + 1
            while time.perf_counter() < end:
                before = time.perf_counter()
                await asyncio.sleep(BEAT)
                longest = max(longest, time.perf_counter() - before - BEAT)
            with Path(self.path).open("a") as file:
                file.write(f"{longest * 1000:.1f}\n")
            if not longest:  # it never is: a trigger has to be a generator
                yield TriggerEvent(None)  # type: ignore[no-untyped-call]
