from __future__ import annotations

from collections.abc import Iterator

import airflow
import pytest
from system.deployment import skip_where_impossible
from system.production import Production, production


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    skip_where_impossible()
    if tuple(map(int, airflow.__version__.split(".")[:2])) < (3, 3):
        pytest.skip(
            "a retry remembers what a dead worker did in the task state store, which is new in Airflow 3.3"
        )
    with production(tmp_path_factory.mktemp("production")) as found:
        yield found
