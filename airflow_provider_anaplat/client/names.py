"""Which dataset a name means: ids differ between a test and a live platform, names don't."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.errors import AnaplatDatasetExistsError, AnaplatRequestError

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.client.models import Dataset

_SHOWN = 20  # candidates that an error names


def check_one_given(ds_id: str | None, dataset: str | None) -> None:
    """See that a dataset is named in one of two ways.

    :param ds_id: its id
    :param dataset: its name, or the id of its directory, a slash and its name
    :raises AnaplatRequestError: both are given, or none
    """
    if bool(ds_id) == bool(dataset):
        raise AnaplatRequestError(
            f"ds_id is {ds_id!r} and dataset is {dataset!r}: give one of the two, the dataset's id or its name. "
            "Nothing was sent."
        )


def id_of(name: str, listed: Lookup[Dataset]) -> str | None:
    """Return the id of the dataset that a name means; None where the list shows no such dataset.

    A name may hold slashes itself, so that ``a/b`` is looked for both as a name and as ``b`` in the directory
    ``a``.

    :param name: its name, or the id of its directory, a slash and its name
    :param listed: the dataset list
    :raises AnaplatDatasetExistsError: several datasets fit; their ids are named
    """
    folder, slash, inner = name.partition("/")

    def fits(record: Mapping[str, Any]) -> bool:
        within = bool(slash) and record.get("name") == inner and record.get("parentDirId") == folder
        return within or record.get("name") == name

    found = listed.matching(fits)
    if len(found) > 1:
        shown = ", ".join(
            f"{ds_id} (in directory {found[ds_id].get('parentDirId')})" for ds_id in [*found][:_SHOWN]
        )
        raise AnaplatDatasetExistsError(
            f"{len(found)} datasets are named {name!r}, and one is wanted: {shown}. Write the directory's id "
            "before the name, as in 'directory/name', give ds_id, or rename the others."
        )
    return next(iter(found), None)
