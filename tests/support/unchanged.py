"""What the tests of `if_unchanged` share: a filter, what was asked for, and a platform that names no state."""

from __future__ import annotations

import json
from dataclasses import replace

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.simulator.replies import Fault, Reply

BELOW_7 = {
    "combineType": "AND",
    "conditions": [{"type": "condition", "value": {"name": "n", "filterType": "LT", "filterValue": [7]}}],
}


def asked(simulator: Simulator) -> list[tuple[int, int]]:
    """Return offset and limit of each request for rows."""
    return [(request.body["offset"], request.body["limit"]) for request in simulator.requests("read_rows")]


def name_no_state(simulator: Simulator, *fields: str) -> None:
    """Let each answer with rows lack these fields: by default, version and update time."""

    def nameless(reply: Reply) -> Reply:
        body = json.loads(reply.body)
        body["response"] |= dict.fromkeys(fields or ("version", "utime"))
        return replace(reply, body=json.dumps(body).encode())

    simulator.inject("read_rows", Fault(nameless, needs_answer=True), times=None)
