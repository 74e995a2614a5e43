"""The connection form, as data: Airflow 3.2 reads it from the provider's metadata, older ones from the hook.

The keys of :data:`FIELDS` are the extras that :mod:`airflow_provider_anaplat.hooks.settings` understands. No name
but that of a secret may hold "token" or another word that Airflow takes for a secret's: it would hide the value in
the form, and the value's text in every log.
"""

from __future__ import annotations

from typing import Any

# Where platforms of this family are known to show a dataset and a page; the contract names no web address.
URL_TEMPLATES = {
    "dataset_url": "{base_url}/data-center/data-sets/{dirId}/{dsId}/details/overview",
    "page_url": "{base_url}/page/{pgId}",
}

_TEXT = {"type": ["string", "null"]}
_SECRET = {"type": ["string", "null"], "format": "password"}
_SECONDS = {"type": ["number", "null"], "minimum": 0.1, "maximum": 3600}
_COUNT = {"type": ["integer", "null"], "minimum": 0, "maximum": 20}
_CONNECTIONS = {"type": ["integer", "null"], "minimum": 1, "maximum": 1000}
_MEGABYTES = {"type": ["integer", "null"], "minimum": 1, "maximum": 65_536}
_OBJECT = {"type": ["object", "null"]}
_PLACE = {"type": ["string", "null"], "enum": ["body", "header", "query"]}


def _field(label: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": schema}


FIELDS: dict[str, dict[str, Any]] = {
    "user_token": _field(
        "User token", "Sent in the X-Auth-Token header in place of the application token.", _SECRET
    ),
    "connect_timeout": _field("Connect time-out", "Seconds to wait for a connection; 10 by default.", _SECONDS),
    "read_timeout": _field(
        "Read time-out", "Seconds to wait for the next bytes of an answer; 300 by default.", _SECONDS
    ),
    "max_retries": _field(
        "Retries", "How often a read is repeated after a failure that may pass; 4 by default.", _COUNT
    ),
    "max_connections": _field(
        "Connections",
        "Requests at the same time at most, in each process of Airflow: each running task and each triggerer. All "
        "together send as many as they are, times this. No limit by default.",
        _CONNECTIONS,
    ),
    "max_answer_mb": _field(
        "Largest answer", "Megabytes of an answer at most, decompressed; 1024 by default.", _MEGABYTES
    ),
    "verify": _field(
        "Verify", "true (the default), false, or the path of the CA bundle that the platform's certificate needs.",
        _TEXT,
    ),
    "cert": _field(
        "Client certificate",
        'Path of a client certificate with its key, or a JSON list of both paths: ["cert.pem", "key.pem"].',
        _TEXT,
    ),
    "proxies": _field(
        "Proxies",
        'Proxy address by scheme: {"https": "http://proxy:3128"}; by default those of the environment.',
        _OBJECT,
    ),
    "dataset_url": _field(
        "Dataset link",
        "Template of a dataset's web address, for the links of tasks, with {base_url}, {dirId} and {dsId}; by "
        f"default {URL_TEMPLATES['dataset_url']}.",
        _TEXT,
    ),
    "page_url": _field(
        "Page link",
        "Template of a page's web address, for the links of tasks, with {base_url} and {pgId}; by default "
        f"{URL_TEMPLATES['page_url']}.",
        _TEXT,
    ),
    "refresh_style": _field("Refresh: style", "x", _TEXT),
    "refresh_path": _field(
        "Refresh: path",
        "Where your platform takes a refresh, with {dsId}; by default /public-api/data-source/{dsId}/refresh.",
        _TEXT,
    ),
    "refresh_method": _field("Refresh: method", "HTTP method of a refresh; POST by default.", _TEXT),
    "refresh_auth_in": _field(
        "Refresh: token in", "Where the token of a refresh goes: body (the default), header or query.", _PLACE
    ),
    "task_status": _field(
        "Task status",
        'How your platform is asked for a task, where that differs from GET /public-api/task/status: '
        '{"path": ..., "method": ..., "params": {...}, "auth_in": ...}.',
        _OBJECT,
    ),
}  # fmt: skip

HIDDEN = ("login",)
LABELS = {"host": "Platform address", "schema": "Scheme", "password": "Application token"}
PLACEHOLDERS = {
    "host": "https://bi.example.com/prefix",
    "schema": "https",
    "port": "443",
    "password": "the application token",
    "extra": "{}",
    "connect_timeout": "10",
    "read_timeout": "300",
    "max_retries": "4",
    "max_connections": "8",
    "max_answer_mb": "256",
    "verify": "true",
    "cert": "/etc/anaplat/client.pem",
    "proxies": '{"https": "http://proxy:3128"}',
    **URL_TEMPLATES,
    "refresh_path": "/public-api/data-source/{dsId}/refresh",
    "refresh_method": "POST",
    "refresh_auth_in": "body",
    "task_status": '{"path": "/public-api/task/{taskId}", "auth_in": "header"}',
}


def field_behaviour() -> dict[str, Any]:
    """Return what the form makes of Airflow's own fields, as the hook's ``get_ui_field_behaviour`` does."""
    return {"hidden_fields": list(HIDDEN), "relabeling": dict(LABELS), "placeholders": dict(PLACEHOLDERS)}


def widgets() -> dict[str, Any]:
    """Return the fields as WTForms fields, which Airflow before 3.2 asks the hook for."""
    from flask_appbuilder.fieldwidgets import BS3PasswordFieldWidget, BS3TextFieldWidget
    from wtforms import IntegerField, PasswordField, StringField
    from wtforms.validators import Optional

    def widget(field: dict[str, Any]) -> Any:
        schema = field["schema"]
        texts = {"label": field["label"], "description": field["description"], "validators": [Optional()]}
        if schema.get("format") == "password":
            return PasswordField(**texts, widget=BS3PasswordFieldWidget())
        # Airflow takes no field of decimal numbers or JSON; the settings read both from text.
        kind = IntegerField if "integer" in schema["type"] else StringField
        return kind(**texts, widget=BS3TextFieldWidget())

    return {name: widget(field) for name, field in FIELDS.items()}
