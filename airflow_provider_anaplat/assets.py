"""Assets: how Airflow names a dataset of the platform, and what its events say.

The URI is ``anaplat://<host>/datasets/<dsId>``, with the port if the platform's address has one, and its path
prefix before ``datasets``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow_provider_anaplat._airflow.releases import Asset

if TYPE_CHECKING:
    from airflow_provider_anaplat._airflow.releases import Context

__all__ = [
    "create_asset",
    "dataset_uri",
    "describe_events",
    "sanitize_uri",
]

_SCHEME = "anaplat"
_FOLDER = "datasets"
# What the event of an asset says of the rows that a task has written.
_OF_A_RESULT = ("dsId", "rows", "version", "utime")


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Return the URI as Airflow shall keep it: the host in lower case, the id quoted in one way.

    :param uri: a URI of the scheme ``anaplat``
    :raises ValueError: it names no dataset
    """
    folder, _, ds_id = uri.path.rpartition("/")
    in_its_place = folder.endswith(f"/{_FOLDER}") and "//" not in folder and ds_id
    if not uri.hostname or not in_its_place or uri.query or uri.fragment or "@" in uri.netloc:
        raise ValueError("The URI of a dataset is anaplat://<host>/datasets/<dsId>, and nothing else.")
    return uri._replace(netloc=uri.netloc.lower(), path=f"{folder}/{quote(unquote(ds_id), safe='')}")


def create_asset(*, host: str, ds_id: str, extra: Mapping[str, Any] | None = None) -> Asset:
    """Return the asset of a dataset.

    :param host: the platform's address, as in the connection's host field: with or without scheme, port and prefix
    :param ds_id: id of the dataset
    :param extra: plain JSON that describes the asset
    """
    return Asset(uri=dataset_uri(host, ds_id), extra=dict(extra or {}))


def dataset_uri(host: str, ds_id: str) -> str:
    """Return the URI of a dataset's asset.

    :param host: the platform's address, as in the connection's host field: with or without scheme, port and prefix
    :param ds_id: id of the dataset
    """
    parts = urlsplit(host if "://" in host else f"//{host}")
    path = f"{parts.path.rstrip('/')}/{_FOLDER}/{quote(ds_id, safe='')}"
    return sanitize_uri(SplitResult(_SCHEME, parts.netloc, path, "", "")).geturl()


def describe_events(context: Context, outlets: Iterable[Any], result: Mapping[str, Any]) -> None:
    """Say in the events of a task's outlets what it has written: ``dsId``, ``rows``, ``version`` and ``utime``.

    Airflow emits one event for each asset among the outlets when the task succeeds. Which they are is the DAG
    author's to say, so none is added; what the author has put into an event's extra stays.

    :param context: the task's context
    :param outlets: the task's outlets; what is no asset, an alias for instance, is left alone
    :param result: what the task returns
    """
    events = context.get("outlet_events")
    if events is None:
        return
    described = {name: result[name] for name in _OF_A_RESULT}
    for outlet in outlets:
        if isinstance(outlet, Asset):
            event = events[outlet]
            event.extra = {**described, **event.extra}
