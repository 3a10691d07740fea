"""Members that die, are late, or call something else; and groups that are made and destroyed."""

from __future__ import annotations

import datetime
import os
import pathlib
import signal
import sys
import time

import pytest
from conftest import outputs_of, run, start

try:
    import torch
    import torch.distributed as dist
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = None


def one_dies() -> None:
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=r"rank 1"):
        dist.all_reduce(torch.ones(3))
    with pytest.raises(dist.DistBackendError, match=r"rank 1"):
        dist.recv(torch.ones(3), 1)
    assert time.monotonic() - begin < 30
    print("the others know", flush=True)
    os._exit(0)


def test_a_killed_rank_raises_at_the_others() -> None:
    processes = start(one_dies, 3)
    outputs = outputs_of(processes)
    assert [process.returncode for process in processes] == [0, -signal.SIGKILL, 0], outputs
    assert sum("the others know" in output for output in outputs) == 2, outputs


def one_is_late() -> None:
    if dist.get_rank() == 0:
        work = dist.barrier(async_op=True)
        with pytest.raises(dist.DistBackendError, match="was not done within 200 ms"):
            work.wait(datetime.timedelta(milliseconds=200))
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            work.wait()
        print("named", flush=True)
    else:
        time.sleep(6)  # what is late
    os._exit(0)


def test_a_rank_that_does_not_come_is_named_after_the_timeout() -> None:
    assert "named" in run(one_is_late, 2, "brant", "3")[0]


def messages_are_late() -> None:
    """Of a member that lives: a receive from it, one from anybody, and a send that it does not take."""
    others = [dist.new_group(timeout=datetime.timedelta(seconds=3)) for _ in range(2)]
    if dist.get_rank() == 0:
        calls = [
            lambda: dist.recv(torch.ones(3), 1),
            lambda: dist.recv(torch.ones(3), group=others[0]),
            lambda: dist.send(torch.ones(10_000_000), 1, group=others[1]),
        ]
        works = []
        for call in calls:
            begin = time.monotonic()
            with pytest.raises(dist.DistBackendError, match="was not done within 3000 ms, and the group has ended"):
                call()
            works.append(time.monotonic() - begin)
        assert all(2.5 < seconds < 30 for seconds in works), works
        with pytest.raises(dist.DistBackendError, match="the group has ended"):
            dist.all_reduce(torch.ones(3))
        print("told", flush=True)
        pathlib.Path(os.environ["TOLD"]).touch()
    while not pathlib.Path(os.environ["TOLD"]).exists():
        time.sleep(0.1)
    os._exit(0)


def test_messages_that_do_not_come_end_after_the_timeout(tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    assert "told" in run(messages_are_late, 2, "brant", "3")[0]


def children_are_forked() -> None:
    dist.all_reduce(torch.ones(3))
    pending = dist.barrier(async_op=True) if dist.get_rank() == 0 else None

    def calls() -> None:
        with pytest.raises(RuntimeError, match="was forked, and has no part in the process group"):
            dist.all_reduce(torch.ones(3))
        if pending is not None:
            with pytest.raises(RuntimeError, match="was forked"):
                pending.wait()

    for body in (calls, dist.destroy_process_group, lambda: None):
        child = os.fork()
        if child == 0:
            try:
                body()
            except BaseException:
                os._exit(7)
            sys.exit(5)  # as programs end, with all that is done at the end
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended[1]) == 5 and ended[0] == child
    if dist.get_rank() != 0:
        dist.barrier()
    dist.barrier()


def test_children_that_are_forked_end_and_leave_the_group_alone() -> None:
    run(children_are_forked)


def different_calls() -> None:
    with pytest.raises(dist.DistBackendError, match=r"(?s)barrier|allreduce"):
        if dist.get_rank() == 0:
            dist.barrier()
        else:
            dist.all_reduce(torch.ones(3))
    print("told", flush=True)
    os._exit(0)


def test_ranks_that_call_different_things_are_told() -> None:
    assert all("told" in output for output in run(different_calls))


def again() -> None:
    for turn in range(3):
        dist.init_process_group("cpu:brant")
        groups = [dist.new_group() for _ in range(3)]
        for group in [None, *groups]:
            tensor = torch.ones(2)
            dist.all_reduce(tensor, group=group)
            assert tensor[0] == dist.get_world_size()
        dist.destroy_process_group(groups[1])
        dist.all_reduce(torch.ones(turn + 1), group=groups[2])
        dist.destroy_process_group()
    dist.init_process_group("brant")
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    # No destroy: the end of the interpreter does it.
    print("made and destroyed")


def test_groups_are_made_and_destroyed_again() -> None:
    assert all("made and destroyed" in output for output in run(again, 2, "none"))
