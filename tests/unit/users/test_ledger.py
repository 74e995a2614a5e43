"""What the ledger of users tells an attempt of those before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_anaplat.errors import AnaplatDamagedStateError
from airflow_provider_anaplat.state import FolderStateStore
from airflow_provider_anaplat.users.ledger import UserLedger

DEEP = [
    pytest.param(f'{{"state":"created","loginIds":{"[" * depth}{"]" * depth}}}', id=f"{depth} deep")
    for depth in (500, 1_000, 100_000)
]


def noted(folder: Path) -> FolderStateStore:
    """Return what two batches that were created and one whose answer is missing leave behind."""
    store = FolderStateStore(folder)
    ledger = UserLedger(store)
    for login_id in ("ada", "blaise"):
        ledger.begin([login_id])
        ledger.created_now([login_id])
    ledger.begin(["carl"])
    return store


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "damage", ["", "null", "7", "[]", "{}", '{"state":"created"}', '{"state":"sent","loginIds":[]}',
    '{"state":"created","loginIds":"ada"}', '{"state":"created","loginIds":[7]}', None, *DEEP],
)  # fmt: skip
def test_a_batch_that_is_missing_or_damaged_is_no_batch_that_was_not_sent(
    tmp_path: Path, number: int, damage: str | None
) -> None:
    store = noted(tmp_path)
    path = tmp_path / f"anaplat_users_00000{number}.json"
    path.unlink() if damage is None else path.write_text(damage)
    with pytest.raises(AnaplatDamagedStateError, match=f"anaplat_users_00000{number}"):
        UserLedger(store)


@pytest.mark.parametrize("damage", ["", "null", "0", "-1", "true", "1.0", '"1"', "[1]", *DEEP])
def test_a_damaged_number_of_batches_is_not_none(tmp_path: Path, damage: str) -> None:
    store = noted(tmp_path)
    (tmp_path / "anaplat_users_000001.json").unlink()
    (tmp_path / "anaplat_users.json").write_text(damage)
    with pytest.raises(AnaplatDamagedStateError, match=r"anaplat_users\.json"):
        UserLedger(store)


def test_a_batch_is_not_taken_for_none_if_the_number_of_batches_is_gone(tmp_path: Path) -> None:
    store = noted(tmp_path)
    (tmp_path / "anaplat_users.json").unlink()
    (tmp_path / "anaplat_users_000001.json").write_text("null")
    with pytest.raises(AnaplatDamagedStateError, match="anaplat_users_000001"):
        UserLedger(store)


def test_a_batch_that_was_refused_makes_room_for_the_next(tmp_path: Path) -> None:
    store = noted(tmp_path)
    ledger = UserLedger(store)
    ledger.resolve(["carl"])
    ledger.begin(["dora"])
    ledger.refused()
    again = UserLedger(store)

    assert (list(again.created), again.in_doubt, again.batches) == (["ada", "blaise", "carl"], [], 3)

    again.begin(["emmy"])
    assert UserLedger(store).in_doubt == ["emmy"]


def test_batches_behind_one_that_was_in_doubt_keep_their_places(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    ledger = UserLedger(store)
    for login_id in ("ada", "blaise", "carl"):
        ledger.begin([login_id])
        if login_id == "blaise":
            ledger.left_in_doubt([login_id])
            ledger.resolve([login_id])
        else:
            ledger.created_now([login_id])

    again = UserLedger(store)
    assert (sorted(again.created), again.in_doubt, again.batches) == (["ada", "blaise", "carl"], [], 3)


def test_what_was_created_on_another_platform_is_not_created_on_this_one(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    ledger = UserLedger(store, "https://staging")
    ledger.begin(["ada"])
    ledger.created_now(["ada"])

    assert list(UserLedger(store, "https://staging").created) == ["ada"]
    with pytest.raises(
        AnaplatDamagedStateError, match="users to https://staging, and the connection leads to https://platform"
    ):
        UserLedger(store, "https://platform")


def test_another_platform_is_none_where_nobody_was_created(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    ledger = UserLedger(store, "https://plattform")
    ledger.begin(["ada"])
    ledger.refused()

    ledger = UserLedger(store, "https://platform")
    ledger.begin(["ada"])
    ledger.created_now(["ada"])
    assert list(UserLedger(store, "https://platform").created) == ["ada"]


def test_the_same_platform_in_another_spelling_knows_its_users(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    ledger = UserLedger(store, "https://bi.example.com")
    ledger.begin(["ada"])
    ledger.created_now(["ada"])
    assert list(UserLedger(store, "https://BI.example.com:443").created) == ["ada"]
