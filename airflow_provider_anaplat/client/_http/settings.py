"""How a client reaches the platform, as its transport takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_anaplat.client.metrics import Observer
from airflow_provider_anaplat.client.sign_in import TokenStore
from airflow_provider_anaplat.client.tasks import TaskStatusCall
from airflow_provider_anaplat.errors import AnaplatRequestError, AnaplatSettingsError


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach the platform; what each means is said at :class:`AnaplatClient`."""

    base_url: str
    token: str = field(repr=False)
    user_token: str | None = field(repr=False)
    connect_timeout: float
    read_timeout: float
    max_retries: int
    max_connections: int | None
    max_answer_mb: int
    verify: bool | str
    cert: str | tuple[str, str] | None
    proxies: Mapping[str, str] | None = field(repr=False)
    task_status: Mapping[str, Any] | None
    login: str | None
    user_password: str | None = field(repr=False)
    sign_in_path: str
    sign_in_body: Mapping[str, Any]
    token_store: TokenStore | None = field(repr=False, compare=False)
    observer: Observer | None = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            TaskStatusCall.of(self.task_status)  # else it would be seen after a refresh is asked for
        except AnaplatRequestError as error:
            raise AnaplatSettingsError(f"The connection's extra `task_status`: {error}") from None
