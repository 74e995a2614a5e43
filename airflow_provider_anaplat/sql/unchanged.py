"""Whether a load would load what was loaded last: known from a line in the database, and one small request."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.rows.export import ExportSummary, OnCastError
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.unchanged import fingerprint, present_state
from airflow_provider_anaplat.sql.target import SqlTarget

__all__ = [
    "LastLoad",
]


@dataclass(frozen=True)
class LastLoad:
    """The last load into a table, as its line in the table ``anaplat_loads`` tells.

    The line names a fingerprint of platform, query, mode and state of the dataset. Every load into the table
    changes it. What others do to the table is seen by the number of its rows alone.

    :param query: which rows
    :param target: the table
    :param on_cast_error: what became of a cell that its column's type cannot hold
    """

    query: RowQuery
    target: SqlTarget
    on_cast_error: OnCastError

    def __str__(self) -> str:
        return str(self.target)

    def find_unchanged(self, client: AnaplatClient) -> ExportSummary | None:
        """Return what the last load came to, if another one would load the same (operation 3, Read rows).

        :param client: the platform; it gets one request for one row
        :raises AnaplatError: the platform does not answer with success, or the database does not
        """
        present = present_state(client, self.query)
        if present is None:
            return None
        snapshot = present.snapshot
        load = self.noted(client).last_load(snapshot)
        if load is None:
            return None
        where = present.parent_dir_id
        return ExportSummary(load.rows, load.columns, load.version, load.utime, None, where, snapshot=snapshot)

    def noted(self, client: AnaplatClient) -> SqlTarget:
        """Return the target whose load is noted, for the next one to find that nothing has changed."""
        written = {
            "on_cast_error": self.on_cast_error,
            "table": self.target.table,
            "mode": self.target.mode,
            "key_columns": list(self.target.key_columns),
        }
        return replace(self.target, fingerprint=fingerprint(client, self.query, written))
