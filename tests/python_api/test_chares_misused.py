"""What a program of chares does wrong is told, and disturbs nobody else."""

from __future__ import annotations

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
# pytest itself does not have the package, and only starts the processes that do.
Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)


def picky(left, right):
    if 3 in (left, right):
        raise ZeroDivisionError("three is not combined")
    return left + right


when = brant.when if brant else lambda condition: entry


class Odd(Chare):
    def __init__(self):
        self.results = []

    @entry
    def give(self, operation, to):
        self.contribute(self.index, operation, to)

    @entry
    async def share(self, operation):
        return await self.all_reduce(self.index, operation)

    @entry
    def take(self, result):
        self.results.append(result)

    @entry
    def fail(self):
        raise ValueError("nobody awaits this")

    @entry
    async def wait_for_ever(self):
        await brant.Future()

    @entry
    def echo(self, value):
        return value


async def a_reducer_that_raises() -> None:
    await brant.program(main_of_a_reducer)


async def main_of_a_reducer() -> None:
    odd = Odd.array(5)
    for _ in range(2):  # and the next one is a new one
        done = brant.Future()
        odd.give(picky, done)
        with pytest.raises(ZeroDivisionError, match="three is not combined") as caught:
            await done
        assert "a reduction raised an exception" in str(caught.value.__cause__)
        done = brant.Future()
        odd.give("sum", done)
        assert await done == 10
    answers = [element.share.reply(picky) for element in odd]
    for answer in answers:
        with pytest.raises(ZeroDivisionError, match="three is not combined"):
            await answer
    assert await odd.share.reply("max") == [4] * 5


@BOTH
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_reducer_that_raises_fails_its_reduction_for_all_who_await_it(ranks: int, loop: str) -> None:
    run_job(a_reducer_that_raises, ranks=ranks, loop=loop)


async def a_reduction_to_an_entry_that_fails() -> None:
    await brant.program(main_of_a_reduction_to_an_entry)


async def main_of_a_reduction_to_an_entry() -> None:
    odd = Odd.array(5)
    odd.give(picky, odd[0].take)
    await brant.quiescence()


@BOTH
def test_a_reduction_to_an_entry_that_fails_ends_the_program(loop: str) -> None:
    said = run_job(a_reduction_to_an_entry_that_fails, loop=loop, fails=True).stderr
    assert "three is not combined" in said and "Odd[0].take" in said


async def an_exception_that_nobody_awaits() -> None:
    await brant.program(main_of_an_exception)


async def main_of_an_exception() -> None:
    odd = Odd.array(2)
    reply = odd[1].fail.reply()
    assert await odd[1].echo.reply(7) == 7  # behind it
    assert reply.done()
    del reply
    heard = odd[0].fail.reply()
    with pytest.raises(ValueError, match="nobody awaits this"):
        await heard


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_exception_of_a_reply_that_nobody_awaits_is_told_once(ranks: int, loop: str) -> None:
    said = run_job(an_exception_that_nobody_awaits, ranks=ranks, loop=loop).stderr
    assert "nobody awaited a reply or a future that has an exception: Odd[1].fail" in said
    assert said.count("ValueError: nobody awaits this") == 1
    assert "Odd[1].fail" in said and "Odd[0].fail" not in said


async def destroyed_while_it_waits() -> None:
    await brant.program(main_of_destroyed)


async def main_of_destroyed() -> None:
    odd = Odd.array(2)
    odd[1].wait_for_ever()
    odd[1].destroy()
    await brant.quiescence()
    odd[0].wait_for_ever()  # ends with the program, as it may
    assert await odd[0].echo.reply(7) == 7


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_entry_that_waits_when_its_chare_is_destroyed_is_told(ranks: int, loop: str) -> None:
    said = run_job(destroyed_while_it_waits, ranks=ranks, loop=loop).stderr
    assert "Odd[1].wait_for_ever was still waiting when its chare was destroyed" in said
    assert "Odd[0].wait_for_ever" not in said


looks = 0


def look(self) -> bool:
    global looks
    looks += 1
    return self.ready


class Waiter(Chare):
    def __init__(self):
        self.ready = False

    @when(look)
    def go(self):
        return self.index

    @entry
    def get_ready(self):
        self.ready = True


async def many_that_wait() -> None:
    await brant.program(main_of_many_that_wait)


async def main_of_many_that_wait() -> None:
    waiters, odd = Waiter.array(300), Odd.array(1)
    answers = [waiter.go.reply() for waiter in waiters]
    for number in range(500):
        assert await odd[0].echo.reply(number) == number
    assert looks < 30_000, looks  # each of them in each turn would be 150,000
    waiters.get_ready()
    assert [await answer for answer in answers] == list(range(300))


@BOTH
def test_chares_that_wait_cost_others_little(loop: str) -> None:
    run_job(many_that_wait, ranks=1, loop=loop)


async def odd_arguments() -> None:
    await brant.program(main_of_odd_arguments)


async def main_of_odd_arguments() -> None:
    odd = Odd.array(numpy.int64(3))
    table = Odd.array((numpy.uint8(2), 3))
    assert repr(odd[numpy.int32(1)]) == "Odd[1]" and odd[numpy.int32(1)] == odd[1]
    assert repr(table[numpy.int64(1), 2]) == "Odd[1, 2]" and type(table[numpy.int64(1), 2].index[0]) is int
    assert await table[1, numpy.int8(0)].echo.reply(1) == 1
    for index in (True, numpy.bool_(1), 1.0, "1", None):
        with pytest.raises(brant.InvalidArgument, match="use a whole number"):
            odd[index]
        with pytest.raises(brant.InvalidArgument, match="use a whole number"):
            table[index, 0]
        with pytest.raises(brant.InvalidArgument, match="use a whole number"):
            odd.section([index])
    for shape in (True, (2, False), (1.5,)):
        with pytest.raises(brant.InvalidArgument, match="use a whole number"):
            Odd.array(shape)
    for priority in (2**31, -(2**31) - 1):
        with pytest.raises(brant.InvalidArgument, match="32 bits"):
            odd[0].with_priority(priority)
    assert await odd[0].with_priority(2**31 - 1).echo.reply(1) == 1
    with pytest.raises(brant.InvalidArgument, match="a section of Odd gives no replies"):
        odd[:2].echo.reply(1)


def test_indices_and_priorities_are_whole_numbers() -> None:
    run_job(odd_arguments)
