"""The rooms of the package, as the table in CONTRIBUTING.md has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """A module or a package at the top of the package; it may import rooms of a lower level."""

    name: str
    level: int
    imports_airflow: bool


def _rooms() -> list[Room]:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    _, _, table = text.partition("| rooms |")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [
        Room(name, level, imports_airflow=line.endswith("| yes |"))
        for level, line in enumerate(lines)
        for name in re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1])
    ]


ROOMS = {room.name: room for room in _rooms()}
BELOW_AIRFLOW = tuple(room.name for room in ROOMS.values() if not room.imports_airflow)
