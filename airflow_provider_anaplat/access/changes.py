"""Who gained and who lost what since an earlier report."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import polars as pl

from airflow_provider_anaplat.access.columns import CHANGE_COLUMNS, NAMES
from airflow_provider_anaplat.errors import (
    AnaplatEarlierReportError,
    AnaplatNoEarlierReportError,
    AnaplatOutputError,
    AnaplatRequestError,
    AnaplatRightsChangedError,
)
from airflow_provider_anaplat.output.formats import CsvSink
from airflow_provider_anaplat.output.place import Place, has_format
from airflow_provider_anaplat.output.reading import DamagedFileError, rows_of
from airflow_provider_anaplat.output.schema import Caster, schema_of
from airflow_provider_anaplat.output.streams import COMPRESSIONS

__all__ = [
    "Changes",
    "Comparison",
    "Rights",
    "changes_path_of",
    "compared",
    "comparison_of",
]

_ROWS_PER_FRAME = 10_000
_SHOWN = 5  # changes in an error
_IDS = NAMES[:3]
_FLAGS = NAMES[4:7]
_FLAG_VALUES = {True: 1, False: 0, "true": 1, "false": 0, None: None, "": None}
_EARLIER, _NOW = 0, 1

_TABLES = f"""
PRAGMA journal_mode = OFF;
PRAGMA temp_store = FILE;
CREATE TABLE rights (side, {", ".join(NAMES)});
CREATE TABLE unread (uId PRIMARY KEY);
"""
_INSERT = f"INSERT INTO rights VALUES ({', '.join('?' * (len(NAMES) + 1))})"  # noqa: S608 - a number of ?
_RIGHT = ", ".join((*_IDS, *_FLAGS))
# SQLite sorts with little memory and the rest on disk; what one side alone has was gained or lost.
_CHANGES = f"""
SELECT CASE min(side) WHEN {_NOW} THEN 'gained' ELSE 'lost' END AS change, uId, resourceType, resourceId,
       min(name), isOwner, isInherit, canExport, min(sources)
FROM rights WHERE uId NOT IN (SELECT uId FROM unread)
GROUP BY {_RIGHT} HAVING min(side) = max(side) ORDER BY {", ".join(_IDS)}, change DESC
"""  # noqa: S608 - names of columns alone


@dataclass(frozen=True)
class Comparison:
    """What a report is compared with, and where the changes go.

    :param earlier: an earlier report
    :param changes: file of the changes
    """

    earlier: Place
    changes: Place

    def check(self, report: Place) -> None:
        """See that no file is read and written, or written twice.

        :raises AnaplatRequestError: two of the three are the same file
        """
        places = {"compare_with": self.earlier, "changes_path": self.changes, "output_path": report}
        names: dict[str, str] = {}
        for name, place in places.items():
            other = names.setdefault(_whole(place.path), name)
            if other != name:
                raise AnaplatRequestError(
                    f"{other} and {name} are the same file, {place}. Give each report a path of its own, "
                    "such as one with {{ ds }} in its name, so that the earlier one stays. Nothing was sent."
                )


def comparison_of(
    place: Callable[[Any, str | None, str], Place],
    report: Any,
    file_format: str | None,
    earlier: Any,
    changes: Any,
) -> Comparison:
    """Return the comparison that a user names.

    A path's own suffix says its format; if it says none, it is the report's.

    :param place: makes a place of a path, a format and what the path is called
    :param report: path of the new report
    :param file_format: format of the new report, if its suffix does not say it
    :param earlier: path of the earlier report
    :param changes: path of the changes; by default, beside the new report and in its format
    :raises AnaplatRequestError: a format cannot be told
    """

    def named(path: Any, argument: str) -> Place:
        return place(path, None if has_format(str(path)) else file_format, argument)

    beside = place(changes_path_of(report), file_format, "changes_path")
    return Comparison(named(earlier, "compare_with"), named(changes, "changes_path") if changes else beside)


@dataclass(frozen=True)
class Changes:
    """How many rights were gained and lost, and where that is written.

    :param first: the first few of them, for a person to read
    """

    comparison: Comparison
    gained: int
    lost: int
    bytes: int
    first: Sequence[str]

    def raise_any(self) -> None:
        """Raise an error that says what has changed, if anything has.

        :raises AnaplatRightsChangedError: a right was gained or lost
        """
        if not self.gained + self.lost:
            return
        more = self.gained + self.lost - len(self.first)
        rest = f"; and {more:,} more" if more else ""
        raise AnaplatRightsChangedError(
            f"{self.gained:,} rights were gained and {self.lost:,} lost since {self.comparison.earlier}: "
            f"{'; '.join(self.first)}{rest}. All of them are in {self.comparison.changes}. See whether each is "
            "meant; then mark the task as successful, or set on_changes to 'pass' to let such a task succeed."
        )


class Rights:
    """The rights of two reports, in a temporary file of SQLite, which is gone when this is closed."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._base = sqlite3.connect("")
        self._base.executescript(_TABLES)

    def close(self) -> None:
        """Forget all."""
        self._base.close()

    def read_earlier(self) -> None:
        """Read the earlier report.

        :raises AnaplatNoEarlierReportError: it is missing or damaged, or has other columns
        :raises AnaplatEarlierReportError: it cannot be read now
        """
        earlier = self._comparison.earlier
        advice = "Give the path of an earlier access report, or leave compare_with empty to compare with none"
        try:
            self._insert(_EARLIER, _checked(rows_of(earlier, NAMES)))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise AnaplatNoEarlierReportError(
                f"compare_with names {earlier}, which is missing. {advice}, as for the first. Nothing was sent."
            ) from error
        except (DamagedFileError, UnicodeEncodeError) as error:
            raise AnaplatNoEarlierReportError(
                f"{earlier}, which compare_with names, is no whole access report: {error}. {advice}. "
                "Nothing was sent."
            ) from error
        except OSError as error:
            raise AnaplatEarlierReportError(
                f"Cannot read {earlier}, which compare_with names: {error.strerror or error}. Make sure that "
                "it may be read, then run the task again. Nothing was sent."
            ) from error

    def noted(self, frames: Iterable[pl.DataFrame]) -> Generator[pl.DataFrame]:
        """Yield the frames of the new report, whose rows are noted."""
        for frame in frames:
            self._insert(_NOW, map(_stored, self._as_earlier(frame).iter_rows()))
            yield frame

    def write_changes(self, unread: Collection[str]) -> Changes:
        """Write what one of the reports alone has; the file appears when it is complete.

        :param unread: ids of users whose present rights are not known; nothing is said of them
        :raises AnaplatOutputError: the file cannot be written
        """
        users = self._as_earlier(pl.DataFrame({"uId": list(unread)}, schema={"uId": pl.String}))
        with _named():
            self._base.executemany("INSERT OR IGNORE INTO unread VALUES (?)", users.iter_rows())
        counts, first = {"gained": 0, "lost": 0}, list[str]()
        place = self._comparison.changes
        with closing(self._changes(counts, first)) as frames:
            texts = (frame.cast(pl.String) for frame in frames)
            size = place.write(texts, Caster(CHANGE_COLUMNS)).bytes
        return Changes(self._comparison, counts["gained"], counts["lost"], size, first)

    def _changes(self, counts: dict[str, int], first: list[str]) -> Generator[pl.DataFrame]:
        schema = schema_of(CHANGE_COLUMNS, typed=True)
        with _named(), closing(self._base.execute(_CHANGES)) as found:
            while rows := found.fetchmany(_ROWS_PER_FRAME):
                for row in rows:
                    counts[row[0]] += 1
                first += [_described(row) for row in rows[: _SHOWN - len(first)]]
                flags = [pl.col(name).cast(pl.Boolean) for name in _FLAGS]
                whole: dict[str, Any] = {**schema, **dict.fromkeys(_FLAGS, pl.Int64)}
                yield pl.DataFrame(rows, schema=whole, orient="row").with_columns(flags)

    def _as_earlier(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame as the earlier report has it: if that is CSV, with formulas escaped, if they are."""
        sink = self._comparison.earlier.sink
        return sink.as_written(frame.cast(pl.String)) if isinstance(sink, CsvSink) else frame

    def _insert(self, side: int, rows: Iterable[Sequence[Any]]) -> None:
        with _named():
            self._base.executemany(_INSERT, ((side, *row) for row in rows))


@contextmanager
def compared(comparison: Comparison | None, report: Place) -> Iterator[Rights | None]:
    """Give the rights of the earlier report, or None if there is nothing to compare with.

    :param report: the new report
    :raises AnaplatRequestError: two of the files are the same
    :raises AnaplatEarlierReportError: the earlier report is missing, damaged or cannot be read
    """
    if comparison is None:
        yield None
        return
    comparison.check(report)
    with closing(Rights(comparison)) as rights:
        rights.read_earlier()
        yield rights


def _checked(rows: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[Sequence[Any]]:
    """Yield rows as they are stored, and see that they are what a report holds."""
    for number, values in rows:
        *ids, name, _, _, _, sources = values
        if not all(isinstance(value, str) for value in ids):
            raise DamagedFileError(f"row {number:,} has no text as one of {', '.join(_IDS)}")
        if not all(value is None or isinstance(value, str) for value in (name, sources)):
            raise DamagedFileError(f"row {number:,} has a name or sources that are no text")
        try:
            yield _stored(values)
        except (KeyError, TypeError):
            raise DamagedFileError(f"row {number:,}: {', '.join(_FLAGS)} must be true or false") from None


def _stored(values: Sequence[Any]) -> Sequence[Any]:
    """Return a row with flags as numbers, and an empty name as none: few readers of CSV tell them apart."""
    *ids, name, owner, inherit, export, sources = values
    return (*ids, name or None, *(_FLAG_VALUES[flag] for flag in (owner, inherit, export)), sources or "")


def _described(row: Sequence[Any]) -> str:
    change, user, kind, resource, name, *flags, _ = row
    called = f" ({name[:60]!r})" if name else ""
    words = {1: "true", 0: "false", None: "unknown"}
    told = ", ".join(f"{flag} {words[value]}" for flag, value in zip(_FLAGS, flags, strict=True))
    return f"{user[:60]} {change} {kind} {resource[:60]}{called}, {told}"


def changes_path_of(output_path: Any) -> Any:
    """Return the default path of the changes: beside the report, as in ``access-changes.csv.gz``.

    :param output_path: path or URL of the report
    """
    if not isinstance(output_path, str):
        return output_path.with_name(changes_path_of(output_path.name))
    whole = output_path
    for compression in COMPRESSIONS:
        whole = whole.removesuffix(compression)
    stem = whole.removesuffix(PurePath(whole).suffix)
    return f"{stem}-changes{output_path.removeprefix(stem)}"


def _whole(path: Any) -> str:
    return str(path) if hasattr(type(path), "fs") else os.path.realpath(path)


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise AnaplatOutputError(
            f"Cannot compare the reports: {error}. They are sorted in a temporary file: make sure that the folder "
            "for those (TMPDIR) has room, then run the task again."
        ) from error
