"""What session, driver and dialect know of each other.

A session is a DB-API connection for the length of a load: statements, one transaction, errors that can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import polars as pl

from airflow_provider_anaplat.errors import AnaplatError, AnaplatLoadError

__all__ = [
    "PARAMETER",
    "STAGE",
    "Alone",
    "CheckKeys",
    "Computes",
    "Dialect",
    "Driver",
    "Find",
    "Load",
    "Names",
    "Reached",
    "Reaches",
    "Session",
    "said",
]

log = logging.getLogger(__name__)

# Stands in a statement for a value. No identifier can hold it.
PARAMETER = "\0"
STAGE = "anaplat_stage"  # name of the temporary table that an upsert fills first


class Session:
    """Runs statements on a connection whose driver is known.

    :param connection: a DB-API connection, not in autocommit mode
    """

    def __init__(self, connection: Any, driver: Driver) -> None:
        self.connection = connection
        self.driver = driver

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it changed; ``PARAMETER`` stands in it for each parameter."""
        with closing(self.connection.cursor()) as cursor:
            self._execute(cursor, statement, parameters)
            return int(cursor.rowcount)

    def run_many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each of the rows."""
        with closing(self.connection.cursor()) as cursor:
            cursor.executemany(self._with_placeholders(statement), rows)

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a query finds."""
        with closing(self.connection.cursor()) as cursor:
            self._execute(cursor, query, parameters)
            # The connection may be set up to give mappings.
            return [tuple(row.values() if isinstance(row, Mapping) else row) for row in cursor.fetchall()]

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns.

        :param table: its quoted name
        """
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")
            names = [column[0] for column in cursor.description]
            cursor.fetchall()
            return names

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end of the block, or roll back.

        :raises AnaplatLoadError: the connection broke during the commit, so that nobody knows what became of it
        :raises Exception: the driver's own, if a constraint that is checked at the end refuses the commit
        """
        self.connection.rollback()  # ends what reading the catalogue began
        try:
            for statement in self.driver.dialect.begin:
                self.run(statement)
            yield
        except BaseException:
            self.roll_back()
            raise
        try:
            self.connection.commit()
        except self.driver.error as error:
            self.roll_back()
            if _is_broken_rule(error):
                raise
            raise AnaplatLoadError(
                f"The commit failed, and it is not known whether the rows are there: {said(error)}. Run the task "
                "again: in a DAG run, it loads nothing twice."
            ) from error

    def roll_back(self) -> None:
        """Roll back; if even that fails, the database does it when the connection ends."""
        try:
            self.connection.rollback()
        except self.driver.error as error:
            log.warning("The roll-back failed, so it is left to the database: %s", said(error))

    def interrupt(self) -> None:
        """Break off the statement that another thread runs: it may wait for a lock that nobody gives up."""
        try:
            self.driver.interrupt(self.connection)
        except self.driver.error as error:
            log.warning("A statement could not be broken off: %s", said(error))

    @contextmanager
    def refusals(self, doing: str) -> Iterator[None]:
        """Turn what the database says into an error that says what it was about.

        :param doing: what could not be done
        """
        try:
            yield
        except AnaplatError:
            raise
        except self.driver.error as error:
            raise AnaplatLoadError(
                f"{doing}: {self.driver.dialect.name} says: {said(error)}. The transaction was rolled back. "
                "Correct the table, its rights or the rows, then run the task again."
            ) from error

    def _execute(self, cursor: Any, statement: str, parameters: Sequence[Any]) -> None:
        if not parameters:
            cursor.execute(statement)
        elif self.driver.named and "%" in statement:
            texts = statement.replace("%", self.driver.percent).split(PARAMETER)
            named = texts[0] + "".join(f"%({number})s{text}" for number, text in enumerate(texts[1:]))
            cursor.execute(named, {str(number): value for number, value in enumerate(parameters)})
        else:
            cursor.execute(self._with_placeholders(statement), tuple(parameters))

    def _with_placeholders(self, statement: str) -> str:
        return statement.replace("%", self.driver.percent).replace(PARAMETER, self.driver.placeholder)


Find = Callable[[Session, str | None, str], bool]
# Tables whose rows a DELETE would take along or change, each with the reason.
Reached = list[tuple[str, str]]
Reaches = Callable[[Session, str | None, str], Reached]
Computes = Callable[[Session, str | None, str], list[str]]
CheckKeys = Callable[[Session, "Names"], None]
Alone = Callable[[Session, str | None, str], AbstractContextManager[None]]
Load = Callable[[Session, str, Sequence[str], Iterator[pl.DataFrame]], int]


@dataclass(frozen=True)
class Names:
    """The identifiers of a load, quoted.

    :param table: the table that is loaded
    :param stage: the temporary table that an upsert fills first
    :param columns: the columns that are loaded
    :param keys: those of them that tell rows apart
    """

    table: str
    stage: str
    columns: Sequence[str]
    keys: Sequence[str]

    @property
    def others(self) -> list[str]:
        """The columns that are no keys."""
        return [column for column in self.columns if column not in self.keys]


@dataclass(frozen=True)
class Dialect:
    """A kind of database.

    :param name: what messages call it
    :param types: the column type for each type of a frame; none if tables are not created
    :param key_text: the type of a key column that holds text
    :param quotes: the characters before and after an identifier; the second is doubled within it
    :param longest_name: of an identifier; None if nothing limits it
    :param name_length: measures an identifier as the database does
    :param finite: whether its floating-point numbers are finite
    :param folds_case: whether column names must differ by more than upper and lower case
    :param find: whether a table exists
    :param begin: statements that begin a transaction, beside what the driver does
    :param reaches: which other tables a DELETE would change, and why
    :param computes: which columns of a table the database computes, if it may pass over other values in silence
    :param lock: keeps other writers from a table until the transaction ends, and lets readers in
    :param table_options: what follows the columns of a new table
    :param transactional_ddl: whether a table that is created vanishes when the transaction is rolled back
    :param alone: keeps other loads from creating the same table meanwhile, if transactions do not
    :param stage: name of the temporary table; ``{schema}`` is the quoted schema and a dot, if one is given
    :param staged: what tells the temporary table's rows apart as the table's keys do
    :param select_groups: begins a query of many groups
    :param create_stage: the statements that create it, with the types of the table's columns
    :param check_keys: raises if the keys cannot tell the table's rows apart; None if there is no upsert
    :param keeps_rows: whether something else, such as a trigger, may keep rows out of a table, or as they were
    :param differs: tells whether a row that an update has passed over differs in a column
    :param fill: the statements that bring the rows of the temporary table into a table without rows; none if it
        has some, or if ``merge`` is as fast
    :param key_there: name of the exception by which ``fill`` refuses a key that is in the table
    :param key_twice: name of the exception by which ``merge`` refuses several rows with a key, if there are
        other columns; none if they take any of them
    :param merge: the statements that bring the rows of the temporary table into the table; they may pass over rows
        that are the same already, unless something else may keep rows as well
    """

    name: str
    types: Mapping[type[pl.DataType], str]
    key_text: str
    quotes: str
    longest_name: int | None
    name_length: Callable[[str], int]
    finite: bool
    folds_case: bool
    find: Find
    reaches: Reaches = lambda *_: []
    computes: Computes = lambda *_: []
    begin: Sequence[str] = ()
    lock: str | None = None
    table_options: str = ""
    transactional_ddl: bool = True
    alone: Alone = lambda *_: nullcontext()
    stage: str = ""
    staged: str = "{stage}"
    select_groups: str = "SELECT"
    create_stage: Callable[[Session, Names], list[str]] = lambda *_: []
    check_keys: CheckKeys | None = None
    keeps_rows: Callable[[Session, Names], bool] = lambda *_: False
    differs: str = ""
    fill: Callable[[Session, Names], list[str]] = lambda *_: []
    key_there: str = ""
    key_twice: str = ""
    merge: Callable[[Session, Names], list[str]] = lambda *_: []

    def quote(self, name: str) -> str:
        """Return the identifier as it stands in a statement."""
        return f"{self.quotes[0]}{name.replace(self.quotes[1], self.quotes[1] * 2)}{self.quotes[1]}"

    def qualified(self, schema: str | None, table: str) -> str:
        """Return the quoted name of a table, with that of its schema if one is given."""
        return f"{self.quote(schema)}.{self.quote(table)}" if schema else self.quote(table)

    def stage_name(self, schema: str | None) -> str:
        """Return the name of the temporary table."""
        return self.stage.format(schema=f"{self.quote(schema)}." if schema else "")

    def create_table(self, table: str, columns: Mapping[str, type[pl.DataType]], keys: Sequence[str]) -> str:
        """Return the statement that creates a table.

        :param table: its quoted name
        :param columns: type of each column of the frames
        :param keys: the columns that tell rows apart
        """
        lines = [f"{self.quote(name)} {self._type(dtype, name in keys)}" for name, dtype in columns.items()]
        if keys:
            lines.append(f"PRIMARY KEY ({', '.join(map(self.quote, keys))})")
        return f"CREATE TABLE {table} ({', '.join(lines)}){self.table_options}"

    def _type(self, dtype: type[pl.DataType], is_key: bool) -> str:
        if not is_key:
            return self.types[dtype]
        return f"{self.key_text if dtype is pl.String else self.types[dtype]} NOT NULL"


@dataclass(frozen=True)
class Driver:
    """A DB-API module.

    :param dialect: the database it talks to
    :param load: writes frames into a table and returns the number of their rows
    :param placeholder: stands for a value in a statement
    :param percent: stands for a percent sign in a statement that has values
    :param named: whether it stands for one only if the values have names
    :param prepare: sets a new connection up
    :param interrupt: breaks off the statement that another thread runs; nothing, if the module cannot
    :param error: base of the module's exceptions
    """

    dialect: Dialect
    load: Load
    placeholder: str = "%s"
    percent: str = "%%"
    named: bool = False
    prepare: Callable[[Any], None] = lambda _: None
    interrupt: Callable[[Any], None] = lambda _: None
    error: type[Exception] = Exception


def _is_broken_rule(error: Exception) -> bool:
    """Tell whether the database refused a commit because of a constraint, by the name that DB-API gives this."""
    return any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__)


def said(error: Exception) -> str:
    """Return the database's own words, on one line."""
    return " ".join(str(error).split()).rstrip(".")
