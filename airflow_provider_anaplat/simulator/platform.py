"""The embedded platform's state and its operations, without HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_anaplat.client import operations
from airflow_provider_anaplat.client.operations import MAX_ROWS_PER_CALL
from airflow_provider_anaplat.simulator.cards import StoredCard
from airflow_provider_anaplat.simulator.replies import Reply, success
from airflow_provider_anaplat.simulator.sign_ins import SignIns
from airflow_provider_anaplat.simulator.tables import Table, rows_json, with_rows

__all__ = [
    "DEFAULT_LOGIN",
    "Platform",
    "Refused",
    "StoredDataset",
]

_USER_FIELDS = frozenset(
    {"name", "loginId", "password", "role", "email", "mobile", "enabled", "userGroupIds",
     "userDefinedProperties"}
)  # fmt: skip
DEFAULT_LOGIN = "simulator-user"  # who may sign in beside those of Platform.users
_REFRESH = "refresh-"
_EMPTY_TABLE = Table.of_rows([], [])


class Refused(Exception):  # noqa: N818 - an answer, not a defect
    """The platform refuses a request."""

    def __init__(self, message: str, code: int = 5001) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class StoredDataset:
    """A dataset of the embedded platform.

    :param statuses: what successive calls of the dataset list show, the last one from then on; None hides
        the dataset from the list
    """

    ds_id: str
    name: str
    table: Table
    statuses: Sequence[str | None] = ("FINISHED",)
    parent_dir_id: str = "root"
    version: int = 1
    ctime: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    utime: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    times_listed: int = 0
    row_count: int | None = None  # what the platform says instead of the truth
    updating: bool = False  # the last of the statuses ends an update

    def fields(self) -> dict[str, Any]:
        """Return what the dataset list and the dataset data have in common."""
        return {
            "dsId": self.ds_id,
            "name": self.name,
            "displayType": "EXCEL",
            "domId": "simulated",
            "uId": "owner",
            "parentDirId": self.parent_dir_id,
            "rowCount": self.table.frame.height,
            "colCount": len(self.table.names),
            "status": self.statuses[min(self.times_listed, len(self.statuses) - 1)],
            "ctime": _timestamp(self.ctime),
            "utime": _timestamp(self.utime),
            "cardCount": 0,
        }

    def columns(self) -> list[dict[str, Any]]:
        """Return the column structure."""
        return [
            {
                "name": name,
                "fdType": fd_type,
                "dsId": self.ds_id,
                "fdId": f"{self.ds_id}-{index}",
                "metaType": "METRIC" if fd_type in ("INT", "LONG", "DOUBLE") else "DIM",
                "seqNo": index,
                "isAggregated": False,
                "calculationType": "normal",
                "level": "dataset",
                "isDetectionSensitive": False,
                "isSensitive": False,
            }
            for index, (name, fd_type) in enumerate(zip(self.table.names, self.table.fd_types, strict=True))
        ]


class Platform:
    """Datasets, users, pages, cards and subscriptions, and the operations on them.

    :param tables: the tables of every data account, by name; a creation finds its rows here
    :param creation_statuses: what successive dataset lists show of a new dataset; the last one stays

    ``clock_ahead`` sets its clock ahead of this machine's, or behind; ``sign_ins`` holds the user tokens.
    """

    def __init__(
        self,
        tables: Mapping[str, Table] | None = None,
        creation_statuses: Sequence[str | None] = ("处理中", "处理中", "FINISHED"),
    ) -> None:
        self.tables = dict(tables or {})
        self.creation_statuses = creation_statuses
        self.datasets: dict[str, StoredDataset] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.pages: list[dict[str, Any]] = []
        self.cards: dict[str, StoredCard] = {}
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.authorized_datasets: dict[str, list[dict[str, Any]]] = {}
        self.authorized_pages: dict[str, list[dict[str, Any]]] = {}
        # What successive calls say of a task, the last one for good.
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.refresh_statuses: Sequence[str | None] = ("处理中", "FINISHED")  # from the next refresh on
        self.rows_per_answer = MAX_ROWS_PER_CALL  # a smaller one makes pages shorter than asked for
        self.clock_ahead = timedelta(0)
        self.sign_ins = SignIns(self._now)
        self._numbers = itertools.count(1)

    def add_dataset(
        self,
        name: str,
        table: Table,
        statuses: Sequence[str | None] = ("FINISHED",),
        parent_dir_id: str = "root",
    ) -> StoredDataset:
        """Add a dataset as if it had been created on the platform itself."""
        now = self._now().replace(microsecond=0)
        dataset = StoredDataset(
            f"ds{next(self._numbers)}", name, table, statuses, parent_dir_id, ctime=now, utime=now
        )
        self.datasets[dataset.ds_id] = dataset
        return dataset

    def add_card(self, name: str, table: Table, pg_id: str = "page1") -> StoredCard:
        """Add a card that shows a table on a page."""
        card = StoredCard(f"card{next(self._numbers)}", name, table, pg_id)
        self.cards[card.cd_id] = card
        return card

    def refresh(self, ds_id: str, table: Table | None = None) -> None:
        """Update a dataset as the platform's own schedule would: a new version, perhaps of other rows."""
        dataset = self.datasets[ds_id]
        dataset.table = table or dataset.table
        dataset.version += 1
        now = self._now().replace(microsecond=0)
        dataset.utime = max(now, dataset.utime + timedelta(seconds=1))

    def answer(self, operation: str, ids: Mapping[str, str], body: Mapping[str, Any], query: Any) -> Reply:
        """Carry out an operation.

        :raises Refused: with the platform's words and code
        """
        return _HANDLERS[operation](self, ids, body, query)

    def dataset(self, ds_id: str) -> StoredDataset:
        """Return a dataset, or refuse."""
        if ds_id not in self.datasets:
            raise Refused(f"no dataset {ds_id}", 1002)
        return self.datasets[ds_id]

    def _now(self) -> datetime:
        return datetime.now(UTC) + self.clock_ahead

    def _sign_in(self, _ids: Any, body: Mapping[str, Any], _query: Any) -> Reply:
        login = body.get("loginId")
        if login != DEFAULT_LOGIN and login not in self.users:
            raise Refused(f"no user {login}", 1002)
        return success(self.sign_ins.sign_in(login))

    def _list_datasets(self, _ids: Any, _body: Any, _query: Any) -> Reply:
        shown = []
        for dataset in self.datasets.values():
            fields = self._look(dataset)
            if fields["status"] is not None:
                shown.append({**fields, "config": {"tableQuery": None}})
        return success(shown)

    def _look(self, dataset: StoredDataset) -> dict[str, Any]:
        """Return what is shown of a dataset; whoever looks takes an update one step on."""
        if dataset.updating and dataset.times_listed >= len(dataset.statuses) - 1:
            dataset.updating = False
            if dataset.statuses[-1] == "FINISHED":
                self.refresh(dataset.ds_id)
        fields = dataset.fields()
        dataset.times_listed += 1
        return fields

    def _refresh_dataset(self, ids: Mapping[str, str], _body: Any, _query: Any) -> Reply:
        dataset = self.dataset(ids["ds_id"])
        dataset.statuses, dataset.times_listed, dataset.updating = self.refresh_statuses, 0, True
        return success({"taskId": f"{_REFRESH}{dataset.ds_id}"})

    def _get_task(self, _ids: Any, _body: Any, query: Mapping[str, str]) -> Reply:
        task_id = query["taskId"]
        if answers := self.tasks.get(task_id):
            return success(answers.pop(0) if len(answers) > 1 else answers[0])
        ds_id = task_id.removeprefix(_REFRESH)
        if ds_id == task_id or ds_id not in self.datasets:
            raise Refused(f"no task {task_id}", 1002)
        return success({"taskId": task_id, "status": self._look(self.datasets[ds_id])["status"]})

    def _get_columns(self, ids: Mapping[str, str], _body: Any, _query: Any) -> Reply:
        return success(self.dataset(ids["ds_id"]).columns())

    def _read_rows(self, ids: Mapping[str, str], body: Mapping[str, Any], _query: Any) -> Reply:
        dataset = self.dataset(ids["ds_id"])
        limit = body.get("limit", MAX_ROWS_PER_CALL)
        if limit > MAX_ROWS_PER_CALL:
            raise Refused(f"limit {limit} is over {MAX_ROWS_PER_CALL}", 1012)
        sort, condition = body.get("sortFactor"), body.get("filter")
        if sort and sort["name"] not in dataset.table.names:
            raise Refused(f"no column {sort['name']}", 1012)
        rows = dataset.table.selected(sort, condition)
        page = rows.slice(body.get("offset", 0), min(limit, self.rows_per_answer))
        response = {
            **dataset.fields(),
            "status": dataset.statuses[-1],
            "storageId": f"storage-{dataset.ds_id}",
            "rowCount": rows.height if dataset.row_count is None else dataset.row_count,
            "columns": [{**column, "isRestricted": False} for column in dataset.columns()],
            "version": dataset.version,
        }
        return Reply(body=with_rows(response, rows_json(page)))

    def _create_dataset(self, _ids: Any, body: Mapping[str, Any], _query: Any) -> Reply:
        for required in ("acId", "name", "tableQuery"):
            if not body.get(required):
                raise Refused(f"{required} is missing", 1012)
        table_query = body["tableQuery"]
        table = self.tables.get(table_query.get("table") or table_query.get("query"))
        statuses = self.creation_statuses if table is not None else ("处理中", "FAILED")
        dataset = self.add_dataset(
            body["name"], table or _EMPTY_TABLE, statuses, body.get("parentDirId") or "root"
        )
        task = {
            "taskId": f"task-{dataset.ds_id}",
            "status": "已提交",
            "result": "处理中",
            "dsId": dataset.ds_id,
        }
        return success(task)

    def _create_users(self, _ids: Any, body: Mapping[str, Any], _query: Any) -> Reply:
        users = body.get("users")
        if not isinstance(users, list) or not users:
            raise Refused("users is missing", 1012)
        for user in users:
            if not user.get("loginId") or set(user) - _USER_FIELDS:
                raise Refused("a user has no loginId, or a field that does not exist", 1012)
            if user["loginId"] in self.users:
                raise Refused(f"loginId {user['loginId']} already exists", 1012)
        self.users.update({user["loginId"]: user for user in users})
        return success(f"{len(users)} users created")

    def _get_users(self, _ids: Any, body: Mapping[str, Any], _query: Any) -> Reply:
        return success({"userExist": [login_id for login_id in body["users"] if login_id in self.users]})

    def _list_pages(self, _ids: Any, _body: Any, _query: Any) -> Reply:
        return success(self.pages)

    def _list_cards(self, ids: Mapping[str, str], _body: Any, _query: Any) -> Reply:
        page_id = ids["page_id"]
        cards = [card.summary() for card in self.cards.values() if card.pg_id == page_id]
        page = next((page for page in self.pages if page_id in (page.get("pgId"), page.get("id"))), None)
        if page is None and not cards:
            raise Refused(f"no page {page_id}", 1002)
        return success({"pgId": page_id, **(page or {}), "cards": cards})

    def _read_card(self, ids: Mapping[str, str], body: Mapping[str, Any], _query: Any) -> Reply:
        if ids["card_id"] not in self.cards:
            raise Refused(f"no card {ids['card_id']}", 1002)
        return success(self.cards[ids["card_id"]].data(body))

    def _list_authorized_datasets(self, ids: Mapping[str, str], _body: Any, _query: Any) -> Reply:
        return success(self.authorized_datasets.get(ids["user_id"], []))

    def _list_authorized_pages(self, ids: Mapping[str, str], _body: Any, query: Mapping[str, str]) -> Reply:
        pages = self.authorized_pages.get(ids["user_id"], [])
        page_type = query.get("pgType")
        return success([page for page in pages if page_type in (None, page.get("pgType", page_type))])

    def _get_subscriptions(self, _ids: Any, body: Mapping[str, Any], _query: Any) -> Reply:
        return success([self.subscriptions[key] for key in body.get("scIds", []) if key in self.subscriptions])


_HANDLERS: dict[str, Callable[[Platform, Any, Any, Any], Reply]] = {
    operation.name: getattr(Platform, f"_{operation.name}")
    for operation in operations.OPERATIONS + operations.EXTENSIONS
}


def _timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S%z")
