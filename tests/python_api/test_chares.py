"""Chares of Python: calls and their order, replies, arrays and groups, what may travel, and what goes wrong."""

from __future__ import annotations

import re

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
    with pytest.raises(brant.InvalidArgument, match="a section of Block gives no replies"):
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
