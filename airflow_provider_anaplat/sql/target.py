"""A table as the target of an export: loaded in one transaction, by replacing, appending or updating."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import polars as pl

from airflow_provider_anaplat.errors import AnaplatLoadError, AnaplatRequestError
from airflow_provider_anaplat.output.lines import Shape
from airflow_provider_anaplat.output.schema import Caster, schema_of
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.pages import PageReader
from airflow_provider_anaplat.sql.ledger import LoadKey, LoadLedger, RecordedLoad, TableNote
from airflow_provider_anaplat.sql.merge import Merge
from airflow_provider_anaplat.sql.session import PARAMETER, STAGE, Dialect, Names, Session

__all__ = [
    "Mode",
    "SqlTarget",
]

log = logging.getLogger(__name__)

_SHOWN = 5  # of the tables that an error could name

Mode = Literal["replace", "append", "upsert"]


@dataclass(frozen=True)
class SqlTarget:
    """A table, whose readers see it as it was until everything is loaded.

    :param session: a session on the database
    :param table: name of the table, without quotes and schema
    :param schema: its schema, or in MySQL its database; by default the connection's own
    :param mode: ``replace`` all rows, ``append`` to them, or ``upsert``: update or insert each by its keys
    :param key_columns: the columns that tell rows apart, for ``upsert`` alone
    :param load_key: who loads; the same load is appended once
    :param fingerprint: tells the load from any other that would load something else; with it, the load is noted
    :raises AnaplatRequestError: the arguments do not go together
    """

    session: Session
    table: str
    schema: str | None = None
    mode: Mode = "replace"
    key_columns: Sequence[str] = ()
    load_key: LoadKey | None = None
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("replace", "append", "upsert"):
            raise AnaplatRequestError(f"mode is {self.mode!r}; it must be replace, append or upsert.")
        if not _are_names(self.key_columns) or bool(self.key_columns) != (self.mode == "upsert"):
            raise AnaplatRequestError(
                "key_columns must be a list of column names with mode='upsert', and only then."
            )
        if not isinstance(self.table, str) or not self.table or {".", PARAMETER}.intersection(self.table):
            raise AnaplatRequestError(
                f"table is {self.table!r}; it must be the bare name of a table. Put its schema into the argument "
                "schema."
            )
        if not isinstance(self.schema, str | None) or PARAMETER in (self.schema or ""):
            raise AnaplatRequestError(f"schema is {self.schema!r}; it must be the name of a schema, or None.")
        if self.mode == "upsert" and self._dialect.check_keys is None:
            raise AnaplatRequestError(
                "mode='upsert' works on PostgreSQL, MySQL, MariaDB and SQLite. On this database, load a table of "
                "its own with mode='replace' and merge it with a task that runs SQL."
            )
        if self.mode == "upsert" and self.table.casefold() == STAGE:
            raise AnaplatRequestError(
                f"table is {self.table!r}, as mode='upsert' calls its own temporary table, which would hide this "
                "one. Give the table another name."
            )
        self._check_lengths([self.table, *([self.schema] if self.schema else [])])

    def __str__(self) -> str:
        return f"table {self._name}"

    def shape(self, columns: int) -> Shape:
        """Return that databases take columns."""
        return "columns"

    def recorded(self) -> RecordedLoad | None:
        """Return what this load came to, if it was appended before."""
        if self._ledger is None:
            return None
        with self.session.refusals(f"Cannot look for earlier loads of {self}"):
            return self._ledger.find() if self._exists() else None

    def last_load(self, snapshot: Snapshot) -> RecordedLoad | None:
        """Return what was loaded last, if this load would load the same and the table has not lost or gained rows.

        What the same task has loaded in the same DAG run is loaded again: what follows it has not seen that yet.

        :param snapshot: the state of the dataset
        """
        state = self._state(snapshot)
        with self.session.refusals(f"Cannot look for the last load of {self}"):
            load = self._note.find(state, not_by=self.load_key) if state else None
            if load is None or not self._exists():
                return None
            [(rows,)] = self.session.rows(f"SELECT COUNT(*) FROM {self._name}")
        has_all = rows == load.rows if self.mode == "replace" else rows >= load.rows
        return load if has_all else None

    def write(self, frames: Iterator[pl.DataFrame], reader: PageReader, caster: Caster) -> None:
        """Load all frames, or none."""
        frames = caster.typed(frames, finite=self._dialect.finite)
        columns = schema_of(reader.columns, typed=True)
        self._check_columns(list(columns), reader.ds_id)
        with self.session.refusals(f"Cannot load dataset {reader.ds_id} into {self}"):
            if self._ledger is not None:
                self._ledger.create()
            if self.fingerprint is not None:
                self._note.prepare()
            if self._exists():
                self._load_existing(frames, reader, list(columns))
            else:
                self._load_new(frames, reader, columns)

    def _load_existing(self, frames: Iterator[pl.DataFrame], reader: PageReader, columns: list[str]) -> None:
        names = self._names(self._name, columns, self._spelled(columns, reader.ds_id))
        self._load(frames, reader, names, new=False)

    def _load_new(
        self, frames: Iterator[pl.DataFrame], reader: PageReader, columns: dict[str, type[pl.DataType]]
    ) -> None:
        names = self._names(self._name, list(columns), list(columns))
        if self._dialect.transactional_ddl:
            create = self._dialect.create_table(self._name, columns, self.key_columns)
            self._load(frames, reader, names, new=True, create=create)
        elif self.mode == "append":
            # Here a new table is seen at once. Empty, it is what rows can be appended to and recorded with.
            with self._dialect.alone(self.session, self.schema, self.table):
                if not self._exists():  # else another load has just created it
                    if self._ledger is not None:
                        self._note.forget_appended()  # before: a worker may die after it; CREATE commits it
                    self.session.run(self._dialect.create_table(self._name, columns, ()))
            self._load_existing(frames, reader, list(columns))
        else:
            with self._dialect.alone(self.session, self.schema, self.table):
                if self._exists():  # since another load has just created it
                    self._load_existing(frames, reader, list(columns))
                else:
                    self._load_and_rename(frames, reader, columns)

    def _load_and_rename(
        self, frames: Iterator[pl.DataFrame], reader: PageReader, columns: dict[str, type[pl.DataType]]
    ) -> None:
        """Load a table of another name, which takes its own when it is complete."""
        digest = hashlib.sha256(self.table.encode()).hexdigest()[:16]
        unfinished = self._dialect.qualified(self.schema, f"anaplat_new_{digest}")
        self.session.run(f"DROP TABLE IF EXISTS {unfinished}")  # a dead worker may have left it
        self.session.run(self._dialect.create_table(unfinished, columns, self.key_columns))
        try:
            self._load(frames, reader, self._names(unfinished, list(columns), list(columns)), new=True)
            self.session.run(f"RENAME TABLE {unfinished} TO {self._name}")
        except BaseException:
            self._drop(unfinished)
            raise

    def _load(
        self, frames: Iterator[pl.DataFrame], reader: PageReader, names: Names, *, new: bool, create: str = ""
    ) -> None:
        noted = self._note.exists()
        with self.session.transaction():
            if create:
                self.session.run(create)
            if self.mode == "replace" and not new:
                self._empty()
            if noted and (new or self.mode == "replace"):
                self._note.forget_appended()
            if self._ledger is not None:
                self._ledger.add(_recorded(reader, 0))
            if self.mode == "upsert":
                rows = Merge(self.session, names, str(self)).run(partial(self._insert, frames, names))
            else:
                rows = self._insert(frames, names, names.table)
            if self._ledger is not None:
                self._ledger.set_rows(rows)
            if noted:
                self._note.replace(_recorded(reader, rows), self._state(reader.snapshot), self.load_key)
        if not noted:
            self._note.forget()

    def _exists(self) -> bool:
        return self._dialect.find(self.session, self.schema, self.table)

    def _empty(self) -> None:
        """Delete all rows; TRUNCATE would show an empty table to transactions that began before."""
        if self._dialect.lock:
            self.session.run(self._dialect.lock.format(table=self._name))
        self._refuse_to_reach_others()
        self.session.run(f"DELETE FROM {self._name}")
        self._refuse_to_reach_others()  # MariaDB lets a foreign key be added meanwhile
        self._refuse_to_keep_rows()

    def _refuse_to_reach_others(self) -> None:
        reached = self._dialect.reaches(self.session, self.schema, self.table)
        if reached:
            shown = "; ".join(f"{other} ({why})" for other, why in reached[:_SHOWN])
            more = f"; and {len(reached) - _SHOWN:,} more" if len(reached) > _SHOWN else ""
            raise AnaplatLoadError(
                f"To replace the rows of {self} would delete or change rows of other tables: {shown}{more}. Use "
                "mode='upsert', which deletes nothing, or name a table that nothing depends on, or let these "
                "foreign keys be ON DELETE NO ACTION. Nothing was changed."
            )

    def _refuse_to_keep_rows(self) -> None:
        """See that DELETE has deleted all rows: a trigger, a rule or a policy of the table may have kept some."""
        [(kept,)] = self.session.rows(f"SELECT COUNT(*) FROM {self._name}")
        if kept:
            raise AnaplatLoadError(
                f"{kept:,} rows of {self} were not deleted and would stay beside the new ones, so the load was "
                "rolled back. A trigger, a rule or row-level security of the table keeps them; remove that, use "
                "mode='upsert', or load another table."
            )

    def _insert(self, frames: Iterator[pl.DataFrame], names: Names, into: str) -> int:
        return self.session.driver.load(self.session, into, names.columns, self._with_keys(frames))

    def _with_keys(self, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Yield the frames, whose rows all have their keys."""
        rows = 0
        for frame in frames:
            for key in self.key_columns:
                if frame[key].null_count():
                    row = rows + frame[key].is_null().arg_true()[0] + 1
                    raise AnaplatLoadError(
                        f"Row {row:,} of the dataset (counted from 1) has null in the key column {key!r}, so it "
                        "cannot be told apart from others. Filter such rows out, or change key_columns. "
                        f"Nothing was loaded into {self}."
                    )
            yield frame
            rows += frame.height

    def _check_columns(self, names: list[str], ds_id: str) -> None:
        if not names:
            raise AnaplatLoadError(f"Dataset {ds_id} has no columns, so there is nothing to load into {self}.")
        self._check_lengths(names)
        unknown = [key for key in self.key_columns if key not in names]
        if unknown:
            raise AnaplatRequestError(
                f"key_columns: dataset {ds_id} has no column {_listed(unknown)}; it has {_listed(names)}."
            )

    def _check_lengths(self, names: Sequence[str]) -> None:
        """Refuse a name that the database would cut, so that it would mean another table or column."""
        longest = self._dialect.longest_name
        for name in names:
            if longest is not None and self._dialect.name_length(name) > longest:
                raise AnaplatLoadError(
                    f"The name {name!r} is longer than the {longest} that {self._dialect.name} allows. Rename the "
                    "column on the platform, or choose a shorter table name."
                )

    def _spelled(self, names: list[str], ds_id: str) -> list[str]:
        """Return the table's own spelling of the dataset's column names."""
        existing = self.session.columns(self._name)
        spelling = {name.casefold(): name for name in existing} if self._dialect.folds_case else {}
        spelling.update({name: name for name in existing})
        spelled = {name: spelling.get(name) or spelling.get(name.casefold()) for name in names}
        missing = [name for name, found in spelled.items() if found is None]
        if missing:
            raise AnaplatLoadError(
                f"{self} lacks the columns {_listed(missing)} of dataset {ds_id}; it has {_listed(existing)}. Add "
                "them with ALTER TABLE, or drop the table to have it created anew. Nothing was loaded."
            )
        found = [name for name in spelled.values() if name is not None]
        if len(set(found)) < len(found):
            raise AnaplatLoadError(f"Several columns of dataset {ds_id} have the same name in {self}: "
                            f"{_listed(names)}. Rename them on the platform.")  # fmt: skip
        computed = set(found).intersection(self._dialect.computes(self.session, self.schema, self.table))
        if computed:
            raise AnaplatLoadError(
                f"{self} computes the columns {_listed(sorted(computed))} itself, and would keep its own values "
                f"in place of those of dataset {ds_id}. Rename the columns, here or on the platform, or let them "
                "be plain ones. Nothing was loaded."
            )
        return found

    def _names(self, table: str, names: Sequence[str], spelled: Sequence[str]) -> Names:
        """Return the quoted names of a load.

        :param names: the dataset's column names
        :param spelled: the same as the table spells them
        """
        quoted = {name: self._dialect.quote(own) for name, own in zip(names, spelled, strict=True)}
        keys = [quoted[key] for key in self.key_columns]
        return Names(table, self._dialect.stage_name(self.schema), list(quoted.values()), keys)

    def _drop(self, table: str) -> None:
        try:
            self.session.run(f"DROP TABLE IF EXISTS {table}")
        except self.session.driver.error as error:  # why the table is dropped matters more
            log.warning("Could not drop the unfinished table %s: %s", table, error)

    @property
    def _dialect(self) -> Dialect:
        return self.session.driver.dialect

    @property
    def _name(self) -> str:
        return self._dialect.qualified(self.schema, self.table)

    @property
    def _ledger(self) -> LoadLedger | None:
        if self.mode != "append" or self.load_key is None:
            return None
        return LoadLedger(self.session, self.schema, self.table, self.load_key)

    @property
    def _note(self) -> TableNote:
        return TableNote(self.session, self.schema, self.table)

    def _state(self, snapshot: Snapshot) -> str | None:
        """Return what tells this load, of the dataset in this state, from any other; None if nothing could."""
        if self.fingerprint is None or (snapshot.version is None and snapshot.utime is None):
            return None
        what = json.dumps([self.fingerprint, asdict(snapshot)])
        return hashlib.sha256(what.encode()).hexdigest()


def _are_names(names: Any) -> bool:
    if isinstance(names, str | bytes) or not isinstance(names, Sequence):
        return False
    return all(isinstance(name, str) for name in names)


def _recorded(reader: PageReader, rows: int) -> RecordedLoad:
    snapshot = reader.snapshot
    return RecordedLoad(reader.ds_id, rows, len(snapshot.columns), snapshot.version, snapshot.utime)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
