"""An Airflow on SQLite, and a real browser that looks at its screens."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from airflow import __version__ as airflow_version
from conftest import LONG
from packaging.version import Version

from support.running import RunningAirflow, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

CHROMIUM = shutil.which("chromium")
# What keeps a browser to itself, and lets it run where there is no display, no GPU and no user but root.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Where the screenshots go that the documents show; by default they are thrown away.
SCREENSHOTS = os.environ.get("ANAPLAT_SCREENSHOTS")


class WebAirflow(RunningAirflow):
    """An Airflow for the length of a ``with`` block, where everybody may do everything.

    :param home: its AIRFLOW_HOME
    :param dags: DAG files
    :param settings: further environment variables of all components
    """

    def __init__(self, home: Path, dags: Sequence[Path], settings: Mapping[str, str]) -> None:
        super().__init__(home, {
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            **settings,
        })  # fmt: skip
        self.environment.pop("AIRFLOW_CONN_ANAPLAT_DEFAULT", None)
        self._dags = dags
        self._session = requests.Session()

    def __enter__(self) -> WebAirflow:
        for dag in self._dags:
            shutil.copy(dag, self.home / "dags")
        self.command("db", "migrate")
        try:
            for component in ("api-server", "dag-processor", "scheduler"):
                self.start(component)
            wait_until(self._ready)
            token = requests.get(f"{self.url}/auth/token", timeout=LONG).json()["access_token"]
        except BaseException:
            self.stop()
            raise
        self._session.headers["Authorization"] = f"Bearer {token}"
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self.stop()

    def _ready(self) -> bool:
        for name in self.dead():
            raise AssertionError(f"{name} ended: {self.component_log(name)[-3000:]}")
        return self.answers()

    def get(self, path: str) -> Any:
        """Return what the REST API answers."""
        answer = self._session.get(f"{self.url}/api/v2/{path}", timeout=LONG)
        assert answer.ok, answer.text
        return answer.json()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self._session.post(f"{self.url}/api/v2/{path}", json=body, timeout=LONG)
        assert answer.ok, answer.text
        return answer.json()

    def add_connection(self, conn_id: str, **fields: Any) -> None:
        self.post("connections", {"connection_id": conn_id, "conn_type": "anaplat", **fields})

    def knows(self, dag_id: str) -> bool:
        """Tell whether a run of the DAG can be started."""
        return self._session.get(f"{self.url}/api/v2/dags/{dag_id}/details", timeout=LONG).ok

    def run(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Run a DAG to its good end, and return the run's id."""
        wait_until(lambda: self.knows(dag_id), lambda: self.get("importErrors"))
        run_id: str = self.post(f"dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"]
        self.wait_for(dag_id, run_id)
        return run_id

    def wait_for(self, dag_id: str, run_id: str) -> None:
        """Wait for the good end of a run."""
        run = f"dags/{dag_id}/dagRuns/{run_id}"

        def states() -> dict[str, str]:
            return {task["task_id"]: task["state"] for task in self.get(f"{run}/taskInstances")["task_instances"]}

        wait_until(lambda: self.get(run)["state"] in ("success", "failed"), states)
        assert self.get(run)["state"] == "success", states()


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """Start Debian's Chromium, and return a page of it.

    :param profile: an empty folder
    """
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=True, args=FLAGS, locale="en-US",
            viewport={"width": 1200, "height": 960},
        )  # fmt: skip
        context.set_default_timeout(LONG * 1000)
        expect.set_options(timeout=LONG * 1000)
        try:
            yield context.pages[0]
        finally:
            context.close()


def screenshot(of: Page | Locator, name: str, tmp_path: Path) -> None:
    """Keep a picture of the page or of a part of it."""
    folder = Path(SCREENSHOTS) if SCREENSHOTS else tmp_path
    of.screenshot(path=folder / f"{name}.png", animations="disabled")


def skip_where_impossible() -> None:
    """Skip a test on a machine without a browser, or with an Airflow whose screens are others."""
    if Version(airflow_version) < Version("3.3"):
        pytest.skip(f"the screens of Airflow {airflow_version} are others")
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("no playwright: pip install playwright")
