"""What an operator or a sensor takes stands in its own signature, and in its own docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import airflow_provider_anaplat
from airflow_provider_anaplat._airflow.releases import BaseOperator
from airflow_provider_anaplat.client.arguments import RowOptions
from airflow_provider_anaplat.provider_info import get_provider_info
from airflow_provider_anaplat.rows.pages import RowQuery

ROOT = Path(__file__).parents[2]
# What a class means otherwise than the one that it inherits from.
MEANT_OTHERWISE = {("AnaplatCreateDatasetOperator", "wait_for_completion"): False}


def public_classes() -> list[type[BaseOperator]]:
    info = get_provider_info()
    paths = [path for kind in ("operators", "sensors") for entry in info[kind] for path in entry["python-modules"]]
    paths += [transfer["python-module"] for transfer in info["transfers"]]
    found = [
        value
        for path in paths
        for name, value in vars(importlib.import_module(path)).items()
        if isinstance(value, type) and value.__module__ == path and not name.startswith("_")
    ]
    return [value for value in found if issubclass(value, BaseOperator)]


CLASSES = public_classes()
every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def own(kind: type) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {each.name: each for each in parameters if each.kind is each.KEYWORD_ONLY}


def ours(kind: type) -> list[type]:
    return [base for base in kind.__mro__[1:] if base.__module__.startswith("airflow_provider_anaplat")]


def test_each_can_be_imported_from_the_top() -> None:
    assert len(CLASSES) >= 11
    assert {kind.__name__ for kind in CLASSES} <= set(airflow_provider_anaplat.__all__)


@every_class
def test_inherited_arguments_are_named_as_they_are_inherited(kind: type) -> None:
    inherited = {name: parameter for base in reversed(ours(kind)) for name, parameter in own(base).items()}
    expected = {name: (parameter.annotation, parameter.default) for name, parameter in inherited.items()}
    for (class_name, name), default in MEANT_OTHERWISE.items():
        if class_name == kind.__name__:
            expected[name] = (expected[name][0], default)
    found = own(kind)

    assert {name: (found[name].annotation, found[name].default) for name in expected if name in found} == expected


@every_class
def test_each_argument_is_described(kind: type[Any]) -> None:
    described = re.findall(r":param (\w+):", inspect.getdoc(kind) or "")
    assert sorted(described) == sorted(own(kind))


@every_class
def test_templated_arguments_are_marked_and_no_others(kind: type[Any]) -> None:
    paragraphs = re.findall(r":param (\w+):((?:.|\n(?!\s*(?::param|\n)))*)", inspect.getdoc(kind) or "")
    marked = {name for name, text in paragraphs if "templated" in text}
    assert marked == set(kind.template_fields)


@every_class
def test_an_example_and_a_how_to_are_named(kind: type[Any]) -> None:
    text = inspect.getdoc(kind) or ""
    (how_to,) = re.findall(r"How-to: :doc:`(.+?)`\. Example::\n\n    .*\w+\(", text)
    assert (ROOT / "docs" / f"{how_to}.md").exists()


def test_rows_in_code_take_what_a_query_of_rows_takes() -> None:
    query = {field.name: field.type for field in fields(RowQuery) if field.name != "ds_id"}

    assert list(get_type_hints(RowOptions)) == list(query)
    assert get_type_hints(RowOptions) == {name: get_type_hints(RowQuery)[name] for name in query}
