"""A dataset, or another thing in a folder, by what a person calls it: its id, or its name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.errors import AnaplatDatasetExistsError, AnaplatNotFoundError

_SHOWN = 20  # ids of namesakes

Known = tuple[str, str | None, str | None]


def find_dataset(client: AnaplatClient, given: str) -> Dataset:
    """Return the one dataset that has this id or, where none has, this name.

    :param client: the platform
    :param given: the id, or the whole name
    :returns: the dataset as the list shows it
    :raises AnaplatNotFoundError: there is none; names that are close are named
    :raises AnaplatDatasetExistsError: several have this name; their ids are named
    :raises AnaplatError: the platform does not answer with success

    Example::

        find_dataset(client, "Sales 2026").ds_id
    """
    datasets = {dataset.ds_id: dataset for dataset in client.list_datasets()}
    known = [(ds_id, dataset.name, dataset.parent_dir_id) for ds_id, dataset in datasets.items()]
    return datasets[one_named("dataset", given, known)]


def one_named(kind: str, given: str, known: Sequence[Known]) -> str:
    """Return the id of the one thing that has this id or, where none has, this name.

    :param kind: what such a thing is called in an error
    :param given: the id, or the whole name
    :param known: id, name and folder of each
    :raises AnaplatNotFoundError: there is none; names that are close are named
    :raises AnaplatDatasetExistsError: several have this name; their ids are named
    """
    found = [one for one in known if one[0] == given] or [one for one in known if one[1] == given]
    if len(found) == 1:
        return found[0][0]
    if not found:
        close = get_close_matches(given, sorted({name for _, name, _ in known if name}), n=3)
        hint = f" Close to it: {', '.join(map(repr, close))}." if close else ""
        raise AnaplatNotFoundError(
            f"No {kind} has the id or the name {given!r}.{hint} Check the spelling, and the rights of the "
            "connection's token."
        )
    ids = ", ".join(f"{key} (folder {folder})" for key, _, folder in found[:_SHOWN])
    rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise AnaplatDatasetExistsError(f"{len(found)} {kind}s are named {given!r}: {ids}{rest}. Give an id.")
