"""Which thing a name means."""

from __future__ import annotations

import pytest

from airflow_provider_anaplat.client.names import Known, one_named
from airflow_provider_anaplat.errors import AnaplatDatasetExistsError, AnaplatNotFoundError

KNOWN: list[Known] = [
    ("ds1", "sales", "north"),
    ("ds2", "sales", "south"),
    ("ds3", "stock", "south"),
    ("ds4", "a/b", "south"),
    ("ds5", None, "north"),
    ("ds6", "ds1", "south"),
]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("ds1", "ds1"),  # an id goes before a name
        ("stock", "ds3"),
        ("north/sales", "ds1"),
        ("south/sales", "ds2"),
        ("a/b", "ds4"),
        ("south/a/b", "ds4"),
        ("south/ds1", "ds6"),
    ],
)
def test_one_fits(given: str, found: str) -> None:
    assert one_named("dataset", given, KNOWN) == found


@pytest.mark.parametrize("given", ["north/stock", "south/north", "/sales", "north/", "north", "b", "", "Sales"])
def test_none_fits(given: str) -> None:
    with pytest.raises(AnaplatNotFoundError, match="No dataset has the id or the name"):
        one_named("dataset", given, KNOWN)


def test_several_fit() -> None:
    with pytest.raises(AnaplatDatasetExistsError, match=r"ds1 \(in directory north\), ds2 \(in directory south\)"):
        one_named("dataset", "sales", KNOWN)
