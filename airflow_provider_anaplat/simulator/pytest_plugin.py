"""A pytest fixture, for a ``conftest.py`` that says so.

``pytest_plugins = ["airflow_provider_anaplat.simulator.pytest_plugin"]``
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_anaplat.simulator.server import Simulator


@pytest.fixture
def anaplat_simulator() -> Iterator[Simulator]:
    """Start an embedded platform of its own for each test, empty to begin with."""
    with Simulator() as simulator:
        yield simulator
