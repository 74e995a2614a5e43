"""From what users write as a path to a path object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat._airflow.releases import AirflowFailException

if TYPE_CHECKING:
    from airflow_provider_anaplat.output.formats import FileFormat

_FORMAT_BY_SUFFIX: dict[str, FileFormat] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
}
_COMPRESSIONS = (".gz", ".zst")


def path_of(path: Any) -> Any:
    """Return a local path, or a path in an object store with the credentials of its Airflow connection."""
    if isinstance(path, str) and path.startswith("file://"):
        local = path.removeprefix("file://").removeprefix("localhost")
        if not local.startswith("/"):
            raise AirflowFailException(f"{path} names a file of another host; a local one begins with file:///.")
        return Path(local)
    if isinstance(path, str) and "://" in path:
        from airflow_provider_anaplat._airflow.releases import ObjectStoragePath

        return ObjectStoragePath(path)
    return Path(path) if isinstance(path, str) else path


def format_of(output_path: Any, given: str | None) -> tuple[FileFormat, str]:
    """Return the format of a file, and the suffix that says it with its compression.

    :param output_path: what the user wrote as a path
    :param given: what the user wrote as a format, where the path's suffix does not say it
    """
    path = str(output_path).lower()
    given = f".{given}".lower() if given else ""
    compression = next((end for end in _COMPRESSIONS if given.endswith(end) or path.endswith(end)), "")
    suffix = given.removesuffix(compression) or Path(path.removesuffix(compression)).suffix
    file_format = _FORMAT_BY_SUFFIX.get(suffix)
    if file_format is None or (compression and file_format == "parquet"):
        raise AirflowFailException(
            f"No format for {output_path}: end output_path in one of {', '.join(_FORMAT_BY_SUFFIX)}, or "
            "set file_format to csv, ndjson or parquet. CSV and NDJSON may end in .gz or .zst besides; "
            "Parquet is compressed within."
        )
    return file_format, f".{file_format}{compression}"
