"""Chares of Python: calls and their order, replies, arrays and groups, what may travel, and what goes wrong."""

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


class Refused(Exception):
    """Two arguments, one of which it keeps: it cannot be unpickled."""

    def __init__(self, name, why):
        super().__init__(name)


class Block(Chare):
    def __init__(self, first=0, *, factor=1):
        self.calls = [first]
        self.factor = factor

    @entry
    def add(self, value, times=1):
        self.calls.append(value * times)

    @entry
    async def add_async(self, value):
        self.calls.append(value)

    @entry
    def where(self):
        return self.index, brant.rank(), self.calls, self.factor

    @entry
    async def slow_add(self, value):
        await brant.sleep(0.01)
        self.calls.append(value)
        return len(self.calls)

    @entry
    def echo(self, *args, **kwargs):
        return args, kwargs

    @entry
    def call_me_back(self, who, value):
        assert who != self.proxy
        who.add(value)

    @entry
    async def ask_other(self, other, value):
        return await other.slow_add.reply(value)

    @entry
    def fail(self, error):
        raise error

    @entry
    async def fail_slowly(self, error):
        await brant.sleep(0.01)
        raise error

    @entry
    def fail_in(self, index, error):
        if index == self.index:
            raise error

    @entry
    def block_the_loop(self):
        brant.sleep(0.01).wait()


async def calls() -> None:
    await brant.program(main_of_calls)


async def main_of_calls() -> None:
    blocks = Block.array(5, 7, factor=3)
    for value in range(20):
        blocks[4].add(value)
    assert await blocks[4].where.reply() == (4, brant.size() - 1, [7, *range(20)], 3)
    await brant.quiescence()
    for value in range(0, 20, 2):
        blocks[2].add_async(value)
        blocks[2].add(value + 1)
    assert (await blocks[2].where.reply())[2] == [7, *range(20)]  # whichever is async
    blocks.add(1, times=4)
    await brant.quiescence()
    assert [(await block.where.reply())[2] for block in blocks] == [
        *[[7, 4]] * 2,
        [7, *range(20), 4],
        [7, 4],
        [7, *range(20), 4],
    ]
    blocks[4].call_me_back(blocks[0], "back")
    await brant.quiescence()
    assert (await blocks[0].where.reply())[2] == [7, 4, "back"]
    assert await blocks[0].ask_other.reply(blocks[4], 5) == 23
    replies = [block.slow_add.reply(9) for block in blocks]
    assert await brant.gather(*replies) == [4, 3, 23, 3, 24] if brant._brant.loop_runs() else True


@BOTH
@RANKS
def test_calls_run_in_order_and_give_their_results(ranks: int, loop: str) -> None:
    run_job(calls, ranks=ranks, loop=loop)


async def shapes() -> None:
    await brant.program(main_of_shapes)


async def main_of_shapes() -> None:
    for shape in [(3,), (2, 3), (2, 1, 3), (2, 1, 1, 2), (1, 2, 1, 2, 1), (2, 1, 2, 1, 1, 2)]:
        for placement in ("block", "round_robin", "hashed"):
            blocks = Block.array(shape, placement=placement)
            last = tuple(extent - 1 for extent in shape)
            index, rank, *_ = await blocks[last].where.reply()
            assert index == (last if len(shape) > 1 else last[0])
            assert placement != "block" or rank == brant.size() - 1
            outside = (*last[:-1], shape[-1])
            with pytest.raises(brant.InvalidArgument, match=re.escape(f"Block[{', '.join(map(str, outside))}]")):
                blocks[outside]
    group = Block.group()
    assert [(await member.where.reply())[1] for member in group] == list(range(brant.size()))
    for shape in [(), (0,), (1,) * 7]:
        with pytest.raises(brant.InvalidArgument):
            Block.array(shape)
    with pytest.raises(brant.InvalidArgument, match="placement 'elsewhere'"):
        Block.array(3, placement="elsewhere")
    with pytest.raises(brant.InvalidArgument, match="2 coordinates"):
        Block.array((2, 2))[1]
    with pytest.raises(AttributeError, match=r"no entry 'calls': mark the method with @brant\.entry"):
        group[0].calls  # noqa: B018


@pytest.mark.parametrize("ranks", [1, 3])
def test_arrays_have_one_to_six_dimensions_and_groups_one_member_in_each_process(ranks: int) -> None:
    run_job(shapes, ranks=ranks)


def same(left, right) -> bool:
    if isinstance(left, numpy.ndarray):
        return type(right) is type(left) and right.dtype == left.dtype and numpy.array_equal(left, right)
    return type(left) is type(right) and left == right


async def arguments() -> None:
    await brant.program(main_of_arguments)


async def main_of_arguments() -> None:
    blocks = Block.array(2)
    base = numpy.arange(24.0).reshape(4, 6)
    layouts = [base, base[:, 2], base.T, base.ravel()[::-1], numpy.asfortranarray(base), base[1:, ::2], base[0, 0]]
    values = [
        *layouts,
        *(numpy.array([1, 0, 2]).astype(kind) for kind in ("complex128", "bool", "int8", ">i4", "datetime64[s]")),
        numpy.array(3.5),
        numpy.zeros((0, 3)),
        numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
        numpy.arange(1 << 20),
        b"bytes",
        "text",
        None,
        {"nested": [base.T, {1, 2}]},
        blocks[1],
    ]
    for value in values:
        (back,), named = await blocks[1].echo.reply(value)
        assert same(back, value) if not isinstance(value, dict) else same(back["nested"][0], base.T), value
        assert named == {}
        _, named = await blocks[1].echo.reply(7, named=value)
        assert type(named["named"]) is type(value)
    many, _ = await blocks[1].echo.reply(*layouts * 20)  # charm4py crashes with more than 60
    assert len(many) == 140 and all(map(same, many, layouts * 20))
    back = (await blocks[1].echo.reply(blocks))[0][0]
    assert back == blocks and back.shape == (2,) and back[0] == blocks[0] != blocks[1]
    method = (await blocks[1].echo.reply(blocks[0].add))[0][0]
    method(41)
    sent = numpy.ones(3)
    blocks[0].add(sent)
    sent[:] = 0  # it was copied within the call
    first, second, third = (await blocks[0].where.reply())[2]
    assert (first, second) == (0, 41) and same(third, numpy.ones(3))
    with pytest.raises(brant.InvalidArgument, match="cannot be pickled"):
        blocks[1].add(lambda: 1)


@pytest.mark.parametrize("ranks", [1, 2])
def test_arrays_of_every_layout_and_all_that_can_be_pickled_travels(ranks: int) -> None:
    run_job(arguments, ranks=ranks)


async def exceptions() -> None:
    await brant.program(main_of_exceptions)


async def main_of_exceptions() -> None:
    blocks = Block.array((2, 2))
    for method in (blocks[1, 1].fail, blocks[1, 1].fail_slowly):
        with pytest.raises(KeyError, match="missing") as caught:
            await method.reply(KeyError("missing"))
        told = str(caught.value.__cause__)
        assert f"Block[1, 1].{method._name} on rank {brant.size() - 1}" in told
        assert "raise error" in told and "test_chares.py" in told
    with pytest.raises(TypeError, match="where"):
        await blocks[0, 0].where.reply(1, 2)
    with pytest.raises(TypeError, match="async"):
        await blocks[0, 0].block_the_loop.reply()
    with pytest.raises(brant.InvalidArgument, match="one element at a time"):
        blocks[0, :].where.reply()
    assert [index for index, *_ in await blocks.where.reply()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    with pytest.raises(KeyError, match="one of all"):
        await blocks.fail_in.reply((1, 0), KeyError("one of all"))


class Refusing(Chare):
    @entry
    def refuse(self):
        raise Refused("a name", "a reason")


async def an_exception_that_cannot_travel() -> None:
    await brant.program(main_of_one_that_cannot_travel)


async def main_of_one_that_cannot_travel() -> None:
    with pytest.raises(brant.RemoteError, match=r"(?s)Refusing\[0\]\.refuse on rank 0.*Refused: a name"):
        await Refusing.array(1)[0].refuse.reply()


@BOTH
def test_an_exception_is_raised_where_the_reply_is_awaited(loop: str) -> None:
    run_job(exceptions, loop=loop)


def test_an_exception_that_cannot_be_pickled_comes_as_its_text() -> None:
    run_job(an_exception_that_cannot_travel)


async def nobody_asked() -> None:
    await brant.program(main_of_nobody_asked)


async def main_of_nobody_asked() -> None:
    Block.array((2, 2))[1, 0].fail(ValueError("nobody asked"))
    await brant.sleep(60)


async def nobody_asked_slowly() -> None:
    await brant.program(main_of_nobody_asked_slowly)


async def main_of_nobody_asked_slowly() -> None:
    Block.array((2, 2))[1, 0].fail_slowly(ValueError("nobody asked"))
    await brant.sleep(60)


@BOTH
@pytest.mark.parametrize("body", [nobody_asked, nobody_asked_slowly], ids=lambda body: body.__name__)
def test_an_exception_that_nobody_awaits_ends_the_job_and_is_told_with_its_traceback(body, loop: str) -> None:
    said = run_job(body, loop=loop, fails=True).stderr
    assert re.search(r"Block\[1, 0\]\.fail(_slowly)? on rank 1 raised an exception:", said)
    assert "raise error" in said and "ValueError: nobody asked" in said


class Broken(Chare):
    def __init__(self):
        raise OSError("no disk")


async def a_constructor_raises() -> None:
    await brant.program(main_of_a_constructor)


async def main_of_a_constructor() -> None:
    Broken.array(1)
    await brant.sleep(60)


async def main_raises() -> None:
    await brant.program(main_that_raises)


async def main_that_raises() -> None:
    raise LookupError("from main")


class Waiting(Chare):
    @entry
    async def sleep(self):
        await brant.sleep(30)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (a_constructor_raises, "constructor of .* threw: (?s:.*)OSError: no disk"),
        (main_raises, "LookupError: from main"),
    ],
    ids=["constructor", "main"],
)
def test_other_failures_end_the_job(body, says: str) -> None:
    assert re.search(says, run_job(body, fails=True).stderr)


async def destroyed() -> None:
    await brant.program(main_of_destroyed)


async def main_of_destroyed() -> None:
    waiting = Waiting.array(4)
    reply = waiting[3].sleep.reply()
    await brant.quiescence()
    waiting[3].destroy()
    with pytest.raises(brant.NotFound, match="destroyed while it waited"):
        await reply
    with pytest.raises(brant.NotFound):
        await waiting[3].sleep.reply()
    waiting.destroy()
    await brant.quiescence()


@BOTH
def test_what_waits_ends_with_its_chare(loop: str) -> None:
    run_job(destroyed, loop=loop)


async def outside() -> None:
    with pytest.raises(brant.InvalidArgument, match=r"see brant\.program"):
        Block.array(3)
    for _ in range(2):  # one after another
        assert await brant.program(main_with_a_result, 3) == (3 if brant.rank() == 0 else None)
    with pytest.raises(brant.InvalidArgument, match="no program"):
        brant.quiescence()


async def main_with_a_result(value: int) -> int:
    await Block.group()[0].where.reply()
    with pytest.raises(brant.InvalidArgument, match="already"):
        await brant.program(main_with_a_result, 1)
    return value


@BOTH
def test_programs_run_one_after_another(loop: str) -> None:
    run_job(outside, loop=loop)


class Worker(Chare):
    def __init__(self):
        self.made = 0

    @entry
    async def spread(self, depth):
        for _ in range(3):  # when the answer has come nothing is under way, and this goes on nevertheless
            await self.proxy.nothing.reply()
        if depth != 0:
            for _ in range(2):
                self.array_proxy[(self.index + 1) % len(self.array_proxy)].spread(depth - 1)
        self.made += 1

    @entry
    def nothing(self):
        pass

    @entry
    def count(self):
        return self.made


async def quiet() -> None:
    await brant.program(main_of_quiet)


async def main_of_quiet() -> None:
    workers = Worker.array(6)
    for round in range(1, 21):
        workers[0].spread(5)
        await brant.quiescence()
        assert sum(await workers.count.reply()) == round * (2**6 - 1)


@BOTH
@RANKS
def test_quiescence_waits_for_tasks_that_can_go_on(ranks: int, loop: str) -> None:
    run_job(quiet, ranks=ranks, loop=loop)


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
    assert re.search(r"arrays of shapes \([34],\) and \([34],\) do not fit together", said)


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


when = brant.when if brant else lambda condition: entry


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
