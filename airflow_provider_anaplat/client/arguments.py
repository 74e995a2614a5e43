"""What the arguments of a client must be: one of another kind is named, before anything is sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from os import PathLike
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, get_args, get_type_hints

from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser
from airflow_provider_anaplat.client.operations import TokenPlace
from airflow_provider_anaplat.client.tasks import RefreshCall
from airflow_provider_anaplat.errors import AnaplatRequestError, AnaplatSettingsError

__all__ = [
    "DataFrameType",
    "OnCastError",
    "PasswordEncoding",
    "RowOptions",
    "SortType",
    "checked_arguments",
]

C = TypeVar("C", bound=type)
SortType = Literal["asc", "desc"]
PasswordEncoding = Literal["plain", "base64"]
OnCastError = Literal["fail", "null"]
DataFrameType = Literal["polars", "pandas", "arrow"]


class RowOptions(TypedDict, total=False):
    """The fields of :class:`~airflow_provider_anaplat.rows.pages.RowQuery` beside the dataset."""

    sort_by: str | None
    sort_type: SortType
    filter: Mapping[str, Any] | None
    page_size: int
    concurrency: int
    max_rows: int | None
    offset: int
    memory_mb: int


class _Kind(NamedTuple):
    what: str
    fits: Callable[[Any], bool]


def _is(what: str, *types: type) -> _Kind:
    # True is an int, and nobody who writes it means 1.
    return _Kind(what, lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool)))


def _list_of(what: str, kind: type) -> _Kind:
    def fits(value: Any) -> bool:
        is_list = isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | Mapping)
        return is_list and all(isinstance(item, kind) for item in value)

    return _Kind(f"a list of {what}", fits)


def _one_of(words: Any, *others: Any) -> _Kind:
    known = (*get_args(words), *others)
    return _Kind(
        f"one of {', '.join(map(str, known))}", lambda value: any(value is word or value == word for word in known)
    )


def _is_query(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    lists = [item if isinstance(item, list | tuple) else [item] for item in value.values()]
    return all(isinstance(name, str) for name in value) and not any(
        isinstance(item, Mapping | list | tuple | bytes) for items in lists for item in items
    )


_FROM_TEMPLATE = "; a template gives one if the DAG has render_template_as_native_obj=True"
_TEXT = _is("a text", str)
_WHOLE = _is("a whole number", int)
_SECONDS = _is("a number of seconds", int, float)
_YES_OR_NO = _is("True or False", bool)
_OBJECT = _is(f"an object{_FROM_TEMPLATE}", Mapping)
_OBJECTS = _list_of(f"objects{_FROM_TEMPLATE}", Mapping)
_QUERY = _Kind("an object of texts, numbers and lists of them", _is_query)
_TEXTS = _list_of("texts", str)
_PROXIES = _Kind(
    "an object of texts",
    lambda value: isinstance(value, Mapping) and all(isinstance(text, str | None) for text in value.values()),
)
_FILES = _Kind(
    "a path, or a pair of paths",
    lambda value: all(
        isinstance(path, str | PathLike) for path in (value if isinstance(value, tuple) else (value,))
    ),
)

# By name, or by method and name. None is right where it is the default.
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("ds_id", "user_id", "card_id", "page", "name", "path", "method"), _TEXT),
    **dict.fromkeys(("sort_by", "page_type", "df_type", "on_cast_error"), _TEXT),
    **dict.fromkeys(("offset", "limit", "most", "user_property_type", "page_size", "concurrency"), _WHOLE),
    **dict.fromkeys(("max_rows", "memory_mb"), _WHOLE),
    **dict.fromkeys(("raw", "repeatable"), _YES_OR_NO),
    **dict.fromkeys(("filter", "json", "body", "call"), _OBJECT),
    **dict.fromkeys(("filters", "dynamic_params"), _OBJECTS),
    **dict.fromkeys(("ds_ids", "ids", "login_ids"), _TEXTS),
    "params": _QUERY,
    "sort_type": _one_of(SortType),
    "password_encoding": _one_of(PasswordEncoding),
    "token_in": _one_of(TokenPlace, None),
    "view": _one_of(Literal["GRAPH", "GRID"]),
    "known": _is("an earlier answer", Lookup),
    "read": _Kind("a function", callable),
    "request": _is("a CreateDatasetRequest", CreateDatasetRequest),
    "refresh_dataset.call": _is("a RefreshCall", RefreshCall),
    "users": _list_of("NewUser", NewUser),
    # Of the client itself.
    **dict.fromkeys(("base_url", "token", "user_token", "login", "user_password", "sign_in_path"), _TEXT),
    **dict.fromkeys(("connect_timeout", "read_timeout"), _SECONDS),
    **dict.fromkeys(("max_retries", "max_connections", "max_answer_mb"), _WHOLE),
    "verify": _is("True, False or a path", bool, str, PathLike),
    "cert": _FILES,
    "proxies": _PROXIES,
    **dict.fromkeys(("task_status", "sign_in_body"), _is("an object", Mapping)),
    "observer": _Kind("a function", callable),
}  # fmt: skip


def checked_arguments(client: C) -> C:
    """Have a class look at the arguments of its methods, as far as the table names them.

    Whatever is of another kind would otherwise end in an error of Python's, some of them after a request.
    """
    for name, method in list(vars(client).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(client, name, _checked(method))
    return client


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    may_be_none = {name for name, parameter in signature.parameters.items() if parameter.default is None}
    if "query" in signature.parameters:
        may_be_none |= {name for name, kind in get_type_hints(RowOptions).items() if type(None) in get_args(kind)}

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in {**given, **given.get("query", {})}.items():
            kind = _KINDS.get(f"{method.__name__}.{name}") or _KINDS.get(name)
            if kind is not None and not kind.fits(value) and not (value is None and name in may_be_none):
                raise _wrong_kind(method.__name__, name, value, kind)
        return method(*args, **kwargs)

    return checked


def _wrong_kind(method: str, name: str, value: Any, kind: _Kind) -> AnaplatRequestError:
    shown = "None" if value is None else f"a {type(value).__name__}"  # never a value, which may be a secret
    if method == "__init__":
        return AnaplatSettingsError(f"{name} is {shown} and must be {kind.what}.")
    return AnaplatRequestError(f"{method}: {name} is {shown} and must be {kind.what}. Nothing was sent.")
