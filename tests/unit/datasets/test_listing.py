"""Which datasets are wanted, at the bounds of each wish."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.datasets.listing import DatasetFilter

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SALES = Dataset.model_validate(
    {"dsId": "ds1", "name": "Sales 2026", "status": "FINISHED", "parentDirId": "north", "utime": NOON.isoformat()}
)
NEVER_UPDATED = SALES.model_copy(update={"utime": None})


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ({}, True),
        ({"newer_than": NOON}, True),
        ({"newer_than": NOON + SECOND}, False),
        ({"older_than": NOON}, False),
        ({"older_than": NOON + SECOND}, True),
        ({"newer_than": NOON, "older_than": NOON + SECOND}, True),
        ({"name_pattern": "Sales*"}, True),
        ({"name_pattern": "sales*"}, False),
        ({"folder": "north"}, True),
        ({"folder": "south"}, False),
        ({"states": [" finished "]}, True),
        ({"states": ["FAILED"]}, False),
        ({"states": []}, False),
    ],
)
def test_a_dataset_is_wanted_where_it_is_all_that_was_asked_for(wish: dict[str, Any], wanted: bool) -> None:
    assert DatasetFilter(**wish).select([SALES]) == ([SALES] if wanted else [])


def test_what_was_never_updated_is_old() -> None:
    assert DatasetFilter(older_than=NOON).select([NEVER_UPDATED]) == [NEVER_UPDATED]
    assert DatasetFilter(newer_than=NOON).select([NEVER_UPDATED]) == []
