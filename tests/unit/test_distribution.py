"""What is built: the wheel holds the package alone, and two builds of one tree are the same to the byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

pytest.importorskip("build", reason="what is built is the same on every release of Airflow")

ROOT = Path(__file__).parents[2]
NOT_SOURCES = (".git", "_build", ".venv*", ".demo", "dist", "build", "__pycache__", ".*_cache")


def build(tree: Path, environment: dict[str, str]) -> dict[str, Path]:
    """Build a copy of this project there, and return what was made by its suffix.

    :param environment: variables beside those of this process; where there are any, nobody else may read the files
    """
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    for number, path in enumerate(sorted(tree.rglob("*"))):
        os.utime(path, (number, number * 100_000))
        if environment and path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", tree], check=True, capture_output=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    return {path.suffix: path for path in (tree / "dist").iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("one") / "checkout", {})


@pytest.fixture(scope="module")
def metadata(built: dict[str, Path]) -> Message:
    with zipfile.ZipFile(built[".whl"]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(wheel.read(name))


def test_the_wheel_holds_the_package_alone(built: dict[str, Path]) -> None:
    package = ROOT / "airflow_provider_anaplat"
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = {path.relative_to(ROOT).as_posix() for path in package.rglob("*") if path.is_file()}

    assert names == {name for name in sources if "__pycache__" not in name}
    assert {Path(name).suffix for name in names} == {".py", ".typed"}
    assert "airflow_provider_anaplat/py.typed" in names


def test_the_source_distribution_holds_what_its_readme_speaks_of(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        inside = {name.partition("/")[2].split("/")[0] for name in archive.getnames()}

    assert inside == {
        *("PKG-INFO", "pyproject.toml", ".gitignore", "LICENSE", "Makefile"),
        *(path.name for path in ROOT.glob("*.md")),
        *("airflow_provider_anaplat", "benchmarks", "constraints", "demo", "docs", "example_dags", "tests", ".ci"),
    }


def test_the_same_tree_elsewhere_at_another_time_builds_the_same_bytes(
    built: dict[str, Path], tmp_path: Path
) -> None:
    again = build(tmp_path / "another" / "place", {"TZ": "Asia/Shanghai", "LC_ALL": "C"})
    assert sorted(again) == sorted(built) == [".gz", ".whl"]
    for suffix, path in built.items():
        assert again[suffix].name == path.name
        assert again[suffix].read_bytes() == path.read_bytes()


def test_an_index_would_take_it(built: dict[str, Path]) -> None:
    pytest.importorskip(
        "twine", "7", reason="what older releases pin holds it back, and it must know today's metadata"
    )
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built.values()], check=True)


def test_the_metadata_says_licence_types_and_releases(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    classifiers = metadata.get_all("Classifier", [])
    assert {"Typing :: Typed", "Framework :: Apache Airflow :: Provider"} <= set(classifiers)
    assert "airflow" in metadata["Keywords"].split(",")


def test_the_metadata_holds_no_path_and_no_address_of_ours(metadata: Message) -> None:
    headers = "\n".join(str(value) for value in metadata.values())
    assert "://" not in headers
    assert str(ROOT) not in headers


def test_a_release_with_a_home_has_addresses_and_links_that_work_elsewhere(tmp_path: Path) -> None:
    home = "https://code.example.com/anaplat/blob/v1"
    built = build(tmp_path / "checkout", {"ANAPLAT_HOME": f"{home}/"})
    with zipfile.ZipFile(built[".whl"]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(wheel.read(name))

    assert metadata.get_all("Project-URL") == [
        f"Documentation, {home}/docs/index.md", f"Changelog, {home}/CHANGELOG.md", f"Source, {home}",
    ]  # fmt: skip

    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    assert f"{home}/docs/index.md" in links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert {link.removeprefix(f"{home}/") for link in links if link.startswith(home)} <= {
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
    }


# Of the extras, those that users install; the others serve those who work on this package.
FOR_USERS = ("mysql", "postgres", "simulator", "sqlite")


@pytest.mark.parametrize(
    "official", sorted((ROOT / "constraints" / "official").iterdir()), ids=lambda path: path.stem
)
def test_no_floor_is_above_what_airflows_own_constraints_pin(official: Path) -> None:
    pins = dict(line.split("==") for line in official.read_text().split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for name in FOR_USERS for line in project["optional-dependencies"][name]),
    ]
    requirements = [Requirement(line) for line in wanted]
    known = [requirement for requirement in requirements if requirement.name in pins]

    assert len(known) >= 8
    assert [str(one) for one in known if not one.specifier.contains(pins[one.name])] == []


def test_the_bill_of_materials_names_packages_and_no_place(built: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx", reason="the constraints of older releases leave it out")
    environment, output = tmp_path / "alone", tmp_path / "sbom.json"
    venv.create(environment, with_pip=False)
    install: list[Any] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        environment,
        "install",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*install, "--quiet", "--disable-pip-version-check", built[".whl"]], check=True)
    subprocess.run([sys.executable, ROOT / ".ci" / "sbom.py", environment, output], check=True)
    bill = json.loads(output.read_text())

    assert bill.pop("$schema").endswith("/bom-1.6.schema.json")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "airflow-provider-anaplat"
    assert bill.get("components", []) == []
    assert [word for word in ("://", str(tmp_path), str(ROOT)) if word in json.dumps(bill)] == []
