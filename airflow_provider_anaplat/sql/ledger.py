"""Which loads have been committed, kept in the database itself: a line is there exactly where its rows are."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import NamedTuple

from airflow_provider_anaplat.sql.session import PARAMETER, Session

__all__ = [
    "LEDGER",
    "LoadKey",
    "LoadLedger",
    "RecordedLoad",
]

LEDGER = "anaplat_loads"

_COLUMNS = {
    "load_id": "VARCHAR(64) NOT NULL PRIMARY KEY",
    "dag_id": "VARCHAR(250)",
    "run_id": "VARCHAR(250)",
    "task_id": "VARCHAR(250)",
    "map_index": "INTEGER",
    "target": "VARCHAR(250)",
    "ds_id": "VARCHAR(250)",
    "row_count": "NUMERIC(19)",
    "column_count": "INTEGER",
    "version": "NUMERIC(19)",
    "utime": "VARCHAR(250)",
    "loaded_at": "VARCHAR(40)",
}


class LoadKey(NamedTuple):
    """What stays the same when a task is run again: the task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


class RecordedLoad(NamedTuple):
    """What a committed load came to.

    :param rows: how many were loaded
    :param columns: how many the dataset had
    """

    ds_id: str
    rows: int
    columns: int
    version: int | None
    utime: str | None


class LoadLedger:
    """The lines of one load in the table ``anaplat_loads``.

    :param schema: where the table lies, beside the one that is loaded
    :param target: name of the table that is loaded
    """

    def __init__(self, session: Session, schema: str | None, target: str, key: LoadKey) -> None:
        self._session = session
        self._schema = schema
        self._target = target
        self._key = key
        # One column, since not every database lets an index hold all parts of the key.
        self._load_id = hashlib.sha256("\0".join([*map(str, key), target]).encode()).hexdigest()
        dialect = session.driver.dialect
        self._table = dialect.qualified(schema, LEDGER)
        self._quoted = {name: dialect.quote(name) for name in _COLUMNS}

    def create(self) -> None:
        """Create the table where it is missing."""
        if self._exists():
            return
        options = self._session.driver.dialect.table_options
        columns = ", ".join(f"{self._quoted[name]} {kind}" for name, kind in _COLUMNS.items())
        try:
            with self._session.transaction():
                self._session.run(f"CREATE TABLE {self._table} ({columns}){options}")
        except self._session.driver.error:
            if not self._exists():  # where it does, another task has just created it
                raise

    def find(self) -> RecordedLoad | None:
        """Return the line, if the load was committed."""
        if not self._exists():
            return None
        wanted = ", ".join(
            self._quoted[name] for name in ("ds_id", "row_count", "column_count", "version", "utime")
        )
        query = f"SELECT {wanted} FROM {self._table} WHERE {self._quoted['load_id']} = {PARAMETER}"
        for ds_id, rows, columns, version, utime in self._session.rows(query, [self._load_id]):
            return RecordedLoad(ds_id, int(rows), int(columns), None if version is None else int(version), utime)
        return None

    def add(self, load: RecordedLoad, *, anew: bool) -> None:
        """Add the line, within the transaction of the load; another load of the same task waits for its end.

        :param anew: the table is new, so that a line that is there is of one that has since been dropped
        """
        values = (
            self._load_id,
            *self._key,
            self._target,
            *load,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if anew:
            identity = f"{self._quoted['load_id']} = {PARAMETER}"
            self._session.run(f"DELETE FROM {self._table} WHERE {identity}", [self._load_id])
        self._session.run(
            f"INSERT INTO {self._table} ({', '.join(self._quoted.values())}) "
            f"VALUES ({', '.join([PARAMETER] * len(values))})",
            values,
        )

    def set_rows(self, rows: int) -> None:
        """Set the number of rows, when all are loaded."""
        self._session.run(
            f"UPDATE {self._table} SET {self._quoted['row_count']} = {PARAMETER} "
            f"WHERE {self._quoted['load_id']} = {PARAMETER}",
            [rows, self._load_id],
        )

    def _exists(self) -> bool:
        dialect = self._session.driver.dialect
        try:
            return dialect.find(self._session, self._schema, LEDGER)
        except self._session.driver.error:
            self._session.roll_back()
            return False
