"""What differs from database to database: types, quoting, and the statements of a load."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from airflow_provider_anaplat.errors import AnaplatLoadError
from airflow_provider_anaplat.sql.references import (
    reached_in_mysql,
    reached_in_postgresql,
    reached_in_sqlite,
)
from airflow_provider_anaplat.sql.session import PARAMETER, STAGE, Dialect, Names, Session, said

__all__ = [
    "MYSQL",
    "POSTGRESQL",
    "SQLITE",
    "other_dialect",
]

log = logging.getLogger(__name__)

_LOCK_WAIT = 60  # seconds for another load that creates the same table


def _insert_on_conflict(_: Session, names: Names) -> list[str]:
    columns = ", ".join(names.columns)
    updates = ", ".join(f"{column} = excluded.{column}" for column in names.others)
    return [
        f"INSERT INTO {names.table} ({columns}) SELECT {columns} FROM {names.stage} WHERE 1 = 1 "
        f"ON CONFLICT ({', '.join(names.keys)}) DO {f'UPDATE SET {updates}' if updates else 'NOTHING'}"
    ]


# Partitions and the tables behind views may have triggers, too; those that are internal are of constraints.
_NOTHING_KEEPS_ROWS = f"""
SELECT 1 FROM pg_catalog.pg_class c WHERE c.oid = to_regclass({PARAMETER}) AND c.relkind = 'r'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal)
"""

# ON CONFLICT takes no constraint that is checked later, and looks at what policies let the user see.
_INSERTS_AS_IT_MERGES = f"""
SELECT 1 FROM pg_catalog.pg_class c WHERE c.oid = to_regclass({PARAMETER}) AND NOT c.relrowsecurity
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND NOT i.indimmediate)
"""


def _keeps_rows_in_postgresql(session: Session, names: Names) -> bool:
    return not session.rows(_NOTHING_KEEPS_ROWS, [names.table])


def _merge_in_postgresql(session: Session, names: Names) -> list[str]:
    statements = _insert_on_conflict(session, names)
    if not names.others or _keeps_rows_in_postgresql(session, names):
        return statements
    # As records, byte by byte: to be equal is not yet to be the same, and some types know no equality. Also a row
    # that is passed over is locked, so that no other transaction changes or deletes it meanwhile.
    there, new = (", ".join(f"{row}.{column}" for column in names.others) for row in (names.table, "excluded"))
    return [f"{each} WHERE CAST(ROW({there}) AS record) *<> CAST(ROW({new}) AS record)" for each in statements]


def _fill_in_postgresql(session: Session, names: Names) -> list[str]:
    # It takes a third of the time; but triggers of statements that update are the merge's alone.
    if _keeps_rows_in_postgresql(session, names) or not session.rows(_INSERTS_AS_IT_MERGES, [names.table]):
        return []
    if session.rows(f"SELECT 1 FROM {names.table} LIMIT 1"):
        return []
    columns = ", ".join(names.columns)
    return [f"INSERT INTO {names.table} ({columns}) SELECT {columns} FROM {names.stage}"]


def _explain_merge(session: Session, names: Names) -> None:
    """Let the database itself say whether a unique index fits the keys, before a row is loaded."""
    try:
        for statement in _insert_on_conflict(session, names):
            session.rows(f"EXPLAIN {statement}")
    except session.driver.error as error:
        raise _keys_error(names, said(error)) from error


def _keys_error(names: Names, why: str) -> AnaplatLoadError:
    keys = ", ".join(names.keys)
    return AnaplatLoadError(
        f"Table {names.table} cannot be updated by key_columns {keys}: {why}. Give it a primary key or a unique "
        f"index over exactly these columns (CREATE UNIQUE INDEX ... ON {names.table} ({keys})), or change "
        "key_columns. Nothing was loaded."
    )


def _find_in_postgresql(session: Session, schema: str | None, table: str) -> bool:
    name = POSTGRESQL.qualified(schema, table)
    return bool(session.rows(f"SELECT 1 WHERE to_regclass({PARAMETER}) IS NOT NULL", [name]))


def _find_in_sqlite(session: Session, schema: str | None, table: str) -> bool:
    catalog = SQLITE.qualified(schema or "main", "sqlite_master")
    query = f"SELECT 1 FROM {catalog} WHERE type IN ('table', 'view') AND name = {PARAMETER} COLLATE NOCASE"
    return bool(session.rows(query, [table]))


def _find_in_mysql(session: Session, schema: str | None, table: str) -> bool:
    query = (
        "SELECT t.engine, e.transactions FROM information_schema.tables t "
        "LEFT JOIN information_schema.engines e ON e.engine = t.engine "
        f"WHERE t.table_schema = COALESCE({PARAMETER}, DATABASE()) AND t.table_name = {PARAMETER}"
    )
    found = session.rows(query, [schema, table])
    for engine, transactions in found:
        if engine is not None and transactions != "YES":
            raise AnaplatLoadError(
                f"Table {table} is of the engine {engine}, which does not support transactions: its "
                "readers would see half a load, and a failure would leave one. Change it (ALTER TABLE "
                f"{MYSQL.quote(table)} ENGINE=InnoDB), or load another table."
            )
    return bool(found)


def _computed_in_mysql(session: Session, schema: str | None, table: str) -> list[str]:
    """Return the generated columns: at UPDATE and LOAD DATA, MariaDB keeps its own values without a warning."""
    query = (
        "SELECT column_name FROM information_schema.columns "
        f"WHERE table_schema = COALESCE({PARAMETER}, DATABASE()) AND table_name = {PARAMETER} "
        "AND COALESCE(generation_expression, '') <> ''"
    )
    return [name for (name,) in session.rows(query, [schema, table])]


@contextmanager
def _alone_in_mysql(session: Session, schema: str | None, table: str) -> Iterator[None]:
    """Hold a lock that ends with the connection at the latest; one of a worker that is dead holds up nobody."""
    lock = f"SHA2(CONCAT('anaplat ', COALESCE({PARAMETER}, DATABASE()), '.', {PARAMETER}), 256)"
    [(got,)] = session.rows(f"SELECT GET_LOCK({lock}, {_LOCK_WAIT})", [schema, table])
    if got != 1:
        raise AnaplatLoadError(
            f"Another load has been creating table {table} for more than {_LOCK_WAIT} s. Nothing was loaded; run "
            "the task again when the other one is done."
        )
    try:
        yield
    finally:
        try:
            session.rows(f"SELECT RELEASE_LOCK({lock})", [schema, table])
        except session.driver.error as error:  # the connection is gone, and the lock with it
            log.warning("The lock on the name of table %s was not released: %s", table, said(error))


def _find_by_reading(session: Session, schema: str | None, table: str) -> bool:
    """Read the table, of a database that is not known here; it has to be there."""
    session.rows(f"SELECT * FROM {session.driver.dialect.qualified(schema, table)} WHERE 1 = 0")
    return True


def _create_stage_in_mysql(session: Session, names: Names) -> list[str]:
    engine = "Aria TRANSACTIONAL=0" if _has_faster_stage(session) else "InnoDB"
    columns = ", ".join(names.columns)
    return [
        f"DROP TEMPORARY TABLE IF EXISTS {names.stage}",
        f"CREATE TEMPORARY TABLE {names.stage} ENGINE={engine} AS SELECT {columns} FROM {names.table} WHERE 1 = 0",
    ]


def _has_faster_stage(session: Session) -> bool:
    """Tell whether a temporary table may be of the engine that MariaDB has for its own."""
    names = ("aria_used_for_temp_tables", "enforce_storage_engine", "innodb_encrypt_temporary_tables")
    listed = ", ".join(f"'{name}'" for name in (*names, "binlog_format", "log_bin"))
    found = dict(session.rows(f"SHOW VARIABLES WHERE Variable_name IN ({listed})"))
    # Where statements are logged, those on it would be so outside the load's transaction. Where InnoDB encrypts
    # temporary tables, Aria may store their rows in clear.
    is_logged = found.get("log_bin") != "OFF" and found.get("binlog_format") != "ROW"
    return [found.get(name) for name in names] == ["ON", "", "OFF"] and not is_logged


def _check_mysql_keys(session: Session, names: Names) -> None:
    if set(names.keys) not in _unique_indexes(session, names):
        raise _keys_error(names, "it has no such index")


def _unique_indexes(session: Session, names: Names) -> list[set[str | None]]:
    """Return the quoted columns of each unique index of a table; None for what is no whole column."""
    indexes: dict[str, set[str | None]] = {}
    for row in session.rows(f"SHOW INDEX FROM {names.table} WHERE Non_unique = 0"):
        name, column, prefix = row[2], row[4], row[7]
        indexes.setdefault(name, set()).add(None if prefix or column is None else MYSQL.quote(column))
    return list(indexes.values())


def _merge_in_mysql(session: Session, names: Names) -> list[str]:
    columns = ", ".join(names.columns)
    selected = f"SELECT {', '.join(f's.{column}' for column in names.columns)} FROM {names.stage} AS s"
    # It takes any other unique index for the keys as well.
    if names.others and len(_unique_indexes(session, names)) == 1:
        updates = ", ".join(f"{names.table}.{column} = s.{column}" for column in names.others)
        return [f"INSERT INTO {names.table} ({columns}) {selected} ON DUPLICATE KEY UPDATE {updates}"]
    same = " AND ".join(f"t.{key} = s.{key}" for key in names.keys)
    updates = ", ".join(f"t.{column} = s.{column}" for column in names.others)
    insert = (
        f"INSERT INTO {names.table} ({columns}) {selected} "
        f"LEFT JOIN {names.table} AS t ON {same} WHERE t.{names.keys[0]} IS NULL"
    )
    # In this order: the server may take a table that has just been filled for an empty one, and read all of the
    # stage, which has no index, for each of its rows.
    update = f"UPDATE {names.stage} AS s STRAIGHT_JOIN {names.table} AS t ON {same} SET {updates}"
    return [update, insert] if updates else [insert]


POSTGRESQL = Dialect(
    name="PostgreSQL",
    types={pl.Int64: "BIGINT", pl.Float64: "DOUBLE PRECISION", pl.Date: "DATE", pl.String: "TEXT"},
    key_text="TEXT",
    quotes='""',
    longest_name=63,
    name_length=lambda name: len(name.encode()),
    finite=False,
    folds_case=False,
    find=_find_in_postgresql,
    reaches=reached_in_postgresql,
    # What another load has committed while this one waited for the lock must be seen by DELETE.
    begin=("SET TRANSACTION ISOLATION LEVEL READ COMMITTED",),
    lock="LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE",
    stage=f"pg_temp.{STAGE}",
    create_stage=lambda _, names: [
        f"CREATE TEMPORARY TABLE {names.stage} ON COMMIT DROP AS "
        f"SELECT {', '.join(names.columns)} FROM {names.table} WITH NO DATA"
    ],
    check_keys=_explain_merge,
    keeps_rows=_keeps_rows_in_postgresql,
    differs="CAST(t.{column} AS text) IS DISTINCT FROM CAST(s.{column} AS text)",  # json knows no equality
    fill=_fill_in_postgresql,
    key_there="UniqueViolation",
    key_twice="CardinalityViolation",
    merge=_merge_in_postgresql,
)

MYSQL = Dialect(
    name="MySQL or MariaDB",
    types={pl.Int64: "BIGINT", pl.Float64: "DOUBLE", pl.Date: "DATE", pl.String: "LONGTEXT"},
    key_text="VARCHAR(255)",
    quotes="``",
    longest_name=64,
    name_length=len,
    finite=True,
    folds_case=True,
    find=_find_in_mysql,
    reaches=reached_in_mysql,
    computes=_computed_in_mysql,
    table_options=" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    transactional_ddl=False,
    alone=_alone_in_mysql,
    stage=f"{{schema}}`{STAGE}`",
    create_stage=_create_stage_in_mysql,
    # Without the hint, each row is looked up in a temporary table, which takes twenty times as long.
    select_groups="SELECT SQL_BIG_RESULT",
    check_keys=_check_mysql_keys,
    merge=_merge_in_mysql,
)

SQLITE = Dialect(
    name="SQLite",
    types={pl.Int64: "BIGINT", pl.Float64: "REAL", pl.Date: "DATE", pl.String: "TEXT"},
    key_text="TEXT",
    quotes='""',
    longest_name=None,
    name_length=len,
    finite=True,  # it would make NaN null
    folds_case=True,
    find=_find_in_sqlite,
    reaches=reached_in_sqlite,
    begin=("BEGIN IMMEDIATE",),
    stage=f"temp.{STAGE}",
    # A table AS SELECT has lost the collations of its columns; a UNION takes those of its first SELECT.
    staged="(SELECT {keys} FROM {table} WHERE 1 = 0 UNION ALL SELECT {keys} FROM {stage})",
    create_stage=lambda _, names: [
        f"CREATE TEMPORARY TABLE {STAGE} AS SELECT {', '.join(names.columns)} FROM {names.table} WHERE 1 = 0"
    ],
    check_keys=_explain_merge,
    keeps_rows=lambda *_: True,
    differs="t.{column} IS NOT s.{column}",
    merge=_insert_on_conflict,
)


def other_dialect(quotes: str) -> Dialect:
    """Return what is safe to assume of a database that is not known here."""
    return Dialect(
        name="The database",
        types={},
        key_text="",
        quotes=quotes,
        longest_name=None,
        name_length=len,
        finite=True,
        folds_case=True,
        find=_find_by_reading,
    )
