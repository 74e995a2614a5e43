"""The directive ``anaplat-table``: a table that is made of the package's own data, so that it cannot drift."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Rows = Iterable[tuple[str, ...]]


def face() -> Rows:
    """Return what can be imported from the package itself."""
    import airflow_provider_anaplat as package

    yield "name", "a kind of", "what it does"
    for name in package.__all__:
        thing = getattr(package, name)
        parents = _words([kind.__name__ for kind in getattr(thing, "__bases__", ()) if kind is not object])
        yield f"{{py:obj}}`{name} <{thing.__module__}.{name}>`", parents, (thing.__doc__ or "").splitlines()[0]


def airflow_fields() -> Rows:
    """Return Airflow's own fields of a connection."""
    from airflow_provider_anaplat.connection_form import LABELS, PLACEHOLDERS

    yield "field", "label in the form", "what it holds", "example"
    meanings = {
        "host": "the platform's address, with or without scheme, port and path prefix",
        "schema": "`http` or `https`, if the host names none; `https` by default",
        "port": "the TCP port, if the host names none",
        "login": "the loginId of a user to sign in, whose token goes into the header; empty for none",
        "password": "the application token",
    }
    for name, meaning in meanings.items():
        yield f"`{name}`", LABELS.get(name, name.capitalize()), meaning, f"`{PLACEHOLDERS[name]}`"


def extras() -> Rows:
    """Return the extras of a connection."""
    from airflow_provider_anaplat.connection_form import FIELDS, PLACEHOLDERS

    yield "extra", "label in the form", "what it holds", "type", "example"
    for name, field in FIELDS.items():
        example = f"`{PLACEHOLDERS[name]}`" if name in PLACEHOLDERS else ""
        yield f"`{name}`", field["label"], _literal(field["description"]), _type(field["schema"]), example


def operations() -> Rows:
    """Return the operations of the platform that the package calls."""
    from airflow_provider_anaplat.client.operations import EXTENSIONS, OPERATIONS

    yield "name", "request", "token in", "sent again after a failure", "described by the contract"
    for operation in OPERATIONS + EXTENSIONS:
        described = "yes" if operation in OPERATIONS else "no"
        repeated = "yes" if operation.repeatable else "never blindly"
        request = f"`{operation.method} {operation.path}`"
        yield f"`{operation.name}`", request, operation.token_in or "", repeated, described


def states() -> Rows:
    """Return the words of states."""
    from airflow_provider_anaplat.waiting import states

    yield "of", "meaning", "words"
    yield "a dataset or a task", "still working", _words(states.WORKING_STATES)
    yield "a dataset or a task", "done", _words(states.SUCCESS_STATES)
    yield "a dataset or a task", "failed", _words(states.FAILURE_STATES)
    yield "a subscription's last send", "sent", _words(states.SENT_STATES)
    yield "a subscription's last send", "not sent", _words(states.NOT_SENT_STATES)


def metrics() -> Rows:
    """Return the metrics."""
    from airflow_provider_anaplat.client.metrics import METRICS

    yield "metric", "kind", "tags", "what it says"
    for metric in METRICS:
        yield f"`{metric.name}`", metric.kind, _words(metric.tags), metric.meaning


def exceptions() -> Rows:
    """Return the exceptions of the client, each below the one it is a kind of."""
    from airflow_provider_anaplat import errors

    yield "exception", "when it is raised"
    for error in _tree(errors.AnaplatError):
        depth = len([kind for kind in error.__mro__ if issubclass(kind, errors.AnaplatError)]) - 1
        yield f"{'– ' * depth}`{error.__name__}`", (error.__doc__ or "").strip().splitlines()[0]


def commands() -> Rows:
    """Return the commands of the command line."""
    from airflow_provider_anaplat.cli.commands import COMMANDS, Group

    yield "command", "what it does"
    for command in COMMANDS:
        for one in command.commands if isinstance(command, Group) else [command]:
            words = [command.name] if isinstance(command, Group) else []
            required = [name for given in one.arguments if (name := _required(given))]
            yield f"`anaplat {' '.join([*words, one.name, *required])}`", one.help


def variables() -> Rows:
    """Return the environment variables of the command line."""
    from airflow_provider_anaplat.cli.connect import VARIABLES

    yield "variable", "what it holds"
    for name, meaning in VARIABLES.items():
        yield f"`{name}`", meaning


def exit_codes() -> Rows:
    """Return the exit codes of the command line, in their order."""
    from airflow_provider_anaplat.cli.exits import EXITS

    yield "code", "what it tells a script"
    for row in sorted(EXITS, key=lambda row: row.code):
        yield f"`{row.code}`", row.meaning


TABLES: dict[str, Callable[[], Rows]] = {
    table.__name__.replace("_", "-"): table
    for table in (
        face,
        airflow_fields,
        extras,
        operations,
        states,
        metrics,
        exceptions,
        commands,
        variables,
        exit_codes,
    )
}


class AnaplatTable(SphinxDirective):
    """Show a table of the package's data, by its name in ``TABLES``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_reread()  # Sphinx sees changes of pages, not of the data
        head, *rows = TABLES[self.arguments[0]]()
        lines = [head, ("---",) * len(head), *rows]
        text = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive("anaplat-table", AnaplatTable)
    return {"parallel_read_safe": True}


def _required(argument: Any) -> str:
    is_option = argument.flags[0].startswith("-") or "nargs" in argument.options
    return "" if is_option else argument.options.get("metavar", argument.flags[0])


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _literal(text: str) -> str:
    return text.replace("{", "&#123;").replace("}", "&#125;")


def _type(schema: dict[str, Any]) -> str:
    kind = "secret" if schema.get("format") == "password" else schema["type"][0]
    low, high = schema.get("minimum"), schema.get("maximum")
    return kind if low is None else f"{kind}, {json.dumps(low)} to {json.dumps(high)}"


def _tree(kind: type[Exception]) -> Iterable[type[Exception]]:
    seen = [kind]
    for child in kind.__subclasses__():
        if child.__module__ == kind.__module__:
            seen += [error for error in _tree(child) if error not in seen]
    return seen
