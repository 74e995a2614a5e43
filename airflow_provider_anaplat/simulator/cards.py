"""The cards of the embedded platform."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_anaplat.simulator.tables import Table

__all__ = [
    "StoredCard",
]

_NUMBERS = ("INT", "LONG", "DOUBLE")


@dataclass
class StoredCard:
    """A card of the embedded platform, which shows a table.

    :param cd_id: its id
    :param name: its name
    :param table: what it shows
    :param pg_id: id of the page that it is on
    """

    cd_id: str
    name: str
    table: Table
    pg_id: str

    def summary(self) -> dict[str, Any]:
        """Return what its page says of it."""
        return {"cdId": self.cd_id, "name": self.name, "cdType": "CHART"}

    def data(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request for its data is answered with.

        A ``GRID`` has all titles in its columns; a ``GRAPH`` has what is no number beside the cells.
        """
        conditions = [{"value": condition} for condition in body.get("filters", [])]
        condition = {"combineType": "AND", "conditions": conditions} if conditions else None
        rows = self.table.selected(None, condition).rows()
        offset, limit = body.get("offset", 0), body.get("limit", 500)
        titles = list(zip(self.table.names, self.table.fd_types, strict=True))
        beside = [
            place for place, (_, kind) in enumerate(titles) if body.get("view") == "GRAPH" and kind not in _NUMBERS
        ]
        cells = [place for place in range(len(titles)) if place not in beside]
        page = rows[offset : offset + limit]
        chart = {
            "row": {
                "meta": [_meta(*titles[place]) for place in beside],
                "values": [[{"title": row[place]} for place in beside] for row in page] if beside else [],
            },
            "column": {"meta": [_meta(*titles[place]) for place in cells]},
            "data": [[_cell(titles[place][1], row[place]) for place in cells] for row in page],
            "hasMoreData": offset + limit < len(rows),
        }
        return {"cdId": self.cd_id, "name": self.name, "view": body.get("view"), "chartMain": chart}


def _meta(title: str, fd_type: str) -> dict[str, str]:
    return {"title": title, "fdType": fd_type}


def _cell(fd_type: str, text: str | None) -> dict[str, Any]:
    return {"v": json.loads(text) if fd_type in _NUMBERS and text is not None else text}
