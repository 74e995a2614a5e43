"""What differs from driver to driver: parameters, and the fastest way for a frame into a table."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.output.feed import feed
from airflow_provider_anaplat.output.splitter import rows_within
from airflow_provider_anaplat.sql.dialects import MYSQL, POSTGRESQL, SQLITE, other_dialect
from airflow_provider_anaplat.sql.session import PARAMETER, Driver, Load, Session

__all__ = [
    "open_session",
]

_ROWS_PER_COPY = 10_000
_BYTES_PER_COPY = 4 << 20
_ROWS_PER_STATEMENT = 1000
_BYTES_PER_STATEMENT = 1_000_000  # the smallest limit of a MySQL server's packets
_SQLITE_WAIT = 60_000  # milliseconds for another writer, or for a reader at the commit


def open_session(connection: Any, *, placeholder: str = "%s", quotes: str = '""') -> Session:
    """Return a session on a connection, whose driver tells the database.

    :param connection: a DB-API connection, not in autocommit mode
    :param placeholder: stands for a value in a statement, where the driver is not known here
    :param quotes: the characters around an identifier, likewise
    """
    module = type(connection).__module__
    driver = _DRIVERS.get(module.partition(".")[0])
    if driver is None:
        percent = "%%" if "%" in placeholder else "%"
        driver = Driver(other_dialect(quotes), _insert_each, placeholder, percent)
    session = Session(connection, replace(driver, error=_error_of(module)))
    with session.refusals("Cannot set up the connection"):
        driver.prepare(connection)
    return session


def _error_of(module: str) -> type[Exception]:
    """Return the base of a driver's exceptions, which its package offers by the name that DB-API prescribes."""
    name = module
    while name:
        error = getattr(sys.modules.get(name), "Error", None)
        if isinstance(error, type) and issubclass(error, Exception):
            return error
        name = name.rpartition(".")[0]
    return Exception


def _copying(put: Callable[[Session, str, bytes], int]) -> Load:
    """Return a way to load frames with COPY; rows are read and rendered while the database takes those before.

    :param put: runs a COPY statement with its data, and returns how many rows the table took
    """

    def load(session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]) -> int:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')"
        rows = 0

        def rendered() -> Iterator[tuple[int, bytes]]:
            nonlocal rows
            for frame in frames:
                for batch in frame.iter_slices(rows_within(frame, _ROWS_PER_COPY, _BYTES_PER_COPY)):
                    yield batch.height, _csv(batch)
                    rows += batch.height

        def copy(batches: Iterator[tuple[int, bytes]]) -> None:
            for height, data in batches:
                _check_copied(table, put(session, statement, data), height)

        feed(rendered(), copy)
        return rows

    return load


def _csv(frame: pl.DataFrame) -> bytes:
    r"""Return the frame as COPY reads it: null as an empty field, the empty text as ``""``.

    Every text is quoted: a line that holds nothing but ``\.`` would end the data.
    """
    data = io.BytesIO()
    frame.write_csv(data, include_header=False, quote_style="non_numeric")
    return data.getvalue()


def _put_with_psycopg(session: Session, statement: str, data: bytes) -> int:
    with session.connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            copy.write(data)
        return int(cursor.rowcount)


def _put_with_psycopg2(session: Session, statement: str, data: bytes) -> int:
    with session.connection.cursor() as cursor:
        cursor.copy_expert(statement, io.BytesIO(data))
        return int(cursor.rowcount)


def _check_copied(table: str, copied: int, expected: int) -> None:
    if copied != expected:
        raise AnaplatLoadError(
            f"Table {table} took {copied:,} of {expected:,} rows, so the load was rolled back. "
            "A trigger or an ON CONFLICT clause of the table may keep rows away; load another table, and fill "
            "this one from it."
        )


def _insert_many(session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]) -> int:
    """Insert many rows with each statement.

    The drivers' own executemany looks for values and comments with patterns that a column name can match. Dates go
    as texts: one driver writes the year 99 as it is, and the server takes that for 1999.
    """
    row = f"({', '.join([PARAMETER] * len(columns))})"
    rows = 0
    for frame in map(_with_dates_as_texts, frames):
        for batch in frame.iter_slices(rows_within(frame, _ROWS_PER_STATEMENT, _BYTES_PER_STATEMENT)):
            session.run(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * batch.height)}",
                [cell for cells in batch.iter_rows() for cell in cells],
            )
        rows += frame.height
    return rows


def _insert_each(session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]) -> int:
    values = ", ".join([PARAMETER] * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"
    rows = 0
    for frame in frames:
        for batch in frame.iter_slices(rows_within(frame, _ROWS_PER_STATEMENT, _BYTES_PER_STATEMENT)):
            session.run_many(statement, batch.rows())
        rows += frame.height
    return rows


def _insert_into_sqlite(
    session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]
) -> int:
    """Insert dates as texts that SQLite's functions understand; it has no dates."""
    before = _count(session, table)
    rows = _insert_each(session, table, columns, map(_with_dates_as_texts, frames))
    _check_copied(table, _count(session, table) - before, rows)
    return rows


def _with_dates_as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.Date).cast(pl.String))


def _count(session: Session, table: str) -> int:
    [(count,)] = session.rows(f"SELECT COUNT(*) FROM {table}")
    return int(count)


def _prepare_mysqlclient(connection: Any) -> None:
    connection.set_character_set("utf8mb4")
    _prepare_mysql(connection)


def _prepare_mysql(connection: Any) -> None:
    """Let nothing be cut or replaced silently; let DELETE keep out what other loads would insert meanwhile."""
    cursor = connection.cursor()
    cursor.execute(
        "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), "
        "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO')"
    )
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.close()


def _prepare_sqlite(connection: Any) -> None:
    connection.isolation_level = None  # transactions begin where this package says so
    connection.execute(f"PRAGMA busy_timeout = {_SQLITE_WAIT}")


# By the name of the package that a connection's class comes from.
_DRIVERS = {
    "psycopg": Driver(POSTGRESQL, _copying(_put_with_psycopg)),
    "psycopg2": Driver(POSTGRESQL, _copying(_put_with_psycopg2)),
    "MySQLdb": Driver(MYSQL, _insert_many, prepare=_prepare_mysqlclient),
    "mysql": Driver(MYSQL, _insert_many, percent="%(percent)%", named=True, prepare=_prepare_mysql),
    "sqlite3": Driver(SQLITE, _insert_into_sqlite, placeholder="?", percent="%", prepare=_prepare_sqlite),
}
