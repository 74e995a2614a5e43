"""Which dataset, or other thing in a folder, a name means: ids differ from platform to platform, names don't."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from airflow_provider_anaplat.client._http.redaction import brief
from airflow_provider_anaplat.errors import (
    AnaplatDatasetExistsError,
    AnaplatError,
    AnaplatNotFoundError,
    AnaplatRequestError,
)

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.client.models import Dataset

__all__ = [
    "Known",
    "check_one_given",
    "dataset_named",
    "find_dataset",
    "id_of",
    "one_named",
]

_SHOWN = 20  # candidates that an error names

Known = tuple[str, str | None, str | None]


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
    """Return the id of the dataset that a name means; None if the list shows no such dataset.

    :param name: its name, or the id of its directory, a slash and its name
    :param listed: the dataset list
    :raises AnaplatDatasetExistsError: several datasets fit; their ids are named
    """
    found = listed.matching(lambda record: _fits(name, record.get("name"), record.get("parentDirId")))
    if len(found) > 1:
        raise _several("dataset", name, [(key, None, record.get("parentDirId")) for key, record in found.items()])
    return next(iter(found), None)


def dataset_named(name: str, listed: Lookup[Dataset]) -> Dataset:
    """Return the dataset that a name means.

    :param name: its name, or the id of its directory, a slash and its name
    :param listed: the dataset list
    :raises AnaplatNotFoundError: the list shows no such dataset
    :raises AnaplatDatasetExistsError: several datasets fit; their ids are named
    """
    ds_id = id_of(name, listed)
    found = None if ds_id is None else listed.get(ds_id)
    if found is None:
        raise AnaplatNotFoundError(
            f"No dataset is named {name!r} in the dataset list. Check the name, its directory, and the rights "
            "of the connection's token.",
            operation="list_datasets",
        )
    return found


def find_dataset(listed: Iterable[Dataset], given: str) -> Dataset:
    """Return the one dataset that has this id or, if none has, this name.

    :param listed: the dataset list
    :param given: the id, the whole name, or the id of the directory, a slash and the name
    :returns: the dataset as the list shows it
    :raises AnaplatNotFoundError: there is none; names that are close are named
    :raises AnaplatDatasetExistsError: several have this name; their ids are named

    Example::

        find_dataset(client.list_datasets(), "Sales 2026").ds_id
    """
    datasets = {dataset.ds_id: dataset for dataset in listed}
    known = [(ds_id, dataset.name, dataset.parent_dir_id) for ds_id, dataset in datasets.items()]
    return datasets[one_named("dataset", given, known)]


def one_named(kind: str, given: str, known: Sequence[Known]) -> str:
    """Return the id of the one thing that has this id or, if none has, this name.

    :param kind: what such a thing is called in an error
    :param given: the id, the whole name, or the id of the directory, a slash and the name
    :param known: id, name and directory of each
    :raises AnaplatNotFoundError: there is none; names that are close are named
    :raises AnaplatDatasetExistsError: several have this name; their ids are named
    """
    found = [one for one in known if one[0] == given] or [one for one in known if _fits(given, one[1], one[2])]
    if len(found) == 1:
        return found[0][0]
    if found:
        raise _several(kind, given, found)
    close = get_close_matches(given, sorted({name for _, name, _ in known if name}), n=3)
    hint = f" Close to it: {', '.join(brief(repr(name)) for name in close)}." if close else ""
    raise AnaplatNotFoundError(
        f"No {kind} has the id or the name {given!r}.{hint} Check the spelling, and the rights of the "
        "connection's token."
    )


def _fits(given: str, name: str | None, directory: str | None) -> bool:
    """Tell whether a name is meant; one may hold slashes itself, so that ``a/b`` is also looked for as a name."""
    before, slash, inner = given.partition("/")
    return name == given or (bool(slash) and name == inner and directory == before)


def _several(kind: str, given: str, found: Sequence[Known]) -> AnaplatError:
    shown = ", ".join(f"{brief(key)} (in directory {brief(directory)})" for key, _, directory in found[:_SHOWN])
    rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return AnaplatDatasetExistsError(
        f"{len(found)} {kind}s are named {given!r}, and one is wanted: {shown}{rest}. Give an id, write the "
        "directory's id before the name, as in 'directory/name', or rename the others."
    )
