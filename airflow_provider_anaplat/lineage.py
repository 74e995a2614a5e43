"""OpenLineage: what tasks tell Airflow's OpenLineage provider, if it is installed and on.

Its listener asks a task that has ended, in the process that ran it. Until then, nothing of OpenLineage is
imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_anaplat.assets import dataset_uri

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import DatasetFacet

    from airflow_provider_anaplat.client.models import Column

__all__ = [
    "Name",
    "convert_asset_to_openlineage",
    "lineage_of_dataset",
    "lineage_of_rows",
    "name_of_dataset",
    "name_of_file",
    "name_of_table",
]

# Protocols that OpenLineage names differently.
_NAMED_OTHERWISE = {"gcs": "gs", "s3a": "s3", "s3n": "s3"}


class Name(NamedTuple):
    """How OpenLineage names a dataset, whoever's it is."""

    namespace: str
    name: str


def name_of_dataset(base_url: str, ds_id: str) -> Name:
    """Return the name of a dataset of the platform: that of its asset's URI.

    :param base_url: the platform's address
    :param ds_id: id of the dataset
    """
    parts = urlsplit(base_url)
    return _name_of_uri(dataset_uri(parts.netloc.rpartition("@")[2] + parts.path, ds_id))


def name_of_file(path: str) -> Name:
    """Return the name of a file or folder.

    :param path: a local path, or the URL of an object, whose connection id is left out
    """
    protocol, separator, rest = path.partition("://")
    if not separator or protocol == "file":
        local = rest.removeprefix("localhost") if separator else path
        return Name("file", str(Path(local).absolute()))
    bucket, _, key = rest.partition("/")
    return Name(f"{_NAMED_OTHERWISE.get(protocol, protocol)}://{bucket.rpartition('@')[2]}", key.strip("/"))


def name_of_table(hook: Any, connection: Any, schema: str | None, table: str) -> Name | None:
    """Return the name of a table; None if the database's hook does not say how OpenLineage names it.

    :param hook: the database's hook
    :param connection: its Airflow connection
    :param schema: the table's schema, or in MySQL its database; by default the connection's own
    :param table: name of the table
    """
    database = hook.get_openlineage_database_info(connection)
    if database is None:
        return None
    namespace = f"{database.scheme}://{database.authority}" if database.authority else database.scheme
    # Databases without schemas, such as MySQL, have no default one.
    schema = schema or hook.get_openlineage_default_schema() or connection.schema
    return Name(namespace, ".".join(part for part in (database.database, schema, table) if part))


def lineage_of_rows(
    source: Name,
    target: Name | None,
    result: Mapping[str, Any],
    columns: Sequence[Column],
    declared: Iterable[Any],
) -> OperatorLineage[Any, Any]:
    """Return that rows of a dataset went to a file or a table.

    :param source: the dataset
    :param target: where they went
    :param result: what the task returned
    :param columns: those that were read; none if an earlier attempt has read them
    :param declared: the task's outlets, which count if the target has no name
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    inputs = [InputDataset(*source, facets={**_schema(columns), **_version(result)})]
    if target is None:
        return OperatorLineage(inputs=inputs, outputs=_translated(declared))
    facets = _columns_from(source, columns)
    output = OutputDataset(*target, facets=facets, outputFacets=_statistics(result) if columns else {})
    return OperatorLineage(inputs=inputs, outputs=[output])


def lineage_of_dataset(
    dataset: Name, title: str | None, *, created: bool, query: str | None, declared: Iterable[Any]
) -> OperatorLineage[Any, Any]:
    """Return that the platform has created or updated a dataset.

    :param dataset: the dataset
    :param title: its name on the platform
    :param created: whether it was created
    :param query: the SQL that the platform runs, if it is known
    :param declared: the task's inlets: what the platform reads is not known here
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import documentation_dataset, lifecycle_state_change_dataset, sql_job

    facets: dict[str, DatasetFacet] = {}
    if title:
        facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(description=title)
    if created:
        change = lifecycle_state_change_dataset.LifecycleStateChange.CREATE
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(change)
    return OperatorLineage(
        inputs=_translated(declared),
        outputs=[OutputDataset(*dataset, facets=facets)],
        job_facets={"sql": sql_job.SQLJobFacet(query)} if query else {},
    )


def convert_asset_to_openlineage(asset: Any, lineage_context: Any) -> Dataset:  # noqa: ARG001 - Airflow gives it
    """Return what OpenLineage calls the asset of a dataset.

    :param asset: an asset whose URI has the scheme ``anaplat``
    :param lineage_context: what names the asset in Airflow's hook lineage; not needed
    """
    from openlineage.client.event_v2 import Dataset

    return Dataset(*_name_of_uri(asset.uri))


def _name_of_uri(uri: str) -> Name:
    parts = urlsplit(uri)
    return Name(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/"))


def _translated(assets: Iterable[Any]) -> list[Dataset]:
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    found = [translate_airflow_asset(asset, None) for asset in assets]
    return [dataset for dataset in found if dataset is not None]


def _schema(columns: Sequence[Column]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(column.name, column.fd_type, column.annotation)
        for column in columns
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields)} if fields else {}


def _version(result: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import dataset_version_dataset

    version = result["utime"] if result["version"] is None else result["version"]
    return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(str(version))} if version else {}


def _columns_from(source: Name, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the columns that were written, each with the one that it was read from.

    Their types are the target's own, and not known here.
    """
    from openlineage.client.facet_v2 import column_lineage_dataset, schema_dataset

    from airflow_provider_anaplat.output.schema import unique_names

    if not columns:
        return {}
    read = [column.name for column in columns]
    written = unique_names(read)
    lineage = {
        name: column_lineage_dataset.Fields(
            inputFields=[column_lineage_dataset.InputField(*source, field=original)]
        )
        for name, original in zip(written, read, strict=True)
    }
    fields = [schema_dataset.SchemaDatasetFacetFields(name) for name in written]
    return {
        "schema": schema_dataset.SchemaDatasetFacet(fields),
        "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet(fields=lineage),
    }


def _statistics(result: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    counted = statistics.OutputStatisticsOutputDatasetFacet(result["rows"], result.get("bytes"))
    return {"outputStatistics": counted}
