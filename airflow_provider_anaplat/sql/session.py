"""A DB-API connection for the length of a load: statements, one transaction, errors that can be read."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.errors import AnaplatError, AnaplatLoadError

if TYPE_CHECKING:
    from airflow_provider_anaplat.sql.drivers import Driver

__all__ = [
    "PARAMETER",
    "Session",
    "said",
]

log = logging.getLogger(__name__)

# Stands in a statement for a value. No identifier can hold it.
PARAMETER = "\0"


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

    def run_many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
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

        :raises AnaplatLoadError: the connection broke during the commit, so that nobody knows what came of it
        :raises Exception: the driver's own, where a constraint that is checked at the end refuses the commit
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
        """Roll back; where even that fails, the database does it when the connection ends."""
        try:
            self.connection.rollback()
        except self.driver.error as error:
            log.warning("The roll-back failed, so the database will do it: %s", said(error))

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


def _is_broken_rule(error: Exception) -> bool:
    """Tell whether the database refused a commit because of a constraint, by the name that DB-API gives this."""
    return any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__)


def said(error: Exception) -> str:
    """Return the database's own words, on one line."""
    return " ".join(str(error).split()).rstrip(".")
