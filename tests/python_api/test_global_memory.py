"""Global pointers: segments, copies between any two places, what happens behind them, and how they end."""

from __future__ import annotations

import gc
import os
import pickle
import signal

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])


async def others(team, pointer) -> list:
    """The pointers of all members, which travel through channels."""
    channels = {
        rank: brant.channel(rank, 100 + min(rank, team.rank) * team.size + max(rank, team.rank))
        for rank in range(team.size)
        if rank != team.rank
    }
    sends = [channel.send(pointer) for channel in channels.values()]
    found = [pointer if rank == team.rank else await channels[rank].recv() for rank in range(team.size)]
    for send in sends:
        await send
    for channel in channels.values():
        channel.close()
    return found


async def puts_and_gets() -> None:
    team = brant.world()
    rank, size, right = team.rank, team.size, (team.rank + 1) % team.size
    with brant.GlobalSpace() as space:
        heap = space.create("1 MB")
        assert heap.nbytes == 1 << 20 and heap.nbytes_used == 0 and heap.is_open
        row = heap.allocate((4, 5), "float32")
        assert heap.nbytes_used >= 80 and (row.rank, row.kind, row.shape, row.count) == (rank, "host", (4, 5), 20)
        heap.array(row)[...] = rank
        rows = await others(team, row)
        assert rows[rank] == row and hash(rows[rank]) == hash(row) and rows[right].rank == right
        await team.barrier()

        got = await space.get(rows[right])
        assert got.dtype == numpy.float32 and got.shape == (4, 5) and (got == right).all()
        landing = numpy.zeros(20, "float32")
        assert await space.get(rows[right], out=landing) is landing and (landing == right).all()
        await team.barrier()

        # Parts, strides at this end, and a put that nobody awaits before the fence.
        face = numpy.arange(10, dtype="float32")
        await space.put(rows[right][1], face[::2])
        column = numpy.full((5, 3), 7, "float32")
        space.put(rows[right][2:4], numpy.concatenate([column[:, 1], column[:, 2]]))
        await space.fence(right)
        transposed = numpy.arange(4, dtype="float32").reshape(2, 2).T
        await space.put((rows[right] + 1)[0:4], transposed)
        await team.barrier()
        mine = heap.array(row)
        assert mine.ravel()[:5].tolist() == [rank, 0, 2, 1, 3]
        assert mine[1].tolist() == [0, 2, 4, 6, 8] and (mine[2:] == 7).all()
        spread = numpy.zeros((5, 2), "float32")
        await space.get(rows[right][1], out=spread[:, 1])
        assert spread[:, 1].tolist() == [0, 2, 4, 6, 8] and not spread[:, 0].any()

        # Of others: here between the places of two of them, and within one.
        await team.barrier()
        if rank == 0:
            heap.array(row)[...] = 100
            await space.copy(rows[0], rows[-1])
            await space.copy(rows[-1][0], rows[size // 2][3])
            await space.copy(rows[0] + 2, rows[0], 1)
        await team.barrier()
        if rank == size - 1:
            assert (heap.array(row) == 100).all()
        await team.barrier()
        heap.deallocate(row)
        assert heap.nbytes_used == 0


async def arrays_that_were_there() -> None:
    team = brant.world()
    right = (team.rank + 1) % team.size
    space = brant.GlobalSpace()
    for make in (lambda: numpy.zeros((3, 4), order="F"), lambda: brant.empty((3, 4)), lambda: bytearray(96)):
        array = make()
        segment = space.adopt(array)
        place = segment.whole
        del array  # the segment keeps it
        gc.collect()
        segment.publish([right])
        places = await others(team, place)
        content = numpy.full(12, team.rank + 1.0)
        await space.put(places[right], content if place.dtype == float else content.view("u1"))
        await team.barrier()
        view = segment.array(place)
        left = (team.rank - 1) % team.size
        assert (numpy.frombuffer(view.tobytes(), float) == left + 1).all()
        retired = segment.retire()
        assert not segment.is_open
        with pytest.raises(brant.InvalidArgument, match="retired"):
            segment.array(place)
        await retired
        assert view.any(), "what shows its memory keeps it"
        await team.barrier()
        with pytest.raises(brant.NotFound, match=f"rank {right}, segment") as caught:
            await space.get(places[right])
        assert caught.value.peer == right
        await team.barrier()


async def behind_the_bytes() -> None:
    team = brant.world()
    rank, right = team.rank, (team.rank + 1) % team.size
    space = brant.GlobalSpace()
    heap = space.create(1 << 16)
    row, flag = heap.allocate(1000), heap.allocate(1, "uint64")
    heap.array(flag)[...] = 0
    heap.array(row)[...] = -1
    rows, flags = await others(team, row), await others(team, flag)
    await team.barrier()
    await space.put(rows[right], numpy.full(1000, 1.5), at_target=brant.set_flag(flags[right], 2**63 + 1))
    await team.barrier()
    assert heap.array(flag)[0] == 2**63 + 1 and (heap.array(row) == 1.5).all()
    await team.barrier()

    # Behind an earlier put to another segment, too.
    far = space.create(1 << 23)
    many = far.allocate(1_000_000)
    manys = await others(team, many)
    content = numpy.full(1_000_000, rank + 3.5)
    earlier = space.put(manys[right], content)
    told = brant.set_flag(flags[right], 2**63 + 2, behind_all=True)
    put = space.put(rows[right], numpy.full(1000, 1.5), at_target=told)
    left = (rank - 1) % team.size
    while heap.array(flag)[0] != 2**63 + 2:
        await brant.sleep(0)
    assert (far.array(many) == left + 3.5).all()
    await put
    await earlier
    await team.barrier()

    # One word counts what all have put.
    heap.array(flag)[0] = 0
    await team.barrier()
    for there in range(team.size):
        if there != rank:
            await space.put(rows[there], numpy.full(1000, 1.5), at_target=brant.add_to(flags[there], 5))
    while heap.array(flag)[0] != 5 * (team.size - 1):
        await brant.sleep(0)
    await team.barrier()

    seen = []
    await space.put(rows[right], numpy.full(1000, 2.5), at_target=lambda: seen.append(right))
    assert seen == [right]

    def fails() -> None:
        raise LookupError("behind the bytes")

    with pytest.raises(LookupError, match="behind"):
        await space.copy(row, heap.allocate(1000), at_target=fails)
    await team.barrier()

    # Before a segment was reached nothing of it is mapped; then the memory itself is seen.
    fresh = heap if rank == 0 else space.create(1 << 16)
    there = (await others(team, fresh.allocate((2, 2), "int32")))[right]
    await space.reach(there)
    view = space.local(there)
    assert view is not None and view.shape == (2, 2)
    view[...] = rank
    await team.barrier()
    assert (await space.get(there) == rank).all()
    own = heap.allocate(3)
    space.local(own)[...] = 3
    assert (heap.array(own) == 3).all()
    await team.barrier()


async def atomics() -> None:
    """All ranks on words of rank 0: of each type; a lock; and what is refused."""
    team = brant.world()
    space = brant.GlobalSpace()
    memory = "host" if brant.device() == "host" else brant.device()
    heap = space.create("64 KB", memory)
    for dtype, large in (
        ("int32", 2**31 - 1), ("uint32", 2**32 - 1), ("int64", 2**63 - 1), ("uint64", 2**64 - 1),
        ("float32", 2.0**100), ("float64", 2.0**1000),
    ):  # fmt: skip
        word = (await others(team, heap.allocate((), dtype)))[0]
        if team.rank == 0:
            assert await space.atomic(word, "store", 0) is None
        await team.barrier()
        befores = [await space.fetch_add(word, 1) for _ in range(5)]
        assert befores == sorted(befores) and type(befores[0]) is (float if dtype[0] == "f" else int)
        await team.barrier()
        assert await space.atomic(word, "load") == 5 * team.size
        await team.barrier()
        if team.rank == 0:
            assert await space.atomic(word, "max", large) == 5 * team.size
            assert await space.atomic(word, "swap", 3) == large
            assert await space.compare_swap(word, 4, 5) == 3 and await space.compare_swap(word, 3, 5) == 3
            assert await space.atomic(word, "min", 2) == 5 and await space.atomic(word, "load") == 2
            if dtype[0] != "f":
                assert await space.atomic(word, "or", 12) == 2 and await space.atomic(word, "and", 6) == 14
                assert await space.atomic(word, "xor", 5) == 6 and await space.atomic(word, "load") == 3
        await team.barrier()

    lock, count = (await others(team, heap.allocate(2, "uint64")))[0]._part(0, (2,)), 20
    if team.rank == 0:
        await space.atomic(lock[0], "store", 0)
        await space.atomic(lock[1], "store", 0)
    await team.barrier()
    for _ in range(count):
        while await space.compare_swap(lock[0], 0, 1) != 0:
            pass
        seen = await space.atomic(lock[1], "load")
        await space.atomic(lock[1], "store", seen + 1)
        await space.atomic(lock[0], "store", 0)
    await team.barrier()
    assert await space.atomic(lock[1], "load") == count * team.size

    own = heap.allocate(3, "int32")
    for wrong, match in (
        (lambda: space.fetch_add(own, 1), "one number"),
        (lambda: space.fetch_add(heap.allocate((), "int16"), 1), "one number"),
        (lambda: space.fetch_add(heap.allocate((), "complex64"), 1), "one number"),
        (lambda: space.fetch_add(own[0], 2**31), "no value of int32"),
        (lambda: space.fetch_add(own[0], 1.5), "no value of int32"),
        (lambda: space.atomic(own[0], "multiply", 2), "no atomic"),
        (lambda: space.atomic(own[0], "swap", 2, expected=1), "compare_swap"),
        (lambda: space.atomic(own[0], "compare_swap", 2), "compare_swap"),
        (lambda: space.atomic(heap.allocate((), "float32"), "xor", 1), "floating"),
        (lambda: space.atomic(brant.GlobalPtr(0, 0, 0, "host", 0, "int32", ()), "load"), "null"),
    ):
        with pytest.raises(brant.InvalidArgument, match=match):
            await wrong()
    with pytest.raises(brant.InvalidArgument):
        await space.atomic(brant.GlobalPtr(own.rank, own.segment, own.offset + 2, own.kind, 0, "int32", ()), "load")
    await team.barrier()


async def emulated_memory() -> None:
    team = brant.world()
    right = (team.rank + 1) % team.size
    assert brant.device() == "emulated"
    space = brant.GlobalSpace()
    for memory in ("emulated", "pinned"):
        heap = space.create("64 KB", memory)
        row = heap.allocate(100, "int32")
        assert row.kind == memory and row.offset % 64 == 0
        rows = await others(team, row)
        if memory == "emulated":
            mine = heap.array(row)
            assert isinstance(mine, brant.Array) and mine.memory == "emulated" and space.local(row) is None
            mine.copy_from(numpy.full(100, 7, "int32"))
            # From memory of a device, and from the host; also the first half alone.
            await team.barrier()
            source = brant.empty(50, "int32", "emulated")
            source.copy_from(numpy.arange(50, dtype="int32"))
            await space.put(rows[right][0:50], source)
            await space.put(rows[right][50:60], numpy.full(10, team.rank, "int32"))
            await team.barrier()
            found = numpy.empty(100, "int32")
            mine.copy_to(found)
            left = (team.rank - 1) % team.size
            assert found.tolist() == [*range(50), *[left] * 10, *[7] * 40]
            there = await space.get(rows[right])
            assert isinstance(there, brant.Array) and there.memory == "emulated"
            await space.copy(rows[right], row)
        else:
            heap.array(row)[...] = team.rank
            await team.barrier()
            assert (await space.get(rows[right]) == right).all()
        await team.barrier()
        await heap.retire()


def pointers() -> None:
    null = brant.GlobalPtr()
    assert not null and null == pickle.loads(pickle.dumps(null)) and repr(null) == "GlobalPtr()"
    p = brant.GlobalPtr(3, 2, 64, "cuda", 1, "float64", (4, 5))
    assert p and p.nbytes == 160 and (p + 3).offset == 88 and (p + 3).shape == (17,)
    assert (p + 3) - 3 == brant.GlobalPtr(3, 2, 64, "cuda", 1, float, (20,))
    assert p[1].offset == 104 and p[1].shape == (5,) and p[-1][4].shape == () and p[1:3].shape == (2, 5)
    assert p[1:3].offset == 104 and p[3:1].count == 0 and p[0] != p and len({p, p[0:4], p[0]}) == 2
    assert "rank 3, segment 2, offset 64, cuda" in repr(p) and "float64[4, 5]" in repr(p)
    same = pickle.loads(pickle.dumps(p))
    assert same == p and hash(same) == hash(p) and len(pickle.dumps(p)) < 400
    with pytest.raises(brant.InvalidArgument, match="past its end"):
        p + 21
    with pytest.raises(brant.InvalidArgument, match="outside the segment"):
        p - 9
    with pytest.raises(IndexError):
        p[4]
    with pytest.raises(brant.InvalidArgument, match="step"):
        p[::2]
    with pytest.raises(brant.InvalidArgument, match="one element"):
        p[0][0][0]
    with pytest.raises(AttributeError, match="does not change"):
        p.offset = 5
    with pytest.raises(brant.InvalidArgument, match="objects"):
        brant.GlobalPtr(0, 1, 0, "host", 0, object, (1,))


async def misuse() -> None:
    with pytest.raises(brant.InvalidArgument, match="uint64"):
        brant.set_flag(brant.GlobalPtr(0, 1, 0, "host", 0, "int64", (1,)), 1)
    with pytest.raises(brant.InvalidArgument, match="64 bits"):
        brant.set_flag(brant.GlobalPtr(0, 1, 0, "host", 0, "uint64", (1,)), -1)
    with pytest.raises(brant.InvalidArgument, match="counter is an element of uint64"):
        brant.add_to(brant.GlobalPtr(0, 1, 0, "host", 0, "float64", (1,)))
    space = brant.GlobalSpace()
    with pytest.raises(brant.InvalidArgument, match="has a global space already"):
        brant.GlobalSpace()
    for size in (0, -1, "many", "12 XB", 2**60):
        with pytest.raises(brant.InvalidArgument, match="no size of a segment"):
            space.create(size)
    with pytest.raises(brant.InvalidArgument, match="kind of memory"):
        space.create(100, "ram")
    with pytest.raises(brant.NotSupported):
        space.create(100, "cuda")
    with pytest.raises(brant.WrongKind, match="no object of type str"):
        space.adopt("text")
    with pytest.raises(brant.InvalidArgument, match="lie together"):
        space.adopt(numpy.zeros(10)[::2])
    heap = space.create(4096)
    p = heap.allocate(10)
    with pytest.raises(brant.OutOfMemory, match="bytes are used"):
        heap.allocate(1000)
    with pytest.raises(brant.InvalidArgument, match="negative"):
        heap.allocate(-1)
    with pytest.raises(brant.InvalidArgument, match="no allocation"):
        heap.deallocate(p + 1)
    heap.deallocate(brant.GlobalPtr())

    heap.array(p)[...] = 0
    beyond = brant.GlobalPtr(p.rank, p.segment, p.offset + 2**48, p.kind, p.device, p.dtype, p.shape)
    for call in (lambda: space.put(beyond, numpy.ones(10)), lambda: space.get(beyond), lambda: space.reach(beyond)):
        with pytest.raises(brant.InvalidArgument, match=r"2\^48"):
            await call()
    assert not heap.array(p).any()
    wrong = (numpy.ones(10, "float32"), numpy.ones(9), numpy.ones(10, "int64"))
    for array in wrong:
        with pytest.raises(brant.InvalidArgument, match="nothing was copied") as caught:
            await space.put(p, array)
        assert isinstance(caught.value, ValueError) and caught.value.peer == 0 and "segment" in caught.value.subject
        with pytest.raises(brant.InvalidArgument, match="nothing was copied"):
            await space.get(p, out=array)
    assert not heap.array(p).any()
    for array in ("text", 5.0, None):
        with pytest.raises((brant.WrongKind, TypeError)):
            await space.put(p, array)
    read_only = numpy.zeros(10)
    read_only.flags.writeable = False
    with pytest.raises(brant.InvalidArgument):
        await space.get(p, out=read_only)
    for call in (space.get, lambda p: space.put(p, b""), space.reach, lambda p: space.copy(p, p)):
        with pytest.raises(brant.InvalidArgument, match="null"):
            await call(brant.GlobalPtr())
    with pytest.raises(brant.InvalidArgument):
        await space.copy(p, p[0:5])
    with pytest.raises(brant.InvalidArgument, match="more than"):
        await space.copy(p, p, 11)
    with pytest.raises(brant.InvalidArgument, match="set_flag"):
        await space.put(p, numpy.ones(10), at_target=5)
    nowhere = brant.GlobalPtr(77, 1, 0, "host", 0, float, (1,))
    with pytest.raises(brant.InvalidArgument, match="rank 77"):
        await space.get(nowhere)
    with pytest.raises(brant.InvalidArgument):
        await space.fence(77)
    with pytest.raises(brant.InvalidArgument):
        heap.publish([77])
    with pytest.raises(brant.InvalidArgument):
        await space.get(brant.GlobalPtr(0, p.segment, 4090, "host", 0, float, (10,)))
    assert space.local(brant.GlobalPtr(0, p.segment, 4090, "host", 0, float, (10,))) is None
    other = space.create(4096)
    with pytest.raises(brant.InvalidArgument, match="does not lie in this segment"):
        other.array(p)

    view = heap.array(p)
    await heap.retire()
    view[...] = 5  # its memory stays
    with pytest.raises(brant.InvalidArgument, match="retired"):
        heap.allocate(1)
    with pytest.raises(brant.InvalidArgument, match="retired"):
        heap.retire()
    with pytest.raises(brant.NotFound):
        await space.get(p)
    space.close()
    space.close()
    for use in (lambda: space.create(10), lambda: space.get(p), lambda: space.local(p)):
        with pytest.raises(brant.InvalidArgument, match="closed"):
            use()
    with pytest.raises(brant.InvalidArgument, match="no global space is open"):
        other.allocate(1)
    del other
    with brant.GlobalSpace() as again:
        assert again.create(10).nbytes == 10


async def held_in_flight() -> None:
    """Arrays that the program lets go of at once, and segments that it does."""
    team = brant.world()
    space = brant.GlobalSpace()
    heap = space.create("8 MB")
    there = (await others(team, heap.allocate(500_000)))[1 - team.rank]
    for value in range(3):
        copies = [space.put(there, numpy.full(500_000, float(value))), space.get(there)]
        gc.collect()
        for copy in copies:
            await copy
    assert (await space.get(there)).shape == (500_000,)
    await team.barrier()
    del heap
    gc.collect()
    with pytest.raises(brant.NotFound):
        while True:  # until this process has heard of it
            await space.get(there)
    await team.barrier()


async def an_owner_dies() -> None:
    space = brant.GlobalSpace()
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 1:
        heap = space.create("1 MB")
        await channel.send(heap.allocate(100), delivered=True)
        await channel.recv()
        os.kill(os.getpid(), signal.SIGKILL)
    there = await channel.recv()
    await space.put(there, numpy.zeros(100))
    await channel.send("die")
    with pytest.raises(brant.PeerLost):
        await channel.recv()
    with pytest.raises(brant.PeerLost, match="rank 1") as caught:
        await space.get(there)
    assert caught.value.peer == 1
    print("rank 0 has heard")


def waits_in_plain_code() -> None:
    space = brant.GlobalSpace()
    heap = space.create(4096)
    p = heap.allocate(3)
    space.put(p, numpy.arange(3.0)).wait()
    assert space.get(p).wait().tolist() == [0, 1, 2]
    heap.retire().wait()


@BOTH
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    "body", [puts_and_gets, arrays_that_were_there, behind_the_bytes, atomics], ids=lambda body: body.__name__
)
def test_copies_reach_memory_of_others(body, ranks: int, loop: str) -> None:
    run_job(body, ranks=ranks, loop=loop)


@BOTH
@pytest.mark.parametrize("ranks", [2, 3])
def test_memory_of_a_device(ranks: int, loop: str) -> None:
    run_job(emulated_memory, ranks=ranks, loop=loop, BRANT_GPU="emulated")


def test_atomics_on_memory_of_a_device() -> None:
    run_job(atomics, ranks=2, BRANT_GPU="emulated")


def test_pointers_are_plain_values() -> None:
    run_job(pointers, ranks=1, loop="none")


@BOTH
def test_misuse_is_told(loop: str) -> None:
    run_job(misuse, ranks=1, loop=loop)


@BOTH
def test_what_is_under_way_is_held(loop: str) -> None:
    run_job(held_in_flight, loop=loop)


def test_an_owner_that_dies_is_named() -> None:
    said = run_job(an_owner_dies, options=("--keep-going",), fails=True)
    assert "rank 0 has heard" in said.stdout, said.stderr


async def an_owner_is_late() -> None:
    import time

    team = brant.world()
    with brant.GlobalSpace() as space:
        heap = space.create("64 KB")
        places = await others(team, heap.allocate(4, "int32"))
        if team.rank == 0:
            await space.put(places[1], numpy.arange(4, dtype="int32"))
        else:
            time.sleep(1.5)  # it answers nobody
        await team.barrier()


def test_who_waits_for_an_owner_says_so() -> None:
    said = run_job(an_owner_is_late, BRANT_STALL_REPORT_MS="400")
    assert "rank 0 waits for rank 1 to say how its segment 1 is reached" in said.stderr


def test_without_a_loop() -> None:
    run_job(waits_in_plain_code, ranks=1, loop="none")
