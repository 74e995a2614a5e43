"""What importing the package costs a DAG file: a scheduler parses it again and again."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from support.running import once

import airflow_provider_anaplat

PACKAGE = Path(airflow_provider_anaplat.__file__).parent
MODULES = [
    f"airflow_provider_anaplat.{room}.{module.name}"
    for room in ("hooks", "operators", "sensors", "transfers", "triggers")
    for module in pkgutil.iter_modules([str(PACKAGE / room)])
] + [
    f"airflow_provider_anaplat.{name}"
    for name in ("assets", "connection_form", "lineage", "links", "provider_info")
]
# Rooms that only a running task needs, and the records of the contract, whose classes take long to build.
NOT_FOR_DAGS = ("access", "datasets", "output", "rows", "simulator", "sql", "users")
NOT_FOR_PARSING = [
    *(f"airflow_provider_anaplat.{room}" for room in NOT_FOR_DAGS),
    *(f"airflow_provider_anaplat.client.{module}" for module in ("client", "models", "_http.transport")),
]
RUNS = 2
MEGABYTES = 15

IMPORT = """
import gc, importlib, json, sys
import psutil
from airflow_provider_anaplat._airflow.releases import (
    DAG, Asset, BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator, TaskGroup, XCom, conf
)

events = []
sys.addaudithook(lambda event, _: events.append(event) if event.startswith(("socket.", "subprocess.")) else None)
gc.collect()
before, memory = set(sys.modules), psutil.Process().memory_info().rss
found = {}
for module in sys.argv[1:]:
    known = set(sys.modules)
    importlib.import_module(module)
    found[module] = sorted(set(sys.modules) - known)
memory = psutil.Process().memory_info().rss - memory
print(json.dumps({"found": found, "before": sorted(before), "memory": memory, "events": events}))
"""


@cache
def imported() -> list[dict[str, Any]]:
    """Import all modules in fresh processes, and return what each of these says."""
    return [json.loads(line) for line in once("imported", import_all).read_text().splitlines()]


def import_all(path: Path) -> None:
    command = [sys.executable, "-c", IMPORT, *MODULES]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(RUNS)]
    path.write_text("\n".join(run.stdout.splitlines()[-1] for run in runs))


def new_modules() -> dict[str, str]:
    """Return the modules that were not there before, each with the public module that brought it."""
    return {name: module for module, names in imported()[0]["found"].items() for name in names}


def test_no_library_is_imported_that_airflow_has_not_imported_itself() -> None:
    before = {name.partition(".")[0] for name in imported()[0]["before"]}
    known = before | sys.stdlib_module_names | {"airflow_provider_anaplat"}
    assert {name: module for name, module in new_modules().items() if name.partition(".")[0] not in known} == {}


def test_what_only_a_running_task_needs_is_not_imported() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    banned = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    heavy = tuple(f"{name}." for name in (*banned, *NOT_FOR_PARSING))
    assert {name: module for name, module in new_modules().items() if f"{name}.".startswith(heavy)} == {}


def test_no_socket_is_opened_and_no_process_started() -> None:
    assert imported()[0]["events"] == []


def test_memory_grows_by_little() -> None:
    assert min(run["memory"] for run in imported()) <= MEGABYTES * 1_000_000
