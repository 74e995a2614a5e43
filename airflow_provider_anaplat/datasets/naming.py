"""A dataset by what a person calls it: its id, or its name."""

from __future__ import annotations

from difflib import get_close_matches

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.errors import AnaplatDatasetExistsError, AnaplatNotFoundError

_SHOWN = 20  # ids of namesakes


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
    datasets = client.list_datasets()
    found = [dataset for dataset in datasets if dataset.ds_id == given]
    found = found or [dataset for dataset in datasets if dataset.name == given]
    if len(found) == 1:
        return found[0]
    if not found:
        raise AnaplatNotFoundError(
            f"No dataset has the id or the name {given!r}.{_close(given, datasets)} Check the spelling, and the "
            "rights of the connection's token."
        )
    ids = ", ".join(f"{dataset.ds_id} (folder {dataset.parent_dir_id})" for dataset in found[:_SHOWN])
    rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise AnaplatDatasetExistsError(f"{len(found)} datasets are named {given!r}: {ids}{rest}. Give an id.")


def _close(given: str, datasets: list[Dataset]) -> str:
    names = {dataset.name for dataset in datasets if dataset.name}
    close = get_close_matches(given, sorted(names), n=3)
    return f" Close to it: {', '.join(map(repr, close))}." if close else ""
