"""Memory and time of the row export for tables of many shapes, with the operator's defaults.

``python benchmarks/shapes.py [SHAPE ...]`` prints the growth of the process beside the budget, and the time beside
those of fixed page sizes, for which the budget is lifted. Each figure is the median of three runs, in turns.
"""

from __future__ import annotations

import statistics
import sys

from page_server import page_server
from rows import measure
from tables import SHAPES

RUNS = 3
FIXED = (500, 2_000, 10_000, 50_000)
MEMORY_MB = 256
LIFTED_MB = 1 << 14
WAYS = ("operator csv", "operator ndjson", "operator parquet", "requests+csv")


def main(names: list[str]) -> None:
    """Measure."""
    fixed = "".join(f"{size:>9,}" for size in FIXED)
    print(f"{'shape':<26}{'way':<18}{'seconds':>9}{'growth':>10}   with fixed pages of{fixed}")
    for name in names or SHAPES:
        rows = SHAPES[name].rows
        with page_server(name) as url:
            for way in WAYS:
                jobs = [(50_000, MEMORY_MB)]
                jobs += [(size, LIFTED_MB) for size in FIXED] if way != "requests+csv" else []
                runs = [[measure(way, url, rows, size, 4, memory) for size, memory in jobs] for _ in range(RUNS)]
                seconds, *others = (statistics.median(run[job][0] for run in runs) for job in range(len(jobs)))
                growth = statistics.median(run[0][1] for run in runs)
                times = "".join(f"{other:>9.2f}" for other in others)
                print(f"{name:<26}{way:<18}{seconds:>9.2f}{growth:>7.0f} MB{'':>22}{times}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
