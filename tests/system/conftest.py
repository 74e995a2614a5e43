from __future__ import annotations

from collections.abc import Iterator

import pytest
from system.deployment import skip_where_impossible
from system.production import Production, production


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    skip_where_impossible()
    with production(tmp_path_factory.mktemp("production")) as found:
        yield found
