"""Commands about datasets: list, show, head, refresh."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from airflow_provider_anaplat.cli.output import labelled
from airflow_provider_anaplat.cli.session import client_for, connected, json_object
from airflow_provider_anaplat.errors import AnaplatNeedsAPersonError, AnaplatTimeoutError, from_json
from airflow_provider_anaplat.waiting.states import State, StateTable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from airflow_provider_anaplat.cli.output import Printer
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.models import Column, Dataset

__all__ = [
    "datasets",
    "head",
    "is_named",
    "refresh",
    "show",
]

_MOST_POLL_FAILURES = 10
_LONGEST_PAUSE = 10.0  # seconds between two looks after a lost answer


def datasets(arguments: Namespace, output: Printer) -> None:
    """List datasets, by name."""
    with client_for(arguments, output) as client:
        found = [dataset for dataset in client.list_datasets() if _is_wanted(dataset, arguments)]
    found.sort(key=lambda dataset: (dataset.name or "", dataset.ds_id))
    names = ("id", "name", "folder", "state", "rows", "columns", "updated")
    rows = [
        (
            dataset.ds_id,
            dataset.name,
            dataset.parent_dir_id,
            dataset.status,
            dataset.row_count,
            dataset.col_count,
            _moment(dataset.utime),
        )
        for dataset in found
    ]
    output.table([dataset.summary() for dataset in found], names, rows)


def show(arguments: Namespace, output: Printer) -> None:
    """Show a dataset."""
    from airflow_provider_anaplat.client.names import find_dataset

    with client_for(arguments, output) as client:
        dataset = find_dataset(client.list_datasets(), arguments.dataset)
        columns = client.get_columns(dataset.ds_id)
        may_export = {user: _may_export(client, user, dataset.ds_id) for user in arguments.users}
    state = StateTable().read(dataset.status)
    value = {
        **dataset.summary(),
        "uId": dataset.u_id,
        "meaning": state.name.lower(),
        "columns": [
            column.model_dump(mode="json", by_alias=True, include={"name", "alias", "fd_type", "meta_type"})
            for column in columns
        ],
        "mayExport": may_export,
    }
    output.result(value, _described(dataset, state, columns, may_export))


def head(arguments: Namespace, output: Printer) -> None:
    """Show the first rows of a dataset, as the platform writes them."""
    from airflow_provider_anaplat.client.names import find_dataset

    condition = json_object("--filter", arguments.filter)
    with client_for(arguments, output) as client:
        dataset = find_dataset(client.list_datasets(), arguments.dataset)
        data = client.read_rows(
            dataset.ds_id,
            limit=arguments.rows,
            sort_by=arguments.sort_by,
            sort_type=arguments.sort_type,
            filter=condition,
        )
    value = {
        "dsId": data.ds_id,
        "version": data.version,
        "rowCount": data.row_count,
        "columns": [{"name": column.name, "fdType": column.fd_type} for column in data.columns],
        "rows": data.preview,
    }
    output.table(value, [column.name for column in data.columns], data.preview)


def refresh(arguments: Namespace, output: Printer) -> None:
    """Have a dataset updated and, if asked to, wait until it is."""
    from airflow_provider_anaplat.cli.connect import connection_of
    from airflow_provider_anaplat.client.names import find_dataset
    from airflow_provider_anaplat.client.tasks import RefreshCall
    from airflow_provider_anaplat.datasets.refresh import Asked, Refresh, RefreshWish
    from airflow_provider_anaplat.waiting.wait import check_pace

    check_pace(**{"--poll-interval": arguments.poll_interval, "--timeout": arguments.timeout})
    connection = connection_of(arguments)
    words = (connection.extension(f"refresh_{name}") for name in ("style", "path", "method", "auth_in"))
    call = RefreshCall.of(*words)
    client = connected(connection, output)
    try:
        ds_id = find_dataset(client.list_datasets(), arguments.dataset).ds_id
        pause = min(arguments.poll_interval, _LONGEST_PAUSE)
        asked: Asked = Refresh(client, None, RefreshWish(ds_id, call, pause=pause)).ask()
        result = {**asked.dataset, "taskId": asked.task_id}
        if arguments.wait:
            result |= _wait(client, asked, arguments)
    finally:
        client.close()
    done = "was updated at" if arguments.wait else "is being updated; its last update was"
    output.result(result, [f"Dataset {ds_id} {done} {result['utime']}"])


def _wait(client: AnaplatClient, asked: Any, arguments: Namespace) -> dict[str, Any]:
    import logging

    from airflow_provider_anaplat.waiting.conditions import DatasetRefreshed
    from airflow_provider_anaplat.waiting.wait import Outcome, Wait, wait_here

    condition = DatasetRefreshed(
        ds_id=asked.dataset["dsId"], noted_utime=asked.utime, noted_status=asked.dataset["status"]
    )
    log, deadline = logging.getLogger(__name__), time.time() + arguments.timeout
    event = wait_here(
        client.without_retries(), Wait(condition, log, deadline, _MOST_POLL_FAILURES), arguments.poll_interval
    )
    match event["outcome"]:
        case Outcome.DONE:
            return dict(event["result"])
        case Outcome.ERROR:
            raise from_json(event["error"])
        case Outcome.TIMED_OUT:
            seen = event["seen"] or "the platform did not answer"
            raise AnaplatTimeoutError(f"Not done within {arguments.timeout:g} s: {seen}. The update may go on.")
        case _:
            raise AnaplatNeedsAPersonError(f"The platform reports that {event['seen']}. Look at it there.")


def _is_wanted(dataset: Dataset, arguments: Namespace) -> bool:
    if arguments.stale_since is not None:
        from airflow_provider_anaplat.waiting.moments import moment

        since = moment("--stale-since", arguments.stale_since)
        if dataset.utime is not None and dataset.utime >= since:
            return False
    if arguments.state is not None:
        words = ((dataset.status or "").lower(), StateTable().read(dataset.status).name.lower())
        if arguments.state.lower() not in words:
            return False
    return is_named(dataset.name, arguments.name) and arguments.folder in (None, dataset.parent_dir_id)


def is_named(name: str | None, pattern: str) -> bool:
    """Tell whether a name fits a pattern of the shell's kind; case does not count."""
    return fnmatchcase((name or "").lower(), pattern.lower())


def _may_export(client: AnaplatClient, user_id: str, ds_id: str) -> bool | None:
    """Return whether a user may export a dataset; None if the platform does not say."""
    found = [right for right in client.list_authorized_datasets(user_id) if right.id == ds_id]
    return found[0].can_export if found else False


def _described(
    dataset: Dataset, state: State, columns: Sequence[Column], may_export: dict[str, bool | None]
) -> Iterator[str]:
    yield from labelled(
        {
            "id": dataset.ds_id,
            "name": dataset.name,
            "folder": dataset.parent_dir_id,
            "owner": dataset.u_id,
            "state": f"{dataset.status} ({state.value})",
            "rows": None if dataset.row_count is None else f"{dataset.row_count:,}",
            "created": _moment(dataset.ctime),
            "updated": _freshness(dataset.utime),
        }
    )
    yield ""
    yield f"{len(columns)} columns"
    width = max((len(column.name) for column in columns), default=0)
    for column in columns:
        also = "".join(f"  {text}" for text in (column.alias, column.annotation) if text)
        yield f"  {column.name.ljust(width)}  {column.fd_type}{also}"
    yield ""
    if not may_export:
        yield "Who may export it, the platform tells of given users: name them with --user."
    for user, may in may_export.items():
        yield f"User {user} {_MAY[may]} export it."


_MAY: dict[bool | None, str] = {True: "may", False: "may not", None: "may or may not; the platform does not say:"}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S%z")


def _freshness(updated: datetime | None) -> str:
    if updated is None:
        return "never"
    minutes = max(0, int((datetime.now(UTC) - updated).total_seconds() // 60))
    hours, days = minutes // 60, minutes // 1440
    age = f"{days} days" if days > 1 else f"{hours} hours" if hours > 1 else f"{minutes} minutes"
    if minutes == 1:
        age = "1 minute"
    return f"{_moment(updated)}, {age} ago"
