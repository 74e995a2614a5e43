"""Each name of Airflow's is found, in the release that runs the tests, without a word about its age."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_provider_anaplat._airflow import releases

# In a process of its own: a module that is imported warns no more.
FIND_ALL = """
import warnings, airflow
from airflow_provider_anaplat._airflow import releases
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for name in releases._PLACES:
        getattr(releases, name)
        print("found", name)
for warning in said:
    print("said", warning.message)
"""


def test_each_name_is_found_where_this_release_has_it_and_not_where_it_is_deprecated() -> None:
    found = subprocess.run([sys.executable, "-c", FIND_ALL], capture_output=True, text=True, check=False)
    lines = found.stdout.splitlines()

    assert [line.split()[1] for line in lines if line.startswith("found")] == list(releases._PLACES), found.stderr

    places = [(place.partition(":")[0], name) for name, listed in releases._PLACES.items() for place in listed]
    old = [saying.format(*place) for place in places for saying in ("{}.{}", "from {} import {}")]
    warned = [line for line in lines if line.startswith("said") and any(words in line for words in old)]

    assert warned == []


def test_a_name_that_nobody_lists_is_no_name_here() -> None:
    with pytest.raises(AttributeError, match="Pool"):
        releases.Pool  # noqa: B018 - that is what is tested


def test_a_name_that_no_release_has_is_told_with_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(releases._PLACES, "Oracle", ("airflow", "airflow.delphi:Oracle"))
    with pytest.raises(ImportError, match=r"no Oracle in airflow or airflow\.delphi:Oracle"):
        getattr(releases, "Oracle")  # noqa: B009 - it is no name that a type checker knows
