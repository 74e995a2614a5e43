"""The rows of a query in code: frames of bounded size, an Arrow stream, or one dataframe."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import closing
from io import BytesIO
from operator import attrgetter
from typing import Any, get_args

import polars as pl

from airflow_provider_anaplat.client.arguments import DataFrameType, OnCastError
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.schema import Caster, arrow_schema, schema_of
from airflow_provider_anaplat.rows.decode import Snapshot
from airflow_provider_anaplat.rows.pages import PageReader, RowQuery

__all__ = [
    "RowStream",
]

log = logging.getLogger(__name__)


class RowStream:
    """Rows of one version of a dataset, typed as in Parquet, to be read once.

    Iterate over it for Polars frames of bounded size, or hand it to whatever reads an Arrow stream
    (``__arrow_c_stream__``), such as DuckDB, pyarrow, Polars or pandas. The first request is sent at once.

    :param client: the platform
    :param query: which rows, and how to ask for them
    :param on_cast_error: ``fail`` at a cell that its column's type cannot hold, or make it ``null``
    :ivar columns: the columns as the platform describes them
    :ivar snapshot: the state of the dataset that all rows are of
    :ivar expected_rows: how many there will be, or, with a filter, how many there can be
    :raises AnaplatRequestError: the query cannot be asked
    :raises AnaplatError: the platform does not answer with success

    Example::

        for frame in AnaplatClient(url, token).rows("ds1"):
            print(frame.height)
    """

    def __init__(self, client: AnaplatClient, query: RowQuery, on_cast_error: OnCastError = "fail") -> None:
        if on_cast_error not in get_args(OnCastError):
            raise AnaplatRequestError(f"on_cast_error is {on_cast_error!r}; it must be fail or null.")
        self._reader = PageReader(client, query)
        self._query = query
        self._nulls_for_errors = on_cast_error == "null"
        self._taken = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns as the platform describes them."""
        return self._reader.columns

    @property
    def snapshot(self) -> Snapshot:
        """The state of the dataset that all rows are of."""
        return self._reader.snapshot

    @property
    def expected_rows(self) -> int:
        """How many rows there will be, or, with a filter, how many there can be."""
        return self._reader.expected_rows

    def __iter__(self) -> Generator[pl.DataFrame]:
        """Yield the rows as frames.

        :raises AnaplatDatasetChangedError: the dataset was updated meanwhile; what was yielded is of the old state
        :raises AnaplatExportError: the rows are not whole, or a cell does not fit its type
        :raises AnaplatRequestError: the rows were read before
        """
        if self._taken:
            raise AnaplatRequestError("A stream of rows can be read once; ask for another one.")
        self._taken = True
        return self._frames()

    def _frames(self) -> Generator[pl.DataFrame]:
        caster = Caster(self.columns, self._query.offset, nulls_for_errors=self._nulls_for_errors)
        with closing(self._reader.pages()) as pages:
            yield from caster.typed(map(attrgetter("frame"), pages))  # which keeps no page that was handed on
        if caster.lost_cells:
            log.warning(
                "Dataset %s: %d cells did not fit their column's type and were read as null",
                self._query.ds_id, caster.lost_cells,
            )  # fmt: skip

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow's C interface; each field's metadata describes its column."""
        from arro3.core import RecordBatchReader

        schema, batches = arrow_schema(self.columns), self._batches()
        try:
            reader = RecordBatchReader.from_batches(schema, batches)
        except TypeError:  # older releases of arro3 take no iterator, but all batches at once
            reader = RecordBatchReader.from_batches(schema, list(batches))
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        from arro3.core import RecordBatch
        from arro3.io import read_ipc_stream

        schema = arrow_schema(self.columns)
        for frame in self:
            # Through IPC, since texts in Polars' own layout are not known to all who read Arrow.
            stream = BytesIO()
            frame.write_ipc_stream(stream, compat_level=pl.CompatLevel.oldest())
            del frame
            stream.seek(0)
            for batch in read_ipc_stream(stream):
                yield RecordBatch.from_arrays([batch.column(n) for n in range(batch.num_columns)], schema=schema)

    def df(self, df_type: DataFrameType = "polars") -> Any:
        """Return all rows as one dataframe, which takes the memory that they need.

        :param df_type: ``polars``, ``pandas`` (with Arrow's types, so that no integer becomes a float when a cell
            is null) or ``arrow``, a table of pyarrow; the latter two have to be installed
        :raises AnaplatRequestError: another word, or what it names is not installed
        :raises AnaplatDatasetChangedError: the dataset was updated meanwhile
        :raises AnaplatExportError: the rows are not whole, or a cell does not fit its type
        """
        if df_type not in get_args(DataFrameType):
            raise AnaplatRequestError(f"df_type is {df_type!r}; it must be one of {get_args(DataFrameType)}.")
        if df_type == "polars":
            return pl.concat([pl.DataFrame(schema=schema_of(self.columns, typed=True)), *self])
        try:
            import pyarrow

            if df_type == "pandas":
                import pandas
        except ImportError as error:
            raise AnaplatRequestError(
                f"df_type={df_type!r} needs {error.name}, which is not installed; install it, or take "
                "df_type='polars'."
            ) from None
        # Batch by batch: an error that goes through Arrow's stream becomes one of pyarrow's.
        batches = map(pyarrow.record_batch, self._batches())
        table = pyarrow.Table.from_batches(batches, pyarrow.schema(arrow_schema(self.columns)))
        return table if df_type == "arrow" else table.to_pandas(types_mapper=pandas.ArrowDtype)
