"""What is public can be imported from the top, and costs nothing until it is used."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_provider_anaplat
from airflow_provider_anaplat import errors

FACE = Path(airflow_provider_anaplat.__file__)
REPORT = """
import json, sys
from airflow_provider_anaplat import errors, {names}
print(json.dumps([name for name in sys.modules if name.startswith("airflow.")]))
"""


@pytest.mark.parametrize("name", airflow_provider_anaplat.__all__)
def test_each_name_is_what_it_says(name: str) -> None:
    assert getattr(airflow_provider_anaplat, name).__name__ == name
    assert name in dir(airflow_provider_anaplat)


def test_a_type_checker_sees_the_same() -> None:
    tree = ast.parse(FACE.read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = [alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(seen) == sorted(airflow_provider_anaplat.__all__)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="AnaplatDashboard"):
        _ = airflow_provider_anaplat.AnaplatDashboard


def test_the_client_and_the_errors_come_without_airflow() -> None:
    code = REPORT.format(names="AnaplatClient")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(found) == []


def test_all_exceptions_of_the_package_are_in_one_module() -> None:
    for name in errors.__all__:
        assert getattr(errors, name).__module__ == errors.__name__

    kinds = [
        kind
        for module in (
            "client.client",
            "rows.export",
            "users.provision",
            "datasets.refresh",
            "sql.target",
            "access",
        )
        for kind in vars(importlib.import_module(f"airflow_provider_anaplat.{module}")).values()
        if inspect.isclass(kind) and issubclass(kind, errors.AnaplatError)
    ]

    assert {kind.__name__ for kind in kinds} <= set(errors.__all__)


PUBLIC = [
    path
    for path in sorted(FACE.parent.rglob("*.py"))
    if not any(part.startswith("_") for part in path.relative_to(FACE.parent).parts)
]


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: str(path.relative_to(FACE.parent)))
def test_a_public_module_says_what_of_it_is_public(path: Path) -> None:
    tree = ast.parse(path.read_text())
    defined = {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    (said,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and _names(node) == ["__all__"]]
    assert {name for name in defined if not name.startswith("_")} <= set(ast.literal_eval(said))


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]
