"""A pytest fixture, for a ``conftest.py`` that says so.

``pytest_plugins = ["airflow_provider_anaplat.simulator.pytest_plugin"]``
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_anaplat.simulator.server import Deployment, Simulator

__all__ = [
    "anaplat_deployment",
    "anaplat_simulator",
]


@pytest.fixture
def anaplat_deployment() -> Deployment:
    """Return what kind of platform ``anaplat_simulator`` is; a module or a test may say another."""
    return "contract"


@pytest.fixture
def anaplat_simulator(anaplat_deployment: Deployment) -> Iterator[Simulator]:
    """Start an embedded platform of its own for each test, empty to begin with."""
    with Simulator(deployment=anaplat_deployment) as simulator:
        yield simulator
