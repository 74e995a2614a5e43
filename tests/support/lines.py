"""What a CSV file says of rows, made cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "csv_lines",
]


def csv_lines(rows: Sequence[Sequence[str | None]], delimiter: str = ",") -> list[bytes]:
    """Return each row as a line, with quotation marks only where one has to be."""
    return [(delimiter.join(_field(cell, delimiter) for cell in row) + "\n").encode() for row in rows]


def _field(cell: str | None, delimiter: str) -> str:
    if cell is None:
        return ""
    if cell == "" or any(character in cell for character in f'{delimiter}"\r\n'):
        return '"{}"'.format(cell.replace('"', '""'))
    return cell
