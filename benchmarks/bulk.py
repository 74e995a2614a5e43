"""Loads of 500,000 rows beside each database's own bulk load of the same rows, from a local file.

By hand one exports to CSV, then runs PostgreSQL's COPY, LOAD DATA LOCAL INFILE or .import. That file is given
here, so only the operator's time has the download and the decoding in it. PostgreSQL and MariaDB are those on
127.0.0.1, and are left out where there are none. Each figure is a median.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from page_server import page_server
from tables import BENCH_COLUMNS, bench_row
from ways import execute

if TYPE_CHECKING:
    from airflow_provider_anaplat.sql.target import Mode

ROWS, RUNS = 500_000, 5
TABLE, KEY = "anaplat_bulk", "text_2"
MODES: dict[str, list[Mode]] = {
    "an empty table": ["replace", "append", "upsert"],
    "a full table": ["replace", "upsert"],
}


@dataclass(frozen=True)
class Database:
    """A database, with its own client.

    :param client: a command that reads statements from its standard input
    :param types: of columns, by the platform's type; the key has ``KEY``
    :param bulk: the statements that load the file ``{path}`` into the table
    :param hook_params: further arguments of its Airflow hook
    """

    name: str
    connection: dict[str, Any]
    client: Sequence[str]
    types: dict[str, str]
    bulk: str
    hook_params: dict[str, Any] = field(default_factory=dict)

    def run(self, statements: str) -> None:
        """Run statements with the database's own client."""
        subprocess.run(self.client, input=statements, check=True, text=True, stdout=subprocess.DEVNULL)

    def create(self) -> None:
        """Create the table, empty and with its primary key."""
        columns = [
            f"{column['name']} {self.types['KEY' if column['name'] == KEY else column['fdType']]}"
            for column in BENCH_COLUMNS
        ]
        self.run(f"DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} ({', '.join(columns)});")


def databases(folder: Path) -> list[Database]:
    """Return the databases that there are."""
    file = str(folder / "bulk.db")
    psql = ["psql", "--quiet", "--host=127.0.0.1", "--username=root", "--set=ON_ERROR_STOP=1", "test"]
    mariadb = ["mariadb", "--host=127.0.0.1", "--user=root", "--local-infile=1", "test"]
    all_of_them = [
        Database(
            "PostgreSQL",
            {"conn_type": "postgres", "host": "127.0.0.1", "login": "root", "schema": "test"},
            psql,
            {"LONG": "BIGINT", "DOUBLE": "DOUBLE PRECISION", "DATE": "DATE", "STRING": "TEXT",
             "KEY": "TEXT PRIMARY KEY"},
            f"\\copy {TABLE} FROM '{{path}}' (FORMAT csv)",
        ),
        Database(
            "MariaDB",
            {"conn_type": "mysql", "host": "127.0.0.1", "login": "root", "password": "", "schema": "test",
             "extra": {"client": "mysql-connector-python"}},
            mariadb,
            {"LONG": "BIGINT", "DOUBLE": "DOUBLE", "DATE": "DATE", "STRING": "TEXT",
             "KEY": "VARCHAR(20) PRIMARY KEY"},
            f"LOAD DATA LOCAL INFILE '{{path}}' INTO TABLE {TABLE} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '';",
        ),
        Database(
            "SQLite",
            {"conn_type": "sqlite", "host": file},
            ["sqlite3", "-bail", file],
            {"LONG": "BIGINT", "DOUBLE": "REAL", "DATE": "DATE", "STRING": "TEXT", "KEY": "TEXT PRIMARY KEY"},
            f".import --csv '{{path}}' {TABLE}",
        ),
    ]  # fmt: skip
    all_of_them.append(replace(all_of_them[1], name="MariaDB with files", hook_params={"local_infile": True}))
    return [database for database in all_of_them if _answers(database)]


def _answers(database: Database) -> bool:
    if shutil.which(database.client[0]) is None:
        print(f"{database.name} is left out: there is no {database.client[0]}")
        return False
    asked = subprocess.run(database.client, input="SELECT 1;", check=False, text=True, capture_output=True)
    if asked.returncode:
        print(f"{database.name} is left out: {asked.stderr.strip()}")
    return asked.returncode == 0


def write_csv(path: Path) -> None:
    """Write the rows as each of the clients reads them: nulls empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(map(bench_row, range(ROWS)))


def load(database: Database, url: str, mode: Mode) -> Callable[[], None]:
    """Return what loads with this package's operator."""
    from airflow_provider_anaplat import AnaplatToSqlOperator

    os.environ["AIRFLOW_CONN_ANAPLAT_DEFAULT"] = json.dumps(
        {"conn_type": "anaplat", "host": url, "password": "token"}
    )
    os.environ["AIRFLOW_CONN_DATABASE"] = json.dumps(database.connection)
    operator = AnaplatToSqlOperator(
        task_id="load",
        ds_id="bench",
        sql_conn_id="database",
        table=TABLE,
        mode=mode,
        key_columns=[KEY] if mode == "upsert" else None,
        hook_params=database.hook_params,
    )

    def run() -> None:
        assert execute(operator)["rows"] == ROWS

    return run


def seconds(prepare: Callable[[], None], run: Callable[[], None]) -> float:
    """Return what a run takes after its preparation."""
    prepare()
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def compare(database: Database, path: Path, url: str) -> None:
    """Compare the operator's modes with the database's own bulk load of a file.

    They run in turns: a server takes longer for some time after others have written much.
    """

    def bulk() -> None:
        database.run(database.bulk.format(path=path))

    def full() -> None:
        database.create()
        bulk()

    ways = {"its own bulk load": (database.create, bulk)}
    for name, prepare in (("an empty table", database.create), ("a full table", full)):
        for mode in MODES[name]:
            ways[f"{mode}, {name}"] = (prepare, load(database, url, mode))
    turns = [{name: seconds(*way) for name, way in ways.items()} for _ in range(RUNS)]
    own = statistics.median(turn["its own bulk load"] for turn in turns)
    for name in ways:
        taken = statistics.median(turn[name] for turn in turns)
        print(f"{f'{database.name}, {name}':<44}{taken:>9.2f}{taken / own:>9.1f}", flush=True)
    database.run(f"DROP TABLE {TABLE};")


def main() -> None:
    """Compare the databases that are named, or all."""
    import airflow_provider_anaplat.rows.export
    import airflow_provider_anaplat.sql.drivers  # noqa: F401

    logging.disable(logging.ERROR)
    print(f"{ROWS:,} rows × {len(BENCH_COLUMNS)} columns into a table with a primary key\n")
    print(f"{'way':<44}{'seconds':>9}{'÷ bulk':>9}")
    with tempfile.TemporaryDirectory() as name, page_server(ROWS) as url:
        path = Path(name) / "rows.csv"
        write_csv(path)
        for database in databases(Path(name)):
            if database.name in sys.argv[1:] or len(sys.argv) == 1:
                compare(database, path, url)


if __name__ == "__main__":
    main()
