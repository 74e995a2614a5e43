"""What the package costs who parses a DAG file: importing all its public modules, beyond Airflow's own."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import airflow_provider_anaplat

RUNS = 15
PACKAGE = Path(airflow_provider_anaplat.__file__).parent
ROOMS = ("hooks", "operators", "sensors", "transfers", "triggers")

# `resource` knows no more than the peak, which Airflow's own imports may have raised.
IMPORT = """
import gc, importlib, json, sys, time
import psutil
from airflow_provider_anaplat._airflow.releases import (
    DAG, Asset, BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator, TaskGroup, XCom, conf
)

def measured(modules):
    gc.collect()
    before = time.perf_counter(), time.process_time(), psutil.Process().memory_info().rss
    for module in modules:
        importlib.import_module(module)
    wall, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
    return [wall * 1e3, cpu * 1e3, (psutil.Process().memory_info().rss - before[2]) / 1e6]

print(json.dumps([measured(["airflow.triggers.base"]), measured(sys.argv[1:])]))
"""


def public_modules() -> list[str]:
    """Return the names of the modules that a DAG file may import."""
    in_rooms = [
        f"{PACKAGE.name}.{room}.{module.name}"
        for room in ROOMS
        for module in pkgutil.iter_modules([str(PACKAGE / room)])
    ]
    return [*in_rooms, *(f"{PACKAGE.name}.{module}" for module in ("assets", "lineage", "links"))]


def main() -> None:
    """Import everything in fresh processes, and print the least that it took."""
    modules = public_modules()
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, "-c", IMPORT, *modules]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        runs.append(json.loads(printed.splitlines()[-1]))
    print(
        f"Parsing a DAG file that imports all {len(modules)} public modules, beyond airflow.sdk: least of {RUNS}"
    )
    for name, number in (("Airflow's base of triggers", 0), ("the package", 1)):
        wall, cpu, memory = (min(run[number][kind] for run in runs) for kind in range(3))
        print(f"  {name:28} {wall:6.1f} ms ({cpu:5.1f} ms of the processor) {memory:6.2f} MB")


if __name__ == "__main__":
    main()
