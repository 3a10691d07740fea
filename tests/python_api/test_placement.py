"""Where elements live: by name, and by a function of Python."""

from __future__ import annotations

import numpy
import pytest
from conftest import brant, run_job

Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)


class Where(Chare):
    def __init__(self, text="", *, shift=0):
        self.made = text, shift

    @entry
    def rank(self):
        return brant.rank()

    @entry
    def all(self):
        return self.index, brant.rank(), self.made


def diagonal(index):
    x, y = index
    return (x + y) % brant.size()


async def placed() -> None:
    async def main() -> None:
        squares = Where.array((3, 4), "text", placement=diagonal, shift=2)
        for x in range(3):
            for y in range(4):
                assert await squares[x, y].all.reply() == ((x, y), (x + y) % brant.size(), ("text", 2))
        last = brant.size() - 1
        assert await Where.array(5, placement=lambda index: last).rank.reply() == [last] * 5
        ranks = numpy.arange(6) % brant.size()
        assert await Where.array(6, placement=ranks.__getitem__).rank.reply() == list(ranks)
        many = Where.array(20_000, placement=lambda index: index * 7 % brant.size())
        assert await many[19_999].rank.reply() == 19_999 * 7 % brant.size()
        # Calls may come before the array on a rank that neither made it nor has an element in it.
        others = Where.array(2, placement=lambda index: 0)
        assert await others.rank.reply() == [0, 0]

    await brant.program(main)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_elements_live_where_a_function_says(ranks):
    run_job(placed, ranks=ranks)


class NoRank(Exception):
    pass


def raises(index):
    raise NoRank(index)


WRONG = [
    (lambda index: 2, r"puts Where\[0, 0\] on 2: use a rank, 0 to 1"),
    (lambda index: -1 if index == (1, 2) else 0, r"puts Where\[1, 2\] on -1: use a rank, 0 to 1"),
    (lambda index: None if index == (0, 1) else 0, r"puts Where\[0, 1\] on None: use a rank, 0 to 1"),
    (lambda index: 0.0, r"puts Where\[0, 0\] on 0\.0: use a rank"),
    (lambda index: True, r"puts Where\[0, 0\] on True: use a rank"),
    (lambda index: 2**70, r"puts Where\[0, 0\] on 1180591620717411303424: use a rank"),
]


async def misplaced() -> None:
    async def main() -> None:
        for function, text in WRONG:
            with pytest.raises(brant.InvalidArgument, match=text):
                Where.array((2, 3), placement=function)
        with pytest.raises(NoRank):
            Where.array((2, 3), placement=raises)
        with pytest.raises(brant.LimitReached, match=r"Where\[4097, 4096\] has 16781312 elements: a function places"):
            Where.array((4097, 4096), placement=diagonal)
        with pytest.raises(brant.InvalidArgument, match="placement 'blocks': use block, round_robin, hashed or a func"):
            Where.array(3, placement="blocks")
        with pytest.raises(brant.InvalidArgument, match="placement 3: use block, round_robin, hashed or a function"):
            Where.array(3, placement=3)
        with pytest.raises(brant.InvalidArgument, match="every dimension needs 1 or more"):
            Where.array((0, 3), placement=diagonal)
        assert await Where.array(2, placement="round_robin").rank.reply() == [0, 1]

    await brant.program(main)


def test_functions_that_give_no_rank_are_refused_by_name_of_the_element():
    run_job(misplaced)
