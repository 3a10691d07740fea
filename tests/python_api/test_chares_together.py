"""Chares of Python together: reductions, futures, conditions, arrays of a device, the pool, and lost processes."""

from __future__ import annotations

import os
import re
import signal

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
RANKS = pytest.mark.parametrize("ranks", [1, 2, 4])

# pytest itself does not have the package, and only starts the processes that do.
Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)
when = brant.when if brant else lambda condition: entry


def same(left, right) -> bool:
    return type(left) is type(right) and left.dtype == right.dtype and numpy.array_equal(left, right)


def longer(left, right):
    return max(left, right, key=lambda word: (len(word), word))


class Part(Chare):
    def __init__(self):
        self.results = []

    @entry
    def give(self, value, operation, to):
        self.contribute(value, operation, to)

    @entry
    def give_index(self, operation, to):
        self.contribute(self.index, operation, to)

    @entry
    def give_arrays(self, operation, to):
        columns = numpy.arange(6.0).reshape(3, 2) + self.index
        self.contribute(columns[:, 1], operation, to)
        columns[:] = -100  # what was given is not looked at again

    @entry
    def give_complex(self, to):
        self.contribute(complex(self.index, 1), "sum", to)

    @entry
    async def in_a_row(self, times):
        sums = [await self.all_reduce(self.index + time, "sum") for time in range(times)]
        await self.barrier()
        return sums

    @entry
    async def in_a_section(self, section, to):
        total = await self.all_reduce(self.index, "sum", section=section)
        self.contribute(total, "max", to, section=section)

    @entry
    def take(self, result):
        self.results.append(result)

    @entry
    def given(self):
        return self.results


async def reductions() -> None:
    await brant.program(main_of_reductions)


async def reduced(call, *arguments):
    future = brant.Future()
    call(*arguments, future)
    return await future


async def main_of_reductions() -> None:
    parts = Part.array(7)
    expected = {"sum": 21, "product": 0, "min": 0, "max": 6, "or": 7, "and": 0, "xor": 7, "gather": list(range(7))}
    for operation, result in expected.items():
        assert await reduced(parts.give_index, operation) == result, operation
    base = numpy.arange(6.0).reshape(3, 2)[:, 1]
    assert same(await reduced(parts.give_arrays, "sum"), 7 * base + 21)
    assert same(await reduced(parts.give_arrays, "max"), base + 6)
    gathered = await reduced(parts.give_arrays, "gather")
    assert len(gathered) == 7 and all(same(*pair) for pair in zip(gathered, [base + i for i in range(7)], strict=True))
    assert await reduced(parts.give_complex) == 21 + 7j  # charm4py aborts
    words = ["a", "four", "of", "them", "six", "", "then"]
    future = brant.Future()
    for part, word in zip(parts, words, strict=True):
        part.give(word, longer, future)
    assert await future == "then"
    rows = [part.in_a_row.reply(20) for part in parts]
    for row in rows:
        assert await row == [21 + 7 * time for time in range(20)]
    parts.give(2, "sum", parts[6].take)
    parts.give(3, "sum", parts.take)
    parts.give(4, "sum", parts[::3].take)
    await brant.quiescence()
    assert [await part.given.reply() for part in parts] == [[21, 28], [21], [21], [21, 28], [21], [21], [14, 21, 28]]
    odd = parts[1::2]
    assert await reduced(odd.in_a_section, odd) == 9
    with pytest.raises(brant.InvalidArgument, match="operation 'median': use sum"):
        await parts[0].give.reply(1, "median", parts.take)


@BOTH
@RANKS
def test_reductions_combine_numbers_arrays_and_what_users_say(ranks: int, loop: str) -> None:
    run_job(reductions, ranks=ranks, loop=loop)


async def contributions_that_differ() -> None:
    await brant.program(main_of_contributions_that_differ)


async def main_of_contributions_that_differ() -> None:
    parts = Part.array(2)
    parts[0].give(numpy.ones(3), "sum", parts[0].take)
    parts[1].give(numpy.ones(4), "sum", parts[0].take)
    await brant.sleep(60)


@pytest.mark.parametrize("ranks", [1, 2])
def test_contributions_that_do_not_fit_end_the_job(ranks: int) -> None:
    said = run_job(contributions_that_differ, ranks=ranks, fails=True).stderr
    assert re.search(r"values of shapes \([34],\) and \([34],\) do not fit together", said)


class Base(Chare):
    @entry
    def name(self):
        return "base"

    @entry
    def inherited(self):
        return type(self).__name__, self.name()


class Derived(Base):
    def name(self):
        return "derived"

    @entry
    def own(self):
        return super().name()


async def inheritance() -> None:
    await brant.program(main_of_inheritance)


async def main_of_inheritance() -> None:
    there = Derived.array(2)[1]
    assert await there.inherited.reply() == ("Derived", "derived")
    assert await there.name.reply() == "derived" and await there.own.reply() == "base"
    assert await Base.array(1)[0].inherited.reply() == ("Base", "base")
    assert {"name", "inherited", "own"} <= set(dir(there))
    with pytest.raises(brant.InvalidArgument, match=r"Clash\.destroy cannot be an entry"):
        type("Clash", (Chare,), {"destroy": entry(lambda self: None)})
    with pytest.raises(brant.InvalidArgument, match=r"the condition 'a b' of .*go is no expression"):
        when("a b")(Ordered.go)


def test_classes_inherit_entries_and_names_of_proxies_are_taken() -> None:
    run_job(inheritance)


class Teller(Chare):
    @entry
    def tell(self, future, value):
        future(value)

    @entry
    def tell_failure(self, future):
        future.fail(KeyError("told"))

    @entry
    async def wait_for(self, future):
        return await future


async def futures() -> None:
    await brant.program(main_of_futures)


async def main_of_futures() -> None:
    tellers = Teller.group()
    last = tellers[brant.size() - 1]
    future = brant.Future()
    assert not future.done()
    last.tell(future, numpy.arange(3))
    assert same(await future, numpy.arange(3)) and future.done()
    assert same(await future, numpy.arange(3))  # as often as wanted
    failed = brant.Future()
    last.tell_failure(failed)
    with pytest.raises(KeyError, match="told"):
        await failed
    if brant.size() > 1:
        with pytest.raises(brant.InvalidArgument, match="the process that made it"):
            await last.wait_for.reply(future)
    local = brant.Future()
    local()
    assert await local is None


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_futures_travel_and_are_given_their_value_elsewhere(ranks: int, loop: str) -> None:
    run_job(futures, ranks=ranks, loop=loop)


async def deadlock() -> None:
    await brant.program(main_of_a_deadlock)


async def main_of_a_deadlock() -> None:
    await Teller.array(1)[0].wait_for.reply(brant.Future())


def test_a_deadlock_is_told_with_who_waits() -> None:
    said = run_job(deadlock, ranks=1, fails=True).stderr
    assert "deadlock: nothing can run any more" in said and "waits" in said
    assert "Teller[0]" in said and "brant.Chare" not in said


class Ordered(Chare):
    def __init__(self):
        self.step = 0
        self.log = []

    @when("self.step == step")
    def go(self, step, *, note="none"):
        self.log.append((step, note))
        self.step += 1

    @when(lambda self, low, high=2: low <= self.step < high)
    async def between(self, low, high=2):
        await brant.sleep(0.001)
        self.log.append((low, high))
        return self.step

    @when("step < self.step and args[0] == named['word']")
    def all_kinds(self, step, *args, **named):
        return step, args, named

    @entry
    async def move_on(self):
        await brant.sleep(0.01)
        self.step += 10  # no entry ends with this: the coroutine goes on
        await brant.sleep(0.01)
        return self.step

    @entry
    async def wait_until(self, step):
        await self.wait(lambda: self.step >= step)
        return self.step

    @entry
    def seen(self):
        return self.log

    @when("self.no_such_thing")
    def wrong(self):
        pass

    @entry
    async def wait_wrongly(self):
        await self.wait(lambda: self.no_such_thing)


async def conditions() -> None:
    await brant.program(main_of_conditions)


async def main_of_conditions() -> None:
    there = Ordered.array(2)[1]
    late = there.wait_until.reply(5)
    for step in (4, 2, 0, 3):
        there.go(step, note=f"of {step}")
    await brant.quiescence()
    assert await there.seen.reply() == [(0, "of 0")] and not late.done()
    asked = there.between.reply(1)
    assert await asked == 1
    there.go(1)
    assert await late == 5
    expected = [(0, "of 0"), (1, 2), (1, "none"), (2, "of 2"), (3, "of 3"), (4, "of 4")]
    assert await there.seen.reply() == expected
    assert await there.all_kinds.reply(1, "a", 2, word="a") == (1, ("a", 2), {"word": "a"})
    kept = [there.go.reply(15), there.between.reply(15, high=20), there.wait_until.reply(16)]
    assert await there.move_on.reply() >= 15
    for reply in kept:
        await reply
    for method in (there.wrong, there.wait_wrongly):
        with pytest.raises(AttributeError, match="no_such_thing"):
            await method.reply()
    kept = there.go.reply(99)
    await brant.quiescence()
    there.destroy()
    with pytest.raises(brant.NotFound):
        await kept


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_calls_wait_for_their_conditions_in_the_order_of_arrival(ranks: int, loop: str) -> None:
    run_job(conditions, ranks=ranks, loop=loop)


class Stencil(Chare):
    """Ghosts of a step may overtake: a condition keeps those that are early."""

    def __init__(self, steps):
        self.steps, self.step, self.missing, self.value = steps, -1, 2, float(self.index)

    @entry
    def start(self, done):
        self.done, self.step = done, 0
        self.send()

    def send(self):
        count = len(self.array_proxy)
        for other in (self.index - 1, self.index + 1):
            self.array_proxy[other % count].ghost(self.step, self.value)

    @when("self.step == step")
    def ghost(self, step, value):
        self.value += value
        self.missing -= 1
        if self.missing:
            return
        self.step, self.missing = self.step + 1, 2
        if self.step == self.steps:
            self.contribute([self.value], "sum", self.done)
        else:
            self.send()


async def stencil() -> None:
    await brant.program(main_of_stencil)


async def main_of_stencil() -> None:
    cells = Stencil.array(6, 30)
    done = brant.Future()
    for cell in reversed(list(cells)):
        cell.start(done)
    result = await done
    assert sum(result) == 15 * 3**30 and len(result) == 6


@RANKS
def test_a_stencil_keeps_ghosts_that_are_early(ranks: int) -> None:
    run_job(stencil, ranks=ranks)


class Holder(Chare):
    def __init__(self):
        self.kept = []

    @entry
    def keep(self, *arrays, name="none"):
        self.kept.append((arrays, name))

    @when("len(self.kept) >= number")
    def look(self, number):
        arrays, name = self.kept[number - 1]
        return [array.memory for array in arrays], [on_host(array) for array in arrays], name


def on_host(array):
    values = numpy.empty(array.shape, array.format)
    array.copy_to(values)
    return values


def on_device(values):
    array = brant.empty(values.shape, values.dtype, memory="emulated")
    array.copy_from(values)
    return array


async def memory_of_a_device() -> None:
    await brant.program(main_of_memory_of_a_device)


async def main_of_memory_of_a_device() -> None:
    holders = Holder.array(4)
    values = [numpy.arange(size).reshape(2, -1) * 1.5 for size in (2, 1000, 200_000)]
    for holder, number in [(holders[3], 1), (holders[0], 1), (holders[3], 2)]:
        holder.keep(*[on_device(array) for array in values], name="dropped")  # its sources are held until they are free
        memory, arrays, name = await holder.look.reply(number)
        assert memory == ["emulated"] * 3 and name == "dropped" and all(map(same, arrays, values))
    many = [on_device(values[0] + number) for number in range(12)]  # more than travel beside a message
    holders[3].keep(*many)
    _, arrays, _ = await holders[3].look.reply(3)
    assert all(same(array, values[0] + number) for number, array in enumerate(arrays))
    holders.keep(on_device(values[1]), name="to all")
    await brant.quiescence()  # a later call may overtake one with arrays of a device
    holders[1:].keep(on_device(values[2]), name="to some")
    for holder, number in zip(holders, (2, 1, 1, 4), strict=True):
        _, arrays, name = await holder.look.reply(number)
        assert name == "to all" and same(arrays[0], values[1])
    for holder, number in [(holders[1], 2), (holders[3], 5)]:
        _, arrays, name = await holder.look.reply(number)
        assert name == "to some" and same(arrays[0], values[2])
    await brant.quiescence()


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_arrays_of_a_device_are_arguments(ranks: int, loop: str) -> None:
    run_job(memory_of_a_device, ranks=ranks, loop=loop, BRANT_GPU="emulated")


class Foreign:
    """An array of another library, which knows DLPack alone."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Giver(Chare):
    @entry
    async def give(self):
        mine = numpy.full((2, 3), self.index + 1.0)
        on_a_device = await self.all_reduce(on_device(mine), "sum")
        of_others = await self.all_reduce(Foreign(mine), "max")
        together = await self.all_reduce(on_device(mine) if self.index % 2 else mine, lasting)
        return on_a_device, of_others, together


def lasting(left, right):
    return numpy.minimum(left, right)


async def reductions_of_other_arrays() -> None:
    await brant.program(main_of_reductions_of_other_arrays)


async def main_of_reductions_of_other_arrays() -> None:
    for results in await Giver.array(4).give.reply():
        for result, value in zip(results, (10.0, 4.0, 1.0), strict=True):
            assert same(result, numpy.full((2, 3), value))


@BOTH
@pytest.mark.parametrize("ranks", [1, 2])
def test_arrays_of_devices_and_other_libraries_are_reduced(ranks: int, loop: str) -> None:
    run_job(reductions_of_other_arrays, ranks=ranks, loop=loop, BRANT_GPU="emulated")


def square(value):
    return value * value, brant.rank()


async def slow_sum(left, right):
    await brant.sleep(0.001)
    return left + right


def refuse(value):
    raise ValueError(f"no {value}")


async def the_pool() -> None:
    await brant.program(main_of_the_pool)
    await brant.program(main_of_the_pool)  # a second one has workers of its own


async def main_of_the_pool() -> None:
    for chunk in (None, 1, 7, 1000):
        results = await brant.pool.map(square, range(50), chunk=chunk)
        assert [result for result, _ in results] == [value * value for value in range(50)]
        assert chunk != 1 or {rank for _, rank in results} == set(range(brant.size()))
    assert await brant.pool.map(slow_sum, range(10), range(10, 20)) == list(range(10, 30, 2))
    assert await brant.pool.map(square, []) == []
    rows = await brant.pool.map(numpy.sum, [numpy.ones((3, 4))[:, :2]] * 3)
    assert rows == [6.0] * 3
    assert await brant.pool.submit(square, 5, rank=brant.size() - 1) == (25, brant.size() - 1)
    ranks = [(await brant.pool.submit(square, 5))[1] for _ in range(2 * brant.size())]
    assert sorted(ranks) == sorted([*range(brant.size())] * 2)
    with pytest.raises(ValueError, match=r"no \d") as caught:
        await brant.pool.map(refuse, range(3))
    assert "in refuse" in str(caught.value.__cause__)
    with pytest.raises(brant.InvalidArgument, match="chunk"):
        await brant.pool.map(square, [1], chunk=0)
    with pytest.raises(brant.InvalidArgument, match="no rank 7"):
        await brant.pool.submit(square, 1, rank=7)


@BOTH
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_pool_maps_functions_over_all_processes(ranks: int, loop: str) -> None:
    run_job(the_pool, ranks=ranks, loop=loop)


class Dying(Chare):
    @entry
    async def die(self):
        os.kill(os.getpid(), signal.SIGKILL)


async def a_process_dies() -> None:
    await brant.program(main_of_a_process_dies)


async def main_of_a_process_dies() -> None:
    await Dying.group()[1].die.reply()


@BOTH
def test_a_process_that_dies_ends_the_program_of_the_others(loop: str) -> None:
    said = run_job(a_process_dies, ranks=3, loop=loop, options=("--keep-going",), fails=True).stderr
    assert re.search(r"rank [02] lost rank 1 and its chares", said)


async def kept_at_the_end() -> None:
    await brant.program(main_of_kept_at_the_end)


async def main_of_kept_at_the_end() -> None:
    there = Ordered.array(2)[1]
    there.go(7)
    await there.seen.reply()


def test_calls_that_never_ran_are_told_at_the_end() -> None:
    said = run_job(kept_at_the_end).stderr
    assert "1 calls wait for a condition when Ordered[1].go ends, and never ran" in said
