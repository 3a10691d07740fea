"""However a program ends, no process of the job hangs, and whoever waited is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
from conftest import brant, command, environment, run_job

SOON_S = 15


async def the_peer_is_killed() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        await channel.recv()
        os.kill(os.getpid(), signal.SIGKILL)
    await channel.send("die")
    waiting = [channel.recv(), channel.recv(), channel.send(numpy.zeros(3_000_000))]
    for operation in waiting:
        with pytest.raises(brant.PeerLost) as caught:
            await operation
        assert caught.value.peer == 1 and "channel 1 with rank 1" in str(caught.value)
    print("told of it")


async def one_raises() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        raise ValueError("on purpose")
    await channel.recv()


async def one_leaves() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        sys.exit(7)
    with pytest.raises(brant.Error):
        await channel.recv()
    print("told of it")


async def it_waits() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    print("waiting", flush=True)
    await channel.recv()


def it_waits_in_plain_code() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    print("waiting", flush=True)
    channel.recv().wait()


def a_block_begins_and_ends() -> None:
    with brant.Runtime() as runtime:
        assert (runtime.rank, runtime.size) == (brant.rank(), brant.size())
        channel = brant.channel(1 - runtime.rank, 1)
        kept = brant.empty(100_000)
        kept[...] = 5
        channel.send(kept)
        assert channel.recv().wait().sum() == 500_000
    assert (kept == 5).all()  # it is still there
    with pytest.raises(brant.Error, match="starts once"):
        brant.rank()
    with pytest.raises(brant.Error):
        channel.send(1)
    channel.close()
    del channel, kept


async def a_child_is_forked() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    await channel.send(0)
    child = os.fork()
    if child == 0:
        with pytest.raises(brant.NotSupported, match="forked"):
            brant.rank()
        sys.exit(5)  # an end like that of a program
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 5
    assert await channel.recv() == 0
    await channel.send("still here")
    assert await channel.recv() == "still here"


async def arrays_outlive_everything() -> None:
    globals()["kept"] = [brant.empty(100_000), brant.empty(10), brant.channel(1 - brant.rank(), 1), brant.sleep(1000)]
    globals()["kept"].append(globals()["kept"][2].recv())


def test_a_killed_peer_is_named() -> None:
    done = run_job(the_peer_is_killed, options=("--keep-going",), fails=True)
    assert "told of it" in done.stdout, done.stderr


def test_an_exception_in_one_process_ends_the_job() -> None:
    began = time.monotonic()
    done = run_job(one_raises, fails=True)
    assert "ValueError: on purpose" in done.stderr
    assert time.monotonic() - began < SOON_S


def test_an_exit_code_reaches_the_launcher() -> None:
    done = run_job(one_leaves, options=("--keep-going",), fails=True)
    assert done.returncode == 7 and "told of it" in done.stdout, done.stderr


WAITING = [(it_waits, "brant"), (it_waits, "asyncio"), (it_waits_in_plain_code, "none")]


@pytest.mark.parametrize(("body", "loop"), WAITING)
def test_ctrl_c_ends_all_processes(body, loop: str) -> None:
    pipe = subprocess.PIPE
    started = command(body, loop=loop)
    job = subprocess.Popen(started, env=environment(), text=True, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        for _ in range(2):
            assert "waiting" in job.stdout.readline()
        os.killpg(job.pid, signal.SIGINT)  # as a terminal does
        _, said = job.communicate(timeout=SOON_S)
    finally:
        job.kill()
    assert job.returncode != 0
    assert "KeyboardInterrupt" in said


def test_a_block_begins_and_ends_the_runtime() -> None:
    run_job(a_block_begins_and_ends, loop="none")


def test_a_forked_child_leaves_its_parent_alone() -> None:
    run_job(a_child_is_forked)


def test_arrays_may_outlive_the_runtime() -> None:
    done = run_job(arrays_outlive_everything)
    assert done.stderr == ""


def test_the_import_takes_less_than_150_ms() -> None:
    def seconds(text: str) -> float:
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", text], env=environment(), check=True)
        return time.monotonic() - began

    # Of several, since the machine does other things too; what the interpreter itself takes is not ours.
    assert min(seconds("import brant") for _ in range(5)) - min(seconds("pass") for _ in range(5)) < 0.15


def test_the_import_needs_no_numpy() -> None:
    text = "import sys; sys.modules['numpy'] = None; import brant; print('asyncio' in sys.modules, brant.size())"
    done = subprocess.run([sys.executable, "-c", text], env=environment(), text=True, capture_output=True)
    assert done.stdout == "False 1\n", done.stderr
