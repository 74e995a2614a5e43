"""Run the embedded platform: ``python -m airflow_provider_anaplat.simulator --data flights.csv``."""

from __future__ import annotations

import argparse
import logging
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN
from airflow_provider_anaplat.simulator.server import DEFAULT_TOKEN, Deployment, Simulator
from airflow_provider_anaplat.simulator.tables import Table

log = logging.getLogger("airflow_provider_anaplat.simulator")


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_anaplat.simulator",
        description="An analytics platform on loopback that serves CSV or Parquet files as datasets.",
    )
    parser.add_argument("--port", type=int, default=8765, help="TCP port; 0 takes a free one")
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="FILE",
                        help="a CSV (also zipped) or Parquet file; may be given several times")  # fmt: skip
    parser.add_argument("--null", default="", metavar="TEXT", help="the text that stands for null in CSV files")
    parser.add_argument("--token", default=DEFAULT_TOKEN, help="the application token that is accepted")
    parser.add_argument("--deployment", choices=get_args(Deployment), default="contract",
                        help="what kind of platform to be: see the class Simulator")  # fmt: skip
    arguments = parser.parse_args()
    if not 0 <= arguments.port <= 65535:
        parser.error(f"--port is {arguments.port}; it must be from 0 to 65535")

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    tables = {path.name.split(".")[0]: _read(path, arguments.null, parser) for path in arguments.data}
    simulator = Simulator(tables, token=arguments.token, deployment=arguments.deployment, port=arguments.port)
    with ExitStack() as stack:
        try:
            stack.enter_context(simulator)
        except OSError as error:
            parser.error(f"port {arguments.port} cannot be had ({error.strerror}): name another one with --port")
        log.info("The platform listens on %s", simulator.url)
        if arguments.deployment == "user-token":
            log.info("  who can sign in: %s", DEFAULT_LOGIN)
        for name, table in tables.items():
            dataset = simulator.platform.add_dataset(name, table)
            log.info("  dataset %s: %s, %d rows", dataset.ds_id, name, table.frame.height)
        try:
            simulator.wait()
        except KeyboardInterrupt:
            log.info("Stopped")


def _read(path: Path, null_value: str, parser: argparse.ArgumentParser) -> Table:
    try:
        return Table.read(path, null_value)
    except Exception as error:  # noqa: BLE001 - a person reads it, whatever it is
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]  # below, Polars says where it was
        parser.error(f"{path} cannot be read: {why}")


if __name__ == "__main__":
    main()
