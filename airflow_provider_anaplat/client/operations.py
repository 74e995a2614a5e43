"""The operation table: what the contract says of each operation, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from airflow_provider_anaplat.client.defaults import REFRESH_PATH, SIGN_IN_PATH, TASK_STATUS_PATH
from airflow_provider_anaplat.client.models import (
    AuthorizedResource,
    Column,
    CreationTask,
    Dataset,
    DatasetData,
    ExistingUsers,
    Page,
    SubscriptionPlan,
    TaskStatus,
)

__all__ = [
    "APPLICATION_TOKEN_HEADER",
    "CREATE_DATASET",
    "CREATE_USERS",
    "EXTENSIONS",
    "GET_COLUMNS",
    "GET_SUBSCRIPTIONS",
    "GET_TASK",
    "GET_USERS",
    "LIST_AUTHORIZED_DATASETS",
    "LIST_AUTHORIZED_PAGES",
    "LIST_CARDS",
    "LIST_DATASETS",
    "LIST_PAGES",
    "MAX_ROWS_PER_CALL",
    "OPERATIONS",
    "PATH_PREFIX",
    "READ_CARD",
    "READ_ROWS",
    "REFRESH_DATASET",
    "SIGN_IN",
    "TOKEN_HEADER",
    "Operation",
    "TokenPlace",
]

T = TypeVar("T")
TokenPlace = Literal["body", "header", "token_header", "query"]

PATH_PREFIX = "/public-api/"
TOKEN_HEADER = "X-Auth-Token"
APPLICATION_TOKEN_HEADER = "token"
MAX_ROWS_PER_CALL = 50_000


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """One operation of the platform.

    :param name: name in logs, errors and metrics
    :param path: path below the base address; ``{…}`` are ids
    :param token_in: where the token goes: the JSON ``body``, or the ``X-Auth-Token`` ``header``. The contract
        never asks for ``token_header``, the application token in a header named ``token``, nor for the ``query``,
        which the logs of servers and proxies keep. None if the body that is given holds all
    :param repeatable: whether sending it twice does no more than sending it once
    :param answer: type of the envelope's ``response``, as pydantic understands it
    :param method: HTTP method; the contract knows POST alone
    :param extension: whether the contract says nothing of it, and public material alone does; such an operation
        is called if the user asks for it, never otherwise
    :param secret: whether the answer holds a secret, so that no message shows anything of it
    """

    name: str
    path: str
    token_in: TokenPlace | None
    repeatable: bool
    answer: type[T]
    method: str = "POST"
    extension: bool = False
    secret: bool = False


GET_COLUMNS = Operation("get_columns", "/public-api/data-source/{ds_id}/columns", "header", True, list[Column])
LIST_DATASETS = Operation("list_datasets", "/public-api/data-source/list", "body", True, list[Dataset])
READ_ROWS = Operation("read_rows", "/public-api/data-source/{ds_id}/data", "header", True, DatasetData)
CREATE_DATASET = Operation(
    "create_dataset", "/public-api/data-source/create-from-account", "body", False, CreationTask
)
LIST_AUTHORIZED_DATASETS = Operation(
    "list_authorized_datasets",
    "/public-api/user/{user_id}/get-authorized-datasets",
    "body",
    True,
    list[AuthorizedResource],
)
LIST_AUTHORIZED_PAGES = Operation(
    "list_authorized_pages",
    "/public-api/user/{user_id}/get-authorized-pages",
    "body",
    True,
    list[AuthorizedResource],
)
LIST_PAGES = Operation("list_pages", "/public-api/page/list", "body", True, list[Page])
CREATE_USERS = Operation("create_users", "/public-api/users/add", "body", False, str)
GET_SUBSCRIPTIONS = Operation(
    "get_subscriptions", "/public-api/schedule/fetch-by-ids", "body", True, list[SubscriptionPlan]
)
GET_USERS = Operation("get_users", "/public-api/users/get", "body", True, ExistingUsers, extension=True)
# Where most platforms of this family have it; a connection's extras may say otherwise.
REFRESH_DATASET: Operation[object] = Operation(
    "refresh_dataset", REFRESH_PATH.replace("{dsId}", "{ds_id}"), "body", False, object, extension=True
)
GET_TASK = Operation("get_task", TASK_STATUS_PATH, "query", True, TaskStatus, "GET", extension=True)

OPERATIONS = (
    GET_COLUMNS,
    LIST_DATASETS,
    READ_ROWS,
    CREATE_DATASET,
    LIST_AUTHORIZED_DATASETS,
    LIST_AUTHORIZED_PAGES,
    LIST_PAGES,
    CREATE_USERS,
    GET_SUBSCRIPTIONS,
)
# Sent twice, the second token displaces the first, whose answer was lost: nothing that hurts.
SIGN_IN = Operation("sign_in", SIGN_IN_PATH, "body", True, object, extension=True, secret=True)
READ_CARD: Operation[object] = Operation(
    "read_card", "/public-api/card/{card_id}/data", "header", True, object, extension=True
)
LIST_CARDS: Operation[object] = Operation(
    "list_cards", "/public-api/page/{page_id}", "token_header", True, object, "GET", extension=True
)
EXTENSIONS = (GET_USERS, REFRESH_DATASET, GET_TASK, READ_CARD, LIST_CARDS, SIGN_IN)
