"""One deployment for the tests of all faults, at logging level DEBUG, each fault with an embedded platform."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from conftest import numbers
from cryptography.fernet import Fernet
from running import wait_until
from system.deployment import Deployment

from airflow_provider_anaplat.simulator import Simulator

DAGS = Path(__file__).parent / "dags"
EXAMPLES = Path(__file__).parents[2] / "example_dags"
DAG_FILES = [
    *(DAGS / f"anaplat_{name}.py" for name in ("faults", "secrets", "threads")),
    *sorted(EXAMPLES.glob("*.py")),
]
FAULTS = (
    "worker_dies_creating", "worker_dies_amid_users", "worker_dies_exporting", "triggerer_dies",
    "triggerer_dies_creating", "scheduler_dies", "platform_goes", "platform_is_gone", "cleared", "failed_by_hand",
    "timed_out",
)  # fmt: skip
OTHERS = ("default", "secrets", "failing")
SECRET_FAULTS = ("http_500", "http_401", "reset", "rejected", "redirect", "html", "malformed")
SENSORS = 100
MAPPED = 20  # of the sensors
ROWS = 1000  # of each dataset that is exported
# Each mark holds what is written otherwise in an address, in JSON, in Python and in a shell.
TOKEN = "T0kenMark7a\"/+%=&'\\T0kenMark7b"
USER_TOKEN = "UserMark8a\"/+%=&'\\UserMark8b"
PASSWORD = "Passw0rdMark9a\"/+ %=&'\\Passw0rdMark9b"
WRONG_TOKEN = TOKEN.replace("T0kenMark7", "Wr0ngMark6")
MARKS = ("T0kenMark7", "Wr0ngMark6", "UserMark8", "Passw0rdMark9")


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

    def threads(self) -> str:
        """Return the names of the threads that the package has in the triggerer, which hold connections' ids."""
        self.start("threads")
        self.deployment.wait_for("threads", "success")
        return " ".join(self.deployment.xcom("threads", "look"))

    def is_left_alone(self, fault: str) -> bool:
        """Tell whether no process of Airflow has a connection to the platform of a fault."""
        port = int(self.platforms[fault].url.rpartition(":")[2])
        return not any(
            connection.raddr and connection.raddr.port == port and connection.pid != os.getpid()
            for connection in psutil.net_connections("tcp4")
            if connection.status == psutil.CONN_ESTABLISHED
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
            "PYTHONPATH": str(DAGS),  # where the triggerer finds a trigger of the tests
            "ANAPLAT_EXPORT_PATH": str(output),
            "ANAPLAT_TEST_USERS": str(users),
            "ANAPLAT_TEST_SENSORS": json.dumps([SENSORS, MAPPED]),
            "ANAPLAT_TEST_FAULTS": ",".join(SECRET_FAULTS),
            "ANAPLAT_DS_ID": "ds1",
            "ANAPLAT_DS_IDS": "ds1,ds2,ds3",
        }
        deployment = stack.enter_context(Deployment(home, [], settings, concurrency=4, triggerer=True))
        _write_connections(deployment, platforms)
        deployment.add(DAG_FILES)
        yield Production(deployment, platforms, output, Fernet(key))


def _write_connections(deployment: Deployment, platforms: dict[str, Simulator]) -> None:
    def connect(name: str, host: str, token: str, **extra: object) -> None:
        deployment.connect(
            f"anaplat_{name}", conn_type="anaplat", host=host, password=token, extra=json.dumps(extra)
        )

    for name, platform in platforms.items():
        connect(name, platform.url, TOKEN, max_retries=8 if name == "platform_goes" else 1)
    connect("secrets_wrong", platforms["secrets"].url, WRONG_TOKEN, max_retries=1)
    connect("secrets_user", platforms["secrets"].url, TOKEN, max_retries=1, user_token=USER_TOKEN)
    deployment.set_variable("first_pin", PASSWORD)
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
    deployment.connect("hr_database", conn_type="postgres", **deployment.own_database(), extra=path)
