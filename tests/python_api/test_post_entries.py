"""Post functions of chares: the arrays of a call land where their receiver says."""

from __future__ import annotations

import numpy
import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
# pytest itself does not have the package, and only starts the processes that do.
Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)
when = brant.when if brant else lambda condition: entry
post = brant.post if brant else lambda of: entry

SIZES = (6, 1000, 200_000)


def array_in(memory: str, values):
    array = brant.empty(values.shape, values.dtype, memory=memory)
    if memory == "host":
        array[...] = values
    else:
        array.copy_from(values)
    return array


def values_of(array):
    if isinstance(array, numpy.ndarray):
        return array.copy()
    values = numpy.empty(array.shape, array.format)
    array.copy_to(values)
    return values


class Landing(Chare):
    def __init__(self, memory):
        self.memory = memory
        self.ghosts = {}
        self.told = []
        self.step = 0

    @entry
    def halo(self, step, face, *, name="none"):
        return step, face is self.ghosts[step], values_of(face), name

    @post(halo)
    def _(self, step, face, *, name="none"):
        self.told.append((face.shape, face.format, face.nbytes, face.memory, face.source, name))
        self.ghosts[step] = brant.empty(face.shape, face.format, memory=self.memory)
        return self.ghosts[step]

    @entry
    def two(self, left, number, right):
        return left is self.ghosts["left"], values_of(left), number, type(right).__name__, values_of(right)

    @post(two)
    def _(self, left, number, right):
        self.ghosts["left"] = brant.empty(left.shape, left.format, memory=self.memory)
        return self.ghosts["left"], None

    @entry
    def nowhere(self, values):
        return values_of(values)

    @post(nowhere)
    def _(self, values):
        return None

    @when("self.step == step")
    def in_turn(self, step, face):
        self.step += 1
        return step, face is self.ghosts[step], values_of(face)

    @post(in_turn)
    def _(self, step, face):
        self.ghosts[step] = brant.empty(face.shape, face.format, memory=self.memory)
        return self.ghosts[step]

    @entry
    def wrong(self, values, how):
        raise AssertionError("it never runs")

    @post(wrong)
    def _(self, values, how):
        shape, dtype = values.shape, values.format
        if how == "raises":
            raise ValueError("on purpose")
        return {
            "shape": numpy.empty((3, *shape), dtype),
            "type": numpy.empty(shape, "int32"),
            "strides": numpy.empty((2, *shape), dtype)[:, ::2],
            "no array": "text",
            "too many": (numpy.empty(shape, dtype), None),
        }[how]

    @entry
    def what_was_told(self):
        return self.told


async def arrays_land_where_the_receiver_says() -> None:
    await brant.program(main_of_landing)


async def main_of_landing() -> None:
    for memory in ("host", "emulated"):
        landings = Landing.array(4, memory)
        told = []
        for landing, source in ((landings[3], "emulated"), (landings[0], "host"), (landings[3], "host")):
            for step, size in enumerate(SIZES):
                values = numpy.arange(size).reshape(2, -1) * 1.5
                got = await landing.halo.reply(step, array_in(source, values), name=source)
                assert got[:2] == (step, True) and (got[2] == values).all() and got[3] == source
                if landing == landings[3]:
                    told.append((values.shape, "d", values.nbytes, source, 0, source))
        assert await landings[3].what_was_told.reply() == told
        left, right = numpy.arange(10.0), numpy.arange(2000, dtype="int32")
        for place in (0, 3):
            got = await landings[place].two.reply(left, {"n": 1}, right[::-1])
            assert got[0] is True and (got[1] == left).all() and got[2] == {"n": 1}
            assert got[3] == "ndarray" and (got[4] == right[::-1]).all()
            assert (await landings[place].nowhere.reply(left) == left).all()
        values = numpy.arange(600.0)
        landings.halo(9, values, name="to all")
        landings[1:].halo(10, values, name="to some")
        await brant.quiescence()
        for landing in landings:
            named = [each[-1] for each in await landing.what_was_told.reply() if each[-1].startswith("to")]
            assert sorted(named) == (["to all"] if landing == landings[0] else ["to all", "to some"])
        answers = [landings[2].in_turn.reply(step, values + step) for step in reversed(range(4))]
        for step, answer in zip(reversed(range(4)), answers, strict=True):
            got = await answer
            assert got[:2] == (step, True) and (got[2] == values + step).all()


@BOTH
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_arrays_land_where_the_receiver_says(ranks: int, loop: str) -> None:
    run_job(arrays_land_where_the_receiver_says, ranks=ranks, loop=loop, BRANT_GPU="emulated")


async def wrong_landings() -> None:
    await brant.program(main_of_wrong_landings)


async def main_of_wrong_landings() -> None:
    landings = Landing.array(2, "host")
    said = {
        "raises": "on purpose",
        "shape": r"comes, and its post function names an array of d of shape \(3, 4, 5\)",
        "type": "names an array of i",
        "strides": "names an array of d",
        "no array": "names no array",
        "too many": "names 2 arrays, and 1 come",
    }
    for landing in (landings[0], landings[1]):
        for how, says in said.items():
            with pytest.raises(brant.Error, match=says):
                await landing.wrong.reply(numpy.zeros((4, 5)), how)
    with pytest.raises(brant.InvalidArgument, match="is no entry"):
        brant.post(len)(len)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_landing_that_does_not_fit_fails_the_call(ranks: int) -> None:
    run_job(wrong_landings, ranks=ranks)
