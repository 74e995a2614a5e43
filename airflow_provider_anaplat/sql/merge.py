"""Rows of a temporary table, brought into a table by their keys: each is updated, or inserted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.sql.session import Dialect, Names, Session

__all__ = [
    "Merge",
]

_SAVEPOINT, _ROLLBACK = "SAVEPOINT anaplat_merge", "ROLLBACK TO SAVEPOINT anaplat_merge"


@dataclass(frozen=True)
class Merge:
    """Fills a temporary table, and brings its rows into a table.

    :param what: what the table is called in messages
    """

    session: Session
    names: Names
    what: str

    def run(self, load: Callable[[str], int]) -> int:
        """Merge, and return how many rows there were.

        :param load: loads the rows into a table, and returns how many they are
        :raises AnaplatLoadError: the keys do not tell the rows apart, or the table does not hold them in the end
        """
        names = self.names
        for statement in self._dialect.create_stage(self.session, names):
            self.session.run(statement)
        if self._dialect.check_keys is not None:
            self._dialect.check_keys(self.session, names)
        rows = load(names.stage)
        merge_refuses_duplicates = bool(self._dialect.key_twice and names.others)
        if not merge_refuses_duplicates:
            self._refuse_duplicates()
        changed = self._fill()
        if changed is None:
            changed = self._merge()
        if changed < rows and merge_refuses_duplicates:  # but not beside a row that it has passed over
            self._refuse_duplicates()
        if changed < rows and self._dialect.keeps_rows(self.session, names):
            self._refuse_missing()
            self._refuse_unchanged()
        return rows

    def _fill(self) -> int | None:
        """Bring the rows into a table that has none, and return how many; None if it has some."""
        statements = self._dialect.fill(self.session, self.names)
        if not statements:
            return None
        self.session.run(_SAVEPOINT)
        try:
            return self._run(statements)
        except self.session.driver.error as error:
            if type(error).__name__ != self._dialect.key_there:
                raise
            # Another transaction has inserted it meanwhile, or the dataset has it twice: the merge knows both.
            self.session.run(_ROLLBACK)
            return None

    def _merge(self) -> int:
        """Bring the rows into the table, and return how many were changed there."""
        if self._dialect.key_twice:
            self.session.run(_SAVEPOINT)
        try:
            return self._run(self._dialect.merge(self.session, self.names))
        except self.session.driver.error as error:
            if type(error).__name__ == self._dialect.key_twice:
                self.session.run(_ROLLBACK)
                self._refuse_duplicates()
            raise

    def _run(self, statements: list[str]) -> int:
        return sum(map(self.session.run, statements))

    def _refuse_duplicates(self) -> None:
        names = self.names
        keys = ", ".join(names.keys)
        staged = self._dialect.staged.format(keys=keys, stage=names.stage, table=names.table)
        select = self._dialect.select_groups
        query = f"{select} {keys} FROM {staged} GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT 1"
        for values in self.session.rows(query):
            raise AnaplatLoadError(
                f"The dataset has several rows with the key {keys} = {', '.join(map(repr, values))}, so it is not "
                f"clear which one {self.what} should hold. Change key_columns or the dataset. Nothing was loaded."
            )

    def _refuse_missing(self) -> None:
        stage, table = self.names.stage, self.names.table
        [(missing,)] = self.session.rows(
            f"SELECT COUNT(*) FROM {stage} AS s "
            f"WHERE NOT EXISTS (SELECT 1 FROM {table} AS t WHERE {self._same_key})"
        )
        if missing:
            raise AnaplatLoadError(
                f"{missing:,} rows of the dataset did not arrive in {self.what}, so the load was rolled back. A "
                "trigger of the table may keep them away; load another table, and fill this one from it."
            )

    def _refuse_unchanged(self) -> None:
        names = self.names
        if not names.others:
            return
        differ = " OR ".join(self._dialect.differs.format(column=column) for column in names.others)
        [(kept,)] = self.session.rows(
            f"SELECT COUNT(*) FROM {names.stage} AS s JOIN {names.table} AS t ON {self._same_key} WHERE {differ}"
        )
        if kept:
            raise AnaplatLoadError(
                f"{kept:,} rows of {self.what} are not what the dataset has, so the load was rolled back. A "
                "trigger of the table may keep them as they were; load another table, and fill this one from it."
            )

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"t.{key} = s.{key}" for key in self.names.keys)

    @property
    def _dialect(self) -> Dialect:
        return self.session.driver.dialect
