"""What differs from driver to driver: parameters, and the fastest way for a frame into a table."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import polars as pl

from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.output.counting import occurrences
from airflow_provider_anaplat.output.feed import feed
from airflow_provider_anaplat.output.splitter import rows_within
from airflow_provider_anaplat.sql.dialects import MYSQL, POSTGRESQL, SQLITE, other_dialect
from airflow_provider_anaplat.sql.session import PARAMETER, Driver, Session

__all__ = [
    "open_session",
]

_ROWS_PER_STATEMENT = 1000
_BYTES_PER_STATEMENT = 1_000_000  # the smallest limit of a MySQL server's packets
# In this order, or the backslashes of the others would be escaped too.
_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_SQLITE_WAIT = 60_000  # milliseconds for another writer, or for a reader at the commit


def open_session(
    connection: Any, *, local_files: bool = False, placeholder: str = "%s", quotes: str = '""'
) -> Session:
    """Return a session on a connection, whose driver tells the database.

    :param connection: a DB-API connection, not in autocommit mode
    :param local_files: whether it was opened so that a MySQL server may read files of this machine
    :param placeholder: stands for a value in a statement, if the driver is not known here
    :param quotes: the characters around an identifier, likewise
    """
    module = type(connection).__module__
    driver = _DRIVERS.get(module.partition(".")[0])
    if driver is None:
        percent = "%%" if "%" in placeholder else "%"
        driver = Driver(other_dialect(quotes), _insert_each, placeholder, percent)
    if local_files and driver.dialect is MYSQL:
        driver = replace(driver, load=_LOAD_DATA)
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


@dataclass(frozen=True)
class _Bulk:
    """A way to load rows as text; rows are read and rendered while the database takes those before.

    :param statement: takes a batch, once ``{table}`` and ``{columns}`` are named
    :param render: a batch as the statement reads it
    :param put: runs the statement with a batch, and returns how many rows the database took
    :param most_rows: of a batch
    :param most_bytes: of a batch, as its frame takes memory
    """

    statement: str
    render: Callable[[pl.DataFrame], bytes]
    put: Callable[[Session, str, bytes], int]
    most_rows: int
    most_bytes: int

    def __call__(
        self, session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]
    ) -> int:
        statement = self.statement.format(table=table, columns=", ".join(columns))
        rows = 0

        def rendered() -> Iterator[tuple[int, bytes]]:
            nonlocal rows
            for frame in frames:
                for batch in frame.iter_slices(rows_within(frame, self.most_rows, self.most_bytes)):
                    yield batch.height, self.render(batch)
                    rows += batch.height

        def put(batches: Iterator[tuple[int, bytes]]) -> None:
            for height, data in batches:
                _check_taken(table, self.put(session, statement, data), height)

        feed(rendered(), put, ahead=2, interrupt=session.interrupt)
        return rows


def _fields(frame: pl.DataFrame) -> bytes:
    r"""Return the rows as COPY and LOAD DATA read them fastest: a tab between cells, null as ``\N``, no quotes."""
    write = partial(_text, separator="\t", quote_style="never", null_value=r"\N")
    fields = write(frame)
    if (
        occurrences(fields, b"\\") == sum(frame.null_count().row(0))
        and occurrences(fields, b"\t") == frame.height * (frame.width - 1)
        and occurrences(fields, b"\n") == frame.height
        and occurrences(fields, b"\r") == 0
    ):
        return fields
    cells = pl.col(pl.String)
    for sign, escaped in _ESCAPES.items():
        cells = cells.str.replace_all(sign, escaped, literal=True)
    return write(frame.with_columns(cells))


def _text(frame: pl.DataFrame, **options: Any) -> bytes:
    text = io.BytesIO()
    frame.write_csv(text, include_header=False, **options)
    return text.getvalue()


def _put_with_psycopg(session: Session, statement: str, data: bytes) -> int:
    with session.connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            copy.write(data)
        return int(cursor.rowcount)


def _put_with_psycopg2(session: Session, statement: str, data: bytes) -> int:
    with session.connection.cursor() as cursor:
        cursor.copy_expert(statement, io.BytesIO(data))
        return int(cursor.rowcount)


def _check_taken(table: str, taken: int, expected: int) -> None:
    if taken != expected:
        raise AnaplatLoadError(
            f"Table {table} took {taken:,} of {expected:,} rows, so the load was rolled back. "
            "A trigger or an ON CONFLICT clause of the table may keep rows away; load another table, and fill "
            "this one from it."
        )


def _literals(frame: pl.DataFrame) -> bytes:
    """Return the rows as an INSERT lists them; a driver takes four times as long to render each value."""
    rows = _text(frame, quote_style="non_numeric", quote_char="'", null_value="NULL", line_terminator="),(")
    return b"(" + rows.removesuffix(b",(")


def _put_with_insert(session: Session, statement: str, data: bytes) -> int:
    with closing(session.connection.cursor()) as cursor:
        cursor.execute(statement.encode() + data)
        return int(cursor.rowcount)


def _put_with_load_data(session: Session, statement: str, data: bytes) -> int:
    """Load a file of this machine; if the server changes or drops what does not fit, it only warns."""
    with tempfile.NamedTemporaryFile(prefix="anaplat-") as file:
        file.write(data)
        file.flush()
        rows = session.run(f"LOAD DATA LOCAL INFILE '{file.name}' {statement}")
    for _, _, message in session.rows("SHOW WARNINGS"):
        raise session.driver.error(message)
    return rows


def _insert_each(
    session: Session,
    table: str,
    columns: Sequence[str],
    frames: Iterator[pl.DataFrame],
    collect: Callable[[Iterator[tuple[Any, ...]]], Iterable[tuple[Any, ...]]] = list,
) -> int:
    """Insert rows by a statement each.

    :param collect: makes of a batch's rows what the driver takes; by default a list, as DB-API has it
    """
    values = ", ".join([PARAMETER] * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"
    rows = 0
    for frame in frames:
        for batch in frame.iter_slices(rows_within(frame, _ROWS_PER_STATEMENT, _BYTES_PER_STATEMENT)):
            # In half the time of the frame's own rows.
            cells = (column.to_list() for column in batch.get_columns())
            session.run_many(statement, collect(zip(*cells, strict=True)))
        rows += frame.height
    return rows


def _insert_into_sqlite(
    session: Session, table: str, columns: Sequence[str], frames: Iterator[pl.DataFrame]
) -> int:
    """Insert dates as texts that SQLite's functions understand: it has no dates. Its driver takes row by row."""
    before = _count(session, table)
    rows = _insert_each(session, table, columns, map(_with_dates_as_texts, frames), iter)
    _check_taken(table, _count(session, table) - before, rows)
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
    with closing(connection.cursor()) as cursor:
        cursor.execute("SET NAMES utf8mb4")  # what is sent as text is UTF-8
        cursor.execute(
            "SET SESSION sql_mode = CONCAT_WS(',', "
            # MariaDB would make each empty text null; it gives way to a mode that is set anyway.
            "NULLIF(REPLACE(@@SESSION.sql_mode, 'EMPTY_STRING_IS_NULL', 'STRICT_ALL_TABLES'), ''), "
            "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES')"
        )
        # The server keeps that many warnings; none of them may be a mere note, which would take a warning's place.
        cursor.execute("SET SESSION sql_notes = 0, SESSION max_error_count = 64")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _prepare_sqlite(connection: Any) -> None:
    connection.isolation_level = None  # transactions begin where this package says so
    connection.execute(f"PRAGMA busy_timeout = {_SQLITE_WAIT}")


_COPY = "COPY {table} ({columns}) FROM STDIN (FORMAT text, ENCODING 'UTF8')"
_INSERT = _Bulk(
    "INSERT INTO {table} ({columns}) VALUES ",
    _literals,
    _put_with_insert,
    _ROWS_PER_STATEMENT,
    _BYTES_PER_STATEMENT,
)
_LOAD_DATA = _Bulk(
    "INTO TABLE {table} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' ESCAPED BY '\\' "
    "LINES TERMINATED BY '\n' ({columns})",
    _fields,
    _put_with_load_data,
    20_000,
    8 << 20,
)

# By the name of the package that a connection's class comes from.
_DRIVERS = {
    "psycopg": Driver(
        POSTGRESQL, _Bulk(_COPY, _fields, _put_with_psycopg, 20_000, 4 << 20), interrupt=methodcaller("cancel")
    ),
    "psycopg2": Driver(
        POSTGRESQL, _Bulk(_COPY, _fields, _put_with_psycopg2, 20_000, 4 << 20), interrupt=methodcaller("cancel")
    ),
    "MySQLdb": Driver(MYSQL, _INSERT, prepare=_prepare_mysqlclient),
    "mysql": Driver(MYSQL, _INSERT, percent="%(percent)%", named=True, prepare=_prepare_mysql),
    "sqlite3": Driver(SQLITE, _insert_into_sqlite, placeholder="?", percent="%", prepare=_prepare_sqlite),
}
