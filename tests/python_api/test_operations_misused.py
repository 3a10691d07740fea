"""Operations and loops that are used wrongly: in another thread or child, twice, after their end."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import threading
import weakref

import numpy
import pytest
from conftest import brant, run_job


def outcome_in_a_thread(call) -> object:
    """What it returned in another thread, or raised there."""
    outcomes = []

    def run() -> None:
        try:
            outcomes.append(call())
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcomes[0]


def another_thread_withdraws_nothing() -> None:
    channel, other = brant.channel(0, 1), brant.channel(0, 1)
    operation = channel.recv()
    for call in (operation.cancel, operation.close, lambda: operation.throw(ValueError())):
        error = outcome_in_a_thread(call)
        assert isinstance(error, brant.NotSupported), error
        assert "belongs to the thread" in str(error)
    child = os.fork()
    if child == 0:
        try:
            operation.cancel()
        except brant.NotSupported:
            os._exit(5)
        os._exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    other.send("it goes on").wait()
    assert operation.wait() == "it goes on"


def threads_start_it_at_once() -> None:
    """One of them starts it; the others are told that it belongs to that one."""
    gate = threading.Barrier(4)
    outcomes = []

    def start() -> None:
        gate.wait()
        try:
            outcomes.append(brant.rank())
        except brant.NotSupported as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(0) == 1
    assert sum("belongs to the thread" in outcome for outcome in outcomes if outcome != 0) == 3, outcomes


def an_answer_stays_what_it_is() -> None:
    """Cancelled after its end, an operation still gives what it gave."""
    channel, other = brant.channel(0, 1), brant.channel(0, 1)
    team = brant.Team([0])
    sent = channel.send(5)
    for operation, answer in (
        (other.recv(), 5),
        (sent, None),
        (brant.sleep(0), None),
        (team.allreduce(numpy.ones(3)), numpy.ones(3)),
    ):
        for _ in range(2):
            numpy.testing.assert_equal(operation.wait(), answer)
            operation.cancel()


def wrong_arguments() -> None:
    channel = brant.channel(0, 1)
    for call in (lambda: channel.recv(timeout="1"), lambda: channel.send(1, timeout=[]), lambda: brant.sleep("1")):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: brant.sleep(float("nan")), lambda: channel.recv(timeout=float("nan"))):
        with pytest.raises(brant.InvalidArgument, match="number of seconds"):
            call()
    for peer, number in ((0, -1), (0, 2**40), (2**40, 1), (-1, 1)):
        with pytest.raises(brant.InvalidArgument, match=r"channel id .* use 0 to|there is no rank"):
            brant.channel(peer, number)
    for peer, number in (("0", 1), (0, "1"), (0.5, 1), (None, 1)):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            brant.channel(peer, number)
    assert brant.channel(numpy.int64(0), numpy.uint8(7)).id == 7
    operation = channel.recv()
    for thrown in ((), (5,), (None,)):
        with pytest.raises(TypeError, match="throw takes an exception"):
            operation.throw(*thrown)
    with pytest.raises(brant.InvalidArgument, match="elements of object"):
        brant.empty(3, object)
    with pytest.raises(brant.InvalidArgument, match="elements of datetime64"):
        brant.empty(3, "M8[s]")


async def more_sends_than_there_can_be() -> None:
    """Nobody awaits them, so it is told at once. What was sent before arrives, and the channel goes on."""
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        flag = brant.empty(1)
        flag[0] = 0
        segment = brant.Segment(flag)
        await channel.send(segment.ticket())
        while flag[0] == 0:
            await brant.sleep(0.01)
        numbers = []
        while (number := await channel.recv()) != "the end":
            numbers.append(number)
        assert numbers == list(range(len(numbers))) and len(numbers) > 65_000
        return
    flag_there = brant.RemoteSegment(1, await channel.recv())
    sends: list = []
    with pytest.raises(brant.LimitReached, match="channel 1 with rank 1: a message was not sent"):
        while len(sends) < 200_000:
            sends.append(channel.send(len(sends)))
    await flag_there.put(numpy.ones(1))
    await sends[-1]
    await channel.send("the end", delivered=True)


async def tasks_that_are_their_own() -> None:
    tasks = []

    async def cancels_itself() -> int:
        tasks[0].cancel()
        return 5

    tasks.append(brant.spawn(cancels_itself()))
    assert await tasks[0] == 5

    async def awaits_itself() -> None:
        await tasks[1]

    tasks.append(brant.spawn(awaits_itself()))
    with pytest.raises(RuntimeError, match="a task cannot await itself"):
        await tasks[1]


async def an_exception_survives_that_of_a_task() -> None:
    """A task that failed is let go of while another exception is on its way."""
    told = []
    sys.unraisablehook = lambda what: told.append(what.exc_value)

    async def fails() -> None:
        raise ValueError("of the task")

    tasks = [brant.spawn(fails())]
    await brant.sleep(0.001)
    with pytest.raises(TypeError, match="not supported between"):
        min(tasks.pop(), 5)
    assert [str(error) for error in told] == ["of the task"]


async def the_loop_goes_on_without_brant() -> None:
    with brant.Runtime():
        channel = brant.channel(1 - brant.rank(), 1)
        outgoing = channel.send(1)
        await channel.recv()
        await outgoing
    before = resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.2


def loops_go() -> None:
    async def pause() -> weakref.ref:
        pauses.append(brant.sleep(100))  # its time is what the loop sleeps for
        await brant.sleep(0.001)  # longer than it looks before it leaves the turn to the loop
        await asyncio.sleep(0.01)
        return weakref.ref(asyncio.get_running_loop())

    pauses: list = []
    loops = [asyncio.run(pause()) for _ in range(20)]
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 1


def test_another_thread_or_child_withdraws_nothing() -> None:
    run_job(another_thread_withdraws_nothing, ranks=1, loop="none")


def test_of_threads_that_start_it_at_once_one_does() -> None:
    run_job(threads_start_it_at_once, ranks=1, loop="none")


def test_an_answer_stays_when_its_operation_is_cancelled() -> None:
    run_job(an_answer_stays_what_it_is, ranks=1, loop="none")


def test_wrong_arguments_are_python_exceptions() -> None:
    run_job(wrong_arguments, ranks=1, loop="none")


def test_a_send_beyond_the_limit_is_refused_at_once() -> None:
    run_job(more_sends_than_there_can_be)


def test_a_task_that_cancels_or_awaits_itself_ends() -> None:
    run_job(tasks_that_are_their_own, ranks=1)


def test_an_exception_survives_that_of_a_task_nobody_awaits() -> None:
    run_job(an_exception_survives_that_of_a_task, ranks=1)


def test_a_loop_of_asyncio_idles_when_brant_has_ended() -> None:
    run_job(the_loop_goes_on_without_brant, loop="asyncio")


def test_loops_of_asyncio_go_when_they_are_closed() -> None:
    run_job(loops_go, ranks=1, loop="none")
