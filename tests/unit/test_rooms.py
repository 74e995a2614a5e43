"""Each room imports only rooms below it, and only some of them Airflow."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.rooms import BELOW_AIRFLOW, ROOMS

import airflow_provider_anaplat

PACKAGE = Path(airflow_provider_anaplat.__file__).parent
NAME = PACKAGE.name
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the rooms that a file imports, also those that it imports late or for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith(f"{NAME}."))


def test_every_room_stands_in_the_table() -> None:
    assert {room_of(path) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_rooms_below_its_own(path: Path) -> None:
    own = ROOMS[room_of(path)]
    others = [ROOMS[name] for name in imported(path) if name in ROOMS and name != own.name]
    assert [room.name for room in others if room.level >= own.level] == []


def test_what_is_below_airflow_never_imports_it() -> None:
    modules = [
        module.name
        for module in pkgutil.walk_packages([str(PACKAGE)], f"{NAME}.")
        if module.name.split(".")[1] in BELOW_AIRFLOW
    ]
    code = f"""
import sys, {", ".join(modules)}
print([name for name in sys.modules if name == "airflow" or name.startswith("airflow.")])
"""

    assert len(modules) > 50

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
