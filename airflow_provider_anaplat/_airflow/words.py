"""The arguments that take one of a few words, and the check of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_anaplat._airflow.releases import AirflowFailException

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
# If it is, the connection says it, or the contract does.
_MAY_BE_LEFT_OUT = ("token_in",)


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
