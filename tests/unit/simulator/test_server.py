"""The embedded platform is strict where the contract is explicit."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from conftest import LONG, TEXTS, numbers
from support.running import wait_until

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.simulator import Simulator, Table, connections
from airflow_provider_anaplat.simulator.tables import rows_json


def post(simulator: Simulator, path: str, body: Any, **headers: str) -> requests.Response:
    headers = {"content-type": "application/json", **headers}
    data = body if isinstance(body, bytes) else json.dumps(body)
    return requests.post(f"{simulator.url}/public-api/{path}", data=data, headers=headers, timeout=LONG)


def test_only_post(simulator: Simulator) -> None:
    assert requests.get(f"{simulator.url}/public-api/data-source/list", timeout=LONG).status_code == 405


@pytest.mark.parametrize("body", [b"", b"[]", b"not json", b"null"])
def test_the_body_is_a_json_object(simulator: Simulator, body: bytes) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    answer = post(simulator, "data-source/ds1/columns", body, **{"x-auth-token": simulator.token})
    assert (answer.status_code, answer.json()["result"]) == (500, "fail")


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("data-source/list", {}, {"x-auth-token": "simulator-token"}),
        ("data-source/ds1/columns", {"token": "simulator-token"}, {}),
        ("data-source/list", {"token": "wrong"}, {}),
        ("data-source/ds1/data", {}, {"x-auth-token": "wrong"}),
    ],
)
def test_the_token_is_in_its_place(
    simulator: Simulator, path: str, body: dict[str, str], headers: dict[str, str]
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    answer = post(simulator, path, body, **headers)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, 1018)


def test_no_more_than_50_000_rows(simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    answer = post(simulator, "data-source/ds1/data", {"limit": 50_001}, **{"x-auth-token": simulator.token})
    assert answer.json()["error"]["status"] == 1012


def test_a_creation_takes_its_polls(client: AnaplatClient) -> None:
    with Simulator({"t": TEXTS}, creation_statuses=(None, "处理中", "FINISHED")) as simulator:
        client = AnaplatClient(simulator.url, simulator.token)
        client.call(
            "/public-api/data-source/create-from-account",
            json={"acId": "a", "name": "n", "tableQuery": {"table": "t"}},
        )
        seen = [[dataset.status for dataset in client.list_datasets()] for _ in range(4)]

    assert seen == [[], ["处理中"], ["FINISHED"], ["FINISHED"]]


def test_a_creation_from_a_table_that_does_not_exist_fails_later(
    client: AnaplatClient, simulator: Simulator
) -> None:
    client.call(
        "/public-api/data-source/create-from-account",
        json={"acId": "a", "name": "n", "tableQuery": {"table": "?"}},
    )
    assert [client.list_datasets()[0].status for _ in range(2)] == ["处理中", "FAILED"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_are_read_with_their_types(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "t.csv").write_text("i,l,d,day,text,none\n1,3000000000,1.5,2024-01-01,x,NA\nNA,2,2,NA,,NA\n")
    table = Table.read(tmp_path / "t.csv", "NA")
    if suffix == "parquet":
        table.frame.write_parquet(tmp_path / "t.parquet")
        table = Table.read(tmp_path / "t.parquet")

    assert table.fd_types == ("INT", "LONG", "DOUBLE", "DATE", "STRING", "STRING")
    assert table.frame.rows()[1] == (None, "2", "2", None, None, None)


def test_rows_are_rendered_as_texts_and_nulls() -> None:
    assert json.loads(rows_json(TEXTS.frame)) == [list(row) for row in TEXTS.frame.rows()]
    assert rows_json(numbers(0).frame) == b"[]"


COMMAND = [sys.executable, "-m", "airflow_provider_anaplat.simulator"]


def heed_interrupts() -> None:
    """Let Ctrl-C end what is started, also if these tests were started in the background, where it does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a\n1\n")
    command = [*COMMAND, "--port", "0", "--data", str(tmp_path / "sales.csv")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[-1]
            assert process.stderr.readline() == "  dataset ds1: sales, 1 rows\n"
            (dataset,) = AnaplatClient(url, "simulator-token").list_datasets()
            process.send_signal(signal.SIGINT)
            assert process.wait(LONG) == 0
            assert process.stderr.read() == "Stopped\n"
        finally:
            process.kill()

    assert (dataset.name, dataset.row_count) == ("sales", 1)


def test_a_mistake_in_the_command_line_is_said_in_a_line(tmp_path: Path, simulator: Simulator) -> None:
    taken = simulator.url.rpartition(":")[2]
    (tmp_path / "broken.parquet").write_text("no Parquet")
    for arguments, why in {
        ("--data", f"{tmp_path}/sales.csv"): "sales.csv cannot be read: No such file or directory",
        ("--data", str(tmp_path)): "cannot be read: Is a directory",
        ("--data", f"{tmp_path}/broken.parquet"): "broken.parquet cannot be read: ",
        ("--port", taken): f"port {taken} cannot be had (Address already in use",
        ("--port", "65536"): "--port is 65536; it must be from 0 to 65535",
    }.items():
        ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=LONG)
        assert ended.returncode == 2
        assert why in ended.stderr.splitlines()[-1]
        assert "Traceback" not in ended.stderr


def test_answers_do_not_wait_for_the_clients_system(simulator: Simulator) -> None:
    server = ("127.0.0.1", int(simulator.url.rpartition(":")[2]))
    with socket.create_connection(server, timeout=LONG) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.recv(1)
        served = connections._OPEN[*client.getsockname(), *server].get_extra_info("socket")

        assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_request_that_is_being_answered_when_it_stops_is_cut_off() -> None:
    with Simulator() as platform:
        client = socket.create_connection(("127.0.0.1", int(platform.url.rpartition(":")[2])), timeout=LONG)
        client.sendall(b"POST /public-api/data-source/list HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        wait_until(lambda: platform.most_at_once == 1)
    with client, pytest.raises(ConnectionResetError):
        client.recv(1)
