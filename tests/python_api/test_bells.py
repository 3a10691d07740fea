"""Bells: streams of the device ring, Python waits, and the other way."""

from __future__ import annotations

import pytest
from conftest import brant, run_job


async def rings_and_waits() -> None:
    notifier = brant.Notifier(64)
    stream = brant.Stream()
    packed = brant.Bell(notifier)
    go = brant.Bell(notifier, rung_by="host", seen_by="device")
    assert packed.epoch == 0 and packed.is_open
    for epoch in (1, 2, 3):
        go.enqueue_wait(stream, epoch)
        packed.enqueue_ring(stream.handle, epoch)
        wait = packed.when(epoch)
        with pytest.raises(brant.TimedOut, match="bell"):
            await packed.when(epoch, timeout=0.01)
        assert packed.epoch == epoch - 1
        go.ring(epoch)
        assert await wait == epoch
    assert await packed.when(1) == 3, "it has come already"
    stream.synchronize()

    # Several at once, in any order; and one that is not awaited.
    waits = [packed.when(epoch) for epoch in (6, 4, 5)]
    packed.enqueue_ring(stream, 6)
    assert [await wait for wait in waits] == [6, 6, 6]
    packed.when(100)

    never = packed.when(7)
    packed.close()
    with pytest.raises(brant.Canceled):
        await never
    assert not packed.is_open
    with pytest.raises(brant.InvalidArgument, match="closed"):
        packed.when(1)


async def misuse() -> None:
    notifier = brant.Notifier(16)
    bell, go = brant.Bell(notifier), brant.Bell(notifier, rung_by="host", seen_by="device")
    with pytest.raises(brant.InvalidArgument, match="rung_by='host'"):
        bell.ring(1)
    go.ring(5)
    with pytest.raises(brant.InvalidArgument):
        go.ring(4)
    with pytest.raises(brant.InvalidArgument):
        await go.when(1)
    with pytest.raises(brant.InvalidArgument, match="is no stream"):
        bell.enqueue_ring("stream", 1)
    with pytest.raises(brant.InvalidArgument, match="device or host"):
        brant.Bell(notifier, rung_by="peer")
    held = []
    with pytest.raises(brant.LimitReached, match="NotifierOptions::bells"):
        for _ in range(17):
            held.append(brant.Bell(notifier))


async def streams_of_other_libraries() -> None:
    """What PyTorch, CuPy and Numba give is taken by the names that they have."""
    notifier, stream = brant.Notifier(16), brant.Stream()
    handle = stream.handle
    value = type("c_void_p", (), {"value": handle})()
    likes = [{"cuda_stream": handle}, {"ptr": handle}, {"handle": value}, {"__cuda_stream__": lambda _: (0, handle)}]
    bell = brant.Bell(notifier)
    for epoch, like in enumerate(likes, 1):
        bell.enqueue_ring(type("Stream", (), like)(), epoch)
        assert await bell.when(epoch, timeout=20) == epoch


async def no_device() -> None:
    with pytest.raises(brant.NotSupported):
        brant.Notifier()


async def ends_while_it_waits() -> None:
    notifier, stream = brant.Notifier(16), brant.Stream()
    global kept
    kept = [notifier, stream, brant.Bell(notifier)]
    kept.append(kept[2].when(1))
    brant.Bell(notifier).when(2)


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
@pytest.mark.parametrize(
    "main", [rings_and_waits, misuse, streams_of_other_libraries, ends_while_it_waits], ids=lambda main: main.__name__
)
def test_bells(main, loop: str) -> None:
    run_job(main, loop=loop, BRANT_GPU="emulated")


def test_without_a_device_there_are_none() -> None:
    run_job(no_device, BRANT_GPU="none")
