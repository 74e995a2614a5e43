"""The arguments that take one of a few words, or a value of one kind, and the check of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.client._http.redaction import without_half_characters
from airflow_provider_anaplat.waiting.states import is_list_of_texts

WORDS = {
    "csv_formulas": ("keep", "escape"),
    "encoding": ("utf-8", "utf-8-sig", "gb18030"),
    "existing_users": ("error", "skip"),
    "if_exists": ("reuse", "fail", "create"),
    "if_unchanged": ("export", "skip", "return"),
    "if_running": ("follow", "fail", "request"),
    "in_doubt": ("fail", "resend"),
    "mode": ("replace", "append", "upsert"),
    "on_cast_error": ("fail", "null"),
    "on_change": ("restart", "fail"),
    "on_changes": ("pass", "fail"),
    "on_rejected": ("fail", "report"),
    "on_user_error": ("fail", "report"),
    "password_encoding": ("plain", "base64"),
    "probe": ("list", "task"),
    "sort_type": ("asc", "desc"),
    "token_in": ("body", "header", "token_header", "query"),
    "unknown_state": ("wait", "fail"),
    "view": ("GRAPH", "GRID"),
}
_LEFT_OUT = object()
_TEXTS = (
    "account_id", "anaplat_conn_id", "dataset", "delimiter", "ds_id", "file_format", "folder", "method", "name",
    "name_pattern", "parent_dir_id", "path", "platform_task_id", "schema", "sort_by", "source_type", "sql_conn_id",
    "table", "users_sql",
)  # fmt: skip
_NUMBERS = (
    "batch_size", "concurrency", "max_poll_failures", "max_restarts", "max_rows", "memory_mb", "page_size",
    "partitions", "rows_per_file",
)  # fmt: skip
# A text such as "false", which a template gives, would count as true.
_FLAGS = ("allow_extra", "header", "isolate_rejected", "raw", "repeatable", "wait_for_completion")
_LISTS = ("page_types", "states", "user_ids")
_OBJECTS = ("body", "extra_fields", "json", "query", "task_status")
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_TEXTS, ("text", lambda value: isinstance(value, str))),
    **dict.fromkeys(
        _NUMBERS, ("whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
    ),
    **dict.fromkeys(_FLAGS, ("flag, True or False", lambda value: isinstance(value, bool))),
    **dict.fromkeys(_LISTS, ("list of texts", is_list_of_texts)),
    **dict.fromkeys(
        _OBJECTS,
        (
            "mapping with texts for keys; a template gives one if the DAG has render_template_as_native_obj=True",
            lambda value: isinstance(value, Mapping) and is_list_of_texts(value),
        ),
    ),
}
# If it is, the connection says it, or the contract does, or nothing has to; or another check names the field.
_MAY_BE_LEFT_OUT = (
    "account_id", "body", "dataset", "ds_id", "extra_fields", "file_format", "folder", "json", "max_rows",
    "method", "name", "name_pattern", "parent_dir_id", "path", "platform_task_id", "query", "rows_per_file",
    "schema", "sort_by", "source_type", "sql_conn_id", "states", "task_status", "token_in", "users_sql",
)  # fmt: skip


def check_words(task: Any, names: Iterable[str] = WORDS) -> None:
    """See that each argument of a task that takes a word has a known one; templates are rendered by then.

    :param task: an operator or a sensor; its ``more_words`` are those that it knows beyond the table
    :param names: which arguments to look at
    :raises AirflowFailException: one has another word, which a retry would not mend
    """
    more: Mapping[str, Sequence[str]] = getattr(task, "more_words", {})
    for name in names:
        known = (*WORDS[name], *more.get(name, ()))
        word = getattr(task, name, known[0])
        if word not in known and not (word is None and name in _MAY_BE_LEFT_OUT):
            raise AirflowFailException(
                f"{name} is {word!r}; it must be one of {', '.join(known)}. Nothing was sent."
            )


def check_kinds(task: Any) -> None:
    """See that each argument of a task is of the kind that it takes; templates are rendered by then.

    :param task: an operator or a sensor
    :raises AirflowFailException: one has another kind of value, which a retry would not mend
    """
    for name, (what, fits) in _KINDS.items():
        value = getattr(task, name, _LEFT_OUT)
        if value is _LEFT_OUT or (value is None and name in _MAY_BE_LEFT_OUT):
            continue
        if not fits(value):
            problem = f"is of the type {type(value).__name__}"
        elif isinstance(value, str) and without_half_characters(value) != value:
            problem = "holds half of a character (an unpaired surrogate)"
        else:
            continue
        raise AirflowFailException(f"{name} {problem}; it must be a {what}. Nothing was sent.")
