"""From what users write as a path to a path object, or to a place to write to."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.client._http.redaction import without_userinfo

if TYPE_CHECKING:
    from airflow_provider_anaplat.output.formats import WriteOptions
    from airflow_provider_anaplat.output.place import Place

_HOME = re.compile("~$|~[^/]*/")


def path_of(path: Any) -> Any:
    """Return a local path, or a path in an object store with the credentials of its Airflow connection."""
    if isinstance(path, str) and path.startswith("file://"):
        local = path.removeprefix("file://").removeprefix("localhost")
        if not local.startswith("/"):
            raise AirflowFailException(
                f"{without_userinfo(path)} names a file of another host; a local one begins with file:///."
            )
        return Path(local)
    if isinstance(path, str) and "://" in path:
        from airflow_provider_anaplat._airflow.releases import ObjectStoragePath

        try:
            found = ObjectStoragePath(path)
            found.fs  # noqa: B018 - it tells whether there is one
        except ValueError as error:
            raise AirflowFailException(
                without_userinfo(
                    f"{path} is no path: it must be one of a file system that Airflow knows ({error})."
                )
            ) from None
        return found
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "open"):
        raise AirflowFailException(f"{path!r} is no path: it must be a text, and not {type(path).__name__}.")
    if isinstance(path, str | PurePath) and _HOME.match(str(path)):
        raise AirflowFailException(
            f"{path} begins with ~, which only a shell reads as a home: name the folder itself, from / on."
        )
    if getattr(path, "protocol", None) in ("file", "local"):  # whose file system moves a file into a folder
        return Path("/", path.path)  # such an address is absolute, with or without its first slash
    return Path(path) if isinstance(path, str) else path


def place_of(
    output_path: Any, file_format: str | None, options: WriteOptions | None = None, argument: str = "output_path"
) -> Place:
    """Return the place that a user names.

    :param output_path: what the user wrote as a path
    :param file_format: what the user wrote as a format, if the path's suffix does not say it
    :param argument: what the path is called, for the error
    :raises AnaplatRequestError: neither tells a format, or an option of the format is unusable
    """
    from airflow_provider_anaplat.output.formats import WriteOptions
    from airflow_provider_anaplat.output.place import place_named

    options = options or WriteOptions()
    return place_named(path_of(output_path), str(output_path), file_format, options, argument)
