"""Print how much of each room of the package the tests reach, from what ``coverage json`` says."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

ROOMS: dict[str, Counter[str]] = {}
for path, file in json.load(sys.stdin)["files"].items():
    room = Path(path.partition("airflow_provider_anaplat/")[2]).parts[0].removesuffix(".py")
    for name in (room, "all"):
        ROOMS.setdefault(name, Counter()).update(file["summary"])

print(f"{'room':16}{'lines':>8}{'reached':>9}{'branches':>11}{'reached':>9}")
for name in sorted(ROOMS, key=lambda name: (name == "all", name)):
    found = ROOMS[name]
    lines, branches = found["num_statements"], found["num_branches"]
    of_lines, of_branches = found["covered_lines"] / max(lines, 1), found["covered_branches"] / max(branches, 1)
    print(f"{name:16}{lines:8}{of_lines:9.1%}{branches:11}{of_branches if branches else 1:9.1%}")
