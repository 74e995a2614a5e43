"""What is known of an address before anything is sent to it."""

from __future__ import annotations

import pytest

from airflow_provider_anaplat.client._http.checks import is_same_address


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://bi.example.com/p", True),
        ("HTTPS://BI.Example.com/p/", True),
        ("https://bi.example.com:443/p", True),
        ("https://bi.example.com/P", False),
        ("https://bi.example.com", False),
        ("https://bi.example.com:8443/p", False),
        ("https://bi.example.com:80/p", False),
        ("http://bi.example.com/p", False),
        ("https://other.example.com/p", False),
        ("https://[bi.example.com/p", False),
        ("", False),
    ],
)
def test_a_platform_is_the_same_however_its_address_is_spelt(other: str, same: bool) -> None:
    assert is_same_address("https://bi.example.com/p", other) is same
    assert is_same_address(other, "https://bi.example.com/p") is same
