"""The table of connection options: one row of :data:`OPTIONS` for each.

The form of Airflow 3.2 and newer (by the provider's metadata) and of older ones (by the hook), the settings of the
hook and the tables of the documents are made of it. It is read whenever Airflow parses a DAG file, so it imports
nothing heavy.

No name but that of a secret may hold "token" or another word that Airflow takes for a secret's: it would hide the
value in the form, and the value's text in every log.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from airflow_provider_anaplat import option_values as values
from airflow_provider_anaplat.client import defaults

__all__ = [
    "BODY",
    "BY_NAME",
    "CALL",
    "CERTIFICATE",
    "CONNECTIONS",
    "FIELDS",
    "HIDDEN",
    "LABELS",
    "MEGABYTES",
    "OPTIONS",
    "PLACE",
    "PLACEHOLDERS",
    "PROXIES",
    "RETRIES",
    "SECONDS",
    "STYLE",
    "TEXT",
    "VERIFY",
    "Kind",
    "Option",
    "field_behaviour",
    "widgets",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """What an option can be: what the form lets a person put in, and what is made of it.

    :param schema: what the form takes, as JSON schema
    :param convert: makes a value of what a connection holds, which may be a text; its ``ValueError`` says what
        the value must be
    """

    schema: dict[str, Any]
    convert: Callable[[Any], Any]


TEXT = Kind({"type": ["string", "null"]}, values.text)
SECONDS = Kind({"type": ["number", "null"], "minimum": 0.1, "maximum": 3600}, values.seconds)
RETRIES = Kind({"type": ["integer", "null"], "minimum": 0, "maximum": 20}, values.count)
CONNECTIONS = Kind({"type": ["integer", "null"], "minimum": 1, "maximum": 1000}, values.at_least_one)
MEGABYTES = Kind({"type": ["integer", "null"], "minimum": 1, "maximum": 65_536}, values.at_least_one)
VERIFY = Kind({"type": ["string", "null"]}, values.verify)
CERTIFICATE = Kind({"type": ["string", "null"]}, values.certificate)
PROXIES = Kind({"type": ["object", "null"]}, values.proxies)
CALL = Kind({"type": ["object", "null"]}, values.call)
STYLE = Kind({"type": ["string", "null"], "enum": ["post", "get"]}, values.text)
# A text, not an object: Airflow hides what stands under "password" in an object, and would save it hidden.
BODY = Kind({"type": ["string", "null"]}, values.body)
PLACE = Kind({"type": ["string", "null"], "enum": ["body", "header", "token_header", "query"]}, values.text)


def _url(*in_braces: str) -> Kind:
    return Kind({"type": ["string", "null"]}, lambda value: values.url_template(value, in_braces))


def _shown(default: Any) -> str:
    if isinstance(default, str):
        return default
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a connection, which stands in its extra.

    :param name: its key in the extra and, if it is the client's, the name of the client's argument
    :param kind: what it can be
    :param label: what the form calls it
    :param help: what it does; the form adds the default
    :param default: what holds if it is not given, if that is a value
    :param example: what the form shows in an empty field
    :param secret: whether it is typed unseen
    :param read_by: who reads it: the ``client``, as an argument, or the ``operators`` and links
    """

    name: str
    kind: Kind
    label: str
    help: str
    default: Any = None
    example: str = ""
    secret: bool = False
    read_by: Literal["client", "operators"] = "client"

    def field(self) -> dict[str, Any]:
        """Return the option as Airflow's metadata describe a field."""
        default = "" if self.default is None else f" By default {_shown(self.default)}."
        schema = {**self.kind.schema, "format": "password"} if self.secret else self.kind.schema
        return {"label": self.label, "description": self.help + default, "schema": schema}


OPTIONS = (
    Option(
        "user_token", TEXT, "User token",
        "Sent in the X-Auth-Token header in place of the application token. It cannot renew itself.",
        secret=True,
    ),
    Option(
        "user_password", TEXT, "Password of the login",
        "The password of the user who signs in, if your platform asks for it; see sign_in_body.",
        secret=True,
    ),
    Option(
        "sign_in_path", TEXT, "Sign-in: path", "Where your platform signs users in.",
        default=defaults.SIGN_IN_PATH, example="/public-api/sign-in",
    ),
    Option(
        "sign_in_body", BODY, "Sign-in: body",
        "What is sent there, as JSON; {login}, {token}, {password} and {password_base64} stand for the "
        "connection's login, the application token and the user's password.",
        default=defaults.SIGN_IN_BODY,
        example='{"domain": "acme", "loginId": "{login}", "password": "{password_base64}"}',
    ),
    Option(
        "connect_timeout", SECONDS, "Connect time-out", "Seconds to wait for a connection.",
        default=defaults.CONNECT_TIMEOUT, example="10",
    ),
    Option(
        "read_timeout", SECONDS, "Read time-out", "Seconds to wait for the next bytes of an answer.",
        default=defaults.READ_TIMEOUT, example="300",
    ),
    Option(
        "max_retries", RETRIES, "Retries", "How often a read is repeated after a failure that may pass.",
        default=defaults.MAX_RETRIES, example="4",
    ),
    Option(
        "max_connections", CONNECTIONS, "Connections",
        "Requests in flight at most, for each process of Airflow: each running task and each triggerer is one. No "
        "limit by default.",
        example="8",
    ),
    Option(
        "max_answer_mb", MEGABYTES, "Largest answer", "Megabytes of an answer at most, decompressed.",
        default=defaults.MAX_ANSWER_MB, example="256",
    ),
    Option(
        "verify", VERIFY, "Verify",
        "true, false, or the path of the CA bundle that the platform's certificate needs.",
        default=True, example="true",
    ),
    Option(
        "cert", CERTIFICATE, "Client certificate",
        'Path of a client certificate with its key, or a JSON list of both paths: ["cert.pem", "key.pem"].',
        example="/etc/anaplat/client.pem",
    ),
    Option(
        "proxies", PROXIES, "Proxies",
        'Proxy address by scheme: {"https": "http://proxy:3128"}; by default those of the environment.',
        example='{"https": "http://proxy:3128"}',
    ),
    Option(
        "dataset_url", _url("base_url", "dirId", "dsId"), "Dataset link",
        "Template of a dataset's web address, for the links of tasks, with {base_url}, {dirId} and {dsId}.",
        default=defaults.DATASET_URL, example=defaults.DATASET_URL, read_by="operators",
    ),
    Option(
        "page_url", _url("base_url", "pgId"), "Page link",
        "Template of a page's web address, for the links of tasks, with {base_url} and {pgId}.",
        default=defaults.PAGE_URL, example=defaults.PAGE_URL, read_by="operators",
    ),
    Option(
        "refresh_style", STYLE, "Refresh: style",
        "How your platform accepts a refresh: post, with the token in the body, as the vendor documents it; or "
        "get, with the token in the query, as real deployments accept it.",
        default=defaults.REFRESH_STYLE, example="post", read_by="operators",
    ),
    Option(
        "refresh_path", TEXT, "Refresh: path", "Path at which your platform accepts a refresh, with {dsId}.",
        default=defaults.REFRESH_PATH, example=defaults.REFRESH_PATH, read_by="operators",
    ),
    Option(
        "refresh_method", TEXT, "Refresh: method",
        "HTTP method of a refresh, if it differs from its style's.",
        example="POST", read_by="operators",
    ),
    Option(
        "refresh_auth_in", PLACE, "Refresh: token in",
        "Where the token of a refresh goes, if that differs from its style: body, header, token_header or query.",
        example="body", read_by="operators",
    ),
    Option(
        "task_status", CALL, "Task status",
        f"How your platform is asked for a task, if that differs from GET {defaults.TASK_STATUS_PATH}: "
        '{"path": ..., "method": ..., "params": {...}, "auth_in": ...}.',
        example='{"path": "/public-api/task/{taskId}", "auth_in": "header"}',
    ),
)  # fmt: skip

BY_NAME = {option.name: option for option in OPTIONS}
FIELDS = {option.name: option.field() for option in OPTIONS}

HIDDEN: tuple[str, ...] = ()
LABELS = {
    "host": "Platform address",
    "schema": "Scheme",
    "login": "Sign in as (loginId)",
    "password": "Application token",
}
PLACEHOLDERS = {
    "host": "https://bi.example.com/prefix",
    "schema": "https",
    "port": "443",
    "login": "empty, or the loginId of a user",
    "password": "the application token",
    "extra": "{}",
    **{option.name: option.example for option in OPTIONS if option.example},
}


def field_behaviour() -> dict[str, Any]:
    """Return what the form makes of Airflow's own fields, as the hook's ``get_ui_field_behaviour`` does."""
    return {"hidden_fields": list(HIDDEN), "relabeling": dict(LABELS), "placeholders": dict(PLACEHOLDERS)}


def widgets() -> dict[str, Any]:
    """Return the fields as WTForms fields, which Airflow before 3.2 asks the hook for."""
    from flask_appbuilder.fieldwidgets import BS3PasswordFieldWidget, BS3TextFieldWidget
    from wtforms import IntegerField, PasswordField, StringField
    from wtforms.validators import Optional

    def widget(option: Option) -> Any:
        field = option.field()
        texts = {"label": field["label"], "description": field["description"], "validators": [Optional()]}
        if option.secret:
            return PasswordField(**texts, widget=BS3PasswordFieldWidget())
        # Airflow takes no field of decimal numbers or JSON; the settings read both from text.
        kind = IntegerField if "integer" in field["schema"]["type"] else StringField
        return kind(**texts, widget=BS3TextFieldWidget())

    return {option.name: widget(option) for option in OPTIONS}
