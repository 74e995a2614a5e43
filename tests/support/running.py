"""The processes of an Airflow of its own, for tests that need more than ``dag.test()``."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
import requests
from airflow import __version__ as airflow_version
from conftest import LONG, TESTS_HOME

from support.warm import Script, WarmPython, die_with_parent

AIRFLOW = Path(sys.executable).with_name("airflow")
RELEASE = tuple(map(int, airflow_version.split(".")[:2]))
AIRFLOW_2 = RELEASE < (3, 0)


def once(name: str, make: Callable[[Path], object]) -> Path:
    """Return what is made once in a run of the tests, by the process of pytest-xdist that is there first.

    :param name: of the file or folder in the tests' home
    :param make: makes it where it is told to
    """
    path = TESTS_HOME / name
    with (TESTS_HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unfinished = TESTS_HOME / f"{name}.unfinished"
            make(unfinished)
            unfinished.rename(path)
    return path


# SQLite gives up after five seconds that another process takes, and the API server answers HTTP 500 then.
PATIENT_DATABASE = """[database]
sql_alchemy_connect_args = airflow_local_settings.connect_args
sql_alchemy_connect_args_async = airflow_local_settings.connect_args
"""
PATIENCE = f"connect_args = {{'timeout': {LONG}}}\n"


def _migrate(home: Path) -> None:
    environment = {**os.environ, "AIRFLOW_HOME": str(home)}
    subprocess.run([AIRFLOW, "db", "migrate"], env=environment, check=True, capture_output=True)
    config = home / "airflow.cfg"
    config.write_text(config.read_text().replace(str(home), "{HOME}").replace("[database]\n", PATIENT_DATABASE))


def migrate(home: Path) -> None:
    """Give a home of Airflow a new database on SQLite, and the file of settings that Airflow writes with it."""
    migrated = once("migrated", _migrate)
    shutil.copy(migrated / "airflow.db", home)
    config = (migrated / "airflow.cfg").read_text()
    (home / "airflow.cfg").write_text(config.replace("{HOME}", str(home)))
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(PATIENCE)


class RunningAirflow:
    """Components of an Airflow, each a process with a log file of its own, on ports that were free.

    :param home: its AIRFLOW_HOME
    :param settings: further environment variables of all components
    """

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self.home = home
        (home / "dags").mkdir(exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            **os.environ,
            "PATH": f"{AIRFLOW.parent}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__INTERNAL_API_SECRET_KEY": secrets.token_hex(),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "1",
            # Where the API server is busy with as many tasks, one is lost after five seconds otherwise.
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(LONG),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            **settings,
        }
        self._processes: dict[str, subprocess.Popen[bytes] | Script] = {}

    def command(self, *arguments: str) -> None:
        """Run a command of Airflow to its end."""
        subprocess.run([AIRFLOW, *arguments], env=self.environment, check=True, capture_output=True)

    def start(self, name: str, *arguments: str) -> None:
        """Start a component; without arguments, the one of this name."""
        self._processes[name] = self._begin(arguments or (name,), self.home / f"{name}.log")

    def _begin(self, arguments: Sequence[str], path: Path) -> subprocess.Popen[bytes] | Script:
        with path.open("ab") as log:
            return subprocess.Popen(
                [AIRFLOW, *arguments], env=self.environment, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill a component and all that it started, as a machine that loses power would."""
        process = self._processes.pop(name)
        leader = psutil.Process(process.pid)
        family = [leader, *leader.children(recursive=True)]
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        process.wait()
        wait_until(lambda: all(map(has_ended, family[1:])))

    def stop(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def processes(self) -> list[psutil.Process]:
        """Return the processes of all components, with those that they started."""
        leaders = [psutil.Process(process.pid) for process in self._processes.values()]
        return [process for leader in leaders for process in (leader, *leader.children(recursive=True))]

    def dead(self) -> list[str]:
        """Return the components that ended by themselves."""
        dead = psutil.STATUS_ZOMBIE
        return [name for name, each in self._processes.items() if psutil.Process(each.pid).status() == dead]

    def component_log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text(errors="replace")

    def answers(self) -> bool:
        """Tell whether the API server does."""
        try:
            return requests.get(f"{self.url}/api/v2/version", timeout=5).ok
        except requests.RequestException:
            return False


def for_this_release(dag: str) -> str:
    """Return a DAG file of the documents as they say that it is written for the release that is tested."""
    return (
        dag.replace("from airflow.sdk import", "from airflow.providers.common.compat.sdk import")
        if AIRFLOW_2
        else dag
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process has; one that nobody has waited for yet is of no harm."""
    # psutil's own wait fails where a process goes just then: https://github.com/giampaolo/psutil/issues/2715
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(true: Callable[[], object], explain: Callable[[], object] = lambda: "waited in vain") -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, explain()
        time.sleep(0.1)


# What the run of a DAG begins with takes far longer than the run itself: to import Airflow and what DAG files
# import, and from Airflow 3 on to build the API that tasks talk to, in all its versions. Its first request builds
# it, here one for nothing.
DAG_FILES = Path(__file__).parents[1] / "integration" / "dags"
BEGINNING = f"""
import asyncio, json, sys, warnings
# What Airflow says of this package's code, or of these DAG files, under whatever name it imports them.
warnings.filterwarnings("error", module="airflow_provider_anaplat|unusual_prefix")
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # before Airflow 3.2
    from airflow.models.dagbag import DagBag
import airflow.jobs.scheduler_job_runner, airflow.jobs.triggerer_job_runner
assert not DagBag({str(DAG_FILES)!r}).import_errors
import airflow_provider_anaplat.client.client
try:
    from airflow.sdk.execution_time.supervisor import in_process_api_server
except ImportError:  # Airflow 2
    pass
else:
    from httpx import ASGITransport, AsyncClient
    asyncio.run(AsyncClient(transport=ASGITransport(in_process_api_server().app)).get("http://api/nothing"))
"""


# What Airflow reads of its settings when it is imported, and not again, as the components of all tests need it.
READ_AT_IMPORT = {
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": str(LONG),
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__CORE__PARALLELISM": "16",
    "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
    "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": str(int(LONG)),
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "1",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(LONG),
}


class WarmAirflow(WarmPython):
    """Runs scripts in an Airflow's home, each in a process of its own.

    :param home: its AIRFLOW_HOME
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.dags = home / "dags"
        self.begin_anew()
        settings = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
            **READ_AT_IMPORT,
        }
        super().__init__(BEGINNING, settings, LONG)

    def begin_anew(self) -> None:
        """Leave nothing of what was there before; the database is empty."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.dags.mkdir(parents=True)
        migrate(self.home)

    def command(self, *arguments: str, **variables: str) -> None:
        """Run a command of Airflow to its end."""
        ended = self.run("from airflow.__main__ import main; main()", *arguments, **variables)
        assert ended.returncode == 0, ended


# A component has a session of its own, as where it is started from a shell.
COMPONENT = """
import os
os.setsid()
from airflow.__main__ import main
main()
"""


class ForkedAirflow(RunningAirflow):
    """An Airflow whose components and commands are forks of a warm one, in its home, which begins anew.

    :param settings: further environment variables of all components, but for those of ``READ_AT_IMPORT``
    """

    def __init__(self, warm: WarmAirflow, settings: Mapping[str, str]) -> None:
        warm.begin_anew()
        self._warm = warm
        super().__init__(warm.home, {**READ_AT_IMPORT, **settings})

    def command(self, *arguments: str) -> None:
        self._warm.command(*arguments, **self.environment)

    def _begin(self, arguments: Sequence[str], path: Path) -> Script:
        return self._warm.start(COMPONENT, *arguments, log=path, **self.environment)
