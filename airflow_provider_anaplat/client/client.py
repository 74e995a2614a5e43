"""The platform as plain Python: one typed method for each operation of the contract."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import Any, TypeVar, Unpack

from airflow_provider_anaplat.client import defaults, operations
from airflow_provider_anaplat.client._http.checks import (
    check_files,
    check_limits,
    check_proxies,
    check_rows,
    checked_base_url,
    checked_token,
)
from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.client._http.outgoing import record_body, rows_body, url_path
from airflow_provider_anaplat.client._http.redaction import LONGEST_WORDS, secrets_in, shortened, without_values
from airflow_provider_anaplat.client._http.settings import Settings
from airflow_provider_anaplat.client._http.transport import Transport
from airflow_provider_anaplat.client._http.validation import validated_answer, validated_record, validated_task
from airflow_provider_anaplat.client.arguments import (
    DataFrameType,
    OnCastError,
    PasswordEncoding,
    RowOptions,
    SortType,
    checked_arguments,
)
from airflow_provider_anaplat.client.extensions import Extensions
from airflow_provider_anaplat.client.lookup import Lookup, records_by_id
from airflow_provider_anaplat.client.metrics import Metric, Observer, observe
from airflow_provider_anaplat.client.models import (
    AuthorizedResource,
    Column,
    CreateDatasetRequest,
    CreatedUsers,
    CreationTask,
    Dataset,
    DatasetData,
    NewUser,
    Page,
    SubscriptionPlan,
)
from airflow_provider_anaplat.client.names import dataset_named
from airflow_provider_anaplat.client.operations import MAX_ROWS_PER_CALL, Operation
from airflow_provider_anaplat.client.sign_in import TokenStore

__all__ = [
    "AnaplatClient",
    "Filter",
    "PasswordEncoding",
    "SortType",
]

T = TypeVar("T")
Filter = Mapping[str, Any]


@checked_arguments
class AnaplatClient(Extensions):
    """A client of the platform's Public API; safe to use from several threads.

    :param base_url: scheme, host, port and path prefix, for instance ``https://bi.example.com/prefix``
    :param token: the application token
    :param user_token: goes into the ``X-Auth-Token`` header in place of the application token
    :param connect_timeout: seconds to wait for a connection
    :param read_timeout: seconds to wait for the next bytes of an answer; an answer that lasts ten times as long
        is given up
    :param max_retries: how often a request that may be repeated is sent again after a failure
    :param max_connections: requests at the same time at most, of all clients with the same address, token and
        limit in this process together; None for no limit
    :param max_answer_mb: megabytes of an answer at most, decompressed
    :param verify: whether to check the platform's certificate, or the path of a CA bundle
    :param cert: path of a client certificate with its key, or the paths of both
    :param proxies: proxy address by scheme; by default those of the environment
    :param task_status: how :meth:`find_task` asks: what differs from the defaults of
        :class:`~airflow_provider_anaplat.client.tasks.TaskStatusCall`
    :param login: loginId of a user to sign in (an extension); the token that comes of it goes into the header in
        place of the application token, and is renewed
    :param user_password: the user's password, if the platform asks for it
    :param sign_in_path: path of the sign-in
    :param sign_in_body: its body; see :class:`~airflow_provider_anaplat.client.sign_in.SignIn`
    :param token_store: shares the user's token with other processes
    :param observer: is told what :data:`~airflow_provider_anaplat.client.metrics.METRICS` names, in any thread
    :raises AnaplatRequestError: an address or a token that cannot be used

    Every method raises :class:`AnaplatError`, of the type that fits, if the platform does not answer
    with success; see :mod:`airflow_provider_anaplat.errors`.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        user_token: str | None = None,
        connect_timeout: float = defaults.CONNECT_TIMEOUT,
        read_timeout: float = defaults.READ_TIMEOUT,
        max_retries: int = defaults.MAX_RETRIES,
        max_connections: int | None = None,
        max_answer_mb: int = defaults.MAX_ANSWER_MB,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        task_status: Mapping[str, Any] | None = None,
        login: str | None = None,
        user_password: str | None = None,
        sign_in_path: str = defaults.SIGN_IN_PATH,
        sign_in_body: Mapping[str, Any] = defaults.SIGN_IN_BODY,
        token_store: TokenStore | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.base_url = checked_base_url(base_url)
        check_files(verify, cert)
        check_proxies(proxies or {})
        check_limits(connect_timeout, read_timeout, max_retries, max_connections, max_answer_mb)
        self._settings = Settings(
            base_url=self.base_url,
            token=checked_token("token", token),
            user_token=checked_token("user_token", user_token) if user_token else None,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            max_retries=max_retries,
            max_connections=max_connections,
            max_answer_mb=max_answer_mb,
            verify=verify,
            cert=cert,
            proxies=proxies,
            task_status=task_status,
            login=login,
            user_password=user_password,
            sign_in_path=sign_in_path,
            sign_in_body=sign_in_body,
            token_store=token_store,
            observer=observer,
        )
        self._transport = Transport(self._settings)

    def __repr__(self) -> str:
        return f"AnaplatClient({self.base_url!r})"

    def without_retries(self) -> AnaplatClient:
        """Return a client of the same platform that sends each request once, for those who poll."""
        settings = replace(self._settings, max_retries=0)
        return AnaplatClient(**{field.name: getattr(settings, field.name) for field in fields(settings)})

    def earliest_platform_time(self, moment: datetime) -> datetime:
        """Return the earliest that the platform's clock can have shown at a moment of ours, which has its zone.

        Its clock is known by the ``Date`` header of its last answer, to within a second and the time that the
        answer took; before there is one, both clocks are taken to agree.
        """
        return moment + self._transport.least_clock_difference

    @property
    def max_answer_mb(self) -> int:
        """Megabytes of an answer at most."""
        return self._settings.max_answer_mb

    @property
    def rights(self) -> str:
        """What tells those with whose rights rows are read from others: a loginId, or a digest of the token."""
        settings = self._settings
        return settings.login or sha256((settings.user_token or settings.token).encode()).hexdigest()

    def observe(self, metric: Metric, value: float, **tags: str) -> None:
        """Tell the observer what those measure who use this client."""
        observe(self._settings.observer, metric, value, **tags)

    def masked(self, value: Any) -> Any:
        """Return plain JSON with what is secret of this connection masked, for those who show it to people.

        :param value: a text, a number, a list or a dictionary; tuples stay as they are
        """
        return without_values(value, self._transport.secrets)

    def close(self) -> None:
        """Close all connections to the platform."""
        self._transport.close()

    def list_datasets(self) -> list[Dataset]:
        """Return all datasets (contract: operation 2, List all datasets)."""
        return self._send(operations.LIST_DATASETS)

    def find_datasets(self, ds_ids: Collection[str], known: Lookup[Dataset] | None = None) -> Lookup[Dataset]:
        """Return what the dataset list (operation 2) says of some datasets, whatever its other records look like.

        :param ds_ids: ids of the datasets that will be asked for; others can be too
        :param known: an earlier answer; only what has changed since is read again
        """
        found = self._lookup(operations.LIST_DATASETS, "dsId", Dataset)
        found.read_ahead(ds_ids, known)
        return found

    def find_dataset(self, name: str) -> Dataset:
        """Return the dataset of a name, whatever the other records of the dataset list (operation 2) look like.

        :param name: its name, or the id of its directory, a slash and its name
        :raises AnaplatNotFoundError: no dataset has the name
        :raises AnaplatDatasetExistsError: several datasets have; their ids are named
        """
        return dataset_named(name, self.find_datasets(()))

    def get_columns(self, ds_id: str) -> list[Column]:
        """Return a dataset's columns in their order (operation 1, Query the column structure).

        :param ds_id: id of the dataset
        """
        return self._send(operations.GET_COLUMNS, ids={"ds_id": ds_id})

    def read_rows(
        self,
        ds_id: str,
        *,
        offset: int = 0,
        limit: int = MAX_ROWS_PER_CALL,
        sort_by: str | None = None,
        sort_type: SortType = "asc",
        filter: Filter | None = None,  # noqa: A002 - the platform's name of the field
    ) -> DatasetData:
        """Return rows of a dataset, with its columns and version (operation 3, Read rows).

        :param ds_id: id of the dataset
        :param offset: number of rows to skip
        :param limit: number of rows at most; the platform allows 50,000
        :param sort_by: name of the column to sort by; without it, the contract promises no order
        :param sort_type: ``asc`` or ``desc``
        :param filter: sent as the body's ``filter``; the contract leaves its shape open
        :raises AnaplatInvalidAnswerError: the rows are of another dataset, or more than were asked for
        """
        body = rows_body(offset, limit, sort_by, sort_type, filter)
        return check_rows(self._send(operations.READ_ROWS, ids={"ds_id": ds_id}, json=body), ds_id, limit)

    def read_rows_with(
        self,
        read: Callable[[Answer], T],
        ds_id: str,
        *,
        offset: int = 0,
        limit: int = MAX_ROWS_PER_CALL,
        sort_by: str | None = None,
        sort_type: SortType = "asc",
        filter: Filter | None = None,  # noqa: A002 - the platform's name of the field
        most: int | None = None,
    ) -> T:
        """Return what ``read`` makes of the answer to :meth:`read_rows`, for readers of large pages.

        :param read: runs inside the retry: if it raises ``AnaplatTruncatedAnswerError``, the rows
            are asked for again
        :param most: bytes of the answer at most, if that is less than the connection allows
        """
        body = rows_body(offset, limit, sort_by, sort_type, filter)
        return self._transport.send(
            operations.READ_ROWS, url_path(operations.READ_ROWS, {"ds_id": ds_id}), read, json=body, most=most
        )

    def rows(self, ds_id: str, *, on_cast_error: OnCastError = "fail", **query: Unpack[RowOptions]) -> Any:
        """Return rows of a dataset as a :class:`~airflow_provider_anaplat.rows.stream.RowStream` (operation 3).

        :param ds_id: id of the dataset
        :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
        :param query: the other fields of :class:`~airflow_provider_anaplat.rows.pages.RowQuery`
        :raises AnaplatRequestError: the query cannot be asked

        Example::

            duckdb.sql("select city, sum(amount) from rows group by city")  # where rows = client.rows("ds1")
        """
        # By their names: what reads rows stands above this room, and needs libraries that a client alone does not.
        stream = import_module("airflow_provider_anaplat.rows.stream")
        return stream.RowStream(self, stream.RowQuery(ds_id, **query), on_cast_error)

    def get_df(
        self,
        ds_id: str,
        df_type: DataFrameType = "polars",
        *,
        on_cast_error: OnCastError = "fail",
        **query: Unpack[RowOptions],
    ) -> Any:
        """Return rows of a dataset as one dataframe (operation 3, Read rows).

        :param ds_id: id of the dataset
        :param df_type: ``polars``, ``pandas`` or ``arrow``; the latter two need pandas and pyarrow
        :param on_cast_error: as in :meth:`rows`, like the fields of ``query``
        :raises AnaplatDatasetChangedError: the dataset was updated meanwhile; ask again
        """
        return self.rows(ds_id, on_cast_error=on_cast_error, **query).df(df_type)

    def create_dataset(self, request: CreateDatasetRequest) -> CreationTask:
        """Ask for a dataset to be created (operation 4, Create a dataset from a data account).

        :param request: what to create; fields that are None are not sent
        :raises AnaplatOutcomeUnknownError: the answer was lost; the dataset may or may not be created
        """
        operation = operations.CREATE_DATASET
        body = record_body(operation, request)
        return self._transport.send(operation, operation.path, partial(validated_task, CreationTask), json=body)

    def list_authorized_datasets(self, user_id: str) -> list[AuthorizedResource]:
        """Return the datasets that a user may access (operation 5).

        :param user_id: the user's id (``uId``)
        """
        return self._send(operations.LIST_AUTHORIZED_DATASETS, ids={"user_id": user_id})

    def list_authorized_pages(self, user_id: str, *, page_type: str | None = None) -> list[AuthorizedResource]:
        """Return the pages that a user may access (operation 6).

        :param user_id: the user's id (``uId``)
        :param page_type: sent as the query parameter ``pgType``; the contract leaves its values open
        """
        params = {"pgType": page_type} if page_type else None
        return self._send(operations.LIST_AUTHORIZED_PAGES, ids={"user_id": user_id}, params=params)

    def list_pages(self) -> list[Page]:
        """Return all dashboard pages (operation 7, List dashboard pages)."""
        return self._send(operations.LIST_PAGES)

    def create_users(
        self,
        users: Sequence[NewUser],
        *,
        user_property_type: int | None = None,
        password_encoding: PasswordEncoding = "plain",
    ) -> CreatedUsers:
        """Create users (operation 8, Create users in bulk).

        :param users: the users; the contract names no limit on their number
        :param user_property_type: sent as ``userPropertyType``; the contract leaves its values open
        :param password_encoding: ``plain``, or ``base64`` of UTF-8, which some deployments want
        :raises AnaplatOutcomeUnknownError: the answer was lost; the users may or may not be created
        """
        body: dict[str, Any] = {"users": [record_body(operations.CREATE_USERS, user) for user in users]}
        if user_property_type is not None:
            body["userPropertyType"] = user_property_type
        passwords = list(secrets_in(body))
        if password_encoding == "base64":
            for user in body["users"]:
                if "password" in user:
                    user["password"] = b64encode(user["password"].encode()).decode()
            passwords += secrets_in(body)
        message = self._send(operations.CREATE_USERS, json=body, secrets=passwords)
        count = re.match(r"\s*(\d[\d,]{0,14})(?![\d,])", message)
        message = shortened(message, (*self._transport.secrets, *passwords), LONGEST_WORDS)
        return CreatedUsers(count=int(count[1].replace(",", "")) if count else None, message=message)

    def get_subscriptions(self, ids: Sequence[str]) -> list[SubscriptionPlan]:
        """Return subscription plans (operation 9, Query subscription plans by id).

        :param ids: ids of the plans (``scId``)
        """
        return self._send(operations.GET_SUBSCRIPTIONS, json={"scIds": list(ids)})

    def find_subscriptions(
        self, ids: Collection[str], known: Lookup[SubscriptionPlan] | None = None
    ) -> Lookup[SubscriptionPlan]:
        """Return subscription plans by their ids (operation 9); one the platform does not know is not there.

        :param ids: ids of the plans (``scId``)
        :param known: an earlier answer; only what has changed since is read again
        """
        found = self._lookup(operations.GET_SUBSCRIPTIONS, "scId", SubscriptionPlan, ids)
        found.read_ahead(ids, known)
        return found

    def _lookup(
        self, operation: Operation[Any], key: str, kind: type[T], ids: Collection[str] | None = None
    ) -> Lookup[T]:
        json = None if ids is None else {"scIds": sorted(ids)}
        records = self._transport.send(
            operation, operation.path, lambda answer: records_by_id(answer, key), json=json
        )
        found = Lookup(records, lambda one: validated_record(kind, one, operation.name, one.get(key)), ids)
        found.clock_ahead = self._transport.clock_difference
        return found

    def _send(
        self,
        operation: Operation[T],
        *,
        ids: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        secrets: Sequence[str] | None = None,
    ) -> T:
        def read(answer: Answer) -> T:
            return validated_answer(operation.answer, answer)

        path = url_path(operation, ids or {})
        return self._transport.send(operation, path, read, json=json, params=params, secrets=secrets)
