"""What has been loaded, kept in the database itself: a line is there if and only if its rows are.

The table has two kinds of line: one for each task instance that has appended, and one for each table, which tells
what was loaded into it last.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, NamedTuple

from airflow_provider_anaplat.errors import AnaplatDamagedStateError
from airflow_provider_anaplat.sql.session import PARAMETER, Session

__all__ = [
    "LEDGER",
    "LoadKey",
    "LoadLedger",
    "RecordedLoad",
    "TableNote",
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
    "fingerprint": "VARCHAR(64)",
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


class _Lines:
    """Lines of the table ``anaplat_loads``.

    :param schema: where the table lies, beside the one that is loaded
    :param load_id: of the one line that is meant
    """

    def __init__(self, session: Session, schema: str | None, load_id: str) -> None:
        self._session = session
        self._schema = schema
        self._load_id = load_id
        dialect = session.driver.dialect
        self._table = dialect.qualified(schema, LEDGER)
        self._quoted = {name: dialect.quote(name) for name in _COLUMNS}
        self._identity = f"{self._quoted['load_id']} = {PARAMETER}"

    def create(self) -> None:
        """Create the table if it is missing."""
        if self.exists():
            return
        options = self._session.driver.dialect.table_options
        columns = ", ".join(f"{self._quoted[name]} {kind}" for name, kind in _COLUMNS.items())
        try:
            with self._session.transaction():
                self._session.run(f"CREATE TABLE {self._table} ({columns}){options}")
        except self._session.driver.error:
            if not self.exists():  # if it does, another task has just created it
                raise

    def exists(self) -> bool:
        """Tell whether the table is there; outside of a transaction, which a database might end to answer."""
        dialect = self._session.driver.dialect
        try:
            return dialect.find(self._session, self._schema, LEDGER)
        except self._session.driver.error:
            self._session.roll_back()
            return False

    def find(self, fingerprint: str | None = None, not_by: LoadKey | None = None) -> RecordedLoad | None:
        """Return the line, if it is there.

        :param fingerprint: that it must have; by default, any
        :param not_by: whose it must not be; by default, anybody's
        :raises AnaplatDamagedStateError: it cannot be read
        """
        if not self.exists():
            return None
        wanted = ", ".join(
            self._quoted[name] for name in ("ds_id", "row_count", "column_count", "version", "utime")
        )
        query = f"SELECT {wanted} FROM {self._table} WHERE {self._identity}"
        parameters: list[Any] = [self._load_id]
        if fingerprint is not None:
            query += f" AND {self._quoted['fingerprint']} = {PARAMETER}"
            parameters.append(fingerprint)
        if not_by is not None:
            others = [f"{self._quoted[name]} <> {PARAMETER}" for name in LoadKey._fields]
            query += f" AND ({self._quoted['run_id']} IS NULL OR {' OR '.join(others)})"
            parameters += not_by
        for ds_id, rows, columns, version, utime in self._session.rows(query, parameters):
            try:
                return RecordedLoad(
                    ds_id, int(rows), int(columns), None if version is None else int(version), utime
                )
            except (TypeError, ValueError):
                raise AnaplatDamagedStateError(
                    f"The line of table {self._table} whose load_id is {self._load_id} cannot be read: a number "
                    "in it is missing or is none. Nothing was loaded. Look whether the rows of that load are "
                    "there; correct the line, or remove it to load anew; then clear the task."
                ) from None
        return None

    def insert(self, **values: Any) -> None:
        """Insert the line."""
        values = {"load_id": self._load_id, **values}
        self._session.run(
            f"INSERT INTO {self._table} ({', '.join(self._quoted[name] for name in values)}) "
            f"VALUES ({', '.join([PARAMETER] * len(values))})",
            [*values.values()],
        )

    def update(self, **values: Any) -> None:
        """Update the line, if it is there."""
        changes = ", ".join(f"{self._quoted[name]} = {PARAMETER}" for name in values)
        self._session.run(
            f"UPDATE {self._table} SET {changes} WHERE {self._identity}", [*values.values(), self._load_id]
        )


class LoadLedger(_Lines):
    """The line of one load in the table ``anaplat_loads``.

    :param schema: where the table lies, beside the one that is loaded
    :param target: name of the table that is loaded
    """

    def __init__(self, session: Session, schema: str | None, target: str, key: LoadKey) -> None:
        # One column, since not every database lets an index hold all parts of the key.
        super().__init__(session, schema, _sha256(*map(str, key), target))
        self._target = target
        self._key = key

    def add(self, load: RecordedLoad) -> None:
        """Add the line, within the transaction of the load; another load of the same task waits for its end."""
        self.insert(**self._key._asdict(), target=self._target, **_values(load))

    def set_rows(self, rows: int) -> None:
        """Set the number of rows, when all are loaded."""
        self.update(row_count=rows)


class TableNote(_Lines):
    """The line of one table in the table ``anaplat_loads``: what was loaded into it last.

    Every load into the table changes it, whatever its mode, within its transaction and after its rows are there:
    so the line is never about rows that another load has since replaced. It is there before the transaction
    begins, since in MySQL transactions that look for a missing line, and then insert it, may wait for each other.

    :param schema: where the table lies
    :param target: its name; names that differ in case alone, which may mean one table, share a line
    """

    def __init__(self, session: Session, schema: str | None, target: str) -> None:
        super().__init__(session, schema, _note_id(target))
        self._target = target

    def find(self, fingerprint: str | None = None, not_by: LoadKey | None = None) -> RecordedLoad | None:
        """Return the line, if it is there and can be read: without it, the table is loaded again."""
        try:
            return super().find(fingerprint, not_by)
        except AnaplatDamagedStateError:
            return None

    def prepare(self) -> None:
        """See that the line is there."""
        self.create()
        if self._is_there():
            return
        try:
            with self._session.transaction():
                self.insert(target=self._target)
        except self._session.driver.error:
            if not self._is_there():  # if it is, another task has just inserted it
                raise

    def replace(self, load: RecordedLoad, fingerprint: str | None, key: LoadKey | None) -> None:
        """Let the line be about this load.

        :param fingerprint: tells it from any other that would write something else; None if nobody will ask
        :param key: who loads
        """
        by = dict.fromkeys(LoadKey._fields) if key is None else key._asdict()
        self.update(**_values(load), **by, target=self._target, fingerprint=fingerprint)

    def forget(self) -> None:
        """Let the line be about no load, if another one has made it since this one began, and counts on it."""
        if self.exists():
            with self._session.transaction():
                self.update(fingerprint=None)

    def forget_appended(self) -> None:
        """Delete the lines of all loads whose rows are no longer in the table: it was dropped, or is replaced.

        By their keys: in MySQL, to look for them by the table's name would lock the lines of all tables.
        """
        load_id, target = self._quoted["load_id"], self._quoted["target"]
        query = f"SELECT {load_id} FROM {self._table} WHERE {target} = {PARAMETER} AND {load_id} <> {PARAMETER}"
        for (found,) in self._session.rows(query, [self._target, self._load_id]):
            self._session.run(f"DELETE FROM {self._table} WHERE {self._identity}", [found])

    def _is_there(self) -> bool:
        return bool(self._session.rows(f"SELECT 1 FROM {self._table} WHERE {self._identity}", [self._load_id]))


def _note_id(target: str) -> str:
    return _sha256("table", target.casefold())


def _values(load: RecordedLoad) -> dict[str, Any]:
    return {
        "ds_id": load.ds_id,
        "row_count": load.rows,
        "column_count": load.columns,
        "version": load.version,
        "utime": load.utime,
        "loaded_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
