"""Users are read from files with the place of each, in a stream."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pytest
from upath import UPath

from airflow_provider_anaplat.errors import (
    AnaplatError,
    AnaplatInvalidUsersError,
    AnaplatSourceChangedError,
    AnaplatSourceError,
)
from airflow_provider_anaplat.users.checks import CheckedUsers
from airflow_provider_anaplat.users.sources import ListSource, QuerySource, file_source

ADA = {
    "loginId": "ada",
    "name": "Ada, L.",
    "password": " p;w ",
    "enabled": True,
    "userGroupIds": ["g1", "g2"],
    "userDefinedProperties": {"chat": "ada@x", "Mixed_Case": "7"},
}
BOB = {"loginId": "7", "enabled": False}

CSV = (
    "\ufeffloginId,name,password,enabled,userGroupIds,userDefinedProperties.chat,user_defined_properties.Mixed_Case\n"
    'ada,"Ada, L."," p;w ",TRUE,g1; g2,ada@x,7\n'
    "7,,,0,,,\n"
)
NDJSON = (
    json.dumps(ADA)
    + "\n\n"
    + json.dumps({"LOGINID": 7, "enabled": False, "name": None, "userGroupIds": None, "mobile": ""})
)


def parquet() -> bytes:
    frame = pl.DataFrame(
        {
            "loginid": ["ada", "7"],
            "name": ["Ada, L.", None],
            "password": [" p;w ", None],
            "enabled": [True, False],
            "user_group_ids": [["g1", "g2"], None],
            "userDefinedProperties": [{"chat": "ada@x", "Mixed_Case": "7"}, None],
        }
    )
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


FILES = {"u.csv": CSV.encode(), "u.ndjson": NDJSON.encode(), "u.jsonl": NDJSON.encode(), "u.PARQUET": parquet()}


@pytest.mark.parametrize("name", ["u[1].parquet", "u?.parquet", "*.parquet"])
def test_a_name_is_no_pattern(name: str, tmp_path: Path) -> None:
    for other in ("u1.parquet", "u2.parquet"):
        pl.DataFrame({"loginId": ["mallory"]}).write_parquet(tmp_path / other)
    (tmp_path / name).write_bytes(parquet())
    assert [user.login_id for user in CheckedUsers(file_source(tmp_path / name))] == ["ada", "7"]


def test_a_damaged_page_of_parquet_names_the_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"loginId": ["ada", "bob"], "name": ["Ada", "Bob"]})
    frame.write_parquet(tmp_path / "u.parquet", compression="uncompressed")
    content = bytearray((tmp_path / "u.parquet").read_bytes())
    content[36] = 0  # at which some releases of Polars panic, and others read or refuse what there is
    (tmp_path / "u.parquet").write_bytes(content)
    try:
        seen = [user.login_id for user in CheckedUsers(file_source(tmp_path / "u.parquet"))]
    except AnaplatError as error:
        seen = [str(error)]
    assert seen == ["ada", "bob"] or "u.parquet" in seen[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", ["local", "memory"])
def test_every_format_gives_the_same_users(name: str, where: str, tmp_path: Path) -> None:
    path: Any = tmp_path / name if where == "local" else UPath(f"memory://bucket{tmp_path}/{name}")
    with fsspec.open(str(path), "wb", auto_mkdir=True) as file:
        file.write(FILES[name])
    users = CheckedUsers(file_source(path))
    for _ in range(2):
        dumped = [user.model_dump(by_alias=True, exclude_none=True) for user in users]
        assert dumped == [ADA, BOB]


@pytest.mark.parametrize("name", ["u.csv", "u.parquet"])
def test_unknown_columns_are_named(name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"loginId": ["a"], "nick name": ["b"], "name.x": ["c"], "shoe": [1]})
    frame.write_csv(tmp_path / name) if name == "u.csv" else frame.write_parquet(tmp_path / name)
    with pytest.raises(
        AnaplatInvalidUsersError, match=r"unknown columns: 'nick name', 'name.x', 'shoe'; a user has loginId"
    ):
        CheckedUsers(file_source(tmp_path / name))


@pytest.mark.parametrize(
    "header",
    [
        "loginId,name,NAME",
        "loginId,userDefinedProperties.a,userDefinedProperties.a",
        "loginId,userDefinedProperties,userDefinedProperties.a",
    ],
)
def test_a_field_comes_from_one_column(header: str, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text(f"{header}\na,b,c\n")
    with pytest.raises(AnaplatInvalidUsersError, match=r"that another column gives: '.+'"):
        CheckedUsers(file_source(tmp_path / "u.csv"))


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text(
        "loginId,name,enabled,password\n"
        'a,"two\nlines",,hunter2\n'  # ends on line 3
        ",no login,,hunter2\n"
        "b,x,perhaps,hunter2\n"
        "\n"
        "c,too few\n"
        "a,again,,hunter2\n"
    )

    with pytest.raises(AnaplatInvalidUsersError) as raised:
        CheckedUsers(file_source(tmp_path / "u.csv"))
    assert str(raised.value).splitlines() == [
        f"4 problems in 5 users of {tmp_path}/u.csv; none was sent.",
        "line 4, loginId: Field required",
        "line 5, enabled: Input should be a valid boolean",
        "line 7: 2 fields, but the header has 4",
        "line 8, loginId: the same as that of line 3",
    ]


def test_every_problem_of_a_parquet_file_has_its_row(tmp_path: Path) -> None:
    logins = [f"u{number}" for number in range(30_000)]
    logins[1] = logins[20_000] = ""
    pl.DataFrame({"loginId": logins}).write_parquet(tmp_path / "u.parquet")

    with pytest.raises(AnaplatInvalidUsersError) as raised:
        CheckedUsers(file_source(tmp_path / "u.parquet"))
    assert [line.partition(",")[0] for line in str(raised.value).splitlines()[1:]] == ["row 2", "row 20001"]


def test_every_problem_of_a_json_file_has_its_line(tmp_path: Path) -> None:
    lines = [
        '{"loginId": "a"}',
        '{"loginId": "hunter2',
        "[1]",
        '{"loginId": "b", "shoe": 1}',
        '{"loginId": ["x"]}',
        '{"loginId": "c", "userDefinedProperties": "hunter2"}',
        '{"loginId": "d", "userGroupIds": 7}',
        "{}",
        '{"loginId": "e", "loginId": "f"}',
        '{"loginId": "g", "userDefinedProperties": {"a": 1, "a": 2}}',
    ]
    (tmp_path / "u.ndjson").write_text("\n".join(lines))

    with pytest.raises(AnaplatInvalidUsersError) as raised:
        CheckedUsers(file_source(tmp_path / "u.ndjson"))

    message = str(raised.value)
    for problem in (
        "line 2: the line is not JSON, or names a field twice",
        "line 3: the line is no JSON object",
        "line 4: unknown columns: 'shoe'",
        "line 5, loginId: Input should be a valid string",
        "line 6, userDefinedProperties: Input should be a valid dictionary",
        "line 7, userGroupIds: Input should be a valid list",
        "line 8, loginId: Field required",
        "line 9: the line is not JSON, or names a field twice",
        "line 10: the line is not JSON, or names a field twice",
    ):
        assert problem in message
    assert "hunter2" not in message


HALVES: list[dict[str, Any]] = [
    {"loginId": "a\ud800"},
    *[{"loginId": "a", field: "x\udfff hunter2"} for field in ("name", "password", "role", "email", "mobile")],
    {"loginId": "a", "userGroupIds": ["g", "\ud800"]},
    {"loginId": "a", "userDefinedProperties": {"chat": "\ud800"}},
    {"loginId": "a", "userDefinedProperties": {"\ud800": "chat"}},
]


@pytest.mark.parametrize("user", HALVES, ids=lambda user: [*user][-1])
@pytest.mark.parametrize("of_file", [True, False], ids=["file", "list"])
def test_half_a_character_in_any_field_has_its_place(user: dict[str, Any], of_file: bool, tmp_path: Path) -> None:
    users, path = [{"loginId": "b"}, user], tmp_path / "u.ndjson"
    path.write_text("\n".join(map(json.dumps, users)))
    source = file_source(path) if of_file else ListSource(users)

    with pytest.raises(AnaplatInvalidUsersError, match="1 problems in 2 users") as raised:
        CheckedUsers(source)

    place = "line 2, " if of_file else r"users\[1\]\."
    assert re.search(rf"^{place}{[*user][-1]}: ", str(raised.value), re.MULTILINE)
    assert "hunter2" not in str(raised.value)
    str(raised.value).encode()


def test_a_field_that_is_called_half_a_character_can_be_logged() -> None:
    with pytest.raises(AnaplatInvalidUsersError, match=r"users\[0\]") as raised:
        CheckedUsers(ListSource([{"loginId": "a", "\ud800": 1}]))
    str(raised.value).encode()


def test_half_a_character_that_comes_after_the_check_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "u.ndjson"
    path.write_text('{"loginId": "a"}')
    users = CheckedUsers(file_source(path))
    path.write_text('{"loginId": "a", "name": "\\ud800"}')
    with pytest.raises(AnaplatSourceChangedError, match="line 1 was not there"):
        list(users)


@pytest.mark.parametrize("depth", [500, 950, 1_000, 100_000])
@pytest.mark.parametrize("line", ["{}", '{{"loginId": "b", "name": {}}}', '{{"loginId": "b", "enabled": {}}}'])
def test_a_deep_line_has_its_number(line: str, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "u.ndjson"
    path.write_text('{"loginId": "a"}\n' + line.format("[" * depth + "]" * depth))
    with pytest.raises(AnaplatInvalidUsersError, match="1 problems in 2 users") as raised:
        CheckedUsers(file_source(path))
    assert str(raised.value).splitlines()[1].startswith("line 2")


def test_a_long_list_of_problems_is_cut_and_counted(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("loginId,name\n" + ",x\n" * 1_000)
    with pytest.raises(AnaplatInvalidUsersError) as raised:
        CheckedUsers(file_source(tmp_path / "u.csv"))
    lines = str(raised.value).splitlines()
    assert (len(lines), lines[-1]) == (202, "and 800 more")
    assert lines[0].startswith("1,000 problems in 1,000 users")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("u.csv", b"loginId\nada\n\xff\xfe\n", "what is not UTF-8"),
        ("u.csv", b'loginId,name\nada,"never closed\n', "unexpected end of data"),
        ("u.parquet", b"PAR1 hunter2", "is no list of users"),
    ],
)
def test_what_is_no_list_of_users_is_named(name: str, content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AnaplatInvalidUsersError, match=why) as raised:
        CheckedUsers(file_source(tmp_path / name))
    assert str(tmp_path / name) in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["u.csv", "u.ndjson"])
def test_a_file_without_a_header_shows_no_password(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("ada,Ada,hunter2\n" if name == "u.csv" else '{"login": "ada", "hunter2": 1}\n')
    with pytest.raises(
        AnaplatInvalidUsersError, match="there is no column loginId; the first line of a CSV file"
    ) as raised:
        CheckedUsers(file_source(tmp_path / name))
    assert "hunter2" not in str(raised.value)


def test_a_file_that_is_not_there_may_come(tmp_path: Path) -> None:
    with pytest.raises(AnaplatSourceError, match=r"Cannot read .*u\.csv: No such file"):
        CheckedUsers(file_source(tmp_path / "u.csv"))


@pytest.mark.parametrize("name", ["u", "u.txt", "u.csv.gz", "csv"])
def test_a_file_of_another_format_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(AnaplatInvalidUsersError, match=rf"{name} is no file of users: its name must end in \.csv"):
        file_source(tmp_path / name)


def test_an_empty_file_has_no_users(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("")
    assert list(CheckedUsers(file_source(tmp_path / "u.csv"))) == []


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ("loginId,password\na,1\nb,changed\n", "line 3 was not there"),
        ("loginId,password\na,1\nb,2\nc,3\n", "line 4 was not there"),
        ("loginId,password\na,1\na,1\n", "line 3 was not there"),
        ("loginId,password\na,1\n,\n", "line 3 was not there"),
        ("loginId,password\na,1\n", "1 of the users that were checked are not there"),
    ],
)
def test_nobody_is_sent_who_was_not_checked(after: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("loginId,password\na,1\nb,2\n")
    users = CheckedUsers(file_source(tmp_path / "u.csv"))
    (tmp_path / "u.csv").write_text(after)
    with pytest.raises(AnaplatSourceChangedError, match=what):
        list(users)


@pytest.mark.parametrize(
    "after",
    [
        b"loginId,password\na,1\n\xff\xfe\n",
        b'loginId,password\na,1\nb,"2',
        b"loginId,secret\na,1\nb,2\n",
        b"ada,hunter2\n",
    ],
    ids=["no UTF-8", "cut off", "other columns", "no header"],
)
def test_a_file_that_is_no_list_of_users_any_more_has_changed(after: bytes, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("loginId,password\na,1\nb,2\n")
    users = CheckedUsers(file_source(tmp_path / "u.csv"))
    (tmp_path / "u.csv").write_bytes(after)
    with pytest.raises(AnaplatSourceChangedError, match=r"u\.csv changed while it was read") as raised:
        list(users)
    assert "None was sent" not in str(raised.value)


def test_another_order_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("loginId\na\nb\n")
    users = CheckedUsers(file_source(tmp_path / "u.csv"))
    (tmp_path / "u.csv").write_text("loginId\nb\na\n")
    assert [user.login_id for user in users] == ["b", "a"]


@pytest.mark.parametrize("name", ["u.csv", "u.ndjson"])
def test_a_file_is_not_read_at_once(name: str, tmp_path: Path) -> None:
    rows = ({"loginId": f"user{i}", "name": "n" * 500} for i in range(20_000))
    with (tmp_path / name).open("w") as file:
        if name == "u.csv":
            file.write("loginId,name\n")
        for row in rows:
            file.write(json.dumps(row) + "\n" if name == "u.ndjson" else ",".join(row.values()) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in file_source(tmp_path / name).rows()) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # of a file of 10 MB
    finally:
        tracemalloc.stop()


def test_a_list_keeps_its_numbers() -> None:
    with pytest.raises(AnaplatInvalidUsersError, match=r"users\[1\]\.name: Input should be a valid string"):
        CheckedUsers(ListSource([{"loginId": "a"}, {"loginId": "b", "name": 1}]))


@pytest.mark.parametrize(
    "login_id",
    [" ada", "ada ", "ada\n", "\u3000ada", "ada\xa0", "\ufeffada", "ada\u200b", "a\x00da"],
    ids=ascii,
)
def test_a_login_id_that_does_not_look_like_what_it_is_has_its_place(login_id: str) -> None:
    with pytest.raises(
        AnaplatInvalidUsersError, match=r"users\[1\]\.loginId: the character U\+[0-9A-F]{4}, a space"
    ):
        CheckedUsers(ListSource([{"loginId": "ada"}, {"loginId": login_id}]))


def test_two_login_ids_that_look_the_same_are_the_same() -> None:
    with pytest.raises(AnaplatInvalidUsersError, match=r"users\[1\]\.loginId: the same as that of users\[0\]"):
        CheckedUsers(ListSource([{"loginId": "ren\xe9"}, {"loginId": "rene\u0301"}]))


@pytest.mark.parametrize(
    "login_id", ["Ada Lovelace", "ada@example.com", "张伟", "नमस्ते", "ada\u3000l", "👩\u200d💻"]
)
def test_any_other_login_id_passes(login_id: str) -> None:
    assert [user.login_id for user in CheckedUsers(ListSource([{"loginId": login_id}]))] == [login_id]


def test_the_rows_of_a_query_are_counted_from_one() -> None:
    @contextmanager
    def execute() -> Iterator[tuple[list[str], sqlite3.Cursor]]:
        with closing(sqlite3.connect(":memory:")) as database:
            yield ["loginId", "name"], database.execute("SELECT 'a', 'Ann' UNION ALL SELECT '', 'Bob'")

    with pytest.raises(AnaplatInvalidUsersError, match="row 2, loginId"):
        CheckedUsers(QuerySource(execute))
