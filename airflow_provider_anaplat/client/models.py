"""The contract's records: attributes are the platform's field names in snake_case, unknown fields are kept."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from airflow_provider_anaplat.client.values import Count, EpochMillis, Id, Int64, Items, TaskId, Timestamp

__all__ = [
    "AuthorizedResource", "Card", "Column", "ColumnGroup", "Consolidation", "CreateDatasetRequest",
    "CreatedUsers", "CreationTask", "Cron", "Dataset", "DatasetData", "ExistingUsers", "GrantingSubject",
    "IncrementalUpdate", "NewUser", "NoticeConfig", "Page", "PageSettings", "RealTimeUpdate", "SubscriptionCron",
    "SubscriptionPlan", "TableQuery", "TaskStatus", "UserRecord",
]  # fmt: skip

_LONGEST = 1_000  # characters of a text in a summary


class _Record(BaseModel):
    """Base of all records; ``model_dump(mode="json", by_alias=True)`` gives the platform's own shape."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="allow",
        frozen=True,
        arbitrary_types_allowed=True,
        # Validation errors reach logs; the values could be anything a user stored on the platform.
        hide_input_in_errors=True,
    )


def _short(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what an XCom and a trigger's event can hold; no id and no name is meant to be longer."""
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in summary.items()}


class ColumnGroup(_Record):
    """One group of a grouped column."""

    group_name: str | None = None
    selected_values: Items[str] | None = None
    is_other_group: bool | None = None


class Consolidation(_Record):
    """The grouping definition of a grouped column."""

    source_fd_id: str | None = None
    source_name: str | None = None
    display_all_others: str | None = None
    source_fd_type: str | None = None
    group_type: str | None = None
    groups: Items[ColumnGroup] | None = None


class Column(_Record):
    """A column of a dataset."""

    name: str
    fd_type: str
    alias: str | None = None
    ds_id: str | None = None
    fd_id: str | None = None
    meta_type: str | None = None
    seq_no: int | None = None
    is_aggregated: bool | None = None
    calculation_type: str | None = None
    level: str | None = None
    annotation: str | None = None
    fd_group_id: str | None = None
    is_detection_sensitive: bool | None = None
    is_sensitive: bool | None = None
    is_restricted: bool | None = None
    formula: str | None = None
    base_fd_type: str | None = None
    consolidation: Consolidation | None = None


class _DatasetFields(_Record):
    """What the dataset list and the dataset data have in common."""

    ds_id: Id
    name: str | None = None
    display_type: str | None = None
    dom_id: str | None = None
    u_id: str | None = None
    parent_dir_id: str | None = None
    row_count: Count | None = None
    col_count: Count | None = None
    status: str | None = None
    ctime: Timestamp = None
    utime: Timestamp = None
    card_count: int | None = None


class Dataset(_DatasetFields):
    """An item of the dataset list."""

    config: dict[str, Any] | None = None

    def summary(self) -> dict[str, Any]:
        """Return what a DAG wants to know of the dataset, as plain JSON under the platform's names."""
        fields = {"ds_id", "name", "parent_dir_id", "status", "row_count", "col_count", "ctime", "utime"}
        return _short(self.model_dump(mode="json", by_alias=True, include=fields))


class DatasetData(_DatasetFields):
    """Rows of a dataset with its columns: each row is a list of texts or None, one per column."""

    columns: Items[Column]
    # Some releases name it `data`.
    preview: Items[Items[str | None]] = Field(validation_alias=AliasChoices("preview", "data"))
    storage_id: str | None = None
    version: Int64 | None = None


class Cron(_Record):
    """When the platform updates a dataset."""

    cron_type: str
    value: str | None = None


class TableQuery(_Record):
    """What the platform reads from the data account."""

    query_type: str | None = None
    table: str | None = None
    query: str | None = None


class RealTimeUpdate(_Record):
    """Whether and how often, in seconds, the platform re-reads the source."""

    enabled: bool | None = None
    interval: int | None = None
    disable_cache: bool | None = None


class IncrementalUpdate(_Record):
    """Incremental update of a dataset that the platform indexes itself."""

    enabled: bool | None = None
    query: str | None = None


class CreateDatasetRequest(_Record):
    """Body of a dataset creation, without the token; fields that are None are not sent.

    Fields the contract does not show may be given under the platform's own names.
    """

    ac_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    table_query: TableQuery
    source_type: str = "DIRECT_CONNECT_DATABASE"
    parent_dir_id: str | None = None
    cron: Cron | None = None
    real_time_update_setting: RealTimeUpdate | None = None
    primary_key_columns: Items[str] | None = None
    platform_index_incremental_update_setting: IncrementalUpdate | None = None


class TaskStatus(_Record):
    """What the platform says of one of its tasks; ``result`` may be an object with an ``error``."""

    task_id: TaskId | None = None
    status: str | None = None
    result: str | dict[str, Any] | None = None

    @property
    def error(self) -> str | None:
        """What failed, if ``result`` is an object that says so."""
        error = self.result.get("error") if isinstance(self.result, dict) else None
        return str(error) if error else None

    @property
    def words(self) -> list[str]:
        """What is said in a word, to be looked up in a table of states: ``status`` first."""
        return [word for word in (self.status, self.result) if isinstance(word, str) and word.strip()]


class CreationTask(TaskStatus):
    """The platform's answer to a dataset creation; ``result`` 处理中 means that it still works on it."""

    ds_id: Id


class GrantingSubject(_Record):
    """A user or group from whom a right on a resource comes."""

    id: str | None = None
    name: str | None = None
    is_self: bool | None = None


class AuthorizedResource(_Record):
    """A dataset or page that a user may access, and why."""

    id: str
    name: str | None = None
    sources: Items[GrantingSubject] | None = None
    is_owner: bool | None = None
    is_inherit: bool | None = None
    can_export: bool | None = None
    description: str | None = None


class PageSettings(_Record):
    """Who may see a page, and where."""

    authorized: bool | None = None
    authorized_on_pc: bool | None = Field(default=None, alias="authorizedOnPC")
    authorized_on_mobile: bool | None = None
    inherit_auth: bool | None = None
    description_visible: bool | None = None


class Page(_Record):
    """A dashboard page."""

    # Some releases name it `id`.
    pg_id: str = Field(validation_alias=AliasChoices("pgId", "id"))
    dom_id: str | None = None
    name: str | None = None
    u_id: str | None = None
    pg_type: str | None = None
    description: str | None = None
    parent_dir_id: str | None = None
    ctime: Timestamp = None
    settings: PageSettings | None = None
    is_del: bool | None = None
    meta: PageSettings | None = None


class Card(_Record):
    """A card of a page, as the extension that lists them finds it."""

    cd_id: str
    name: str | None = None
    cd_type: str | None = None


class NewUser(_Record):
    """A user to be created; unlike the other records, it takes the contract's fields alone."""

    model_config = ConfigDict(extra="forbid", strict=True)

    login_id: str = Field(min_length=1, pattern=r"\S")
    name: str | None = None
    password: str | None = Field(default=None, repr=False)
    role: str | None = None
    email: str | None = None
    mobile: str | None = None
    enabled: bool | None = None
    user_group_ids: Items[str] | None = None
    user_defined_properties: dict[str, str] | None = None


class CreatedUsers(_Record):
    """The platform's answer to a bulk creation of users.

    :ivar count: how many users the platform says it created; None if its message names no number
    :ivar message: the platform's message
    """

    count: int | None
    message: str


class ExistingUsers(_Record):
    """The answer to the extension ``users/get``: which of the loginIds asked for exist."""

    user_exist: Items[str]


class UserRecord(_Record):
    """A user as the platform describes the creator of a resource."""

    id: int | None = None
    u_id: str | None = None
    name: str | None = None
    mobile: str | None = None
    email: str | None = None
    login_id: str | None = None
    dom_id: str | None = None
    role: Items[str] | None = None
    last_login_time: Timestamp = None
    pwd_version: int | None = None
    enabled: bool | None = None
    ctime: Timestamp = None
    is_del: bool | None = None


class SubscriptionCron(_Record):
    """When a subscription is sent; ``value`` is JSON text with minutes and hours."""

    cron_type: str | None = None
    value: str | None = None


class NoticeConfig(_Record):
    """How the recipients are notified."""

    id: str | None = None
    priority: str | None = None
    title_enabled: bool | None = None
    content_enabled: bool | None = None


class SubscriptionPlan(_Record):
    """A subscription plan; the contract makes every field optional."""

    dom_id: str | None = None
    resource_id: str | None = None
    sc_id: str | None = None
    sc_type: str | None = None
    msg_type: str | None = None
    name: str | None = None
    trigger_type: str | None = None
    cron: SubscriptionCron | None = None
    enabled: bool | None = None
    last_send_type: str | None = None
    last_send_time: EpochMillis = None
    last_send_status: str | None = None
    notice_config: NoticeConfig | None = None
    creator: UserRecord | None = None

    def summary(self) -> dict[str, Any]:
        """Return what a DAG wants to know of the plan's last send, as plain JSON under the platform's names."""
        fields = {"sc_id", "name", "sc_type", "resource_id", "last_send_time", "last_send_status"}
        return _short(self.model_dump(mode="json", by_alias=True, include=fields))
