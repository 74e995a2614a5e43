"""Where a command writes: local paths without Airflow, objects with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.errors import AnaplatRequestError

if TYPE_CHECKING:
    from airflow_provider_anaplat.output.formats import WriteOptions
    from airflow_provider_anaplat.output.place import Place

__all__ = [
    "path_for",
    "place_for",
]


def place_for(file: str, file_format: str | None, options: WriteOptions, argument: str = "FILE") -> Place:
    """Return the place that a person names.

    :param file: a local path, or the URL of an object
    :param file_format: the format, if the path's suffix does not say it
    :param argument: what the path is called, for the error
    :raises AnaplatRequestError: neither tells a format
    """
    from airflow_provider_anaplat.output.place import place_named

    return place_named(path_for(file), file, file_format, options, argument, "--format")


def path_for(file: str) -> Any:
    """Return a local path, or a path in an object store, for which Airflow is imported.

    :raises AnaplatRequestError: it is none
    """
    if "://" not in file:
        return Path(file)
    from airflow_provider_anaplat._airflow.paths import path_of
    from airflow_provider_anaplat._airflow.releases import AirflowFailException

    try:
        return path_of(file)
    except AirflowFailException as error:
        raise AnaplatRequestError(str(error)) from None
