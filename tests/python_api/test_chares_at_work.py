"""Chares as programs use them: methods as callbacks, classes of one name, arrays made anywhere, sections that overlap,
recursion, futures. The behaviours of Charm4py's own tests, written anew."""

from __future__ import annotations

import random
import sys
import types

import pytest
from conftest import brant, run_job

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
RANKS = pytest.mark.parametrize("ranks", [1, 3])

Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)


class Keeper(Chare):
    def __init__(self):
        self.kept = []

    @entry
    def keep(self, *values, **named):
        self.kept.append((values, named))

    @entry
    def all(self):
        return self.kept

    @entry
    def call(self, to, *values, **named):
        to(*values, **named)

    @entry
    async def ask(self, of):
        return await of.reply()

    @entry
    def me(self):
        return self.proxy, self.array_proxy, self.proxy.keep


async def callbacks() -> None:
    async def main() -> None:
        keepers = Keeper.array((2, 3), placement="round_robin")
        last = keepers[1, 2]
        for keeper in keepers:
            keeper.call(keepers[0, 1].keep, keeper.index, named=[keeper.index])
        last.call(keepers.keep, "all")
        last.call(keepers[:, 2].keep, "column")
        await brant.quiescence()
        kept = {keeper.index: await keeper.all.reply() for keeper in keepers}
        indices = [keeper.index for keeper in keepers]
        assert sorted(values[0] for values, named in kept[0, 1] if named) == indices
        assert all(named == {"named": [values[0]]} for values, named in kept[0, 1] if named)
        assert all((("all",), {}) in each for each in kept.values())
        assert [index for index, each in kept.items() if (("column",), {}) in each] == [(0, 2), (1, 2)]
        done = brant.Future()
        last.call(done, "a future is called as a method is")
        assert await done == "a future is called as a method is"
        assert await last.ask.reply(keepers[0, 0].all) == kept[0, 0]
        # Proxies and methods of other processes are those of this one.
        for element in keepers:
            assert await element.me.reply() == (element, keepers, element.keep)
        names = {element.keep: element.index for element in keepers}
        assert names[(await last.me.reply())[2]] == (1, 2)
        assert len({*keepers, *[(await element.me.reply())[0] for element in keepers]}) == 6

    await brant.program(main)


@BOTH
@RANKS
def test_methods_and_futures_are_callbacks_that_travel(ranks, loop):
    run_job(callbacks, ranks=ranks, loop=loop)


def module_with_a_class(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module

    class Same(Chare):
        @entry
        def name(self, other=None):
            return name, type(other).__name__ if other is None else other._class.__module__

    Same.__module__, Same.__qualname__ = name, "Same"
    module.Same = Same
    return module


first, second = module_with_a_class("first_module"), module_with_a_class("second_module")


async def same_names() -> None:
    async def main() -> None:
        ones, others = first.Same.array(4, placement="round_robin"), second.Same.array(4, placement="round_robin")
        for index in range(4):
            assert await ones[index].name.reply(others) == ("first_module", "second_module")
            assert await others[index].name.reply(ones[index]) == ("second_module", "first_module")
        assert ones[1] != others[1] and ones[1].name != others[1].name

    await brant.program(main)


def test_classes_of_one_name_in_two_modules_are_two():
    run_job(same_names, ranks=2)


class Maker(Chare):
    """Makes arrays wherever it lives, and hands them on before they exist elsewhere."""

    def __init__(self, rounds=0, others=None):
        self.own = Keeper.array(3) if rounds == 0 else Maker.array(2, rounds - 1, placement="round_robin")
        self.rounds = rounds

    @entry
    async def use(self):
        if self.rounds:
            return sum(await self.own.use.reply())
        self.own.keep("early")
        others = Keeper.array(2, placement=lambda index: (brant.rank() + 1 + index) % brant.size())
        others[0].call(self.own[2].keep, "by another")
        others[1].call(others.keep, "to all")
        await others[0].ask.reply(self.own[1].all)
        while (("by another",), {}) not in await self.own[2].all.reply():
            await brant.sleep(0)
        assert await self.own[0].all.reply() == [(("early",), {})]
        return 1

    @entry
    async def fibonacci(self, number):
        if number < 2:
            return number
        children = Maker.array(2, placement="hashed")
        below = [children[child].fibonacci.reply(number - 1 - child) for child in range(2)]
        return sum([await each for each in below])


async def arrays_everywhere() -> None:
    async def main() -> None:
        makers = Maker.group(2)
        assert await makers.use.reply() == [4] * brant.size()
        assert await makers[brant.size() - 1].fibonacci.reply(7) == 13

    await brant.program(main)


@BOTH
@RANKS
def test_arrays_are_made_by_chares_in_all_processes_at_once(ranks, loop):
    run_job(arrays_everywhere, ranks=ranks, loop=loop)


class Member(Chare):
    @entry
    async def add(self, sections, mine, times):
        """Reductions over several sections at once, each begun before the one before it has ended."""
        begun = [
            (number, self.all_reduce((number + 1) * self.index, "sum", section=sections[number]))
            for _ in range(times)
            for number in mine
        ]
        return [(number, await result) for number, result in begun]


async def overlapping_sections() -> None:
    async def main() -> None:
        chance = random.Random(7)
        members = Member.array(12, placement="round_robin")
        groups = [sorted(chance.sample(range(12), chance.randint(1, 12))) for _ in range(6)]
        sections = [members.section(group) for group in groups]
        mine = [[number for number, group in enumerate(groups) if index in group] for index in range(12)]
        asked = [members[index].add.reply(sections, mine[index], 5) for index in range(12)]
        expected = {number: (number + 1) * sum(group) for number, group in enumerate(groups)}
        for index, reply in enumerate(asked):
            assert await reply == [(number, expected[number]) for _ in range(5) for number in mine[index]]

    await brant.program(main)


@BOTH
@RANKS
def test_sections_overlap_and_their_reductions_run_side_by_side(ranks, loop):
    run_job(overlapping_sections, ranks=ranks, loop=loop)


async def futures() -> None:
    async def main() -> None:
        keepers = Keeper.array(6, placement="round_robin")
        made = [brant.Future() for _ in range(60)]
        for number, future in enumerate(made):
            keepers[number % 6].call(future, number)
        order = list(range(60))
        random.Random(3).shuffle(order)
        for number in order:
            assert await made[number] == number
        once = brant.Future()
        for number in range(6):
            keepers[number].call(once, number)
        assert await once in range(6)
        assert await once == await once, "it is awaited more than once"
        nested = {"here": [brant.Future(), (brant.Future(),)]}
        keepers[5].keep(nested)
        kept = (await keepers[5].all.reply())[-1][0][0]
        assert kept == nested
        kept["here"][1][0]("deep inside")
        assert await nested["here"][1][0] == "deep inside"
        nothing = brant.Future()
        keepers[1].call(nothing)
        assert await nothing is None
        nested["here"][0]()

    await brant.program(main)


@BOTH
def test_futures_are_awaited_in_any_order_and_travel_inside_of_things(loop):
    run_job(futures, loop=loop)
