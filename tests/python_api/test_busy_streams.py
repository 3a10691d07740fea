"""Arrays that a stream still works with: nobody is blocked, and what is sent is what the stream made of them. On the
emulated device, whose streams wait for bells that Python rings."""

from __future__ import annotations

import time

import numpy
import pytest
from conftest import brant, run_job
from test_arrays import OnDevice
from test_teams import BOTH
from test_teams_of_devices import KIND, on_device, seen


class BusyStream:
    """Its kernels run when `go` is called. They are collectives of a team of this process alone, which copy."""

    def __init__(self) -> None:
        self.notifier, self.stream = brant.Notifier(16), brant.Stream()
        self.bell = brant.Bell(self.notifier, rung_by="host", seen_by="device")
        self.team = brant.Team([brant.rank()])
        self.team.prepare_streams()
        self.sources = []
        self.rings = 0

    def write(self, values: numpy.ndarray, to) -> OnDevice:
        """`to` as a library shows an array that this stream writes, once it may."""
        self.bell.enqueue_wait(self.stream, self.rings + 1)
        self.sources.append(on_device(values))
        self.team.allreduce(self.sources[-1], out=to, stream=self.stream)
        return OnDevice(to, values.shape, stream=self.stream.handle)

    def go(self) -> None:
        self.rings += 1
        self.bell.ring(self.rings)


async def turns() -> None:
    for _ in range(20):
        await brant.sleep(0.001)


async def sends_wait_and_their_caller_does_not() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    for count in (3, 100_000):
        values = [numpy.arange(count) + 7, numpy.arange(count) * 3]
        if brant.rank() == 1:
            for landing in (None, numpy.zeros(count, int)):
                got = await channel.recv(landing)
                numpy.testing.assert_array_equal(seen(got) if landing is None else got, values[0])
                one, other, text = await channel.recv()
                numpy.testing.assert_array_equal(seen(one), values[1])
                numpy.testing.assert_array_equal(seen(other), values[0])
                assert text == "both" and await channel.recv() == "behind"
            continue
        for _ in range(2):
            streams = BusyStream(), BusyStream()
            arrays = [
                stream.write(value, on_device(numpy.zeros(count, int)))
                for stream, value in zip(streams, values, strict=True)
            ]
            began = time.monotonic()
            under_way = [channel.send(arrays[0]), channel.send(arrays[1], arrays[0], "both"), channel.send("behind")]
            assert time.monotonic() - began < 5
            await turns()
            streams[1].go()
            await turns()
            assert not any(send.done() for send in under_way), "the first one's array is not there yet"
            streams[0].go()
            for send in under_way:
                await send


async def raw_sends_wait_too() -> None:
    channel = brant.channel(1 - brant.rank(), 1, raw=True)
    values = numpy.arange(1000)
    if brant.rank() == 1:
        for factor in (1, 2, 3):
            landing = numpy.zeros(1000, int)
            assert await channel.recv(landing) == 8000
            numpy.testing.assert_array_equal(landing, values * factor)
        return
    stream = BusyStream()
    array = stream.write(values, on_device(numpy.zeros(1000, int)))
    under_way = [channel.send(array), channel.send(values * 2), channel.send(on_device(values * 3))]
    await turns()
    assert not any(send.done() for send in under_way)
    stream.go()
    for send in under_way:
        await send


async def what_is_given_up_does_not_leave() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    values = numpy.arange(500)
    if brant.rank() == 1:
        assert await channel.recv() == "first"
        numpy.testing.assert_array_equal(seen(await channel.recv()), values)
        return
    stream = BusyStream()
    never, late = BusyStream(), stream.write(values, on_device(numpy.zeros(500, int)))
    lost = never.write(values, on_device(numpy.zeros(500, int)))
    timed, cancelled, text = channel.send(lost, timeout=0.05), channel.send(lost), channel.send("first")
    array = channel.send(late)
    with pytest.raises(brant.TimedOut, match="channel 1 with rank 1"):
        await timed
    assert not text.done()
    cancelled.cancel()
    with pytest.raises(brant.Canceled):
        await cancelled
    await text  # it was behind those two alone
    assert not array.done()
    stream.go()
    await array
    never.go()  # its kernel ends before its memory goes


async def what_was_sent_arrives_after_the_close() -> None:
    """The kernel that makes the array waits for the other process, which takes its time."""
    world, stream = brant.world(), brant.Stream()
    world.prepare_streams()
    channel = brant.channel(1 - brant.rank(), 1)
    mine, total = on_device(numpy.arange(10)), on_device(numpy.zeros(10, int))
    if brant.rank() == 1:
        await brant.sleep(0.3)
    world.allreduce(mine, out=total, stream=stream)
    if brant.rank() == 0:
        sent = channel.send(OnDevice(total, (10,), stream=stream.handle))
        channel.close()
        assert channel.is_open is False
        await sent
    else:
        numpy.testing.assert_array_equal(seen(await channel.recv()), 2 * numpy.arange(10))
    stream.synchronize()
    await world.barrier()


async def a_close_does_not_wait_for_ever() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        with pytest.raises(brant.Canceled):
            await channel.recv()
        return
    stream = BusyStream()
    array = stream.write(numpy.arange(10), on_device(numpy.zeros(10, int)))
    sends = [channel.send(array), channel.send("behind")]
    began = time.monotonic()
    channel.close()
    assert 4 < time.monotonic() - began < 30
    for send in sends:
        with pytest.raises(brant.Canceled):
            await send
    stream.go()


async def a_landing_that_is_worked_with_is_left_alone() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    for count in (10, 100_000):
        message, before = numpy.arange(count) + 5, numpy.full(count, -1)
        if brant.rank() == 1:
            for _ in range(3):
                await channel.send(message)
            assert await channel.recv() == "seen"
            continue
        stream, landing, copy = BusyStream(), on_device(numpy.zeros(count, int)), on_device(numpy.zeros(count, int))
        shown = stream.write(before, landing)
        stream.team.allreduce(landing, out=copy, stream=stream.stream)  # which reads what a message must not overwrite
        given_up = channel.recv(shown, timeout=0.05)
        received, other = channel.recv(shown), channel.recv()
        with pytest.raises(brant.TimedOut):
            await given_up
        assert not received.done() and not other.done()
        stream.go()
        assert await received is shown
        numpy.testing.assert_array_equal(seen(landing), message)
        numpy.testing.assert_array_equal(seen(copy), before)
        await other
        numpy.testing.assert_array_equal(await channel.recv(numpy.zeros(count, int)), message)
        await channel.send("seen")


async def a_close_ends_receives_whose_landing_is_busy() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    done = brant.channel(1 - brant.rank(), 2)
    if brant.rank() == 1:
        await channel.send(numpy.arange(10))
        await done.recv()
        return
    stream = BusyStream()
    shown = stream.write(numpy.arange(10), on_device(numpy.zeros(10, int)))
    receives = [channel.recv(shown), channel.recv()]
    await turns()
    channel.close()
    for receive in receives:
        with pytest.raises(brant.Canceled):
            await receive
    stream.go()
    await done.send("done")


async def a_stream_that_is_gone_is_refused() -> None:
    channel, stream = brant.channel(0, 1), brant.Stream()
    array = OnDevice(on_device(numpy.arange(10)), (10,), stream=stream.handle)
    sent = channel.send(array)
    await brant.channel(0, 1).recv()
    await sent
    del stream
    with pytest.raises(brant.WrongKind, match="without one"):
        channel.send(array)


@BOTH
def test_a_send_leaves_when_its_array_is_computed(loop: str) -> None:
    run_job(sends_wait_and_their_caller_does_not, loop=loop, BRANT_GPU=KIND)


def test_a_raw_send_leaves_when_its_array_is_computed() -> None:
    run_job(raw_sends_wait_too, BRANT_GPU=KIND)


@BOTH
def test_a_send_that_is_given_up_before_does_not_leave(loop: str) -> None:
    run_job(what_is_given_up_does_not_leave, loop=loop, BRANT_GPU=KIND)


def test_a_close_lets_what_was_sent_leave() -> None:
    run_job(what_was_sent_arrives_after_the_close, BRANT_GPU=KIND)


def test_a_close_does_not_wait_for_ever() -> None:
    run_job(a_close_does_not_wait_for_ever, BRANT_GPU=KIND)


@BOTH
def test_a_message_lands_when_nobody_works_with_its_landing(loop: str) -> None:
    run_job(a_landing_that_is_worked_with_is_left_alone, loop=loop, BRANT_GPU=KIND)


def test_a_close_ends_receives_whose_landing_is_busy() -> None:
    run_job(a_close_ends_receives_whose_landing_is_busy, BRANT_GPU=KIND)


def test_a_stream_that_is_gone_is_refused() -> None:
    run_job(a_stream_that_is_gone_is_refused, ranks=1, BRANT_GPU=KIND)
