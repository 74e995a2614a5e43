"""List datasets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.operators.base import AnaplatOperator

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "AnaplatListDatasetsOperator",
]


class AnaplatListDatasetsOperator(AnaplatOperator):
    """Return the ids of the datasets that match, for ``.expand()`` (contract: operation 2).

    A dataset must match every argument that is given; without any, all datasets match. The ids come in the
    platform's order. If none matches, the list is empty, and Airflow skips the tasks expanded over it.

    :param name_pattern: pattern of their names, with ``*``, ``?`` and ``[…]`` as in a shell; case counts
        (templated)
    :param folder: id of their directory, ``parentDirId`` (templated)
    :param states: status words, one of which they have, such as ``["FINISHED"]`` (templated)
    :param newer_than: moment at or after which they were last updated, ISO 8601 or a datetime; UTC if it names
        no zone (templated)
    :param older_than: moment before which they were last updated; datasets that were never updated match too
        (templated)
    :param anaplat_conn_id: id of the Airflow connection (templated)

    Returns a list of ``dsId``; the log names the datasets too. Airflow maps over at most
    ``[core] max_map_length`` entries, 1,024 by default.

    Raises :class:`AirflowFailException`, which Airflow does not retry, if an argument cannot work or the
    platform refuses; :class:`AnaplatError` if a retry may help.

    How-to: :doc:`howto/name-datasets`. Example::

        sales = AnaplatListDatasetsOperator(task_id="sales", name_pattern="sales *", states=["FINISHED"])
        AnaplatRefreshDatasetOperator.partial(task_id="refresh").expand(ds_id=sales.output)
    """

    template_fields: Sequence[str] = (
        "name_pattern",
        "folder",
        "states",
        "newer_than",
        "older_than",
        "anaplat_conn_id",
    )

    def __init__(
        self,
        *,
        name_pattern: str | None = None,
        folder: str | None = None,
        states: Sequence[str] | None = None,
        newer_than: str | datetime | None = None,
        older_than: str | datetime | None = None,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", False)
        super().__init__(anaplat_conn_id=anaplat_conn_id, **kwargs)
        self.name_pattern = name_pattern
        self.folder = folder
        self.states = states
        self.newer_than = newer_than
        self.older_than = older_than

    def work(self, context: Context) -> list[str]:
        """Ask for the list, and return the ids of what fits."""
        from airflow_provider_anaplat.client._http.redaction import brief
        from airflow_provider_anaplat.datasets.listing import DatasetFilter
        from airflow_provider_anaplat.waiting.moments import moment

        wanted = DatasetFilter(
            self.name_pattern,
            self.folder,
            self.states,
            None if self.newer_than is None else moment("newer_than", self.newer_than),
            None if self.older_than is None else moment("older_than", self.older_than),
        )
        with closing(self.client()) as client:
            listed = client.list_datasets()
        found = wanted.select(listed)
        self.log.info("%d of %d datasets match", len(found), len(listed))
        for dataset in found:
            name, directory = brief(repr(dataset.name)), brief(dataset.parent_dir_id)
            self.log.info("Dataset %s: %s in directory %s", brief(dataset.ds_id), name, directory)
        return [dataset.ds_id for dataset in found]
