"""Programs of Python under a stand-in for torchrun: the whole of brant starts by its store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from conftest import ROOT, START, brant, environment

sys.path.insert(0, str(ROOT / "tests" / "support"))
from torchrun import Store, variables  # noqa: E402


def start(body, rank: int, size: int, store: Store, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(START), __file__, body.__name__, "brant"],
        env=environment(**variables(rank, size, store.port), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=60)[0]
    finally:
        process.kill()


async def exchange() -> None:
    channel = brant.channel(1 - brant.rank(), id=1)
    sent = channel.send({"from": brant.rank()})
    assert await channel.recv() == {"from": 1 - brant.rank()}
    await sent
    assert (brant.local_rank(), brant.local_size()) == (brant.rank(), 2)


def test_processes_meet_at_the_store():
    store = Store()
    processes = [start(exchange, rank, 2, store) for rank in range(2)]
    outputs = [output_of(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs


def test_a_rank_that_never_comes_is_named_with_the_place_where_it_was_awaited():
    store = Store()
    process = start(exchange, 0, 2, store, BRANT_BOOT_TIMEOUT_MS="1000")
    begin = time.monotonic()
    output = output_of(process)
    assert time.monotonic() - begin < 30
    assert process.returncode != 0
    for words in ("rank 1 did not reach it", f"localhost:{store.port}", "rank 0 of 2", "BRANT_BOOT_TIMEOUT_MS"):
        assert words in output, output


async def one_dies() -> None:
    channel = brant.channel(1 - brant.rank(), id=1)
    if brant.rank() == 1:
        await channel.recv()
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        await channel.send(1)
        await channel.recv()
    except brant.PeerLost:
        print("the other has died")


def test_a_death_that_no_agent_tells_of_is_noticed():
    store = Store()
    processes = [start(one_dies, rank, 2, store) for rank in range(2)]
    outputs = [output_of(process) for process in processes]
    assert "the other has died" in outputs[0], outputs
    assert processes[1].returncode == -signal.SIGKILL
