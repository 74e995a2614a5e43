"""Write the bill of materials (CycloneDX) of an environment that holds this package and what it runs with.

Usage: python .ci/sbom.py ENVIRONMENT OUTPUT
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[1]


def main(environment: str, output: str) -> None:
    """Make the bill, and write it if it is valid."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", environment]
    options = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--spec-version", "1.6"]
    # The same environment gives the same bytes. It is checked below, in the form in which it is written.
    options += ["--output-reproducible", "--no-validate"]
    made = json.loads(subprocess.run([*command, *options], check=True, capture_output=True).stdout)
    text = json.dumps(without_addresses(made), indent=2, ensure_ascii=False) + "\n"
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"The bill of materials does not follow CycloneDX 1.6: {problem}")
    Path(output).write_text(text, encoding="utf-8")
    print(f"{output}: {len(made.get('components', []))} components")


def without_addresses(value: Any) -> Any:
    """Return the bill without web addresses and paths: they say where somebody got a package, not which it is."""
    if isinstance(value, dict):
        return {key: without_addresses(item) for key, item in value.items() if key != "externalReferences"}
    return [without_addresses(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
