"""Chares of C++ and chares of Python call each other: values, arrays, answers, proxies, errors, data arguments."""

from __future__ import annotations

import os

import numpy
import pytest
from conftest import TREE, brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
RANKS = pytest.mark.parametrize("ranks", [1, 2])

LIBRARY = TREE / "python_test" / "libcpp_chares.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not there: run 'make build'")

Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)

if brant:
    brant.load(LIBRARY)


class Watcher(Chare):
    def __init__(self):
        self.notes = []

    @entry
    def note(self, *what):
        self.notes.append(what)

    @entry
    def seen(self):
        return self.notes

    @entry
    def mean(self, values):
        assert isinstance(values, numpy.ndarray)
        return values.mean()

    @entry
    async def slow_name(self, x, y):
        await brant.sleep(0.01)
        return f"{x}, {y} for {self.index}"

    @entry
    def fail(self, number):
        raise ValueError(f"no {number}")

    @entry
    async def fail_slowly(self, number):
        await brant.sleep(0.01)
        raise ValueError(f"no {number} later")

    @entry
    def wrong_answer(self, number):
        return "a text"

    @entry
    def large_answer(self, number):
        return 2**40

    @entry
    async def take_proxies(self, ours, me, callers):
        assert ours == self.array_proxy and me == self.proxy and ours.shape == self.array_proxy.shape
        await me.note.reply("through its own proxy")
        return self.index + len(callers.shape)

    @entry
    def call(self, to, *values):
        to(*values)

    @entry
    async def ask(self, block):
        return await block.value.reply()

    @entry
    def give(self, section):
        section.scale(2.0)

    @entry
    def take_bytes(self, data, number):
        self.data = data
        return data.nbytes * number

    @entry
    def take_numbers(self, text, numbers):
        assert text == "half" and numbers.dtype == float
        return float(numbers.sum())


async def calls() -> None:
    async def main() -> None:
        blocks = brant.cpp("Block").array(4, 1.5, "some", placement="round_robin")
        blocks[1].scale(2)
        assert await blocks[1].value.reply() == 3.0
        blocks.scale(4.0)
        assert await blocks.value.reply() == [6.0, 12.0, 6.0, 6.0]
        assert await blocks[3].where.reply() == ("some", (3 % brant.size()) * 100 + 3)
        assert await blocks[2].sum.reply(numpy.arange(5.0)) == 10.0
        assert await blocks[2].sum.reply(numpy.arange(10.0)[::2]) == 20.0
        assert await blocks[2].sum.reply([1, 2.5]) == 3.5
        assert await blocks[2].wait_and_add.reply(1) == 7.0
        blocks[1:3].with_priority(3).scale(0.5)
        await brant.quiescence()
        assert await blocks.value.reply() == [6.0, 6.0, 3.0, 6.0]
        group = brant.cpp("Block").group(1.0, "group")
        assert await group[brant.size() - 1].where.reply() == ("group", (brant.size() - 1) * 101)

    await brant.program(main)


@BOTH
@RANKS
def test_python_calls_entries_of_cpp(ranks, loop):
    run_job(calls, ranks=ranks, loop=loop)


async def python_called() -> None:
    async def main() -> None:
        watchers = Watcher.array(3, placement="round_robin")
        callers = brant.cpp("Caller").array((2, 2), placement="round_robin")
        await callers[0, 1].note.reply(watchers[1], 2)
        await brant.quiescence()
        notes = await watchers[1].seen.reply()
        assert [note[:2] for note in notes] == [(0, "text"), (1, "text")]
        assert numpy.array_equal(notes[1][2], [1.5, 2.5, 1.5])
        callers[1, 1].note_all(watchers)
        await brant.quiescence()
        for seen in await watchers.seen.reply():
            assert seen[-1][:2] == (7, "all")
        assert await callers[1, 0].mean.reply(watchers[2]) == (3.0, "1, 0 for 2")
        assert await callers[0, 0].hand_back.reply(watchers) == 0 + 1 + 2 + 3 * 2

    await brant.program(main)


@BOTH
@RANKS
def test_cpp_calls_entries_of_python(ranks, loop):
    run_job(python_called, ranks=ranks, loop=loop)


class Stepper(Chare):
    def __init__(self):
        self.steps = []
        self.bytes = None

    @(brant.when("len(self.steps) == step") if brant else entry)
    def step(self, step):
        self.steps.append(step)

    @entry
    def keep_bytes(self, data):
        self.bytes = bytes(data)

    @entry
    def kept(self):
        return self.steps, self.bytes


async def conditions_and_broadcasts() -> None:
    async def main() -> None:
        caller = brant.cpp("Caller").array((1, 1))[0, 0]
        steppers = Stepper.array(4, placement="round_robin")
        await caller.step_down.reply(steppers[1], 10)
        assert await caller.broadcast_data.reply(steppers) == 4
        assert (await steppers[1].kept.reply())[0] == list(range(11))
        assert {kept for _, kept in await steppers.kept.reply()} == {b"\3" * 10_000}

    await brant.program(main)


@RANKS
def test_conditions_of_python_hold_for_calls_of_cpp_and_broadcasts_carry_data(ranks):
    run_job(conditions_and_broadcasts, ranks=ranks)


async def every_type() -> None:
    async def main() -> None:
        block = brant.cpp("Block").array(2, 0.0, "")[1]

        kinds = (True, -128, -(2**15), -(2**31), -(2**63), 255, 2**16 - 1, 2**32 - 1, 2**64 - 1, 0.5, 1e300, 1 + 2j, 3j)
        assert await block.echo_kinds.reply(kinds) == kinds
        numpy_kinds = [numpy.bool_(True), *(numpy.int8(1) for _ in kinds[1:-4]), *map(numpy.float32, (1, 2, 3, 4))]
        assert await block.echo_kinds.reply(numpy_kinds) == (True, *(1 for _ in kinds[1:-4]), 1, 2, 3, 4)

        for floats in (numpy.arange(6, dtype="f")[::-2], numpy.zeros(0, "f"), numpy.ones(100_000, "f")):
            echo = await block.echo_floats.reply(floats)
            assert echo.dtype == "f" and numpy.array_equal(echo, floats)
        points = numpy.arange(12.0).reshape(4, 3)
        assert numpy.array_equal(await block.echo_points.reply(points), points)
        assert numpy.array_equal(await block.echo_points.reply(points.T.copy().T), points)
        assert numpy.array_equal(await block.echo_points.reply([[1, 2, 3], (4, 5, 6)]), [[1, 2, 3], [4, 5, 6]])
        assert await block.echo_texts.reply(["", "grün", "\0"]) == ["", "grün", "\0"]
        mapped = await block.echo_map.reply({"a": [1, 2], "": numpy.zeros(0, "i")})
        assert {key: list(value) for key, value in mapped.items()} == {"a": [1, 2], "": []}
        assert await block.echo_set.reply({3, 1, 2}) == {1, 2, 3}
        assert await block.echo_truths.reply([True, False]) == [True, False]
        assert await block.echo_optional.reply(None) is None
        assert await block.echo_optional.reply(2) == 2.0
        for some in (b"", b"a\0b", bytearray(b"c"), memoryview(b"def")):
            assert await block.echo_bytes.reply(some) == bytes(some)
        assert list(await block.echo_pair_of.reply((5, -6))) == [5, -6]
        assert await block.echo_colour.reply(1) == 1
        text, number, numbers, view = await block.echo_mixed.reply("one", 2, numpy.array([3j, 4]), "five")
        assert (text, number, list(numbers), view) == ("one", 2, [3j, 4], "five")

    await brant.program(main)


def test_every_type_comes_back_as_it_went():
    run_job(every_type)


async def proxies() -> None:
    async def main() -> None:
        blocks = brant.cpp("Block").array(4, 2.0, "", placement="round_robin")
        siblings = await blocks[1].siblings.reply()
        assert siblings == blocks and siblings.shape == (4,)
        me = await blocks[3].this_one.reply()
        assert me == blocks[3] and me.index == 3
        me.scale(5.0)
        assert await blocks[0].value_of.reply(me) == 10.0
        blocks[1].scale_all(siblings, 0.5)
        await brant.quiescence()
        assert await blocks.value.reply() == [1.0, 1.0, 1.0, 5.0]
        # They are pickled as those of Python are, and so are their methods.
        for watcher in Watcher.array(2, placement="round_robin"):
            assert await watcher.call.reply(blocks[2].scale, 3.0) is None
            assert await watcher.ask.reply(blocks[3]) == 5.0
            assert await watcher.give.reply(blocks[1:3]) is None
            await brant.quiescence()
        assert await blocks.value.reply() == [1.0, 4.0, 36.0, 5.0]

    await brant.program(main)


def test_proxies_of_cpp_go_through_both_languages():
    run_job(proxies)


WRONG = [
    ("scale", (), r"^Block\.scale takes 1 arguments \(float64\), not 0$"),
    ("scale", (1, 2), r"^Block\.scale takes 1 arguments \(float64\), not 2$"),
    ("scale", ("a",), r"^Block\.scale: argument 1 must be float64, not str$"),
    ("scale", (1j,), r"^Block\.scale: argument 1 must be float64, not complex$"),
    ("scale", (10**400,), r"^Block\.scale: argument 1 must be float64, not int$"),
    ("scale", ([1.0],), r"^Block\.scale: argument 1 must be float64, not list$"),
    ("sum", (3,), r"^Block\.sum: argument 1 must be list of float64, not int$"),
    ("sum", ("12",), r"^Block\.sum: argument 1 must be list of float64, not str$"),
    ("sum", ([1, "a"],), r"^Block\.sum: argument 1\[1\] must be float64, not str$"),
    ("sum", ("floats",), r"^Block\.sum: argument 1 must be list of float64, not an array of f of shape \(3\)$"),
    ("sum", ("matrix",), r"^Block\.sum: argument 1 must be list of float64, not an array of d of shape \(2, 2\)$"),
    ("echo_colour", (256,), r"^Block\.echo_colour: argument 1 must be uint8, not 256$"),
    ("echo_colour", (-1,), r"^Block\.echo_colour: argument 1 must be uint8, not -1$"),
    ("echo_colour", (1.0,), r"^Block\.echo_colour: argument 1 must be uint8, not float$"),
    ("echo_truths", ([1],), r"^Block\.echo_truths: argument 1\[0\] must be bool, not int$"),
    ("echo_pair_of", ((1, 2, 3),), r"^Block\.echo_pair_of: argument 1 must be 2 of int32, not 3 values$"),
    ("echo_pair_of", ((1, 2**31),), r"^Block\.echo_pair_of: argument 1\[1\] must be int32, not 2147483648$"),
    ("echo_points", ([[1, 2]],), r"^Block\.echo_points: argument 1\[0\] must be 3 of float64, not 2$"),
    ("echo_texts", ("abc",), r"^Block\.echo_texts: argument 1 must be list of str, not str$"),
    ("echo_map", ({1: [2]},), r"^Block\.echo_map: a key of argument 1 must be str, not int$"),
    ("echo_floats", ([1e300],), r"^Block\.echo_floats: argument 1\[0\] must be float32, not a number that does not"),
    ("echo_bytes", ("text",), r"^Block\.echo_bytes: argument 1 must be bytes, not str$"),
    ("value_of", (7,), r"^Block\.value_of: argument 1 must be chare cpp_chares::Block, not int$"),
    ("scale_all", ("watchers", 1.0), r"^Block\.scale_all: argument 1 must be array of chares cpp_chares::Block, not"),
]


async def wrong_arguments() -> None:
    async def main() -> None:
        blocks = brant.cpp("Block").array(2, 1.0, "")
        made = {
            "floats": numpy.zeros(3, "f"),
            "matrix": numpy.zeros((2, 2)),
            "watchers": Watcher.array(1),
        }
        for name, given, text in WRONG:
            given = [made.get(value, value) if isinstance(value, str) else value for value in given]
            for call in (getattr(blocks[1], name), getattr(blocks, name), getattr(blocks[1], name).reply):
                with pytest.raises(TypeError, match=text):
                    call(*given)
        with pytest.raises(TypeError, match=r"Block\.scale is of C\+\+, whose arguments have no names: factor"):
            blocks[1].scale(factor=1.0)
        with pytest.raises(AttributeError, match="Block has no entry 'skale'"):
            blocks[1].skale(1.0)
        with pytest.raises(TypeError, match=r"Block\.array takes 2 arguments \(float64, str\), not 1"):
            brant.cpp("Block").array(2, 1.0)
        with pytest.raises(brant.InvalidArgument, match="Block has arrays of 1 dimensions, not 2"):
            brant.cpp("Block").array((2, 2), 1.0, "")
        with pytest.raises(brant.NotFound, match="no class of C\\+\\+ is exposed as 'Blok' here.* Exposed: Block, "):
            brant.cpp("Blok")
        with pytest.raises(brant.InvalidArgument, match="too late: load it before the first program"):
            brant.load(LIBRARY)
        with pytest.raises(brant.InvalidArgument, match="outside the array"):
            blocks[2].scale(1.0)
        assert await blocks.value.reply() == [1.0, 1.0], "nothing of that has arrived"

    await brant.program(main)


def test_arguments_that_do_not_fit_are_type_errors_at_the_caller():
    run_job(wrong_arguments)


class Emptying:
    """A number that empties the lists that hold it when it is read."""

    def __init__(self, *lists):
        self.lists = lists

    def __index__(self):
        for one in self.lists:
            one.clear()
        return 1

    def __float__(self):
        return float(self.__index__())


class Interrupting:
    def __float__(self):
        raise KeyboardInterrupt("of the program")


async def arguments_that_change() -> None:
    async def main() -> None:
        block = brant.cpp("Block").array(1, 1.0, "")[0]
        numbers: list = [2] * 100_000
        numbers[0] = Emptying(numbers)
        assert await block.echo_set.reply(numbers) == {1, 2}
        points: list = []
        point = [None, 2.0, 3.0]
        point[0] = Emptying(point, points)
        points += [point, [4.0] * 3] * 1000
        with pytest.raises(TypeError, match=r"argument 1\[2\] must be 3 of float64, not 0$"):
            block.echo_points.reply(points)
        pair: list = [None, 3]
        pair[0] = Emptying(pair)
        assert list(await block.echo_pair_of.reply(pair)) == [1, 3]
        with pytest.raises(KeyboardInterrupt, match="of the program"):
            block.scale(Interrupting())
        with pytest.raises(TypeError, match="unhashable"):
            await block.set_of_lists.reply()
        assert await block.value.reply() == 1.0

    await brant.program(main)


def test_arguments_may_change_while_they_are_read():
    run_job(arguments_that_change, ranks=1)


async def programs_in_a_row() -> None:
    left = []

    async def main() -> None:
        blocks = brant.cpp("Block").array(2, 1.0, "", placement="round_robin")
        if left:
            with pytest.raises(brant.InvalidArgument, match="of a program of chares that has ended"):
                left[-1][1].scale(2.0)
            with pytest.raises(brant.InvalidArgument, match="of a program of chares that has ended"):
                await blocks[0].value_of.reply(left[-1][1])
        assert await blocks.value.reply() == [1.0, 1.0]
        left.append(blocks)

    with pytest.raises(brant.Error):
        brant.cpp("Block").array(2, 1.0, "")
    for _ in range(3):
        await brant.program(main)


def test_classes_of_cpp_are_there_for_one_program_after_another():
    run_job(programs_in_a_row)


def test_libraries_that_cannot_be_loaded():
    run_job(not_loaded, ranks=1)


async def not_loaded() -> None:
    with pytest.raises(brant.NotFound, match=r"the library '/nowhere\.so' cannot be opened: .*No such file"):
        brant.load("/nowhere.so")
    with pytest.raises(brant.NotFound, match="exposes no chare class, or is linked with another libbrant"):
        brant.load("libm.so.6")
    assert brant.load(LIBRARY) == [brant.cpp(name) for name in ("Block", "Caller", "Maker", "Data")]


async def failures() -> None:
    async def main() -> None:
        watchers = Watcher.array(2, placement="round_robin")
        blocks = brant.cpp("Block").array(2, 1.0, "", placement="round_robin")
        caller = brant.cpp("Caller").array((1, 1))[0, 0]
        for block in blocks:
            with pytest.raises(brant.Error, match="a reason of its own"):
                await block.fail.reply("a reason of its own")
        for watcher in watchers:
            text = await caller.text_of_failure.reply(watcher, "fail")
            assert f"Watcher[{watcher.index}].fail on rank {watcher.index % brant.size()} raised" in text, text
            assert "ValueError: no 5" in text and "test_cpp.py" in text and "in fail" in text, text
            text = await caller.text_of_failure.reply(watcher, "fail_slowly")
            assert "ValueError: no 5 later" in text and "in fail_slowly" in text, text
            text = await caller.text_of_failure.reply(watcher, "wrong_answer")
            assert "what it returns must be int32, not str" in text, text
            text = await caller.text_of_failure.reply(watcher, "large_answer")
            assert "what it returns must be int32, not 1099511627776" in text, text
            text = await caller.text_of_failure.reply(watcher, "nothing")
            assert "C++ calls Watcher.nothing, and there is no such method with @brant.entry" in text, text
            text = await caller.text_of_failure.reply(watcher, "seen")
            assert "takes 1 positional argument but 2 were given" in text, text
        text = await caller.outside.reply(watchers)
        assert "Watcher[99] is outside the array, whose extent is [2]" in text, text
        with pytest.raises(brant.InvalidArgument, match="the result of a reduction goes to chares of Python"):
            await Contributor.array(1)[0].give.reply(blocks.scale)

    await brant.program(main)


class Contributor(Chare):
    @entry
    def give(self, to):
        self.contribute(1.0, "sum", to)


@BOTH
def test_errors_of_either_language_reach_the_caller_in_the_other(loop):
    run_job(failures, loop=loop)


async def unheard_in_python() -> None:
    async def main() -> None:
        caller = brant.cpp("Caller").array((1, 1))[0, 0]
        caller.call_without_asking(Watcher.array(2, placement="round_robin")[1], "fail_slowly")
        await brant.sleep(30)

    await brant.program(main)


async def unheard_in_cpp() -> None:
    async def main() -> None:
        brant.cpp("Block").array(2, 1.0, "", placement="round_robin")[1].fail("nobody asked for this")
        await brant.sleep(30)

    await brant.program(main)


@pytest.mark.parametrize(
    ("body", "text"),
    [(unheard_in_python, "ValueError: no 5 later"), (unheard_in_cpp, "nobody asked for this")],
)
def test_an_exception_that_nobody_asked_for_ends_the_job_with_its_text(body, text):
    done = run_job(body, fails=True)
    assert text in done.stderr


class Made(Chare):
    def __init__(self, text="nothing", number=0, pair=()):
        self.made = text, number, list(pair)
        self.open = False

    @entry
    def all(self):
        return self.index, brant.rank(), self.made, self.array_proxy.shape

    @entry
    def say(self):
        return f"{self.made[0]} {self.index} "


class Unmade(Chare):
    def __init__(self):
        raise ValueError("never made")


async def made_by_cpp() -> None:
    async def main() -> None:
        maker = brant.cpp("Maker").group()[brant.size() - 1]
        where = [number % brant.size() for number in (1, 0, 0, 1, 1, 0)]
        made = await maker.make.reply(f"{__name__}:Made", where)
        assert made._class is Made and made.shape == (2, 3)
        for element, rank in zip(made, where, strict=True):
            assert await element.all.reply() == (element.index, rank, ("a text", 7, [0.5, 1.5]), (2, 3))
        assert await maker.make_and_ask.reply(f"{__name__}:Made") == "nothing 0 nothing 1 nothing 2 "

    await brant.program(main)


@RANKS
def test_cpp_makes_arrays_of_python(ranks):
    run_job(made_by_cpp, ranks=ranks)


async def wrongly_made() -> None:
    async def main() -> None:
        await brant.cpp("Maker").array(1)[0].make_and_ask.reply(os.environ["MADE"])

    await brant.program(main)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("body:Unmade", "ValueError: never made"),
        ("body:Missing", "has no attribute 'Missing'"),
        ("nowhere.at_all:Class", "No module named 'nowhere'"),
        ("os.path:join", "os.path:join came, which is no chare class"),
    ],
)
def test_classes_of_python_that_cannot_be_made_end_the_job(name, text):
    done = run_job(wrongly_made, fails=True, MADE=name)
    assert text in done.stderr, done.stderr


async def data_arguments() -> None:
    async def main() -> None:
        datas = brant.cpp("Data").array(2, placement="round_robin")
        watchers = Watcher.array(2, placement="round_robin")
        made = [brant.empty(1000, dtype="i4", memory="host"), numpy.arange(100_000.0), b"12345"]
        if brant.device() != "host":
            made.append(brant.empty((30, 40), dtype="f4", memory=brant.device()))
        for array in made:
            nbytes = len(array) if isinstance(array, bytes) else array.nbytes
            on_device = isinstance(array, brant.Array)
            for data, watcher in zip(datas, watchers, strict=True):
                assert await data.take.reply(array, 5) == (nbytes, 5, not on_device)
                assert await data.pass_on.reply(array, watcher) == nbytes * 3
        for data, watcher in zip(datas, watchers, strict=True):
            assert await data.total.reply(numpy.ones(70_000), "", numpy.arange(3, dtype="i4")) == 70_003.0
            assert await data.send_numbers.reply(watcher) == 2500.0
            data.take(numpy.zeros(3), 1)
        with pytest.raises(TypeError, match="argument 1 must be array of float64 in host memory, not an array of f "):
            datas[1].total(numpy.ones(3, "f"), "", numpy.arange(3, dtype="i4"))
        with pytest.raises(TypeError, match="argument 1 must be array of any memory, not .* do not lie together"):
            datas[1].take(numpy.ones((4, 4))[:, 1], 1)
        with pytest.raises(TypeError, match="argument 1 must be array of any memory, not list"):
            datas[1].take([1], 1)
        for posted in Posted.array(2, placement="round_robin"):
            assert await datas[0].pass_on.reply(numpy.arange(6.0), posted) == 15
            with pytest.raises(brant.Error, match=r"an array of B of shape \(40\) comes, and its post function names"):
                await datas[0].pass_on.reply(numpy.arange(5.0), posted)
            assert await datas[1].send_numbers.reply(posted) == 2500.0
        await brant.quiescence()

    await brant.program(main)


class Posted(Chare):
    def __init__(self):
        self.landing = numpy.zeros((2, 3))
        self.numbers = numpy.zeros(5000)

    @entry
    def take_bytes(self, data, number):
        assert data is self.landing
        return int(data.sum())

    @entry
    def take_numbers(self, text, numbers):
        assert numbers is self.numbers
        return float(numbers.sum())

    if brant:

        @brant.post(take_bytes)
        def _(self, data, number):
            assert (data.format, data.nbytes, number) == ("B", data.shape[0], 3)
            return self.landing

        @brant.post(take_numbers)
        def _(self, text, numbers):
            assert (text, numbers.format, numbers.shape) == ("half", "d", (5000,))
            return self.numbers


@pytest.mark.parametrize("gpu", ["none", "emulated"])
@RANKS
def test_data_arguments_go_both_ways(ranks, gpu):
    run_job(data_arguments, ranks=ranks, BRANT_GPU=gpu)
