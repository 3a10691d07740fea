"""Receives that are given up while their message is on its way: the next receive gets it."""

from __future__ import annotations

import asyncio
import itertools
import random

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])


async def large_messages_survive_time_outs() -> None:
    """In whichever memory the receive that was given up, and the next one, would have it."""
    channel = brant.channel(1 - brant.rank(), 1)
    rows, columns, count = 2000, 1500, 24
    if brant.rank() == 0:
        for number in range(count):
            await channel.send(numpy.arange(number, number + rows * columns).reshape(rows, columns))
        return await channel.recv()
    places = itertools.cycle(
        [
            None,
            numpy.empty((rows, columns), int),
            numpy.empty((rows, columns), int, order="F"),
            numpy.empty((rows, 2 * columns), int)[:, ::-2],
            bytearray(rows * columns * 8),
        ]
    )
    late = 0
    for number in range(count):
        for out in places:
            try:
                got = await channel.recv(out, timeout=0.0005)
                break
            except brant.TimedOut:
                late += 1
        values = numpy.frombuffer(got, int).reshape(rows, columns) if isinstance(got, bytearray) else got
        assert (values == numpy.arange(number, number + rows * columns).reshape(rows, columns)).all(), number
    assert late > 0
    await channel.send("done")
    return None


async def messages_of_a_device_survive_time_outs() -> None:
    """They are where the receive that was given up would have had them, in whichever memory."""
    channel = brant.channel(1 - brant.rank(), 1)
    shape, count = (1000, 3000), 12
    host, device = numpy.zeros(shape), brant.empty(shape, memory="emulated")
    if brant.rank() == 0:
        for number in range(count):
            host[...] = number
            host[0, 1] += 0.5
            device.copy_from(host)
            await channel.send(device)
        return await channel.recv()
    places = itertools.cycle([None, device, host, numpy.zeros(shape, order="F")])
    for number in range(count):
        for out in places:
            try:
                got = await channel.recv(out, timeout=0.0004)
                break
            except brant.TimedOut:
                continue
        if isinstance(got, brant.Array):
            got.copy_to(host)
            got = host
        assert (got[0, 1], got[1, 0], got[-1, -1]) == (number + 0.5, number, number)
    await channel.send("done")
    return None


async def what_asyncio_cancels_loses_nothing() -> None:
    """Small messages, that came while their task was cancelled, and larger ones that were on their way."""
    channel = brant.channel(1 - brant.rank(), 1)
    count = 1500
    random.seed(brant.rank())
    if brant.rank() == 0:
        for number in range(count):
            await channel.send(number if number % 3 else numpy.full(5000, number))
            if number % 5 == 0:
                await asyncio.sleep(random.random() * 0.002)
        return await channel.recv()
    got: list[int] = []
    while len(got) < count:
        try:
            message = await asyncio.wait_for(channel.recv(timeout=10), random.random() * 0.001)
        except asyncio.TimeoutError:
            continue
        got.append(message if isinstance(message, int) else int(message[0]))
    assert got == list(range(count))
    await channel.send("done")
    return None


async def who_waits_gets_what_another_gave_up() -> None:
    """Of two that wait the first is cancelled when its message has come: the second gets it."""
    channel, other = brant.channel(0, 1), brant.channel(0, 1)

    async def receive() -> object:
        return await channel.recv()

    first, second = brant.spawn(receive()), brant.spawn(receive())
    await brant.sleep(0.001)
    sent = other.send("one")
    first.cancel()
    with pytest.raises(brant.Canceled):
        await first
    assert await second == "one"
    await sent
    # And one that took over may be given up as well.
    outgoing = [other.send(text) for text in ("two", "three")]
    first, second = brant.spawn(receive()), brant.spawn(receive())
    await brant.sleep(0.001)
    assert [await first, await second] == ["two", "three"]
    for operation in outgoing:
        await operation


async def a_channel_is_used_once_more(count: int) -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 0:
        assert await channel.recv() == ("question", count)
        await channel.send("answer")
    else:
        await channel.send(("question", count))
        assert await channel.recv() == "answer"


def one_program_after_another() -> None:
    """The end of a channel does not reach the next one of its name."""
    for count in range(50):
        (asyncio.run if count % 2 else brant.run)(a_channel_is_used_once_more(count))


@BOTH
def test_a_large_message_survives_the_time_out_of_its_receive(loop: str) -> None:
    run_job(large_messages_survive_time_outs, loop=loop)


def test_a_message_of_a_device_survives_the_time_out_of_its_receive() -> None:
    run_job(messages_of_a_device_survive_time_outs, BRANT_GPU="emulated")


def test_what_asyncio_cancels_loses_no_message() -> None:
    run_job(what_asyncio_cancels_loses_nothing, loop="asyncio")


def test_who_waits_gets_what_another_gave_up() -> None:
    run_job(who_waits_gets_what_another_gave_up, ranks=1)


def test_a_channel_is_opened_again_by_the_next_program() -> None:
    run_job(one_program_after_another, loop="none")
