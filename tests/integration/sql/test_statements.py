"""Statements reach each driver as they are meant."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.databases import Database

from airflow_provider_anaplat.sql.drivers import open_session
from airflow_provider_anaplat.sql.session import PARAMETER


@pytest.mark.parametrize("value", ["plain", "100 %", "%s", "%(0)s", "?", ":1", "\\'"])
def test_a_percent_sign_beside_a_parameter_is_one(each: Database, value: str) -> None:
    with closing(each.connect()) as connection:
        session = open_session(connection)

        assert session.rows(f"SELECT '%s and 5 %', {PARAMETER}", [value]) == [("%s and 5 %", value)]
        assert session.rows(f"SELECT {PARAMETER}, {PARAMETER}", [value, "b"]) == [(value, "b")]
        assert session.rows("SELECT '%s and 5 %'") == [("%s and 5 %",)]
