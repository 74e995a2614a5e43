"""From what users write as a path to a path object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException


def path_of(path: Any) -> Any:
    """Return a local path, or a path in an object store with the credentials of its Airflow connection."""
    if isinstance(path, str) and path.startswith("file://"):
        local = path.removeprefix("file://").removeprefix("localhost")
        if not local.startswith("/"):
            raise AirflowFailException(f"{path} names a file of another host; a local one begins with file:///.")
        return Path(local)
    if isinstance(path, str) and "://" in path:
        from airflow.providers.common.compat.sdk import ObjectStoragePath

        return ObjectStoragePath(path)
    return Path(path) if isinstance(path, str) else path
