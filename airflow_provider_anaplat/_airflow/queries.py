"""Rows of a database, in a stream, over the hook of its Airflow connection."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from airflow_provider_anaplat._airflow.releases import AirflowException, AirflowFailException, BaseHook
from airflow_provider_anaplat.errors import AnaplatSourceError

log = logging.getLogger(__name__)

_ROWS_AT_A_TIME = 1_000
# The packages of Airflow's providers that are not called as the type of a database's connection.
_PACKAGES = {
    "athena": "amazon",
    "drill": "apache-drill",
    "druid": "apache-druid",
    "gcpbigquery": "google",
    "hiveserver2": "apache-hive",
    "impala": "apache-impala",
    "mariadb": "mysql",
    "mssql": "microsoft-mssql",
    "pinot": "apache-pinot",
    "postgresql": "postgres",
    "redshift": "amazon",
}


@contextmanager
def provider_named(sql_conn_id: str) -> Iterator[None]:
    """Say which provider to install, if the block finds no hook for a connection.

    :param sql_conn_id: id of the Airflow connection
    :raises AirflowFailException: the provider of the database is not installed
    """
    try:
        yield
    except (AirflowException, ImportError) as error:
        kind = BaseHook.get_connection(sql_conn_id).conn_type
        package = _PACKAGES.get(kind, kind.replace("_", "-")) if kind else "common-sql"
        raise AirflowFailException(
            f"sql_conn_id: the connection {sql_conn_id!r} is of the type {kind!r}, whose hook is not available: "
            f"{error}. Install that database's provider, such as apache-airflow-providers-{package}, on every "
            "worker, or correct the type."
        ) from error


@contextmanager
def query(sql_conn_id: str, sql: str) -> Iterator[tuple[Sequence[str], Iterable[Any]]]:
    """Run a query and give the names of its columns and its rows.

    SQLAlchemy knows for each database how its rows are fetched a thousand at a time. If it does not know the
    database, or the connection asks for rows as dictionaries, the driver's own cursor may hold all rows at once.

    :param sql_conn_id: id of an Airflow connection whose hook is a ``DbApiHook``
    :param sql: the query
    :raises AnaplatSourceError: the database cannot be reached, or refuses
    """
    with provider_named(sql_conn_id):
        hook = BaseHook.get_hook(sql_conn_id)
    if not hasattr(hook, "get_sqlalchemy_engine"):
        raise AirflowFailException(f"sql_conn_id: the connection {sql_conn_id!r} is not one of an SQL database.")
    with ExitStack() as stack:
        with _failures(sql_conn_id):
            names, rows = stack.enter_context(_run(hook, sql_conn_id, sql))
        yield names, _read(rows, sql_conn_id)


@contextmanager
def _failures(sql_conn_id: str) -> Iterator[None]:
    try:
        yield
    except AirflowException:
        raise
    except Exception as error:  # each driver has its own
        own = getattr(error, "orig", None) or error  # the driver's, of what SQLAlchemy adds the query to
        raise AnaplatSourceError(
            f"The query on the connection {sql_conn_id!r} failed: {' '.join(str(own).split())}. Correct the "
            "query, or the connection, then run the task again."
        ) from error


def _read(rows: Iterable[Any], sql_conn_id: str) -> Iterator[Any]:
    """Yield rows; what fails where they are used is no failure of the query."""
    with _failures(sql_conn_id):
        yield from rows


@contextmanager
def _run(hook: Any, sql_conn_id: str, sql: str) -> Iterator[tuple[Sequence[str], Iterable[Any]]]:
    cursor_kind = str(BaseHook.get_connection(sql_conn_id).extra_dejson.get("cursor"))
    # SQLAlchemy reads rows by their places, which dictionaries do not have.
    engine = None if "dict" in cursor_kind.lower() else _engine(hook)
    if engine is None:
        with closing(hook.get_conn()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql)
            yield [column[0] for column in cursor.description], _fetched(cursor)
        return
    try:
        with engine.connect() as connection:
            streaming = connection.execution_options(
                stream_results=True, yield_per=_ROWS_AT_A_TIME, no_parameters=True
            )
            result = streaming.exec_driver_sql(sql)
            yield list(result.keys()), result
    finally:
        engine.dispose()


def _engine(hook: Any) -> Any:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        # The hook's own way to connect: the address that it gives to SQLAlchemy may lack some of its extras.
        return hook.get_sqlalchemy_engine({"creator": hook.get_conn})
    except (AirflowException, ImportError, NotImplementedError, SQLAlchemyError) as error:
        log.info("SQLAlchemy cannot stream from %s (%s); its driver's cursor is used", hook, type(error).__name__)
        return None


def _fetched(cursor: Any) -> Iterator[Any]:
    while rows := cursor.fetchmany(_ROWS_AT_A_TIME):
        for row in rows:
            yield tuple(row.values()) if isinstance(row, Mapping) else row
