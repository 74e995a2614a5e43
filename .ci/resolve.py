"""Resolve this package under each official constraint file of Airflow, as a user who installs it there would.

Usage: python .ci/resolve.py UV
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The Pythons that a release of Airflow runs on, of those that this package does.
PYTHONS = {
    "2.11": ("3.11", "3.12"),
    "3.0": ("3.11", "3.12"),
    "3.1": ("3.11", "3.12", "3.13"),
    "3.2": ("3.11", "3.12", "3.13", "3.14"),
    "3.3": ("3.11", "3.12", "3.13", "3.14"),
}


def resolves(uv: str, constraints: Path, release: str, python: str) -> str | None:
    """Return why the package cannot be installed; None where it can."""
    command = [uv, "pip", "compile", "--quiet", "--no-header", "--python-version", python]
    done = subprocess.run(
        [*command, "--constraint", constraints, "--output-file", "/dev/null", ROOT / "pyproject.toml", "-"],
        input=f"apache-airflow=={release}", capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr if done.returncode else None


def main(uv: str) -> None:
    """Print a line for each file and Python, and fail where one of them does not resolve."""
    cases = [
        (constraints, release, python)
        for constraints in sorted((ROOT / "constraints" / "official").iterdir())
        for release in [constraints.name.removeprefix("airflow-").partition("-")[0]]
        for python in PYTHONS[release.rpartition(".")[0]]
    ]
    with ThreadPoolExecutor(8) as pool:  # most of the time is the package index's
        reasons = list(pool.map(lambda case: resolves(uv, *case), cases))
    for (_, release, python), reason in zip(cases, reasons, strict=True):
        print(f"Airflow {release:<7} Python {python}  {'resolves' if reason is None else reason}")
    sys.exit(any(reason is not None for reason in reasons))


if __name__ == "__main__":
    main(*sys.argv[1:])
