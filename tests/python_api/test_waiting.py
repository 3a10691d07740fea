"""Waiting under both loops and without one: time-outs, withdrawal, ends, and what happens meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy
import pytest
from conftest import brant, run_job

# pytest itself does not have the package, and only starts the processes that do.
Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])


async def a_receive_times_out() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        await channel.recv()
        for value in range(3):
            await channel.send(value)
        return
    began = time.monotonic()
    late = [channel.recv(timeout=0.1), channel.recv(timeout=0.05)]
    for operation in late:
        with pytest.raises(brant.TimedOut, match="channel 1 with rank 1: no message was received") as caught:
            await operation
        assert caught.value.peer == 1 and isinstance(caught.value, TimeoutError)
    assert 0.09 < time.monotonic() - began < 5
    await channel.send("go on")
    assert [await channel.recv(timeout=30) for _ in range(3)] == [0, 1, 2]  # none was lost


async def a_receive_is_cancelled() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        await channel.recv()
        return await channel.send("first")
    first, second = channel.recv(), channel.recv()
    first.cancel()
    with pytest.raises(brant.Canceled):
        await first
    assert first.done() and not second.done()
    await channel.send("go on")
    assert await second == "first"
    return None


async def asyncio_withdraws_what_it_cancels() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        await channel.recv()
        return await channel.send("first")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(channel.recv(), 0.05)
    task = asyncio.create_task(one_receive(channel))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await channel.send("go on")
    assert await channel.recv() == "first"
    return None


async def one_receive(channel):
    return await channel.recv()


async def a_closed_channel_ends_what_waits() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 0:
        waiting = [channel.recv() for _ in range(3)]
        channel.close()
        for operation in waiting:
            with pytest.raises(brant.Canceled):
                await operation
        with pytest.raises(brant.InvalidArgument, match="closed"):
            channel.send(b"")


async def iteration_ends_when_the_other_end_is_closed() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 0:
        for number in range(1000):
            await channel.send(numpy.full(5, number))
        channel.close()
    else:
        seen = [int(values[0]) async for values in channel]
        assert seen == list(range(1000))


async def iteration_ends_when_the_other_program_ends() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    globals()["kept"] = channel
    if brant.rank() == 0:
        await channel.send(1)
    else:
        assert [value async for value in channel] == [1]


async def many_unread_messages_wait() -> None:
    """The window holds the sender back: memory does not grow."""
    channel = brant.channel(1 - brant.rank(), 1)
    count = 100_000
    if brant.rank() == 0:
        for number in range(count):
            await channel.send(number.to_bytes(4, "little"))
        return
    await brant.sleep(0.2)
    for number in range(count):
        assert int.from_bytes(await channel.recv(), "little") == number


async def what_does_not_fit_is_refused() -> None:
    """And the message after it arrives."""
    channel = brant.channel(1 - brant.rank(), 1)
    large = numpy.zeros((100, 1000))
    if brant.rank() == 0:
        for message in (numpy.zeros(4), numpy.zeros(4, "f4"), b"abcde", {"an": "object"}, "good"):
            await channel.send(message)
        try:  # the receiver's refusal may be told
            await channel.send(large, delivered=True)
        except brant.Truncated as error:
            assert error.peer == 1
        await channel.send("good")
        return
    out = numpy.zeros(5)
    for text in ("an array of d of shape (4)", "an array of f of shape (4)", "5 bytes came", "an object came"):
        with pytest.raises(brant.InvalidArgument) as caught:
            await channel.recv(out)
        assert text in str(caught.value) and caught.value.peer == 0 and caught.value.subject == "channel 1 with rank 0"
    assert await channel.recv() == "good"
    with pytest.raises(brant.InvalidArgument, match=r"d of shape \(100, 1000\) came, and `out` is an array of d"):
        await channel.recv(out)
    assert await channel.recv() == "good"


def bad_arguments() -> None:
    read_only = numpy.zeros(3)
    read_only.setflags(write=False)
    channel, other = brant.channel(0, 1), brant.channel(0, 1)
    with pytest.raises(brant.InvalidArgument, match="read-only"):
        channel.recv(read_only)
    with pytest.raises(brant.WrongKind, match="an object of type int"):
        channel.recv(5)
    with pytest.raises(brant.InvalidArgument, match="cannot be pickled") as caught:
        channel.send(lambda: None)
    assert caught.value.subject == "channel 1 with rank 0"
    with pytest.raises(brant.InvalidArgument, match="at least one object"):
        channel.send()
    with pytest.raises(brant.InvalidArgument, match="time-out"):
        channel.recv(timeout=-1)
    with pytest.raises(brant.InvalidArgument, match="no rank 9"):
        brant.channel(9, 1)
    with pytest.raises(brant.NotSupported, match="BRANT_GPU"):
        brant.empty(3, memory="cuda")
    with pytest.raises(brant.InvalidArgument, match="kind of memory"):
        brant.empty(3, memory="paper")
    with pytest.raises(TypeError):
        brant.run(5)
    got = other.recv()
    channel.send("still usable").wait()
    assert got.wait() == "still usable"


def plain_code_waits() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    outgoing = channel.send(numpy.arange(100_000))
    assert channel.recv().wait().sum() == sum(range(100_000))
    outgoing.wait()
    with pytest.raises(brant.TimedOut):
        brant.channel(brant.rank(), 5 + brant.rank()).recv(timeout=0.05).wait()


async def tasks_run_side_by_side() -> None:
    channel = brant.channel(brant.rank(), 1), brant.channel(brant.rank(), 1)

    async def answer(value):
        if value == 2:
            raise ValueError("two")
        await brant.sleep(0.01 * (5 - value))
        return value

    async def echo():
        while (value := await channel[1].recv()) is not None:
            await channel[1].send(value + 1)
        return "ended"

    task = brant.spawn(echo())
    for value in range(10):
        await channel[0].send(value)
        assert await channel[0].recv() == value + 1
    await channel[0].send(None)
    assert await task == "ended"
    assert await brant.gather(*(answer(value) for value in (4, 3, 1))) == [4, 3, 1]
    with pytest.raises(ValueError, match="two"):
        await brant.gather(answer(1), answer(2))
    stopped = brant.spawn(brant.gather(channel[0].recv()))
    await brant.sleep(0)
    stopped.cancel()
    with pytest.raises(brant.Canceled):
        await stopped
    with pytest.raises(RuntimeError, match="asyncio.run"):
        await asyncio.get_event_loop_policy().new_event_loop().create_future()


async def other_threads_run_while_it_waits() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        time.sleep(0.5)
        return await channel.send("late")
    turns, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0.001)

    refused = []

    def call():
        try:
            channel.send("from another thread")
        except brant.NotSupported as error:
            refused.append(str(error))

    threads = [threading.Thread(target=count), threading.Thread(target=call)]
    for thread in threads:
        thread.start()
    assert await channel.recv() == "late"
    stop.set()
    for thread in threads:
        thread.join()
    assert turns[0] > 50 and "thread that started it" in refused[0]
    return None


async def idling_costs_little() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        time.sleep(1.5)
        return await channel.send("late")
    waiting = channel.recv()
    before, began = time.process_time(), time.monotonic()
    assert await waiting == "late"
    used, passed = time.process_time() - before, time.monotonic() - began
    assert passed > 0.5 and used < 0.05 * passed, f"{used:.3f} s of a core in {passed:.3f} s"
    return None


class Clock(Chare):
    @entry
    def cpu_s(self):
        return time.process_time()

    @brant.when("False") if brant else entry
    def never(self): ...


async def serving_chares_costs_little() -> None:
    async def main():
        clock = Clock.group()[1]
        before, began = await clock.cpu_s.reply(), time.monotonic()
        time.sleep(1.5)
        used, passed = await clock.cpu_s.reply() - before, time.monotonic() - began
        assert used < 0.05 * passed, f"{used:.3f} s of a core in {passed:.3f} s"

    await brant.program(main)


async def conditions_cost_little() -> None:
    async def main():
        clock = Clock.group()[1]
        for _ in range(20):
            clock.never()
        before, began = await clock.cpu_s.reply(), time.monotonic()
        time.sleep(1.5)
        used, passed = await clock.cpu_s.reply() - before, time.monotonic() - began
        assert used < 0.05 * passed, f"{used:.3f} s of a core in {passed:.3f} s"

    await brant.program(main)


async def one_awaits_at_a_time() -> None:
    channel = brant.channel(brant.rank(), 1), brant.channel(brant.rank(), 1)
    operation = channel[0].recv()

    async def wait():
        return await operation

    first = brant.spawn(wait())
    await brant.sleep(0)
    with pytest.raises(RuntimeError, match="awaited already"):
        await operation
    await channel[1].send(1)
    assert await first == 1
    assert await operation == 1  # once there is an answer, as often as one likes


@BOTH
def test_a_receive_that_times_out_is_withdrawn(loop: str) -> None:
    run_job(a_receive_times_out, loop=loop)


@BOTH
def test_a_receive_can_be_cancelled(loop: str) -> None:
    run_job(a_receive_is_cancelled, loop=loop)


def test_what_asyncio_cancels_is_withdrawn() -> None:
    run_job(asyncio_withdraws_what_it_cancels, loop="asyncio")


def test_closing_a_channel_ends_what_waits_there() -> None:
    run_job(a_closed_channel_ends_what_waits)


@BOTH
def test_iteration_ends_when_the_other_end_is_closed(loop: str) -> None:
    run_job(iteration_ends_when_the_other_end_is_closed, loop=loop)


def test_iteration_ends_when_the_other_program_ends() -> None:
    run_job(iteration_ends_when_the_other_program_ends)


@BOTH
def test_many_unread_messages_wait_at_the_sender(loop: str) -> None:
    run_job(many_unread_messages_wait, loop=loop)


def test_a_message_that_does_not_fit_is_refused_and_the_next_arrives() -> None:
    run_job(what_does_not_fit_is_refused)


def test_bad_arguments_are_named() -> None:
    run_job(bad_arguments, ranks=1, loop="none")


def test_plain_code_can_wait() -> None:
    run_job(plain_code_waits, loop="none")


def test_tasks_run_side_by_side() -> None:
    run_job(tasks_run_side_by_side, ranks=1)


@BOTH
def test_other_threads_run_while_one_waits(loop: str) -> None:
    run_job(other_threads_run_while_it_waits, loop=loop)


@BOTH
def test_an_idle_process_uses_little_of_a_core(loop: str) -> None:
    run_job(idling_costs_little, loop=loop)


@BOTH
def test_a_process_whose_chares_have_nothing_to_do_uses_little_of_a_core(loop: str) -> None:
    run_job(serving_chares_costs_little, loop=loop)


@BOTH
def test_a_process_whose_chares_wait_for_conditions_uses_little_of_a_core(loop: str) -> None:
    run_job(conditions_cost_little, loop=loop)


def test_one_coroutine_at_a_time_awaits_an_operation() -> None:
    run_job(one_awaits_at_a_time, ranks=1)
