"""The documents beside the code keep their form, and name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airflow_provider_anaplat

ROOT = Path(__file__).parents[2]
FORM = ["Breaking", "Behaviour changes", "Added", "Fixed"]


def test_the_promises_about_secrets_name_tests_that_are_there() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (ROOT / "SECURITY.md").read_text())
    files = list((ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 10
    for file, test in named:
        assert any(f"def {test}(" in path.read_text() for path in files if path.name == file), test


def test_the_changelog_begins_with_this_release_and_every_release_has_its_form() -> None:
    releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert re.match(rf"{re.escape(airflow_provider_anaplat.__version__)} \(.+\)\n", releases[0])
    for release in releases:
        sections = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert sections
        assert sections == [section for section in FORM if section in sections]


@pytest.mark.parametrize("document", ["SECURITY.md", "CONTRIBUTING.md"])
def test_the_paths_and_commands_that_a_document_names_are_there(document: str) -> None:
    text = (ROOT / document).read_text()
    named = re.findall(r"`([\w./]+/[\w.]*|[A-Z]\w+\.md)`", text) + re.findall(r"\]\(([^)#]+)\)", text)
    made = {"dist/"}

    for path in set(named) - made:
        assert (ROOT / path).exists() or (ROOT / "airflow_provider_anaplat" / path).exists(), path

    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE)) <= targets
