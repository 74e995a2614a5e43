"""The connection form: in step with the settings, on newer and older releases, whatever way a connection comes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from support.running import AIRFLOW_2, RELEASE, WarmAirflow

from airflow_provider_anaplat._airflow.releases import Connection
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.connection_form import FIELDS, OPTIONS
from airflow_provider_anaplat.errors import AnaplatSettingsError
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.hooks.settings import client_arguments

# Where a release keeps what hides secrets.
MASKER = (
    "airflow.utils.log.secrets_masker"
    if AIRFLOW_2
    else "airflow.sdk.execution_time.secrets_masker"
    if RELEASE == (3, 0)
    else "airflow.sdk.log"
)

# What a person could put into each field: its example, or something that is not the default.
FILLED: dict[str, Any] = {
    **{option.name: option.example for option in OPTIONS},
    "user_token": "u",
    "user_password": "s3cret",
    "connect_timeout": 5,
    "read_timeout": 60.5,
    "max_retries": 2,
    "max_connections": 8,
    "max_answer_mb": 2048,
    "verify": "false",
    "cert": None,
    "proxies": {"https": "http://proxy:3128"},
    "task_status": {"path": "/public-api/task/{taskId}", "auth_in": "header"},
    "dataset_url": "{base_url}/{dsId}",
    "page_url": "{base_url}/p/{pgId}",
    "refresh_path": "/public-api/refresh/{dsId}",
    "refresh_method": "GET",
    "refresh_auth_in": "header",
}


SECRET = ("user_token", "user_password")


def arguments(extra: dict[str, Any]) -> dict[str, Any]:
    return client_arguments(host="bi.example.com", schema=None, port=None, password="t", extra=extra)


def test_each_option_of_the_client_is_an_argument_of_it_with_the_same_default() -> None:
    taken = inspect.signature(AnaplatClient).parameters
    of_the_client = [option for option in OPTIONS if option.read_by == "client"]
    assert {option.name: option.default for option in of_the_client} == {
        option.name: taken[option.name].default for option in of_the_client
    }


def test_no_row_stands_twice_and_each_names_its_default_once() -> None:
    assert len(FIELDS) == len(OPTIONS)
    assert [
        option.name for option in OPTIONS if option.help.count("efault") + (option.default is not None) > 1
    ] == []
    assert "By default 256." in FIELDS["max_answer_mb"]["description"]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_takes_what_the_settings_take(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(FIELDS[name]["schema"])
    jsonschema.validate(FILLED[name], FIELDS[name]["schema"])
    for value in (FILLED[name], None):
        arguments({name: value})


def test_an_editor_that_was_left_empty_is_as_if_not_given() -> None:
    empty = arguments({name: {} for name in ("proxies", "task_status")})
    assert set(empty) == {"base_url", "token"}


def names_in(value: Any) -> set[str]:
    """Return all names in an extra, however deep."""
    return (
        {*value, *(name for held in value.values() for name in names_in(held))}
        if isinstance(value, dict)
        else set()
    )


def test_airflow_hides_secrets_alone() -> None:
    # What stands under a name like a secret's is hidden in the form, and its text in every log: "header", for one.
    masker = importlib.import_module(MASKER)
    hidden = {name for name in names_in(FILLED) if masker.redact({name: "§"}) != {name: "§"}}
    # The address of a proxy may hold a password; Airflow 3.0 does not hide it for its name.
    assert hidden == ({*SECRET} if RELEASE == (3, 0) else {*SECRET, "proxies"})


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if "minimum" in field["schema"]])
def test_the_ends_of_a_range_are_good(name: str) -> None:
    schema = FIELDS[name]["schema"]
    assert [arguments({name: schema[end]})[name] for end in ("minimum", "maximum")] == [
        schema["minimum"],
        schema["maximum"],
    ]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(-1, schema)
    with pytest.raises(AnaplatSettingsError):
        arguments({name: -1})


def test_a_token_is_typed_unseen() -> None:
    secret = {name for name, field in FIELDS.items() if field["schema"].get("format") == "password"}
    assert secret == set(SECRET)


@pytest.mark.parametrize(
    "template", ["ftp://x/{dsId}", "{base_url}/{other}", "{base_url}/{}", "/{dsId}", "{base_url}/{dsId.x}", "{", 5]
)
def test_a_template_that_is_no_address_is_refused(template: Any) -> None:
    with pytest.raises(AnaplatSettingsError, match="extra 'dataset_url' is unusable"):
        arguments({"dataset_url": template})


FORM_OF_AIRFLOW_2 = """
from airflow.providers_manager import ProvidersManager
manager = ProvidersManager()
secret = {
    name.removeprefix("extra__anaplat__"): info.is_sensitive
    for name, info in manager.connection_form_widgets.items() if name.startswith("extra__anaplat__")
}
behaviour = manager.field_behaviours["anaplat"]
print("FORM" + json.dumps([
    secret, behaviour["hidden_fields"], behaviour["relabeling"]["password"],
    behaviour["placeholders"]["extra__anaplat__read_timeout"],
]))
"""

FORM_OF_AIRFLOW_3 = """
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
(form,) = [form for form in HookMetaService.hook_meta_data() if form.connection_type == "anaplat"]
secret = {name: field["schema"].get("format") == "password" for name, field in form.extra_fields.items()}
standard = form.standard_fields.model_dump()
hidden = [name for name, field in standard.items() if field and field["hidden"]]
print("FORM" + json.dumps([
    secret, hidden, standard["password"]["title"], standard["password"]["placeholder"]
]))
"""


def test_airflow_shows_the_form(warm_airflow: WarmAirflow) -> None:
    if RELEASE == (3, 0) and importlib.util.find_spec("flask_appbuilder") is None:
        pytest.skip("Airflow 3.0 shows a provider's fields only where Flask-AppBuilder is installed")
    form = FORM_OF_AIRFLOW_2 if AIRFLOW_2 else FORM_OF_AIRFLOW_3
    warm_airflow.begin_anew()
    printed = warm_airflow.run(form)

    assert printed.returncode == 0, printed

    line = next(line for line in printed.stdout.splitlines() if line.startswith("FORM"))
    secret, hidden, label, placeholder = json.loads(line.removeprefix("FORM"))

    assert secret == {name: name in SECRET for name in FIELDS}
    assert hidden == []
    assert label == "Application token"
    assert placeholder == ("300" if AIRFLOW_2 else "the application token")


def test_the_hooks_own_form_is_made_of_the_same_data() -> None:
    pytest.importorskip("wtforms", reason="comes with Airflow 2 alone")
    pytest.importorskip("flask_appbuilder", reason="comes with Airflow 2 alone")
    assert set(AnaplatHook.get_connection_form_widgets()) == set(FIELDS)


FIELDS_OF_ALL_WAYS = {
    "host": "bi.example.com/prefix", "schema": "https", "login": "ada@example.com", "password": "s3cret/+%",
}  # fmt: skip
# All but what does not go together with a login.
EXTRA = {name: value for name, value in FILLED.items() if value is not None and name != "user_token"}


PORTS = [None, 0, 8443]
COMMANDS_OF_AIRFLOW = """
from airflow.__main__ import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["airflow", *command]
    main()
"""


@pytest.fixture(scope="module")
def exported(warm_airflow: WarmAirflow, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow's command line exports of connections that it added, by their ports."""
    path = tmp_path_factory.mktemp("exported") / "connections.json"
    given = FIELDS_OF_ALL_WAYS
    adds = [
        ["connections", "add", str(port), "--conn-type", "anaplat", "--conn-host", given["host"],
         "--conn-schema", given["schema"], "--conn-password", given["password"], "--conn-login", given["login"],
         "--conn-extra", json.dumps(EXTRA), *([] if port is None else ["--conn-port", str(port)])]
        for port in PORTS
    ]  # fmt: skip
    warm_airflow.begin_anew()
    ended = warm_airflow.run(COMMANDS_OF_AIRFLOW, json.dumps([*adds, ["connections", "export", str(path)]]))
    assert ended.returncode == 0, ended
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def settings_of(conn_id: str) -> Any:
    return AnaplatHook(conn_id).get_conn()._transport._settings


@pytest.mark.parametrize("port", PORTS)
def test_every_way_gives_the_same_client(
    port: int | None, monkeypatch: pytest.MonkeyPatch, exported: dict[str, Any]
) -> None:
    given: dict[str, Any] = {**FIELDS_OF_ALL_WAYS, "port": port}
    as_texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in EXTRA.items()}
    uri = Connection(conn_id="uri", conn_type="anaplat", **given, extra=json.dumps(EXTRA)).get_uri()
    by_hand = "anaplat://{}:{}@{}:{}/https?__extra__={}".format(
        *(quote(given[name], safe="") for name in ("login", "password", "host")),
        port or "",
        quote(json.dumps(EXTRA)),
    )
    ways = {
        "REST": json.dumps({"conn_type": "anaplat", **given, "extra": json.dumps(EXTRA)}),
        "ENVIRONMENT": json.dumps({"conn_type": "anaplat", **given, "extra": EXTRA}),
        "FORM": json.dumps({"conn_type": "anaplat", **given, "extra": json.dumps({**EXTRA, "cert": None})}),
        "OLD_FORM": json.dumps({"conn_type": "anaplat", **given, "extra": json.dumps(as_texts)}),
        "URI": uri,
        "BY_HAND": by_hand,
        "CLI": json.dumps(exported[str(port)]),
    }
    for way, value in ways.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{way}", value)
    settings = {way: settings_of(way.lower()) for way in ways}
    expected = f"https://bi.example.com{':8443' if port else ''}/prefix"

    assert settings["REST"].base_url == expected
    assert (settings["REST"].login, settings["REST"].token) == (given["login"], given["password"])
    assert {way for way, found in settings.items() if found != settings["REST"]} == set()
