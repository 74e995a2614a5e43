"""The hook: from an Airflow connection to a client of the platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from airflow_provider_anaplat import connection_form
from airflow_provider_anaplat._airflow.metrics import AirflowMetrics
from airflow_provider_anaplat._airflow.releases import BaseHook, connection_and_extra
from airflow_provider_anaplat._airflow.shared_token import AskedOnLoop, SharedInVariable
from airflow_provider_anaplat.client.names import check_one_given
from airflow_provider_anaplat.errors import AnaplatSettingsError
from airflow_provider_anaplat.hooks.layers import try_layers
from airflow_provider_anaplat.hooks.settings import client_arguments, option_value
from airflow_provider_anaplat.option_values import without_login

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.arguments import DataFrameType, OnCastError, RowOptions
    from airflow_provider_anaplat.client.sign_in import TokenStore
    from airflow_provider_anaplat.rows.stream import RowStream

__all__ = [
    "AnaplatHook",
]


class AnaplatHook(BaseHook):
    """Holds the connection to the platform.

    Host: the platform's address, with or without scheme (https by default), port and path prefix.
    Password: the application token. Login: empty, or the loginId of a user to sign in (an extension).
    The extras are the rows of
    :data:`~airflow_provider_anaplat.connection_form.OPTIONS`.

    :param anaplat_conn_id: id of the Airflow connection
    """

    conn_name_attr = "anaplat_conn_id"
    default_conn_name = "anaplat_default"
    conn_type = "anaplat"
    hook_name = "Anaplat"

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the connection form's fields, for Airflow before 3.2; newer ones read the provider's metadata."""
        return connection_form.widgets()

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return what the connection form makes of Airflow's own fields, for Airflow before 3.2."""
        return connection_form.field_behaviour()

    def __init__(self, anaplat_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.anaplat_conn_id = anaplat_conn_id
        self._client: AnaplatClient | None = None

    def get_conn(self) -> AnaplatClient:
        """Return the client, the same one at each call.

        :raises AnaplatSettingsError: the connection lacks a host or a token, or has an unusable extra
        """
        if self._client is None:
            connection = self.get_connection(self.anaplat_conn_id)
            store = SharedInVariable(connection.password or "")
            self._client = _client(self.anaplat_conn_id, connection, connection.extra_dejson, store)
        return self._client

    def rows(
        self,
        ds_id: str | None = None,
        *,
        dataset: str | None = None,
        on_cast_error: OnCastError = "fail",
        **query: Unpack[RowOptions],
    ) -> RowStream:
        """Return rows of a dataset as a stream of one version (contract: operation 3).

        :param ds_id: id of the dataset
        :param dataset: its name, or the id of its directory, a slash and its name, in place of the id
        :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
        :param query: the other fields of :class:`~airflow_provider_anaplat.rows.pages.RowQuery`: ``sort_by``,
            ``sort_type``, ``filter``, ``offset``, ``max_rows``, ``memory_mb``, ``page_size``, ``concurrency``
        :returns: Polars frames to iterate over, and a stream for whatever reads Arrow
        :raises AnaplatRequestError: an argument of the query cannot work; nothing was sent
        :raises AnaplatError: the platform does not answer with success

        How-to: :doc:`howto/rows-in-code`. Example::

            rows = AnaplatHook().rows("ds1")
            duckdb.sql("select city, sum(amount) from rows group by city")
        """
        check_one_given(ds_id, dataset)
        client = self.get_conn()
        found = ds_id or client.find_dataset(dataset or "").ds_id
        stream: RowStream = client.rows(found, on_cast_error=on_cast_error, **query)
        return stream

    def get_df(
        self,
        ds_id: str | None = None,
        df_type: DataFrameType = "polars",
        *,
        dataset: str | None = None,
        on_cast_error: OnCastError = "fail",
        **query: Unpack[RowOptions],
    ) -> Any:
        """Return rows of a dataset as one dataframe (contract: operation 3).

        :param ds_id: id of the dataset
        :param df_type: ``polars``, ``pandas`` (with Arrow's types) or ``arrow``, a table of pyarrow; pandas and
            pyarrow have to be installed for the latter two
        :param dataset: its name, or the id of its directory, a slash and its name, in place of the id
        :param on_cast_error: as in :meth:`rows`, like the fields of ``query``
        :raises AnaplatDatasetChangedError: the dataset was updated meanwhile; a retry of the task reads it again
        :raises AnaplatError: the platform does not answer with success

        How-to: :doc:`howto/rows-in-code`. Example::

            sales = AnaplatHook().get_df("ds1", df_type="pandas")
        """
        return self.rows(ds_id, dataset=dataset, on_cast_error=on_cast_error, **query).df(df_type)

    def get_extension(self, name: str) -> str | None:
        """Return an extra that says where the deployment has an operation that the contract does not describe.

        :param name: of an option that operators read, in
            :data:`~airflow_provider_anaplat.connection_form.OPTIONS`
        :returns: its value, or its default
        :raises AnaplatSettingsError: it is unusable
        """
        value = option_value(name, self.get_connection(self.anaplat_conn_id).extra_dejson)
        return None if value is None else str(value)

    def web_address(self, key: str, **ids: str) -> str:
        """Return the address of a dataset or a page in the platform's web interface (an extension).

        :param key: the extra that holds its template, ``dataset_url`` or ``page_url``
        :param ids: what stands for the names in braces: ``dirId`` and ``dsId``, or ``pgId``
        :returns: the address, without the user and the password that its template may hold
        :raises AnaplatSettingsError: the connection has no usable address or template
        """
        connection = self.get_connection(self.anaplat_conn_id)
        quoted = {name: quote(value, safe="") for name, value in ids.items()}
        template: str = option_value(key, connection.extra_dejson)
        try:
            return without_login(template.format(base_url=_base_url(connection), **quoted))
        except ValueError as error:
            raise AnaplatSettingsError(f"The connection's extra {key!r} is unusable: {error}.") from None

    def base_url(self) -> str:
        """Return the platform's address.

        :raises AnaplatSettingsError: the connection has no usable address
        """
        return _base_url(self.get_connection(self.anaplat_conn_id))

    @classmethod
    async def get_async_conn(cls, anaplat_conn_id: str) -> AnaplatClient:
        """Return a client, for a trigger: everything of Airflow's is asked for on the event loop.

        The client's methods block: run them in a thread, where they call nothing of Airflow.
        """
        connection, extra = await connection_and_extra(cls, anaplat_conn_id)
        store = AskedOnLoop(SharedInVariable(connection.password or ""))
        return _client(anaplat_conn_id, connection, extra, store)

    def test_connection(self) -> tuple[bool, str]:
        """Try each layer, up to the token in the header, and say which are good; change nothing."""
        return try_layers(self.get_conn)


def _client(conn_id: str, connection: Any, extra: dict[str, Any], store: TokenStore) -> AnaplatClient:
    from airflow_provider_anaplat.client import AnaplatClient

    return AnaplatClient(**_arguments(connection, extra), token_store=store, observer=AirflowMetrics(conn_id))


def _base_url(connection: Any) -> str:
    from airflow_provider_anaplat.client._http.checks import checked_base_url

    return checked_base_url(_arguments(connection, connection.extra_dejson)["base_url"])


def _arguments(connection: Any, extra: dict[str, Any]) -> dict[str, Any]:
    return client_arguments(
        host=connection.host,
        schema=connection.schema,
        port=connection.port,
        password=connection.password,
        login=connection.login,
        extra=extra,
    )
