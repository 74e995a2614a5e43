"""What it costs to wait: requests, stalls of the triggerer's event loop and memory, for very many waiters.

``make bench`` runs it. A thousand triggers wait for a thousand of 5,000 datasets, each looking every five seconds;
beside them, in a process of its own and against the same server, a thousand of the http provider's
``HttpSensorTrigger`` wait for a page that is not there.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

WAITERS = 1_000
DATASETS = 5_000
INTERVAL = 5.0  # seconds
SECONDS = 30.0
BEAT = 0.005  # seconds between two beats of the heart that measures stalls


def anaplat(number: int) -> Any:
    """Return a trigger of this package."""
    from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger

    return AnaplatDatasetTaskTrigger(
        ds_id=f"ds{number}", anaplat_conn_id="anaplat_default", poll_interval=INTERVAL,
        deadline=time.time() + 86_400, max_poll_failures=10,
    )  # fmt: skip


def http(_: int) -> Any:
    """Return the http provider's trigger."""
    from airflow.providers.http.triggers.http import HttpSensorTrigger

    return HttpSensorTrigger(endpoint="missing", poke_interval=INTERVAL)


async def _first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event
    return None


async def start(make: Callable[[int], Any], numbers: range) -> list[asyncio.Task[Any]]:
    """Start triggers one at a time, as a triggerer does."""
    tasks = []
    for number in numbers:
        tasks.append(asyncio.create_task(_first_event(make(number))))
        await asyncio.sleep(0)
    return tasks


def settle(make: Callable[[int], Any]) -> None:
    """Import everything, and collect the garbage of that: Python's next full collection is then far away."""
    import_module("airflow_provider_anaplat.client.client")
    make(0)
    gc.collect()


class Heart:
    """Beats in the event loop, and remembers the longest time it could not."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(BEAT)
            self.longest = max(self.longest, time.perf_counter() - before - BEAT)


async def stalls(make: Callable[[int], Any]) -> dict[str, float]:
    """Let everybody wait, and count requests and stalls, in a triggerer that has been up for a while."""
    settle(make)
    before = counted()
    heart = Heart()
    beating = asyncio.create_task(heart.beat())
    tasks = await start(make, range(WAITERS))
    await asyncio.sleep(SECONDS)
    beating.cancel()
    ended = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    requests = sum(counted().values()) - sum(before.values())
    return {"requests": requests, "stall": heart.longest * 1000, "ended": ended}


async def memory(make: Callable[[int], Any]) -> dict[str, float]:
    """Measure what each of the second thousand waiters adds, once all of them have looked."""
    sizes = []
    tasks = []
    settle(make)
    for first in (0, WAITERS):
        tasks += await start(make, range(first, first + WAITERS))
        await asyncio.sleep(INTERVAL * 2)
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    for task in tasks:
        task.cancel()
    return {"memory": (sizes[1] - sizes[0]) / WAITERS / 1000}


def counted() -> dict[str, int]:
    """Return how many requests the server has seen."""
    with urllib.request.urlopen(f"{os.environ['LIST_SERVER']}/counted") as answer:
        numbers: dict[str, int] = json.load(answer)
    return numbers


@contextmanager
def list_server() -> Iterator[str]:
    """Start the server and yield its address."""
    command = [sys.executable, str(Path(__file__).with_name("list_server.py")), str(DATASETS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def measure(way: str, what: str, url: str) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    environment = {
        **os.environ,
        "LIST_SERVER": url,
        "AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps({"conn_type": "anaplat", "host": url, "password": "benchmark"}),
        "AIRFLOW_CONN_HTTP_DEFAULT": json.dumps({"conn_type": "http", "host": url}),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }
    command = [sys.executable, __file__, way, what]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def main() -> None:
    """Print the table."""
    print(f"{WAITERS:,} waiters, a list of {DATASETS:,} datasets, an interval of {INTERVAL:g} s, {SECONDS:g} s\n")
    print(f"{'trigger':<20}{'requests':>10}{'per interval':>14}{'longest stall':>16}{'memory/waiter':>16}")
    figures = {}
    with list_server() as url:
        for way in ("anaplat", "http"):
            figures[way] = measure(way, "stalls", url) | measure(way, "memory", url)
            found = figures[way]
            assert not found["ended"], "nobody should have stopped waiting"
            print(
                f"{way:<20}{found['requests']:>10.0f}{found['requests'] / (SECONDS / INTERVAL):>14.1f}"
                f"{found['stall']:>13.0f} ms{found['memory']:>13.1f} kB",
                flush=True,
            )
    ratio = {name: figures["http"][name] / figures["anaplat"][name] for name in ("requests", "stall", "memory")}
    print(f"{'ratio':<20}{ratio['requests']:>10.0f}{'':>14}{ratio['stall']:>16.1f}{ratio['memory']:>16.1f}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        if sys.argv[2] == "memory":
            tracemalloc.start()
        print(json.dumps(asyncio.run(globals()[sys.argv[2]](globals()[sys.argv[1]]))))
    else:
        main()
