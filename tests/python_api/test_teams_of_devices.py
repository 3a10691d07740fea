"""Collectives of Python on memory of a device, and on streams: on the emulated one, whose arrays brant itself makes."""

from __future__ import annotations

import os

import numpy
import pytest
from conftest import brant, run_job
from test_arrays import OnDevice
from test_teams import BOTH, of_all, of_rank

KIND = "emulated"


def on_device(values: numpy.ndarray):
    array = brant.empty(values.shape, values.dtype, memory=KIND)
    array.copy_from(values)
    return array


def seen(array) -> numpy.ndarray:
    assert isinstance(array, brant.Array) and array.memory == KIND
    values = numpy.empty(array.shape, array.format)
    array.copy_to(values)
    return values


async def all_collectives() -> None:
    team = brant.world()
    rank, size = team.rank, team.size
    for count in (1, 700, 40_000):
        every = of_all(size, (count, 2))
        mine, total = on_device(every[rank]), sum(every)
        root = size - 1
        numpy.testing.assert_array_equal(seen(await team.allreduce(mine)), total)
        numpy.testing.assert_array_equal(seen(mine), every[rank])
        landing = on_device(numpy.zeros((count, 2)))
        assert await team.allreduce(mine, "max", out=landing) is landing
        numpy.testing.assert_array_equal(seen(landing), every[-1])
        assert await team.allreduce(landing, out=landing) is landing
        numpy.testing.assert_array_equal(seen(landing), every[-1] * size)
        reduced = await team.reduce(mine, root=root)
        assert reduced is None if rank != root else (seen(reduced) == total).all()
        numpy.testing.assert_array_equal(seen(await team.allgather(mine)), numpy.stack(every))
        gathered = await team.gather(mine, root)
        assert gathered is None if rank != root else (seen(gathered) == numpy.stack(every)).all()
        told = on_device(every[rank])
        assert await team.broadcast(told, root) is told
        numpy.testing.assert_array_equal(seen(told), every[root])
        of_blocks = of_all(size, (size, count))
        blocks = on_device(of_blocks[rank])
        numpy.testing.assert_array_equal(seen(await team.reduce_scatter(blocks)), sum(of_blocks)[rank])
        numpy.testing.assert_array_equal(
            seen(await team.alltoall(blocks)), numpy.stack([of_blocks[other][rank] for other in range(size)])
        )
        part = on_device(numpy.zeros(count))
        await team.scatter(blocks if rank == root else None, root, out=part)
        numpy.testing.assert_array_equal(seen(part), of_blocks[root][rank])
        numpy.testing.assert_array_equal(seen(await team.scan(mine)), sum(every[: rank + 1]))
        before = await team.exscan(mine)
        assert before is None if rank == 0 else (seen(before) == sum(every[:rank])).all()
    hypotenuse = seen(await team.allreduce(on_device(numpy.full(5, 3.0 + rank)), numpy.hypot))
    numpy.testing.assert_array_equal(hypotenuse, numpy.hypot(3.0, 4.0) if size == 2 else numpy.full(5, 3.0))


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_each_collective_takes_memory_of_a_device(ranks: int, loop: str) -> None:
    run_job(all_collectives, ranks=ranks, loop=loop, BRANT_GPU=KIND)


async def members_with_other_memory() -> None:
    team = brant.world()
    every = of_all(team.size)
    mine = on_device(every[team.rank]) if team.rank == 0 else every[team.rank]
    total = await team.allreduce(mine)
    numpy.testing.assert_array_equal(seen(total) if team.rank == 0 else total, sum(every))
    # From the device into the host, and the other way.
    landing = numpy.zeros((3, 5)) if team.rank == 0 else on_device(numpy.zeros((3, 5)))
    await team.allreduce(mine, out=landing)
    numpy.testing.assert_array_equal(landing if team.rank == 0 else seen(landing), sum(every))
    # As CuPy and Numba show theirs.
    memory = on_device(numpy.arange(12) + team.rank)
    shown = await team.allreduce(OnDevice(memory, (3, 4)))
    numpy.testing.assert_array_equal(seen(shown), 2 * numpy.arange(12).reshape(3, 4) + 1)
    with pytest.raises(brant.NotSupported, match="not in C order"):
        team.allreduce(OnDevice(memory, (3, 4), strides=(8, 24)))
    with pytest.raises(brant.NotSupported, match="do not lie together"):
        team.allreduce(OnDevice(memory, (3, 2), strides=(32, 16)))
    with pytest.raises(brant.InvalidArgument, match="read-only"):
        team.allreduce(memory, out=OnDevice(memory, (12,), read_only=True))
    with pytest.raises(brant.WrongKind, match="without one"):
        team.allreduce(OnDevice(memory, (12,), stream=1))  # a stream of CUDA, which is not here
    await team.barrier()


def test_members_may_have_memory_of_different_kinds() -> None:
    run_job(members_with_other_memory, BRANT_GPU=KIND)


async def calls_of_streams() -> None:
    team = brant.world()
    rank, size = team.rank, team.size
    stream = brant.Stream()
    with pytest.raises(brant.InvalidArgument, match="before team.prepare_streams"):
        team.barrier(stream=stream)
    team.prepare_streams()
    team.prepare_streams()  # has been done
    root = size - 1
    for count in (1, 700, 40_000):
        every = of_all(size, (count, 2))
        mine, total = on_device(every[rank]), sum(every)
        out = {
            name: on_device(numpy.full((count, 2), -1.0)) for name in ("sum", "max", "reduced", "told", "scan", "ex")
        }
        gathered = {name: on_device(numpy.zeros((size, count, 2))) for name in ("all", "root")}
        of_blocks = of_all(size, (size, count))
        blocks, swapped = on_device(of_blocks[rank]), on_device(numpy.zeros((size, count)))
        parts = {name: on_device(numpy.zeros(count)) for name in ("reduced", "scattered")}
        out["told"].copy_from(every[rank])
        # All are queued before one has to be done; the numbers of a stream serve as its object does.
        assert team.allreduce(mine, out=out["sum"], stream=stream) is out["sum"]
        team.allreduce(mine, "max", out=out["max"], stream=stream.handle)
        reduced = team.reduce(mine, root=root, out=out["reduced"] if rank == root else None, stream=stream)
        assert (reduced is None) == (rank != root)
        team.broadcast(out["told"], root, stream=stream)
        team.allgather(mine, out=gathered["all"], stream=stream)
        team.gather(mine, root, out=gathered["root"] if rank == root else None, stream=stream)
        team.reduce_scatter(blocks, out=parts["reduced"], stream=stream)
        team.alltoall(blocks, out=swapped, stream=stream)
        team.scatter(blocks if rank == root else None, root, out=parts["scattered"], stream=stream)
        team.scan(mine, out=out["scan"], stream=stream)
        team.exscan(mine, out=out["ex"], stream=stream)
        assert team.barrier(stream=stream) is None
        team.allreduce(mine, out=mine, stream=stream)
        stream.synchronize()
        assert team.fault == ""
        numpy.testing.assert_array_equal(seen(out["sum"]), total)
        numpy.testing.assert_array_equal(seen(out["max"]), every[-1])
        numpy.testing.assert_array_equal(seen(out["reduced"]), total if rank == root else -1.0)
        numpy.testing.assert_array_equal(seen(out["told"]), every[root])
        numpy.testing.assert_array_equal(seen(gathered["all"]), numpy.stack(every))
        numpy.testing.assert_array_equal(seen(gathered["root"]), numpy.stack(every) if rank == root else 0.0)
        numpy.testing.assert_array_equal(seen(parts["reduced"]), sum(of_blocks)[rank])
        numpy.testing.assert_array_equal(seen(swapped), numpy.stack([of_blocks[other][rank] for other in range(size)]))
        numpy.testing.assert_array_equal(seen(parts["scattered"]), of_blocks[root][rank])
        numpy.testing.assert_array_equal(seen(out["scan"]), sum(every[: rank + 1]))
        numpy.testing.assert_array_equal(seen(out["ex"]), sum(every[:rank]) if rank else -1.0)
        numpy.testing.assert_array_equal(seen(mine), total)
    # Calls of the host have an order of their own.
    numpy.testing.assert_array_equal(await team.allreduce(numpy.ones(3)), size)


@pytest.mark.parametrize("ranks", [1, 2])
def test_streams_carry_each_collective_out(ranks: int) -> None:
    run_job(calls_of_streams, ranks=ranks, BRANT_GPU=KIND)


async def what_streams_refuse() -> None:
    team = brant.world()
    stream = brant.Stream()
    team.prepare_streams()
    mine, landing = on_device(numpy.ones(4)), on_device(numpy.zeros(4))
    host = numpy.ones(4)
    with pytest.raises(brant.InvalidArgument, match=r"team 0\.\d+: allreduce: a call of a stream takes out=array"):
        team.allreduce(mine, stream=stream)
    with pytest.raises(brant.InvalidArgument, match="takes no timeout"):
        team.allreduce(mine, out=landing, stream=stream, timeout=1)
    with pytest.raises(brant.NotSupported, match="a function of Python is the host's"):
        team.allreduce(mine, numpy.hypot, out=landing, stream=stream)
    with pytest.raises(brant.NotSupported, match="blocks of different sizes"):
        rows = [1 + rank for rank in range(team.size)]
        all_rows = on_device(numpy.ones(sum(rows)))
        team.allgather(on_device(numpy.ones(rows[team.rank])), counts=rows, out=all_rows, stream=stream)
    with pytest.raises(brant.NotSupported, match="a stream takes arrays in C order"):
        team.allreduce(numpy.asfortranarray(numpy.ones((2, 2))), out=numpy.zeros((2, 2)), stream=stream)
    with pytest.raises(brant.WrongKind, match="kernels reach memory of this process's device, and pinned"):
        team.allreduce(host, out=landing, stream=stream)
    with pytest.raises(brant.InvalidArgument, match="is no stream"):
        team.allreduce(mine, out=landing, stream="stream")
    with pytest.raises(brant.InvalidArgument):
        team.allreduce(mine, out=landing, stream=0)  # CUDA's default stream, of which there is none here
    with pytest.raises(brant.InvalidArgument, match="out has the element type"):
        team.allreduce(mine, out=on_device(numpy.zeros(4, "i8")), stream=stream)
    # Nothing of that has happened. Pinned memory of the host serves.
    pinned = brant.empty(4, memory="pinned")
    pinned[:] = team.rank + 1
    team.allreduce(pinned, out=pinned, stream=stream)
    stream.synchronize()
    assert list(pinned) == [3.0] * 4 and team.fault == ""
    assert team.explain_on_stream("allreduce", mine) == "kernel lines"
    assert team.explain("allreduce", host) == "lines"
    assert team.explain_on_stream("allreduce", host, op=numpy.hypot) == ""


def test_what_streams_do_not_take_is_refused_with_the_cure() -> None:
    run_job(what_streams_refuse, BRANT_GPU=KIND)


async def no_device() -> None:
    team = brant.world()
    with pytest.raises(brant.NotSupported, match=r"team 0\.\d+: .*no device with kernels"):
        team.prepare_streams()
    with pytest.raises(brant.InvalidArgument, match="before team.prepare_streams"):
        team.barrier(stream=1)
    await team.barrier()


def test_without_a_device_there_are_no_streams() -> None:
    run_job(no_device)


def one_member_has_no_device() -> None:
    brant.init(gpu="none" if os.environ["BRANT_RANK"] == "1" else KIND)
    team = brant.world()
    with pytest.raises(brant.NotSupported, match="A member has no device"):
        team.prepare_streams()
    mine = on_device(of_rank(0)) if team.rank == 0 else of_rank(1)
    total = team.allreduce(mine).wait()
    numpy.testing.assert_array_equal(seen(total) if team.rank == 0 else total, sum(of_all(2)))


def test_all_are_told_where_one_has_no_device() -> None:
    run_job(one_member_has_no_device, loop="none")


async def a_member_leaves_a_stream_waiting() -> None:
    team = brant.world(patience=0.5)
    team.prepare_streams()
    if team.rank == 0:
        stream = brant.Stream()
        mine = on_device(numpy.ones(4))
        team.allreduce(mine, out=mine, stream=stream)
        stream.synchronize()
        assert "rank 1" in team.fault
        with pytest.raises(brant.TimedOut, match="the stream did not take it: .*rank 1"):
            team.barrier(stream=stream)
    brant.channel(1 - team.rank, 1).send(1)
    await brant.channel(1 - team.rank, 1).recv()


def test_a_member_that_does_not_come_ends_the_waiting_of_a_stream() -> None:
    run_job(a_member_leaves_a_stream_waiting, BRANT_GPU=KIND)


async def prepared_calls() -> None:
    team = brant.world()
    stream = brant.Stream()
    team.prepare_streams()
    mine, total = on_device(numpy.zeros(100)), on_device(numpy.zeros(100))
    add_up = team.prepare("allreduce", mine, out=total)
    for step in range(1, 6):
        mine.copy_from(numpy.full(100, float(step + team.rank)))
        assert await add_up.start() is total
        numpy.testing.assert_array_equal(seen(total), 2 * step + 1)
        assert add_up.start(stream=stream) is total
        stream.synchronize()
        numpy.testing.assert_array_equal(seen(total), 2 * step + 1)
    memory = OnDevice(mine, (100,))
    shown = team.prepare("broadcast", memory, root=1)
    assert await shown.start() is memory
    memory.__cuda_array_interface__["data"] = (mine.address + 8, False)
    with pytest.raises(brant.InvalidArgument, match="lies elsewhere"):
        shown.start()


def test_prepared_calls_of_device_memory() -> None:
    run_job(prepared_calls, BRANT_GPU=KIND)
