"""brant.HaloExchange: every cell of every field before and after, in all modes; what it refuses; failures."""

from __future__ import annotations

import gc
import os
import signal
import weakref

import numpy
import pytest
from conftest import brant, run_job
from halo_content import content

MODES = ("fused", "direct", "graph", "resident", "stream", "stacked", "shapes")
PERIODIC = {"grid": (9, 8, 7), "divide": (3, 2, 2), "periodic": (True, True, True), "ghost": (2, 1, 3), "variables": 3}
OPEN = {"grid": (9, 8, 7), "divide": (2, 2, 1), "periodic": (False, False, True), "ghost": (1, 2, 1), "variables": 2}
FLAT = {"grid": (9, 8, 1), "divide": (2, 2, 1), "periodic": (True, False, False), "ghost": (1, 1, 0)}
CASES = (PERIODIC, OPEN, FLAT)
TWO = {"grid": (6, 5, 4), "divide": (2, 1, 1), "periodic": (True, True, True), "ghost": (1, 1, 1)}


def fill(exchange, fields: list, round_: int, options: dict) -> None:
    for i, field in enumerate(fields):
        values = content(exchange.first_block + i, round_, False, **options)
        if isinstance(field, brant.Array):
            field.copy_from(values)
        else:
            field[...] = values


def check(exchange, fields: list, round_: int, options: dict) -> None:
    for i, field in enumerate(fields):
        seen = field
        if isinstance(field, brant.Array):
            seen = numpy.empty(field.shape)
            field.copy_to(seen)
        expected = content(exchange.first_block + i, round_, True, **options).reshape(seen.shape)
        numpy.testing.assert_array_equal(seen, expected, err_msg=f"block {exchange.first_block + i} in {options}")


async def rounds(exchange, fields: list, options: dict, times: int = 1) -> None:
    for round_ in (1, 2):
        fill(exchange, fields, round_, options)
        await exchange.run(fields, times)
        check(exchange, fields, round_, options)


async def every_ghost_is_filled() -> None:
    memory = os.environ["BRANT_TEST_MEMORY"]
    for options in CASES:
        for mode in MODES:
            for messages in ("per_process", "per_block", "all") if mode == "fused" else ("per_process",):
                exchange = brant.HaloExchange(**options, mode=mode, messages=messages)
                with exchange:
                    await rounds(exchange, exchange.empty(memory), options)


async def fields_of_numpy_do() -> None:
    for mode in ("fused", "shapes", "stream"):
        with brant.HaloExchange(**PERIODIC, mode=mode) as exchange:
            for _ in range(2):  # others in each run
                fields = [numpy.empty(exchange.array_of(i)) for i in range(exchange.blocks)]
                await rounds(exchange, fields, PERIODIC)
    with brant.HaloExchange(**TWO, dtype="i4") as exchange:
        fields = [numpy.empty(exchange.array_of(i)[1:], "i4") for i in range(exchange.blocks)]
        for i, field in enumerate(fields):
            field[...] = content(exchange.first_block + i, 1, False, **TWO)[0]
        await exchange.run(fields)
        for i, field in enumerate(fields):
            numpy.testing.assert_array_equal(field, content(exchange.first_block + i, 1, True, **TWO)[0])
        if exchange.blocks == 1:
            await exchange.run(fields[0])  # one needs no list


async def several_after_each_other() -> None:
    for mode in MODES:
        with brant.HaloExchange(**TWO, mode=mode) as exchange:
            await rounds(exchange, exchange.empty(os.environ["BRANT_TEST_MEMORY"]), TWO, times=20)


async def other_fields_are_bound() -> None:
    for mode in ("direct", "graph", "resident", "fused"):
        with brant.HaloExchange(**TWO, mode=mode) as exchange:
            first, second = (exchange.empty(os.environ["BRANT_TEST_MEMORY"]) for _ in range(2))
            await rounds(exchange, first, TWO)
            if mode != "fused":
                with pytest.raises(brant.InvalidArgument, match="not the fields that mode direct is bound to"):
                    await exchange.run(second)
            await exchange.bind(second)
            await rounds(exchange, second, TWO)


async def it_says_what_it_does() -> None:
    with brant.HaloExchange(**PERIODIC) as exchange:
        each = 12 // brant.size()
        assert exchange.blocks == each and exchange.first_block == each * brant.rank()
        assert exchange.array_of(0) == (3, 7 // 2 + 1 + 6, 8 // 2 + 2, 9 // 3 + 4) or brant.rank() == 1
        assert exchange.messages == brant.size() - 1
        assert (exchange.message_bytes > 0) == (brant.size() > 1)
        assert exchange.phases() == (0, 0, 0, 0)
        await exchange.run(exchange.empty())
        took = exchange.phases()
        assert took.pack > 0 and took.comm >= 0 and took.unpack >= 0
        assert exchange.is_open
    assert not exchange.is_open
    exchange.close()
    for use in (lambda: exchange.run([]), lambda: exchange.bind([]), lambda: exchange.blocks, exchange.phases):
        with pytest.raises(brant.InvalidArgument, match="the exchange is closed"):
            use()


async def what_does_not_fit_is_refused() -> None:
    refused = brant.InvalidArgument
    for options, says in (
        ({**TWO, "divide": (7, 1, 1)}, "7"),
        ({**TWO, "grid": (6, 5)}, "grid=.*one for each of x, y and z"),
        ({**TWO, "ghost": "wide"}, "ghost='wide'"),
        ({**TWO, "variables": 0}, "variables=0"),
        ({**TWO, "mode": "slow"}, "mode='slow': use shapes, fused, direct"),
        ({**TWO, "messages": "none"}, "messages='none': use per_process"),
        ({**TWO, "path": "there"}, "'there' is no path"),
        ({**TWO, "first_channel": -1}, "first_channel=-1"),
    ):
        with pytest.raises(refused, match=says):
            brant.HaloExchange(**options)
    with brant.HaloExchange(**TWO) as exchange:
        shape, good = exchange.array_of(0), exchange.empty()
        with pytest.raises(refused, match="0 fields for the"):
            exchange.run([])
        with pytest.raises(refused, match="no block 7"):
            exchange.array_of(7)
        read_only = numpy.zeros(shape)
        read_only.flags.writeable = False
        for field, kind, says in (
            (numpy.zeros(shape, "f4"), refused, r"an array of f of shape .*takes elements of d and shape \(1, "),
            (numpy.zeros(shape[::-1]), refused, "and shape"),
            (numpy.zeros((*shape[:3], 2 * shape[3]))[..., ::2], refused, "does not lie together in C order"),
            (numpy.zeros(shape, order="F"), refused, "does not lie together in C order"),
            (read_only, refused, "read-only"),
            ("text", brant.WrongKind, "of type str"),
        ):
            with pytest.raises(kind, match=says):
                exchange.run([field, *good[1:]])
        await rounds(exchange, good, TWO)  # what was refused has left nothing behind


async def memory_that_others_cannot_map_is_refused() -> None:
    with brant.HaloExchange(**TWO, mode="direct") as exchange:
        fields = [numpy.zeros(exchange.array_of(0))] if brant.rank() == 0 else exchange.empty()
        says = (
            "other processes cannot write into the field of block 0" if brant.rank() == 0 else "rank 0 could not bind"
        )
        for _ in range(2):  # it stays ended
            with pytest.raises(brant.NotSupported, match=says):
                await exchange.run(fields)


async def a_field_on_a_device_beside_one_of_the_host_is_refused() -> None:
    with brant.HaloExchange(**{**TWO, "divide": (2, 2, 1)}) as exchange:
        fields = [exchange.empty("emulated")[0], exchange.empty()[1]]
        with pytest.raises(brant.WrongKind, match="some fields lie in host memory and some on a device"):
            exchange.run(fields)


async def fields_are_held() -> None:
    channel = brant.channel(1 - brant.rank(), 1000)
    for mode in ("fused", "direct"):
        exchange = brant.HaloExchange(**TWO, mode=mode)
        fields = exchange.empty()
        fill(exchange, fields, 1, TWO)
        held = weakref.ref(fields[0])
        if brant.rank() == 0:
            under_way = exchange.run(fields)
            del fields
            gc.collect()
            assert held() is not None
            with pytest.raises(brant.InvalidArgument, match="under way"):
                exchange.run([held()])
            await channel.send("go on")
            await under_way
            gc.collect()
            assert (held() is None) == (mode == "fused")
            exchange.close()
            gc.collect()
            assert held() is None
        else:
            await channel.recv()
            await exchange.run(fields)
            check(exchange, fields, 1, TWO)
            exchange.close()


async def fields_that_others_know_are_held() -> None:
    memory = os.environ["BRANT_TEST_MEMORY"]
    channel = brant.channel(1 - brant.rank(), 1000)
    for mode in ("direct", "graph", "resident"):
        with brant.HaloExchange(**TWO, mode=mode) as exchange:
            idle, first, second = (exchange.empty(memory) for _ in range(3))
            await exchange.run(idle, 0)  # tells nobody
            fill(exchange, first, 1, TWO)
            await exchange.run(first)
            held = weakref.ref(idle[0]), weakref.ref(first[0]), weakref.ref(second[0])
            del idle, first
            gc.collect()
            assert held[0]() is None and held[1]() is not None
            if brant.rank() == 1:
                await channel.recv()
            binding = exchange.bind(second)
            del second
            gc.collect()
            assert held[1]() is not None and held[2]() is not None  # until the other one has bound its own
            if brant.rank() == 0:
                await channel.send("go on")
            await binding
            gc.collect()
            assert held[1]() is None and held[2]() is not None
            fill(exchange, [held[2]()], 2, TWO)
            await exchange.run([held[2]()])
            check(exchange, [held[2]()], 2, TWO)
        del binding
        gc.collect()
        assert held[2]() is None


async def fields_are_held_after_a_failure() -> None:
    """Others may have been told of them, and write into them."""
    exchange = brant.HaloExchange(**TWO, mode="direct")
    fields = [numpy.zeros(exchange.array_of(0))] if brant.rank() == 0 else exchange.empty()
    held = weakref.ref(fields[0])
    with pytest.raises(brant.NotSupported):
        await exchange.run(fields)
    del fields
    gc.collect()
    assert held() is not None
    exchange.close()
    gc.collect()
    assert held() is None


async def the_others_options_are_compared() -> None:
    wrong = ({"ghost": (1, 1, 2)}, {"mode": "direct"}, {"messages": "all"}, {"dtype": "i8"}, {"periodic": False})
    for number, other in enumerate(wrong):
        options = {**TWO, **(other if brant.rank() else {}), "first_channel": 10 * number}
        with brant.HaloExchange(**options) as exchange:
            fields = exchange.empty()
            for _ in range(2):  # it stays ended
                with pytest.raises(brant.InvalidArgument, match="rank .* makes its exchange with grid=.* and rank"):
                    await exchange.run(fields)


async def a_run_that_is_given_up_ends_the_exchange() -> None:
    channel = brant.channel(1 - brant.rank(), 1000)
    for number, mode in enumerate(MODES):
        for first in (True, False):
            options = {**TWO, "mode": mode, "first_channel": 10 * (2 * number + first)}
            exchange = brant.HaloExchange(**options)
            fields = exchange.empty()
            if not first:
                await exchange.run(fields)
            if brant.rank() == 0:
                under_way = exchange.run(fields)
                if first:
                    under_way.cancel()
                    with pytest.raises(brant.Canceled):
                        await under_way
                    with pytest.raises(brant.Canceled):
                        await exchange.run(fields)
                else:
                    exchange.close()
                    with pytest.raises(brant.Canceled):
                        await under_way
                await channel.send("done")
            else:
                await channel.recv()
            exchange.close()
            await (channel.send("next") if brant.rank() else channel.recv())


async def the_death_of_a_neighbour_is_told() -> None:
    exchange = brant.HaloExchange(**TWO, mode=os.environ["BRANT_TEST_MODE"])
    fields = exchange.empty()
    await exchange.run(fields)
    if brant.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    first = ""
    for _ in range(2):
        with pytest.raises(brant.PeerLost, match="rank 1") as caught:
            await exchange.run(fields)
        assert first in ("", str(caught.value))
        first = str(caught.value)
    print("it was told")


async def nothing_is_closed_at_the_end() -> None:
    brant.kept = brant.HaloExchange(**TWO, mode="resident")
    brant.kept_fields = brant.kept.empty(os.environ["BRANT_TEST_MEMORY"])
    await brant.kept.run(brant.kept_fields)


def memory(kind: str) -> dict[str, str]:
    return {"BRANT_TEST_MEMORY": kind, "BRANT_GPU": "emulated" if kind == "emulated" else "none"}


@pytest.mark.parametrize("kind", ["host", "emulated"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_ghost_is_filled_in_every_mode(ranks: int, kind: str) -> None:
    run_job(every_ghost_is_filled, ranks=ranks, **memory(kind))


@pytest.mark.parametrize(("ranks", "loop"), [(1, "brant"), (2, "brant"), (2, "asyncio")])
def test_fields_of_numpy_do(ranks: int, loop: str) -> None:
    run_job(fields_of_numpy_do, ranks=ranks, loop=loop)


@pytest.mark.parametrize("kind", ["host", "emulated"])
@pytest.mark.parametrize(
    "body",
    [several_after_each_other, other_fields_are_bound, fields_that_others_know_are_held, nothing_is_closed_at_the_end],
)
def test_in_any_memory(body, kind: str) -> None:
    run_job(body, **memory(kind))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("body", [it_says_what_it_does, what_does_not_fit_is_refused])
def test_of_each_process(body, ranks: int) -> None:
    run_job(body, ranks=ranks)


@pytest.mark.parametrize(
    "body",
    [
        memory_that_others_cannot_map_is_refused,
        fields_are_held,
        fields_are_held_after_a_failure,
        the_others_options_are_compared,
        a_run_that_is_given_up_ends_the_exchange,
    ],
)
@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_failures(body, loop: str) -> None:
    run_job(body, loop=loop)


def test_memory_of_two_kinds_is_refused() -> None:
    run_job(a_field_on_a_device_beside_one_of_the_host_is_refused, BRANT_GPU="emulated")


@pytest.mark.parametrize("mode", ["fused", "direct", "shapes"])
def test_the_death_of_a_neighbour_is_told(mode: str) -> None:
    done = run_job(the_death_of_a_neighbour_is_told, options=("--keep-going",), fails=True, BRANT_TEST_MODE=mode)
    assert "it was told" in done.stdout
