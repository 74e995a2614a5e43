"""The table of commands: the parser, Airflow's own command line and the documents are made of it.

It is read at every start and by Airflow's command line, so it imports nothing but what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "COMMANDS",
    "CONNECTION",
    "JSON",
    "Argument",
    "Command",
    "Group",
    "arguments_of",
]


@dataclass(frozen=True)
class Argument:
    """An argument of a command.

    :param flags: its name, or its options
    :param help: what it does
    :param options: the rest, as argparse takes it
    :param completes: of what a shell may complete it with the ids and names
    """

    flags: tuple[str, ...]
    help: str
    options: Mapping[str, Any] = field(default_factory=dict)
    completes: Literal["datasets", "pages"] | None = None


@dataclass(frozen=True)
class Command:
    """A command.

    :param run: what carries it out: a module of this package, and its function
    :param arguments: beside those that all have
    :param connects: whether it talks to the platform
    """

    name: str
    help: str
    run: str
    arguments: tuple[Argument, ...] = ()
    connects: bool = True


@dataclass(frozen=True)
class Group:
    """Commands with a first word in common."""

    name: str
    help: str
    commands: tuple[Command, ...]


def _argument(
    *flags: str,
    help: str,  # noqa: A002 - argparse's name
    completes: Literal["datasets", "pages"] | None = None,
    **options: Any,
) -> Argument:
    return Argument(flags, help, options, completes)


JSON = _argument("--json", help="print JSON, under the platform's own names", action="store_true")
CONNECTION = (
    _argument("--conn-id", help="id of a connection of Airflow, which is imported then", metavar="ID"),
    _argument("--url", help="the platform's address, in place of ANAPLAT_URL", metavar="URL"),
    _argument("--token-file", help="a file that holds the application token", metavar="FILE"),
)
_DATASET = _argument("dataset", help="id of a dataset, or its whole name", metavar="DATASET", completes="datasets")
_USERS_FILE = _argument("file", help="CSV with a header, NDJSON or Parquet, by its suffix", metavar="FILE")
_USERS = (
    _argument("--user", help="id of a user (uId); may come several times", metavar="ID", action="append",
              dest="users", default=[]),
    _argument("--users-from", help="a file of such ids, one a line", metavar="FILE"),
)  # fmt: skip
_FORMAT = _argument(
    "--format", help="csv, ndjson or parquet, if FILE's suffix does not say it", dest="file_format"
)
_FORMULAS = _argument("--csv-formulas", help="escape what a spreadsheet would calculate, or keep it",
                      choices=("keep", "escape"), default="keep")  # fmt: skip

_SHOW = (
    _DATASET,
    _argument("--user", help="tell whether this user (uId) may export it; may come several times", metavar="ID",
              action="append", dest="users", default=[]),
)  # fmt: skip
_LIST = (
    _argument("name", help="names, with * for anything and ? for one character; case does not count", nargs="?",
              default="*", metavar="PATTERN"),
    _argument("--folder", help="those in this folder (parentDirId)", metavar="ID"),
)  # fmt: skip
_DATASETS = (
    *_LIST,
    _argument("--state", help="those in this state: the platform's word, or done, failed, working, unknown",
              metavar="WORD"),
    _argument("--stale-since", help="those not updated since this moment, such as 2026-01-31T06:00:00+00:00",
              metavar="MOMENT"),
)  # fmt: skip
_SELECTION = (
    _argument("--sort-by", help="name of the column to sort by", metavar="COLUMN"),
    _argument("--sort-type", help="asc or desc", choices=("asc", "desc"), default="asc"),
    _argument(
        "--filter", help="JSON, sent as the body's filter; the contract leaves its shape open", metavar="JSON"
    ),
)
_HEAD = (
    _DATASET,
    _argument("--rows", help="how many rows (10)", metavar="N", type=int, default=10),
    *_SELECTION,
)
_EXPORT = (
    _DATASET,
    _argument("file", help="path to write to, or the URL of an object, which takes Airflow", metavar="FILE"),
    _FORMAT,
    *_SELECTION,
    _argument("--max-rows", help="rows at most", metavar="N", type=int),
    _argument(
        "--rows-per-file", help="write a folder of parts of so many rows, and a manifest", metavar="N", type=int
    ),
    _argument("--concurrency", help="requests in flight at most (4)", metavar="N", type=int, default=4),
    _argument("--delimiter", help="of CSV (,)", default=","),
    _argument("--encoding", help="of CSV", choices=("utf-8", "utf-8-sig", "gb18030"), default="utf-8"),
    _FORMULAS,
)
_CREATE_USERS = (
    _USERS_FILE,
    _argument("--yes", help="do not ask", action="store_true"),
    _argument("--batch-size", help="users a request creates at most (200)", metavar="N", type=int, default=200),
    _argument("--existing-users", help="skip those that exist, by an extension; or leave them to the platform",
              choices=("error", "skip"), default="error"),
    _argument("--in-doubt", help="what became of users whose answer was lost",
              choices=("fail", "created", "not_created"), default="fail"),
    _argument("--password-encoding", help="how the platform wants passwords", choices=("plain", "base64"),
              default="plain"),
    _argument("--progress", help="the folder that remembers who is created (FILE.progress)", metavar="FOLDER"),
)  # fmt: skip
_ACCESS = (
    _argument("file", help="path to write to", metavar="FILE"),
    *_USERS,
    _FORMAT,
    _FORMULAS,
    _argument("--page-type", help="a value of pgType to ask for; may come several times", metavar="TYPE",
              action="append", dest="page_types", default=[]),
    _argument("--compare-with", help="an earlier report; what was gained and lost since goes to a second file",
              metavar="FILE"),
    _argument("--changes-path", help="that second file; by default, FILE with -changes before its suffix",
              metavar="FILE"),
    _argument("--on-changes", help="whether a right that was gained or lost fails the command",
              choices=("pass", "fail"), default="pass"),
)  # fmt: skip
_REFRESH = (
    _DATASET,
    _argument("--wait", help="wait until the update is done", action="store_true"),
    _argument("--timeout", help="seconds to wait at most (3600)", metavar="SECONDS", type=float, default=3600.0),
    _argument(
        "--poll-interval", help="seconds between two polls (10)", metavar="SECONDS", type=float, default=10.0
    ),
)
_PAGE = _argument("page", help="id of a page, or its whole name", metavar="PAGE", completes="pages")
_CALL = (
    _argument("path", help="path below the address; it starts with /public-api/", metavar="PATH"),
    _argument("--body", help="the JSON body without the token; @FILE reads it from a file, @- from stdin",
              metavar="JSON"),
    _argument("--query", help="a query parameter; may come several times", metavar="NAME=VALUE", action="append",
              default=[]),
    _argument("--method", help="HTTP method (POST)", default="POST"),
    _argument("--token-in", help="where the token goes", choices=("body", "header", "token_header", "query"),
              default="body"),
    _argument("--repeatable", help="it may be sent again after a failure without doing more", action="store_true"),
)  # fmt: skip

COMMANDS: tuple[Command | Group, ...] = (
    Command("test", "try each layer of the connection, and change nothing", "platform:test"),
    Command("datasets", "list datasets", "datasets:datasets", _DATASETS),
    Command("show", "show a dataset: state, freshness, columns, who may export it", "datasets:show", _SHOW),
    Command("head", "show the first rows of a dataset", "datasets:head", _HEAD),
    Command("export", "export all rows of a dataset to a file", "export:export", _EXPORT),
    Command("refresh", "have a dataset updated (an extension)", "datasets:refresh", _REFRESH),
    Command("pages", "list pages", "platform:pages", _LIST),
    Command("cards", "list the cards of a page (an extension)", "platform:cards", (_PAGE,)),
    Group(
        "users",
        "check and create users",
        (
            Command("check", "name all problems of a file of users; nothing is sent", "users:check",
                    (_USERS_FILE,), connects=False),
            Command("create", "create the users of a file, after a question; a repetition goes on",
                    "users:create", _CREATE_USERS),
        ),
    ),
    Command("access", "write which user may see and export what to a file", "access:access", _ACCESS),
    Command("call", "call any operation, and print its response as JSON", "platform:call", _CALL),
)  # fmt: skip


def arguments_of(command: Command) -> tuple[Argument, ...]:
    """Return all arguments of a command, its own first."""
    return (*command.arguments, *(CONNECTION if command.connects else ()), JSON)
