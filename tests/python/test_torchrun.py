"""Jobs that torchrun started, or something that looks like it: good ones, and all that can be wrong with the store."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest
from brant_command import plain_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
sys.path.insert(0, str(SUPPORT))
from torchrun import Store, variables  # noqa: E402

PROBE = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build" / "bin" / "brant")).with_name("boot_probe")
REFUSED = 65  # boot_probe's exit code for an Error

pytestmark = pytest.mark.skipif(not PROBE.exists(), reason=f"{PROBE} is not built: make build-tests")


def probe(scenario: str, environment: dict[str, str], **more: str) -> subprocess.Popen[str]:
    variables_of_all = {**plain_environment(), "PROBE_SIZE": environment["WORLD_SIZE"], **environment, **more}
    return subprocess.Popen(
        [PROBE, scenario], env=variables_of_all, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def ends(process: subprocess.Popen[str], limit_s: float = 30) -> tuple[int, str]:
    try:
        output, _ = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    return process.returncode, output


def all_end(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    return [ends(process) for process in processes]


@contextlib.contextmanager
def server(talk):
    """Something that listens at a port and is no store; `talk` gets each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        talk(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_two_runs_at_one_store_do_not_meet() -> None:
    store = Store()
    processes = []
    for run in ("one", "other"):
        for rank in range(2):
            environment = {**variables(rank, 2, store.port), "TORCHELASTIC_RUN_ID": run}
            processes.append(probe("rounds", environment))
    assert [code for code, _ in all_end(processes)] == [0] * 4
    assert {key.split(b"/")[1] for key in store.values} == {b"one", b"other"}


def test_an_attempt_does_not_read_what_the_one_before_left() -> None:
    store = Store()
    for attempt in range(2):
        done = all_end([probe("ranks", variables(rank, 2, store.port, attempt)) for rank in range(2)])
        assert [code for code, _ in done] == [0, 0], done


def test_a_rank_that_was_taken_is_refused_and_names_who_has_it() -> None:
    store = Store()
    assert ends(probe("name", variables(0, 2, store.port)))[0] == 0
    code, output = ends(probe("name", variables(0, 2, store.port)))
    assert code == REFUSED
    assert "RANK=0 was taken before by process" in output
    assert "TORCHELASTIC_RUN_ID" in output


def test_different_sizes_are_refused_and_both_are_named() -> None:
    store = Store()
    assert ends(probe("name", variables(0, 2, store.port)))[0] == 0
    code, output = ends(probe("name", variables(1, 3, store.port)))
    assert code == REFUSED
    assert "WORLD_SIZE is 3 here and 2 in the process that came first" in output


def test_nobody_at_the_port() -> None:
    with socket.socket() as bound:  # a port at which nobody listens, and that nobody else takes meanwhile
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        start = time.monotonic()
        code, output = ends(probe("name", variables(1, 2, port), BRANT_BOOT_TIMEOUT_MS="400"))
    assert time.monotonic() - start < 5
    assert code == REFUSED
    for words in (f"localhost:{port}", "rank 1 of 2", "Connection refused", "An agent of torchrun keeps it"):
        assert words in output, output


def test_a_host_that_does_not_exist() -> None:
    environment = {**variables(0, 2, 29500), "MASTER_ADDR": "no.such.host.invalid"}
    code, output = ends(probe("name", environment, BRANT_BOOT_TIMEOUT_MS="400"))
    assert code == REFUSED
    assert "no.such.host.invalid:29500" in output and "looked up" in output


def test_a_server_that_is_no_store() -> None:
    def http(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        time.sleep(0.2)

    with server(http) as port:
        code, output = ends(probe("name", variables(0, 2, port)))
    assert code == REFUSED
    assert f"localhost:{port}" in output and "no TCPStore" in output and "key 'brant/none/0/job'" in output, output


def test_a_server_that_never_answers() -> None:
    with server(lambda connection: time.sleep(20)) as port:
        code, output = ends(probe("name", variables(0, 2, port), BRANT_BOOT_TIMEOUT_MS="400"))
    assert code == REFUSED
    assert "no answer in time" in output, output


@pytest.mark.parametrize("questions", [0, 1, 2, 3, 5, 9])
def test_a_store_that_dies_is_named_by_all(questions: int) -> None:
    store = Store(dies_after=questions)
    for code, output in all_end([probe("rounds", variables(rank, 2, store.port)) for rank in range(2)]):
        assert code in (REFUSED, 1), output
        assert f"localhost:{store.port}" in output, output


def test_a_rank_that_never_comes_is_named() -> None:
    store = Store()
    # The scenario of rank 1 expects a fence that rank 0 has not reached to say so; rank 0 is never started.
    code, output = ends(probe("abandons", variables(1, 2, store.port)))
    assert code == 0, output


@pytest.mark.parametrize(
    "variable, value",
    [("RANK", "2"), ("RANK", "x"), ("LOCAL_RANK", "5"), ("MASTER_PORT", "0"), ("MASTER_PORT", "99999")],
)
def test_variables_out_of_range_are_named(variable: str, value: str) -> None:
    code, output = ends(probe("name", {**variables(0, 2, 29500), variable: value}))
    assert code == REFUSED
    assert f"{variable}='{value}'" in output, output


def test_without_a_store_of_an_agent_it_says_what_to_do() -> None:
    environment = {**variables(0, 2, 29500), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    code, output = ends(probe("name", environment))
    assert code == REFUSED
    assert "TORCHELASTIC_USE_AGENT_STORE is not True" in output and "BRANT_BOOTSTRAP=torchrun" in output


def test_a_store_without_an_agent_is_used_on_demand() -> None:
    store = Store()
    processes = []
    for rank in range(2):
        environment = {**variables(rank, 2, store.port), "TORCHELASTIC_USE_AGENT_STORE": "False"}
        processes.append(probe("ranks", environment, BRANT_BOOTSTRAP="torchrun"))
    assert [code for code, _ in all_end(processes)] == [0, 0]
