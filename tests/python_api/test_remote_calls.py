"""Calls of functions in other processes: what comes back, what is raised, and who must make progress."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import signal

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
told: list = []


class Odd(Exception):
    def __init__(self, number: int, text: str):
        super().__init__(number, text)
        self.number = number


class Tools:
    @staticmethod
    def rank() -> int:
        return brant.rank()


def scaled(factor, *arrays, plus=0):
    return [factor * array + plus for array in arrays]


def array_of(shape, dtype="float64"):
    return numpy.full(shape, brant.rank(), dtype)


def note(value) -> int:
    told.append(value)
    return len(told)


def taken() -> list:
    return list(told)


def fails(how: str):
    if how == "odd":
        raise Odd(7, "seven")
    if how == "closure":
        return lambda: None
    raise {"key": KeyError("no key"), "exit": SystemExit(3), "stop": StopIteration(1)}[how]


async def slow(seconds: float, value):
    await brant.sleep(seconds)
    return value, brant.rank()


async def told_of(value):
    """When somebody has noted it here."""
    while value not in told:
        await brant.sleep(0.001)
    return value, brant.rank()


async def forwarded(ranks: list[int], value):
    """Itself again, in the next of these processes."""
    if not ranks:
        return [value]
    return [brant.rank(), *await brant.rpc(ranks[0], forwarded, ranks[1:], value)]


async def fails_later():
    await brant.sleep(0.001)
    raise Odd(8, "eight")


def waits_badly():
    brant.rpc(0, Tools.rank).wait()


async def never(channel_id: int) -> None:
    await brant.channel(0, channel_id).recv()


async def calls() -> None:
    team = brant.world()
    rank, size = brant.rank(), brant.size()
    for other in range(size):  # this process too
        assert await brant.rpc(other, Tools.rank) == other
        assert await brant.rpc(other, math.sqrt, 16.0) == 4
        columns = numpy.arange(12.0).reshape(3, 4)
        big = numpy.ones(300_000)
        doubled, added = await brant.rpc(other, scaled, 2, columns[:, ::2], big, plus=1)
        assert (doubled == 2 * columns[:, ::2] + 1).all() and (added == 3).all() and added.shape == big.shape
        array = await brant.rpc(other, array_of, (2, 3), dtype="int16")
        assert array.dtype == numpy.int16 and (array == other).all()
        assert await brant.rpc(other, note, None) >= 1
    # In the order of the calls, and answers in any.
    right = (rank + 1) % size
    late = brant.rpc(right, told_of, ("go", rank))
    answers = [brant.rpc(right, note, (rank, step)) for step in range(200)]
    numbers = [await answer for answer in answers]
    assert numbers == sorted(numbers) and not late.done()
    await brant.rpc(right, note, ("go", rank))
    assert await late == (("go", rank), right)
    assert [step for who, step in filter(None, await brant.rpc(right, taken)) if who == rank] == list(range(200))
    for step in range(200, 300):
        brant.tell(right, note, (rank, step))
    heard = [step for who, step in filter(None, await brant.rpc(right, taken)) if who == rank]
    assert heard == list(range(300))
    # Nested, also back here.
    route = [(rank + 1) % size, rank, (rank + 2) % size, rank]
    assert await brant.rpc(right, forwarded, route, "x") == [right, *route[:-1], "x"]
    await team.barrier()


async def exceptions() -> None:
    team = brant.world()
    there = 1 - brant.rank()
    with pytest.raises(Odd) as caught:
        await brant.rpc(there, fails, "odd")
    assert caught.value.number == 7 and isinstance(caught.value.__cause__, brant.RemoteTraceback)
    assert f"fails on rank {there} raised an exception" in str(caught.value.__cause__)
    assert 'raise Odd(7, "seven")' in str(caught.value.__cause__)
    with pytest.raises(Odd, match="eight"):
        await brant.rpc(there, fails_later)
    with pytest.raises(KeyError, match="no key"):
        await brant.rpc(there, fails, "key")
    for how, says in (("exit", "SystemExit: 3"), ("stop", "StopIteration")):
        with pytest.raises(brant.RemoteError, match=says):
            await brant.rpc(there, fails, how)
    with pytest.raises(brant.InvalidArgument, match="cannot be pickled"):
        await brant.rpc(there, fails, "closure")
    with pytest.raises(TypeError, match="positional argument"):
        await brant.rpc(there, Tools.rank, 5)
    with pytest.raises(TypeError, match="would block"):
        await brant.rpc(there, waits_badly)
    await team.barrier()


async def misuse() -> None:
    def local() -> None: ...

    bound = Odd(1, "").with_traceback
    for function, says in (
        (lambda: 0, "lambda"),
        (local, "stands in another function"),
        (functools.partial(scaled, 1), "no name"),
        (5, "no name"),
        (bound, "no name|something else"),
    ):
        with pytest.raises(brant.InvalidArgument, match=says):
            brant.rpc(0, function)
        with pytest.raises(brant.InvalidArgument, match=says):
            brant.tell(0, function)
    for rank in (-1, 1, 77):
        with pytest.raises(brant.InvalidArgument, match=f"there is no rank {rank}"):
            brant.rpc(rank, Tools.rank)
    with pytest.raises(brant.InvalidArgument, match="cannot be pickled"):
        brant.rpc(0, scaled, lambda: 0)
    answer = brant.rpc(0, slow, 60.0, 0)
    answer.cancel()
    with pytest.raises(brant.Canceled):
        await answer


async def only_there() -> None:
    team = brant.world()
    if brant.rank() == 0:
        globals()["made_here"] = eval("lambda: 0")
        globals()["made_here"].__qualname__ = "made_here"
        globals()["made_here"].__module__ = __name__
        with pytest.raises(brant.NotFound, match="rank 1 has no function .*made_here"):
            await brant.rpc(1, globals()["made_here"])
    await team.barrier()


async def a_told_function_fails() -> None:
    if brant.rank() == 0:
        brant.tell(1, fails, "odd")
    await brant.channel(1 - brant.rank(), 1).recv()


async def a_process_dies() -> None:
    if brant.rank() == 1:
        await brant.channel(0, 2).recv()
        os.kill(os.getpid(), signal.SIGKILL)
    answer = brant.rpc(1, slow, 60.0, 0)
    assert await brant.rpc(1, Tools.rank) == 1
    await brant.channel(1, 2).send("die")
    with pytest.raises(brant.PeerLost, match=r"slow at rank 1") as caught:
        await answer
    assert caught.value.peer == 1
    with pytest.raises(brant.PeerLost):
        await brant.rpc(1, Tools.rank)
    with pytest.raises(brant.PeerLost):
        brant.tell(1, Tools.rank)
    print("rank 0 has heard")


async def a_program_ends() -> None:
    """What it has not finished is told to who waits; what nobody waits for is warned of."""
    if brant.rank() == 1:
        await brant.channel(0, 3).recv()
        return
    answer = brant.rpc(1, never, 4)
    brant.tell(1, never, 5)
    assert await brant.rpc(1, Tools.rank) == 1
    await brant.channel(1, 3).send("go")
    with pytest.raises((brant.Canceled, brant.RemoteError, brant.Error, asyncio.CancelledError)):
        await answer
    with pytest.raises(brant.Error):
        while True:  # a loop of asyncio that ends goes some rounds
            await brant.rpc(1, Tools.rank)
    print("rank 0 has heard")


def serves_without_a_loop() -> None:
    team = brant.world()
    if brant.rank() == 0:
        assert brant.rpc(1, Tools.rank).wait() == 1
        with pytest.raises(brant.NotSupported, match=r"slow is async, and rank 1 runs no loop"):
            brant.rpc(1, slow, 0.0, 0).wait()
    team.barrier().wait()


async def asyncio_alone() -> None:
    """A process whose loop awaits nothing of brant serves as soon as the loop watches."""
    if brant.rank() == 1:
        with brant.GlobalSpace():
            while not told:
                await asyncio.sleep(0.001)
        return
    assert await brant.rpc(1, note, 5) == 1


def in_a_chare_or_not() -> None:
    brant.run(brant.program(main_of_a_program))


async def main_of_a_program() -> None:
    assert await brant.rpc(1, Tools.rank) == 1
    assert await brant.rpc(1, slow, 0.001, 3) == (3, 1)


@BOTH
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_results_come_back(ranks: int, loop: str) -> None:
    run_job(calls, ranks=ranks, loop=loop, limit_s=30)


@BOTH
def test_exceptions_come_back(loop: str) -> None:
    run_job(exceptions, loop=loop)


@BOTH
def test_misuse_is_told(loop: str) -> None:
    run_job(misuse, ranks=1, loop=loop)


def test_a_function_that_the_other_process_lacks() -> None:
    run_job(only_there)


@BOTH
def test_an_exception_that_nobody_hears_ends_the_job(loop: str) -> None:
    said = run_job(a_told_function_fails, loop=loop, fails=True).stderr
    assert "fails on rank 1 raised an exception" in said and "Odd: (7, 'seven')" in said


@BOTH
def test_a_process_that_dies_is_named(loop: str) -> None:
    said = run_job(a_process_dies, loop=loop, options=("--keep-going",), fails=True)
    assert "rank 0 has heard" in said.stdout, said.stderr


@BOTH
def test_a_program_that_ends_before_its_functions(loop: str) -> None:
    said = run_job(a_program_ends, loop=loop)
    assert "rank 0 has heard" in said.stdout, said.stderr


def test_without_a_loop_plain_functions_run() -> None:
    run_job(serves_without_a_loop, loop="none")


def test_a_loop_of_asyncio_that_awaits_nothing_of_brant() -> None:
    run_job(asyncio_alone, loop="asyncio")


def test_beside_chares() -> None:
    run_job(in_a_chare_or_not, loop="none")
