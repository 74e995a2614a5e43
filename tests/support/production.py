"""One deployment for the tests of all faults, at logging level DEBUG, each fault with an embedded platform."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, quote_plus

import psutil
from conftest import numbers
from cryptography.fernet import Fernet

from airflow_provider_anaplat.simulator import Simulator, Table
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN
from support.deployment import Deployment
from support.running import free_port, wait_until
from support.servers import read_request, serving

DAGS = Path(__file__).parents[1] / "system" / "dags"
EXAMPLES = Path(__file__).parents[2] / "example_dags"
DAG_FILES = [
    *(DAGS / f"anaplat_{name}.py" for name in ("faults", "secrets", "threads")),
    *sorted(EXAMPLES.glob("*.py")),
]
FAULTS = (
    "worker_dies_creating", "worker_dies_amid_users", "worker_dies_exporting", "worker_dies_exporting_parts",
    "triggerer_dies", "triggerer_dies_creating", "scheduler_dies", "platform_goes", "platform_is_gone",
    "cleared", "failed_by_hand", "timed_out",
)  # fmt: skip
OTHERS = ("default", "secrets", "failing", "bystander")
SECRET_FAULTS = ("http_500", "http_401", "reset", "rejected", "redirect", "html", "malformed")
WORKING = "处理中"
SENSORS = 40
MAPPED = 10  # of the sensors
ROWS = 1000  # of each dataset that is exported
FLIGHTS = Table.of_rows([("carrier", "STRING"), ("distance", "INT")], [["UA", "1400"], [None, None]])
# Each mark holds what is written otherwise in an address, in JSON, in Python and in a shell.
TOKEN = "T0kenMark7a\"/+%=&'\\T0kenMark7b"
USER_TOKEN = "UserMark8a\"/+%=&'\\UserMark8b"
PASSWORD = "Passw0rdMark9a\"/+ %=&'\\Passw0rdMark9b"
PLANTED = "PlantedMark3"  # what nobody has told to be a secret, so that a search must find it
WRONG_TOKEN = TOKEN.replace("T0kenMark7", "Wr0ngMark6")
DATABASE_PASSWORD = "DatabaseMark5a\"/+ %=&'\\DatabaseMark5b"
PROXY_PASSWORD = "Pr0xyMark4a\"/+ %=&'\\Pr0xyMark4b"
MARKS = ("T0kenMark7", "Wr0ngMark6", "UserMark8", "Passw0rdMark9", "DatabaseMark5", "Pr0xyMark4")


@dataclass(frozen=True)
class Production:
    """The deployment, and what lies around it; one of its DAGs tells OpenLineage what it does, in ``lineage``.

    :param platforms: the embedded platforms, by fault
    :param output: the folder of the exports, and of nothing else
    :param fernet: reads what Airflow keeps encrypted
    """

    deployment: Deployment
    platforms: dict[str, Simulator]
    output: Path
    fernet: Fernet

    def start(self, *faults: str) -> None:
        for fault in faults:
            self.deployment.trigger(fault)

    def states(self, fault: str) -> dict[str, list[str | None]]:
        """Return the states of the tasks in the latest run, those of a mapped one in its order."""
        found: dict[str, list[str | None]] = {}
        for task in self.deployment.tasks(fault):
            found.setdefault(task.task_id, []).append(task.state)
        return found

    def until(self, fault: str, task_id: str, state: str) -> None:
        """Wait until a task, mapped or not, is in this state."""
        wait_until(
            lambda: set(self.states(fault).get(task_id, ())) == {state},
            lambda: (fault, task_id, self.states(fault), self.deployment.log(fault, task_id)[-3000:]),
        )

    def attempts(self, fault: str) -> dict[str, int]:
        """Return the attempts that the tasks of the latest run took, the most of a mapped one."""
        tasks = self.deployment.tasks(fault)
        return {task.task_id: max(t.attempt for t in tasks if t.task_id == task.task_id) for task in tasks}

    def threads(self) -> set[str]:
        """Return the ids of the connections for which the package has a thread in the triggerer."""
        self.start("threads")
        self.deployment.wait_for("threads", "success")
        names = self.deployment.xcom("threads", "look")
        return {name.removeprefix("anaplat-").rpartition("_")[0] for name in names}

    def nobody_asks(self, *faults: str) -> None:
        """See that nobody does, once all have heard of it, while a bystander asks at the same interval."""
        bystander = self.platforms["bystander"]

        def nobody_did() -> bool:
            asked = {fault: len(self.platforms[fault].ledger) for fault in faults}
            asked_by_bystander = len(bystander.ledger)
            wait_until(lambda: len(bystander.ledger) > asked_by_bystander + 4)
            return {fault: len(self.platforms[fault].ledger) for fault in faults} == asked

        wait_until(nobody_did)
        self.nothing_is_left(*faults)

    def nothing_is_left(self, *faults: str) -> None:
        """See that no process has a connection to these platforms, and the triggerer no thread for them."""
        for fault in faults:
            wait_until(lambda fault=fault: self.is_left_alone(fault), lambda fault=fault: fault)
        threads = self.threads()
        assert "anaplat_bystander" in threads
        assert threads & {f"anaplat_{fault}" for fault in faults} == set()

    def is_left_alone(self, fault: str) -> bool:
        """Tell whether no process of Airflow has a connection to the platform of a fault."""
        port = int(self.platforms[fault].url.rpartition(":")[2])
        # In whatever state: one that the platform has closed, and its holder has not, is left too. What the system
        # itself keeps for a while after the end belongs to no process.
        return not any(
            connection.raddr and connection.raddr.port == port and connection.pid not in (None, os.getpid())
            for connection in psutil.net_connections("tcp4")
        )


@contextmanager
def production(folder: Path) -> Iterator[Production]:
    """Run everything for the length of a ``with`` block.

    :param folder: an empty one, which then holds ``airflow``, ``output`` and ``users.csv``
    """
    home, output, users = folder / "airflow", folder / "output", folder / "users.csv"
    home.mkdir()
    output.mkdir()
    quoted = PASSWORD.replace('"', '""')
    users.write_text("\n".join(["loginId,password", *(f'user{i},"{quoted}"' for i in range(6))]))
    key = Fernet.generate_key()
    with ExitStack() as stack:
        platforms = {
            name: stack.enter_context(Simulator({"t": numbers(1)}, token=TOKEN, user_token=USER_TOKEN))
            for name in FAULTS + OTHERS
        }
        platforms["signed"] = stack.enter_context(
            Simulator({"t": numbers(30)}, token=TOKEN, deployment="user-token")
        )
        platforms["bystander"].platform.add_dataset("awaited", numbers(1), [WORKING])
        _add_datasets_of_examples(platforms["default"])
        settings = {
            "AIRFLOW__CORE__FERNET_KEY": key.decode(),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                {"type": "file", "log_file_path": str(home / "lineage"), "append": True}
            ),
            "AIRFLOW__OPENLINEAGE__SELECTIVE_ENABLE": "True",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
            "AIRFLOW__LOGGING__CELERY_LOGGING_LEVEL": "DEBUG",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
            # Where the triggerer finds a trigger of the tests.
            "PYTHONPATH": os.pathsep.join(filter(None, [str(DAGS), os.environ.get("PYTHONPATH")])),
            "ANAPLAT_EXPORT_PATH": str(output),
            "ANAPLAT_TEST_USERS": str(users),
            "ANAPLAT_TEST_SENSORS": json.dumps([SENSORS, MAPPED]),
            "ANAPLAT_TEST_FAULTS": ",".join(SECRET_FAULTS),
            "ANAPLAT_TEST_PLANTED": PLANTED,
            "ANAPLAT_DS_ID": "ds1",
            "ANAPLAT_DS_IDS": "ds1,ds2,ds3",
        }
        proxy = stack.enter_context(serving(refuse_login))
        deployment = stack.enter_context(Deployment(home, [], settings, concurrency=4, triggerer=True))
        _write_connections(deployment, platforms, proxy)
        _write_databases(deployment)
        deployment.add(DAG_FILES)
        found = Production(deployment, platforms, output, Fernet(key))
        found.start("bystander")
        yield found


def _add_datasets_of_examples(simulator: Simulator) -> None:
    """Add them before the first look of an asset's watcher, to which what comes later is an update."""
    platform = simulator.platform
    platform.tables["flights"] = FLIGHTS
    for name in ("one", "two", "three"):
        platform.add_dataset(name, FLIGHTS).utime = datetime(2026, 1, 1, tzinfo=UTC)


def refuse_login(connection: socket.socket) -> None:
    """Be a proxy that repeats the login that it is given, in the head of its answer and in the body."""
    head = read_request(connection).decode(errors="replace").partition("\r\n\r\n")[0]
    basic = head.partition("Proxy-Authorization: Basic ")[2].partition("\r\n")[0]
    user, _, password = base64.b64decode(basic).decode().partition(":")
    echo = f"{basic} {user} {password} {quote(password, safe='')} {quote_plus(password)}"
    body = f"no login: {echo}".encode()
    head = f"HTTP/1.1 407 no {echo}\r\nConnection: close\r\nX-Login: {echo}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def _write_connections(deployment: Deployment, platforms: dict[str, Simulator], proxy: int) -> None:
    def connect(name: str, host: str, token: str, *, login: str = "", **extra: object) -> None:
        fields = {"login": login, "password": token, "extra": json.dumps(extra)}
        deployment.connect(f"anaplat_{name}", conn_type="anaplat", host=host, **fields)

    for name in FAULTS + OTHERS:
        platform = platforms[name]
        # So many that they last for minutes, however short chance makes the waits between them.
        connect(name, platform.url, TOKEN, max_retries=30 if name == "platform_goes" else 1)
    connect("secrets_wrong", platforms["secrets"].url, WRONG_TOKEN, max_retries=1)
    connect("secrets_user", platforms["secrets"].url, TOKEN, max_retries=1, user_token=USER_TOKEN)
    connect(
        "signed", platforms["signed"].url, TOKEN, login=DEFAULT_LOGIN, max_retries=3, user_password=PASSWORD,
        sign_in_body=json.dumps({"loginId": "{login}", "token": "{token}", "secret": "{password_base64}"}),
        # What a trigger asks with the header's token; the columns are no task, which fails it.
        task_status={"path": "/public-api/data-source/ds1/columns", "method": "POST", "auth_in": "header"},
    )  # fmt: skip
    for scheme in ("http", "https"):
        address = f"http://user:{quote(PROXY_PASSWORD, safe='')}@127.0.0.1:{proxy}"
        host = f"{scheme}://bi.example.com"
        connect(f"secrets_by_proxy_{scheme}", host, TOKEN, max_retries=1, proxies={scheme: address})
    deployment.set_variable("first_pin", PASSWORD)


def _write_databases(deployment: Deployment) -> None:
    deployment.execute("CREATE SCHEMA hr")
    deployment.execute(
        "CREATE TABLE hr.employees (login text, full_name text, first_password text, work_email text, teams text,"
        " chat_account text, hired_on date, left_on date)"
    )
    deployment.execute(
        "INSERT INTO hr.employees SELECT 'employee' || i, 'Employee ' || i, %s, null, 'a,b', 'chat' || i,"
        " date '2020-01-01', null FROM generate_series(1, 300) i",
        PASSWORD,
    )
    path = json.dumps({"options": "-c search_path=hr"})
    # Nobody asks for the password here; it goes all the ways that it would go elsewhere.
    fields = {**deployment.own_database(), "conn_type": "postgres", "password": DATABASE_PASSWORD, "extra": path}
    deployment.connect("hr_database", **fields)
    deployment.connect("no_database", **{**fields, "port": free_port()})
