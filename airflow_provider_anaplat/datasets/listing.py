"""Which datasets of the list are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from airflow_provider_anaplat.client.models import Dataset

__all__ = [
    "DatasetFilter",
]


@dataclass(frozen=True, slots=True)
class DatasetFilter:
    """What a dataset must be like; what is None does not count.

    :param name_pattern: its name, with ``*``, ``?`` and ``[…]`` as in a shell
    :param folder: id of its directory
    :param states: words of its status; case and blanks around do not matter
    :param newer_than: its last update is at or after this moment
    :param older_than: its last update is before this moment, or it was never updated
    """

    name_pattern: str | None = None
    folder: str | None = None
    states: Sequence[str] | None = None
    newer_than: datetime | None = None
    older_than: datetime | None = None

    def select(self, datasets: Iterable[Dataset]) -> list[Dataset]:
        """Return those that are wanted, in the platform's order."""
        return [dataset for dataset in datasets if self._wants(dataset)]

    def _wants(self, dataset: Dataset) -> bool:
        words = None if self.states is None else {_plain(word) for word in self.states}
        return (
            (self.name_pattern is None or fnmatchcase(dataset.name or "", self.name_pattern))
            and (self.folder is None or dataset.parent_dir_id == self.folder)
            and (words is None or _plain(dataset.status or "") in words)
            and (self.newer_than is None or (dataset.utime is not None and dataset.utime >= self.newer_than))
            and (self.older_than is None or dataset.utime is None or dataset.utime < self.older_than)
        )


def _plain(word: str) -> str:
    return word.strip().casefold()
