"""What goes wrong in chares of Python is told to those whom it concerns, and to nobody else."""

from __future__ import annotations

import os
import sys

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])

# pytest itself does not have the package, and only starts the processes that do.
Chare, entry, when = (
    (brant.Chare, brant.entry, brant.when)
    if brant
    else (object, lambda function: function, lambda _: lambda function: function)
)


class Odd(Exception):
    """Comes back from a pickle as something else."""

    def __reduce__(self):
        return int, (7,)


class Failing(Chare):
    def __init__(self) -> None:
        self.ready = self.spoiled = False

    @entry
    def stop_iteration(self):
        return next(iter([]))

    @entry
    def leave(self):
        sys.exit(3)

    @entry
    def odd(self):
        raise Odd("odd")

    @entry
    async def wait_badly(self):
        await self.wait(lambda: next(iter([])))

    @when("self.ready")
    def first(self):
        return "first"

    @when("self.check()")
    def second(self):
        return "second"

    @entry
    def spoil(self):
        self.spoiled = True

    @entry
    def get_ready(self):
        self.ready = True

    def check(self) -> bool:
        if self.spoiled:
            raise ValueError("the condition of second")
        return False

    @entry
    def fork(self, how: str):
        child = os.fork()
        if child != 0:
            os.waitpid(child, 0)
            return "parent"
        if how == "raise":
            raise ValueError("in a child")
        return "child"

    @entry
    def echo(self, value):
        return value

    @entry
    def add(self, value, to):
        self.contribute(value, "sum", to)


class Other(Chare):
    @entry
    def echo(self, value):
        return "of another class"


async def odd_exceptions() -> None:
    await brant.program(main_of_odd_exceptions)


async def main_of_odd_exceptions() -> None:
    there = Failing.group()[1]
    for name, says in (("stop_iteration", "StopIteration"), ("leave", "SystemExit: 3"), ("odd", "Odd: odd")):
        with pytest.raises(brant.RemoteError, match=says):
            await getattr(there, name).reply()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await there.wait_badly.reply()
    future = brant.Future()
    future.fail(StopIteration(3))
    with pytest.raises(brant.RemoteError, match="StopIteration"):
        await future
    with pytest.raises(brant.InvalidArgument, match="fails with an exception"):
        brant.Future().fail("text")
    assert await there.echo.reply(5) == 5


async def a_condition_that_raises() -> None:
    await brant.program(main_of_a_condition)


async def main_of_a_condition() -> None:
    there = Failing.group()[1]
    first, second = there.first.reply(), there.second.reply()
    await there.echo.reply(0)  # both wait by now
    there.spoil()
    with pytest.raises(ValueError, match="the condition of second"):
        await second
    there.get_ready()
    assert await first == "first"


async def forks() -> None:
    await brant.program(main_of_forks)


async def main_of_forks() -> None:
    there = Failing.group()[1]
    for how in ("return", "raise"):
        assert await there.fork.reply(how) == "parent"
    assert await there.echo.reply(5) == 5


kept: list = []


async def proxies_of_an_earlier_program() -> None:
    await brant.program(main_that_keeps)
    await brant.program(main_that_uses_what_was_kept)


async def main_that_keeps() -> None:
    kept.extend([Failing.group(), brant.Future()])
    assert await kept[0][1].echo.reply(5) == 5


async def main_that_uses_what_was_kept() -> None:
    others, future = Other.group(), brant.Future()
    old_group, old_future = kept
    assert old_group != others and old_future != future
    for call in (lambda: old_group[1].echo(5), lambda: old_group[1].echo.reply(5), lambda: old_future(5)):
        with pytest.raises(brant.InvalidArgument, match="has ended"):
            call()
    assert await others[1].echo.reply(5) == "of another class"


async def text_that_is_none() -> None:
    await brant.program(main_with_bad_text)


async def main_with_bad_text() -> None:
    raise ValueError("\udc80 is no text")


async def numbers_and_arrays() -> None:
    await brant.program(main_of_numbers_and_arrays)


async def main_of_numbers_and_arrays() -> None:
    parts, total = Failing.array(2), brant.Future()
    parts[0].add(1, total)
    parts[1].add(numpy.ones(3), total)
    await total


@BOTH
def test_what_ends_iterators_and_interpreters_is_told_and_does_neither(loop: str) -> None:
    run_job(odd_exceptions, loop=loop)


@BOTH
def test_a_condition_that_raises_fails_the_call_that_it_is_of(loop: str) -> None:
    run_job(a_condition_that_raises, loop=loop)


@BOTH
def test_a_child_that_an_entry_forked_has_no_part_in_the_job(loop: str) -> None:
    run_job(forks, loop=loop)


@BOTH
def test_proxies_of_a_program_that_has_ended_reach_nobody(loop: str) -> None:
    run_job(proxies_of_an_earlier_program, loop=loop)


@BOTH
def test_an_exception_whose_text_cannot_be_sent_ends_the_program(loop: str) -> None:
    assert r"\udc80 is no text" in run_job(text_that_is_none, loop=loop, fails=True).stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_number_and_an_array_are_not_combined(ranks: int) -> None:
    assert "do not fit together" in run_job(numbers_and_arrays, ranks=ranks, fails=True).stderr
