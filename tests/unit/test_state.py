from __future__ import annotations

from pathlib import Path

import pytest
from upath import UPath

from airflow_provider_anaplat._airflow.task_state import folder_state
from airflow_provider_anaplat.errors import AnaplatDamagedStateError, AnaplatOutputError
from airflow_provider_anaplat.state import FolderStateStore


class Task:
    """What a context says of the task."""

    dag_id, task_id, map_index = "d", "t", -1

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id


def test_values_are_kept_replaced_and_forgotten(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path / "not" / "there" / "yet")
    assert (store.get("a"), store.get("a", 7)) == (None, 7)

    store.set("a", {"loginIds": ["中"]})
    store.set("a", {"loginIds": ["b"]})

    assert FolderStateStore(tmp_path / "not" / "there" / "yet").get("a") == {"loginIds": ["b"]}

    store.delete("a")
    store.delete("a")

    assert store.get("a") is None


def test_the_name_of_a_folder_is_no_pattern(tmp_path: Path) -> None:
    folder = UPath(f"memory://bucket{tmp_path}")
    store, other = FolderStateStore(folder / "notes[1]"), FolderStateStore(folder / "notes1")
    for one in (store, other):
        one.set("a", 1)
    store.delete("a")
    assert (store.get("a"), other.get("a")) == (None, 1)


def test_dag_runs_do_not_see_each_others_values(tmp_path: Path) -> None:
    first, second = (
        folder_state({"ti": Task(run)}, f"file://{tmp_path}")
        for run in ("manual__2026-01-01T00:00:00+00:00", "../x")
    )
    first.set("a", 1)

    assert second.get("a") is None

    second.set("a", 2)
    assert folder_state({"ti": Task("manual__2026-01-01T00:00:00+00:00")}, tmp_path).get("a") == 1
    assert not (tmp_path / "x").exists()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = FolderStateStore(tmp_path / "file")
    with pytest.raises((AnaplatOutputError, OSError), match="file"):
        store.set("a", 1)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_value_that_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(AnaplatDamagedStateError, match=r"a\.json cannot be used.*Nothing was sent"):
        FolderStateStore(tmp_path).get("a")


def test_no_link_that_waits_there_is_written_through(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("own")
    store = tmp_path / "store"
    store.mkdir()
    (store / "a.tmp").symlink_to(own)
    FolderStateStore(store).set("a", 1)

    assert own.read_text() == "own"
    assert FolderStateStore(store).get("a") == 1


def test_a_value_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()  # which no file can replace
    with pytest.raises(AnaplatOutputError, match=r"a\.json"):
        FolderStateStore(tmp_path).set("a", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_no_run_has_the_folder_of_another(tmp_path: Path) -> None:
    for dag in ("a", "b", ".", ".."):
        for run in ("r", ".", "..", "a/b", "%2E"):
            task = Task(run)
            task.dag_id = dag
            store = folder_state({"ti": task}, tmp_path / "below")
            assert store.get("a") is None
            store.set("a", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["below"]
