"""Segments: arrays that others put into and get from."""

from __future__ import annotations

import numpy
import pytest
from conftest import brant, run_job


async def puts_and_gets() -> None:
    rank = brant.rank()
    channel = brant.channel(1 - rank, 1)
    for mine in (brant.empty(10_000), numpy.empty(10_000)):
        mine[...] = rank
        segment = brant.Segment(mine)
        await channel.send(segment.ticket())
        there = brant.RemoteSegment(1 - rank, await channel.recv())
        assert there.nbytes == 80_000 and there.peer == 1 - rank
        got = numpy.zeros(10_000)
        assert await there.get(got) is got
        assert (got == 1 - rank).all()
        await channel.send("read")
        await channel.recv()
        await there.put(numpy.full(20, 7.0 + rank)[::2], offset=80)
        await channel.send("written")
        await channel.recv()
        assert (mine[10:20] == 8.0 - rank).all() and mine[9] == mine[20] == rank
        column = numpy.zeros((10, 3))
        await there.get(column[:, 1], offset=80)
        assert column[:, 1].tolist() == [7.0 + rank] * 10 and not column[:, 0].any()
        with pytest.raises(brant.InvalidArgument, match="has 80000 bytes, and 80000 at offset 8 do not lie inside it"):
            await there.put(mine, offset=8)
        await channel.send("ready")
        await channel.recv()
        there.close()
        await channel.send("closed")
        await channel.recv()
        segment.close()
    with pytest.raises(brant.Error) as caught:
        brant.RemoteSegment(1 - rank, b"no ticket")
    assert caught.value.peer == 1 - rank
    with pytest.raises(brant.WrongKind):
        brant.Segment("text")
    with pytest.raises(brant.InvalidArgument, match="lie together"):
        brant.Segment(numpy.zeros(10)[::2])


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_puts_and_gets_reach_the_array_of_another_process(loop: str) -> None:
    run_job(puts_and_gets, loop=loop)
