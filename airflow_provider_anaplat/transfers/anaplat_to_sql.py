"""Load the rows of a dataset into a table of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_anaplat._airflow.queries import provider_named
from airflow_provider_anaplat._airflow.releases import AirflowException, AirflowFailException, BaseHook
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.links import link_dataset
from airflow_provider_anaplat.operators.base import AnaplatRowsOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context
    from airflow_provider_anaplat.lineage import Name
    from airflow_provider_anaplat.rows.export import ExportSummary, OnCastError, OnChange
    from airflow_provider_anaplat.rows.unchanged import IfUnchanged
    from airflow_provider_anaplat.sql.ledger import LoadKey
    from airflow_provider_anaplat.sql.session import Session
    from airflow_provider_anaplat.sql.target import Mode, SqlTarget

__all__ = [
    "AnaplatToSqlOperator",
]


class AnaplatToSqlOperator(AnaplatRowsOperator):
    """Load all rows of a dataset into a table, in one transaction (contract: operation 3).

    Readers see the table as it was until all rows are loaded; after a failure it is as it was. PostgreSQL is
    loaded with COPY, other databases with INSERT; MySQL and MariaDB, if ``hook_params`` have ``local_infile``
    and the server allows it, with LOAD DATA LOCAL. On PostgreSQL, MySQL, MariaDB and SQLite, a missing table is
    created (INT and LONG as BIGINT, DOUBLE as a double, DATE as date, everything else as text); on others, where
    ``mode`` is ``replace`` or ``append``, it must exist. An existing table keeps its rights, views and indexes.
    Columns are found by their names; those that the dataset lacks keep their defaults.

    Run again, a task with ``replace`` or ``upsert`` has the same result. With ``append``, a row in the table
    ``anaplat_loads``, in the same schema, records which task instances (DAG, run, task, map index) have loaded: if
    they are retried or cleared, they load nothing and return what the row says. To load again, delete the row or
    start another DAG run. ``replace`` also deletes its table's rows from ``anaplat_loads``.

    :class:`AnaplatRowsOperator` says how the rows are read.

    :param ds_id: id of the dataset (templated)
    :param dataset: its name in place of its id, also as ``directory/name``; exactly one must have it (templated)
    :param sql_conn_id: id of the database's Airflow connection, of any type whose hook speaks DB-API (templated)
    :param table: name of the table, without its schema (templated)
    :param schema: its schema, or in MySQL its database; by default the connection's own (templated)
    :param hook_params: further arguments of the database's hook, such as ``{"local_infile": True}`` (templated)
    :param mode: ``replace`` all rows, ``append`` to them, or ``upsert``: update each by its keys, or insert it
    :param key_columns: with ``upsert``, the columns that tell rows apart; the table must have a primary key or a
        unique index over exactly these, and gets one if it is created (templated)
    :param sort_by: name of the column to sort by (templated)
    :param sort_type: ``asc`` or ``desc`` (templated)
    :param filter: sent as the body's ``filter``; the contract leaves its shape open (templated)
    :param memory_mb: megabytes by which the task's process may grow, 64 at least: a page has as many rows as fit
    :param page_size: rows a request asks for at most; the platform allows 50,000
    :param concurrency: requests in flight at most
    :param max_rows: rows to export at most; by default all
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :param on_change: if the dataset is updated while it is read, ``restart`` or ``fail``
    :param max_restarts: how often to start again
    :param if_unchanged: if dataset, query and mode are those of the last load into this table, and it still
        has the rows, by their number: ``export`` all the same, ``skip`` the task, or ``return`` what that load
        returned, with ``unchanged``. It takes one request for one row. A row in ``anaplat_loads`` records the last
        load; with ``export``, none is added
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns ``dsId``, ``table``, ``mode``, ``rows`` and ``columns`` (their numbers), ``version`` and ``utime`` of
    the dataset, and ``alreadyLoaded``: whether an earlier attempt has appended the rows.

    Raises :class:`AnaplatLoadError` if the database refuses or the table does not fit, another
    :class:`AnaplatExportError` if the rows are not whole or fit no type, and another :class:`AnaplatError`
    if the platform does not answer.

    How-to: :doc:`howto/load-into-sql`. Example::

        AnaplatToSqlOperator(task_id="load", ds_id="ds1", sql_conn_id="warehouse", table="sales")
    """

    template_fields: Sequence[str] = (
        *AnaplatRowsOperator.template_fields,
        "sql_conn_id",
        "table",
        "schema",
        "key_columns",
        "hook_params",
    )

    def __init__(
        self,
        *,
        sql_conn_id: str,
        table: str,
        ds_id: str | None = None,
        dataset: str | None = None,
        schema: str | None = None,
        hook_params: Mapping[str, Any] | None = None,
        mode: Mode = "replace",
        key_columns: Sequence[str] | None = None,
        sort_by: str | None = None,
        sort_type: Literal["asc", "desc"] = "asc",
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the platform's name of the field
        memory_mb: int = 256,
        page_size: int = 50_000,
        concurrency: int = 4,
        max_rows: int | None = None,
        on_cast_error: OnCastError = "fail",
        on_change: OnChange = "restart",
        max_restarts: int = 3,
        if_unchanged: IfUnchanged = "export",
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ds_id=ds_id,
            dataset=dataset,
            sort_by=sort_by,
            sort_type=sort_type,
            filter=filter,
            memory_mb=memory_mb,
            page_size=page_size,
            concurrency=concurrency,
            max_rows=max_rows,
            on_cast_error=on_cast_error,
            on_change=on_change,
            max_restarts=max_restarts,
            if_unchanged=if_unchanged,
            anaplat_conn_id=anaplat_conn_id,
            **kwargs,
        )
        self.sql_conn_id = sql_conn_id
        self.table = table
        self.schema = schema
        self.hook_params = hook_params
        self.mode = mode
        self.key_columns = key_columns

    def work(self, context: Context) -> dict[str, Any]:
        """Load the rows."""
        hook = self._hook()
        with closing(self._connect(hook)) as connection:
            target = self._target(_session(hook, connection), _load_key(context))
            load = target.recorded()
            if load is not None:
                self.log.warning(
                    "An earlier attempt of this task has appended %d rows of dataset %s to %s, so nothing is "
                    "loaded. To load again, delete its line from the table anaplat_loads or start another DAG run",
                    load.rows, load.ds_id, target,
                )  # fmt: skip
            ds_id = load.ds_id if load else self.found_id()
            link_dataset(self, context, ds_id)
            summary, unchanged = (load, False) if load else self._loaded(target, ds_id)
        link_dataset(self, context, ds_id, getattr(summary, "parent_dir_id", None))
        result = {
            "dsId": ds_id,
            "table": f"{self.schema}.{self.table}" if self.schema else self.table,
            "mode": self.mode,
            "rows": summary.rows,
            "columns": summary.columns,
            "version": summary.version,
            "utime": summary.utime,
            "alreadyLoaded": load is not None,
            **({"unchanged": True} if unchanged else {}),
        }
        return self.succeed(context, result, getattr(summary, "read", ()))

    def _loaded(self, target: SqlTarget, ds_id: str) -> tuple[ExportSummary, bool]:
        """Load, unless nothing has changed; return what was loaded, and whether by an earlier task."""
        if self.if_unchanged == "export":
            return self.export_to(target, ds_id), False
        from airflow_provider_anaplat.sql.unchanged import LastLoad

        last = LastLoad(self.row_query(ds_id), target, self.on_cast_error)
        with closing(self.client()) as client:
            found = self.find_unchanged(last, client, ds_id)
            if found is not None:
                return found, True
            noted = last.noted(client)
        return self.export_to(noted, ds_id), False

    def target_name(self) -> Name | None:
        """Return how OpenLineage names the table; None if the database's hook does not say."""
        from airflow_provider_anaplat.lineage import name_of_table

        connection = BaseHook.get_connection(self.sql_conn_id)
        return name_of_table(self._hook(), connection, self.schema, self.table)

    def _hook(self) -> Any:
        params = self.hook_params or {}
        if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
            raise AirflowFailException(
                "hook_params must be a mapping of the hook's arguments by their names, such as "
                f'{{"local_infile": True}}; it is of the type {type(params).__name__}.'
            )
        connection: Any = BaseHook.get_connection(self.sql_conn_id)
        with provider_named(self.sql_conn_id):
            hook = connection.get_hook(hook_params=dict(params))
            # Each provider of a database brings it along.
            from airflow.providers.common.sql.hooks.sql import DbApiHook
        if not isinstance(hook, DbApiHook):
            raise AirflowFailException(
                f"The connection {self.sql_conn_id!r} is of no database: its hook is {type(hook).__name__}, and "
                "no DbApiHook. Name the connection of a database in sql_conn_id."
            )
        return hook

    def _connect(self, hook: Any) -> Any:
        from airflow_provider_anaplat.errors import AnaplatLoadError

        try:
            return hook.get_conn()
        except AirflowException:
            raise
        except Exception as error:  # each driver has its own
            raise AnaplatLoadError(
                f"sql_conn_id: cannot connect to the database of {self.sql_conn_id!r}: "
                f"{' '.join(str(error).split())}. Look whether it is there, and correct the connection, then "
                "run the task again."
            ) from error

    def _target(self, session: Session, load_key: LoadKey | None) -> SqlTarget:
        from airflow_provider_anaplat.sql.target import SqlTarget

        keys = () if self.key_columns in (None, "") else self.key_columns
        return SqlTarget(session, self.table, self.schema, self.mode, keys, load_key)


def _session(hook: Any, connection: Any) -> Session:
    from airflow_provider_anaplat.sql.drivers import open_session

    if hook.supports_autocommit:
        hook.set_autocommit(connection, False)
    before, after = hook.escape_word_format.split("{}")
    return open_session(
        connection,
        local_files=getattr(hook, "local_infile", False),
        placeholder=hook.placeholder,
        quotes=before + after,
    )


def _load_key(context: Context) -> LoadKey | None:
    """Return what identifies the task instance; None if the operator runs without Airflow's machinery."""
    from airflow_provider_anaplat.sql.ledger import LoadKey

    instance: Any = context.get("ti")
    if instance is None:
        return None
    return LoadKey(instance.dag_id, instance.run_id, instance.task_id, instance.map_index)
