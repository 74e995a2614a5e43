"""The example DAGs on a deployment."""

from __future__ import annotations

import polars as pl
from support.production import PASSWORD, Production
from support.running import wait_until

FLOWN = [("UA", 1400), (None, None)]


def test_all_example_dags_run(running: Production) -> None:
    simulator, deployment = running.platforms["default"], running.deployment
    platform = simulator.platform
    # The asset's watcher must have seen the dataset before it is updated.
    wait_until(lambda: simulator.requests("list_datasets"))
    deployment.trigger("anaplat_orchestrated_refresh")
    deployment.trigger("anaplat_refresh", "2026-11-01T00:00:00Z")
    for dag_id in ("anaplat_orchestrated_refresh", "anaplat_refresh", "anaplat_provision_users"):
        deployment.wait_for(dag_id, "success")
    wait_until(lambda: deployment.rows("SELECT 1 FROM dag_run WHERE dag_id = 'anaplat_dataset_updated'"))
    deployment.wait_for("anaplat_dataset_updated", "success")

    assert len(simulator.requests("refresh_dataset")) == 3
    assert len(simulator.requests("create_dataset")) == 1
    assert len(platform.datasets) == 4
    (updated,) = running.output.glob("updated-*.parquet")
    for path in (updated, *(running.output / f"{name}.parquet" for name in ("ds1", "ds2", "ds3", "flights"))):
        assert pl.read_parquet(path).rows() == FLOWN
    assert (running.output / "flights.csv").read_text() == "carrier,distance\nUA,1400\n,\n"
    employees = {f"employee{number}" for number in range(1, 301)}
    assert set(platform.users) == {"ada", "blaise", "carl"} | employees
    assert platform.users["employee300"]["password"] == PASSWORD
