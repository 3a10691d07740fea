"""Collectives of Python: what each gives, of which arrays, and what becomes of a member that fails."""

from __future__ import annotations

import os
import re
import signal

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64", "complex64", "complex128")


def of_rank(rank: int, shape=(3, 5), dtype="float64") -> numpy.ndarray:
    count = int(numpy.prod(shape, dtype=int))
    return (numpy.arange(count).reshape(shape) % 7 + rank).astype(dtype)


def of_all(size: int, shape=(3, 5), dtype="float64") -> list[numpy.ndarray]:
    return [of_rank(rank, shape, dtype) for rank in range(size)]


async def all_collectives() -> None:
    team = brant.world()
    rank, size = team.rank, team.size
    assert (rank, size, team.ranks) == (brant.rank(), brant.size(), list(range(size)))
    every = of_all(size)
    mine, total = every[rank], sum(every)
    numpy.testing.assert_array_equal(await team.allreduce(mine), total)
    numpy.testing.assert_array_equal(await team.allreduce(mine, "max"), every[-1])
    numpy.testing.assert_array_equal(await team.allreduce(mine, op="average"), total / size)
    numpy.testing.assert_array_equal(mine, of_rank(rank))  # as it was
    landing = numpy.zeros((3, 5))
    assert await team.allreduce(mine, out=landing) is landing
    numpy.testing.assert_array_equal(landing, total)
    changed = mine.copy()
    assert await team.allreduce(changed, out=changed) is changed
    numpy.testing.assert_array_equal(changed, total)
    root = size - 1
    reduced = await team.reduce(mine, "sum", root)
    if rank == root:
        numpy.testing.assert_array_equal(reduced, total)
    else:
        assert reduced is None
    numpy.testing.assert_array_equal(await team.allgather(mine), numpy.stack(every))
    gathered = await team.gather(mine, root=root)
    assert gathered is None if rank != root else (gathered == numpy.stack(every)).all()
    told = mine.copy()
    assert await team.broadcast(told, root=root) is told
    numpy.testing.assert_array_equal(told, every[root])
    blocks = of_rank(rank, (size, 4))
    expected = sum(of_all(size, (size, 4)))[rank]
    numpy.testing.assert_array_equal(await team.reduce_scatter(blocks), expected)
    swapped = numpy.stack([of_rank(other, (size, 4))[rank] for other in range(size)])
    numpy.testing.assert_array_equal(await team.alltoall(blocks), swapped)
    part = numpy.zeros(4)
    await team.scatter(blocks if rank == root else None, root, out=part)
    numpy.testing.assert_array_equal(part, of_rank(root, (size, 4))[rank])
    numpy.testing.assert_array_equal(await team.scan(mine), sum(every[: rank + 1]))
    before = await team.exscan(mine)
    assert before is None if rank == 0 else (before == sum(every[:rank])).all()
    assert await team.barrier() is None
    calls = team.journal()
    assert [call["kind"] for call in calls[-2:]] == ["exscan", "barrier"]
    assert all(call["status"] == "ok" for call in calls)
    assert team.fault == ""


@BOTH
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_each_collective_gives_what_it_says(ranks: int, loop: str) -> None:
    run_job(all_collectives, ranks=ranks, loop=loop)


async def large_and_many() -> None:
    team = brant.world()
    for shape in ((0,), (), (1,), (70_000,), (300, 1000)):
        numpy.testing.assert_array_equal(await team.allreduce(of_rank(team.rank, shape)), sum(of_all(team.size, shape)))
    under_way = [team.allreduce(numpy.full(4, float(team.rank + call))) for call in range(50)]
    for call, one in enumerate(under_way):
        assert (await one)[0] == sum(rank + call for rank in range(team.size))


@pytest.mark.parametrize("ranks", [2, 4])
def test_arrays_of_all_sizes_and_many_calls_at_once(ranks: int) -> None:
    run_job(large_and_many, ranks=ranks)


async def element_types() -> None:
    team = brant.world()
    for dtype in (*DTYPES, *FLOATS):
        every = of_all(team.size, dtype=dtype)
        total = numpy.logical_or.reduce(every) if dtype == "bool" else sum(every).astype(dtype)
        got = await team.allreduce(every[team.rank], "logical_or" if dtype == "bool" else "sum")
        assert got.dtype == dtype
        numpy.testing.assert_array_equal(got, total)
    with pytest.raises(brant.InvalidArgument, match="'max' does not combine an array of Zd .*function"):
        team.allreduce(numpy.zeros(3, "complex128"), "max")
    with pytest.raises(brant.InvalidArgument, match="op='plus' is none of sum, prod"):
        team.allreduce(numpy.zeros(3), "plus")
    with pytest.raises(brant.InvalidArgument, match="first dimension has one block for each of the 2 members"):
        team.reduce_scatter(numpy.zeros((3, 2)))
    with pytest.raises(brant.InvalidArgument, match="out has the element type"):
        team.allreduce(numpy.zeros(3), out=numpy.zeros(3, "float32"))
    with pytest.raises(brant.InvalidArgument, match=r"come 24 bytes, and out is an array of d of shape \(4\)"):
        team.allreduce(numpy.zeros(3), out=numpy.zeros(4))
    with pytest.raises(brant.InvalidArgument, match="broadcast: root=9 is no rank of the team, which has 2"):
        team.broadcast(numpy.zeros(3), root=9)
    with pytest.raises(brant.WrongKind, match="is no array"):
        team.allreduce([1, 2])
    with pytest.raises(brant.InvalidArgument, match="says by out=array"):
        team.scatter(None, root=1 - team.rank)
    assert (await team.allreduce(numpy.ones(2)))[0] == team.size  # nothing of that has happened


def test_element_types_and_what_cannot_be_combined() -> None:
    run_job(element_types)


async def strides() -> None:
    team = brant.world()
    total = sum(of_all(team.size))
    apart = numpy.zeros((6, 10))
    for mine in (numpy.asfortranarray(of_rank(team.rank)), numpy.repeat(of_rank(team.rank), 2, 1)[:, ::2]):
        numpy.testing.assert_array_equal(await team.allreduce(mine), total)
        landing = apart[::2, 1::2]
        await team.allreduce(mine, out=landing)
        numpy.testing.assert_array_equal(landing, total)
        await team.allreduce(mine, out=mine)
        numpy.testing.assert_array_equal(mine, total)
    assert apart[1::2].any() == apart[:, ::2].any() == False  # noqa: E712
    told = numpy.asfortranarray(of_rank(team.rank))
    await team.broadcast(told, root=1)
    numpy.testing.assert_array_equal(told, of_rank(1))


def test_arrays_whose_elements_do_not_lie_together() -> None:
    run_job(strides)


def rows_of(giver: int, getter: int) -> int:
    return (2 * giver + getter) % 3


def rows(giver: int, count: int, getter: int = 0) -> numpy.ndarray:
    """Of two numbers each, which say whose they are."""
    return numpy.arange(2.0 * count).reshape(count, 2) + 100 * giver + 1000 * getter


async def blocks_of_different_sizes() -> None:
    team = brant.world()
    rank, size = team.rank, team.size
    root = size - 1
    counts = [(1 + 2 * member) % 4 for member in range(size)]
    every = numpy.concatenate([rows(member, counts[member]) for member in range(size)])
    mine = rows(rank, counts[rank])
    numpy.testing.assert_array_equal(await team.allgather(mine, counts=counts), every)
    landing = numpy.zeros((sum(counts), 2))
    assert await team.allgather(mine, counts=counts, out=landing) is landing
    numpy.testing.assert_array_equal(landing, every)
    gathered = await team.gather(mine, root, counts=counts if rank == root else [])
    assert gathered is None if rank != root else (gathered == every).all()
    part = numpy.zeros((counts[rank], 2))
    await team.scatter(every if rank == root else None, root, counts=counts if rank == root else [], out=part)
    numpy.testing.assert_array_equal(part, mine)
    whole = await team.reduce_scatter(every + rank, counts=counts)
    numpy.testing.assert_array_equal(whole, mine * size + sum(range(size)))
    going = [rows_of(rank, other) for other in range(size)]
    coming = [rows_of(other, rank) for other in range(size)]
    blocks = numpy.concatenate([rows(rank, going[other], other) for other in range(size)])
    expected = numpy.concatenate([rows(other, coming[other], rank) for other in range(size)])
    for given in (blocks, numpy.asfortranarray(blocks)):
        swapped = await team.alltoall(given, counts=going, out_counts=coming)
        numpy.testing.assert_array_equal(swapped, expected)
    with pytest.raises(brant.InvalidArgument, match=f"counts say that it has {counts[rank]} rows"):
        team.allgather(rows(rank, 9), counts=counts)
    with pytest.raises(brant.InvalidArgument, match=f"has 1 numbers of rows, and there are {size} blocks"):
        team.allgather(mine, counts=[3])
    with pytest.raises(brant.InvalidArgument, match="counts and out_counts go together"):
        team.alltoall(blocks, counts=going)
    await team.barrier()


@pytest.mark.parametrize("ranks", [2, 3])
def test_blocks_may_have_different_sizes(ranks: int) -> None:
    run_job(blocks_of_different_sizes, ranks=ranks)


async def neighbours() -> None:
    team = brant.world()
    rank, size = team.rank, team.size
    left, right = (rank - 1) % size, (rank + 1) % size
    own = rows(rank, 2)
    beside = await team.neighbour_allgather(own, [left, right], [left, right])
    numpy.testing.assert_array_equal(beside, numpy.stack([rows(left, 2), rows(right, 2)]))
    # Round the ring one way, a row of two of which is for each destination.
    told = await team.neighbour_alltoall(own, [left, left], [right, right])
    numpy.testing.assert_array_equal(told, rows(left, 2))
    # Blocks of different sizes: rank + 1 rows to the right, none back.
    several = await team.neighbour_alltoall(
        rows(rank, rank + 1), [left], [right], counts=[rank + 1], out_counts=[left + 1]
    )
    numpy.testing.assert_array_equal(several, rows(left, left + 1))
    gathered = await team.neighbour_allgather(rows(rank, rank + 1), [left], [right], counts=[left + 1])
    numpy.testing.assert_array_equal(gathered, rows(left, left + 1))
    # Only the first two are neighbours; the others have no edge, and wait for nobody.
    other = [1 - rank] if rank < 2 else []
    seen = await team.neighbour_allgather(own, other, other)
    assert seen.shape == (len(other), 2, 2)
    with pytest.raises(brant.InvalidArgument, match="one block for each of the 2 destinations"):
        team.neighbour_alltoall(rows(rank, 3), [left, right], [left, right])
    await team.barrier()


@pytest.mark.parametrize("ranks", [2, 3])
def test_neighbours_exchange_blocks(ranks: int) -> None:
    run_job(neighbours, ranks=ranks)


async def prepared_calls() -> None:
    team = brant.world()
    mine, total = numpy.zeros((3, 5)), numpy.zeros((5, 3)).T  # which is not in C order
    add_up = team.prepare("allreduce", mine, out=total)
    gather = team.prepare("gather", mine[1], root=1)
    for step in range(5):
        mine[:] = of_rank(team.rank) * step
        assert await add_up.start() is total
        numpy.testing.assert_array_equal(total, sum(of_all(team.size)) * step)
        rows = await gather.start()
        assert rows is None if team.rank != 1 else (rows == numpy.stack(of_all(team.size))[:, 1] * step).all()
    under_way = add_up.start()
    with pytest.raises(brant.InvalidArgument, match="is under way: await it"):
        add_up.start()
    await under_way
    with pytest.raises(brant.InvalidArgument, match="'plus' is no collective"):
        team.prepare("plus", mine)
    with pytest.raises(brant.InvalidArgument, match="op='plus' is none of"):
        team.prepare("allreduce", mine, op="plus")

    def fails_once(a, b):
        return a + b if mine.any() else 1 // 0

    by_function = team.prepare("allreduce", mine, op=fails_once)
    mine[:] = 0
    with pytest.raises(ZeroDivisionError):
        await by_function.start()
    mine[:] = 1
    numpy.testing.assert_array_equal(await by_function.start(), team.size)
    team.close()
    with pytest.raises(brant.InvalidArgument, match="is closed"):
        add_up.start()


@BOTH
def test_calls_are_prepared_once_and_made_often(loop: str) -> None:
    run_job(prepared_calls, loop=loop)


async def functions() -> None:
    team = brant.world()
    turned = numpy.array([complex(0, 1)] * 3)
    numpy.testing.assert_array_equal(await team.allreduce(turned, numpy.multiply), turned**team.size)
    first = await team.allreduce(numpy.full(2, team.rank), lambda a, b: a)  # not commutative
    assert list(first) == [0, 0]
    points = numpy.zeros(2, dtype=[("key", "i4"), ("value", "f8")])
    points["key"] = team.rank
    later = await team.allreduce(points, lambda a, b: numpy.where(a["key"] > b["key"], a, b))
    assert list(later["key"]) == [team.size - 1] * 2

    def fails(_a, _b):
        raise KeyError("no such sum")

    with pytest.raises(KeyError, match="no such sum"):
        await team.allreduce(turned, fails)
    await team.barrier()


@pytest.mark.parametrize("ranks", [2, 3])
def test_functions_of_python_combine(ranks: int) -> None:
    run_job(functions, ranks=ranks)


async def parts() -> None:
    team = brant.world(patience=20)
    half = team.split(team.rank % 2, key=-team.rank)
    assert half.ranks == [rank for rank in reversed(range(team.size)) if rank % 2 == team.rank % 2]
    assert (await half.allreduce(numpy.ones(1)))[0] == len(half.ranks)
    assert (team.split(-1 if team.rank == 0 else 0) is None) == (team.rank == 0)
    beside = half.local()  # all are on one host
    assert beside.ranks == half.ranks and beside.rank == half.rank
    assert (await beside.allreduce(numpy.ones(1)))[0] == len(half.ranks)
    if team.rank < 2:
        pair = brant.Team([1, 0], way="messages")
        assert pair.rank == 1 - team.rank
        assert list((await pair.allgather(numpy.array([team.rank]))).ravel()) == [1, 0]
        pair.close()
        assert not pair.is_open
        with pytest.raises(brant.InvalidArgument, match="is closed"):
            pair.barrier()
    with pytest.raises(brant.InvalidArgument):
        brant.Team([0, 0])
    await team.barrier()


def test_teams_of_some_ranks() -> None:
    run_job(parts, ranks=4)


def plain() -> None:
    team = brant.world()
    assert team.allreduce(numpy.full(3, team.rank + 1.0)).wait()[0] == 3
    team.barrier().wait()


def test_programs_without_a_loop_wait() -> None:
    run_job(plain, loop="none")


async def one_dies() -> None:
    team = brant.world()
    await team.barrier()
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(brant.PeerLost, match=r"allreduce failed.*rank 1"):
        await team.allreduce(numpy.ones(3))
    assert "rank 1" in team.fault
    rest = team.shrink()
    assert rest.ranks == [0, 2]
    assert (await rest.allreduce(numpy.ones(1)))[0] == 2
    print(f"rank {brant.rank()} goes on")


def test_a_member_that_died_is_named_and_the_others_go_on() -> None:
    done = run_job(one_dies, ranks=3, options=("--keep-going",), fails=True)
    assert len(re.findall("goes on", done.stdout)) == 2, done.stdout + done.stderr


async def different_calls() -> None:
    team = brant.world()
    with pytest.raises(brant.InvalidArgument, match=r"allreduce|barrier"):
        await (team.barrier() if team.rank == 0 else team.allreduce(numpy.ones(3)))
    print("named:", team.fault)


def test_members_that_call_different_things_are_told() -> None:
    assert run_job(different_calls).stdout.count("named:") == 2


async def one_is_late() -> None:
    team = brant.world(patience=0.3)
    if team.rank == 0:
        with pytest.raises(brant.TimedOut, match="rank 1"):
            await team.barrier()
        brant.channel(1, 1).send(1)
    else:
        await brant.channel(0, 1).recv()
        with pytest.raises(brant.TimedOut):
            await team.barrier()


def test_a_member_that_does_not_come_is_named() -> None:
    run_job(one_is_late)
