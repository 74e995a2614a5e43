"""What can go wrong between the platform's rows and a file."""

from __future__ import annotations

from airflow_provider_anaplat.errors import AnaplatError


class ExportError(AnaplatError):
    """The export cannot be finished; nothing was published."""


class DatasetChangedError(ExportError):
    """The dataset was updated while its rows were being read."""


class RowCountError(ExportError):
    """The platform gave fewer or more rows than it says the dataset has."""


class CellError(ExportError):
    """A cell holds what its column's type cannot hold."""


class UnplannedError(ExportError):
    """The plan of an export by several workers, or a part of it, is missing."""


class OutputError(ExportError):
    """The file cannot be written."""


class LoadError(ExportError):
    """The rows cannot be loaded into the table."""
