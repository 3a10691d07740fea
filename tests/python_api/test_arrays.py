"""Arrays of every layout and type, and objects, arrive as they were sent."""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import pathlib
import subprocess

import numpy
import pytest
from conftest import PROGRAMS, brant, command, environment, run_job

BASE = numpy.arange(24.0).reshape(4, 6)
RECORD = numpy.dtype([("place", "<i4", (3,)), ("mass", "<f8"), ("name", "S5")])


GAPS = numpy.dtype({"names": ["first", "second"], "formats": ["i4", "f8"], "offsets": [4, 16], "itemsize": 40})


class Pair(ctypes.Structure):
    """With a gap that ctypes does not tell of."""

    _fields_ = (("letter", ctypes.c_int), ("number", ctypes.c_double))


def layouts() -> dict[str, numpy.ndarray]:
    """The first six are those that charm4py 1.1 corrupts or is said to."""
    records = numpy.zeros(3, RECORD)
    records["mass"] = [1.5, 2.5, 3.5]
    records["name"] = [b"a", b"bc", b"def"]
    gaps = numpy.zeros(3, GAPS)
    gaps["first"], gaps["second"] = 1, 2.5
    large = numpy.arange(300_000.0).reshape(300, 1000)
    read_only = numpy.arange(5)
    read_only.setflags(write=False)
    return {
        "contiguous": BASE,
        "column": BASE[:, 2],
        "step": BASE.ravel()[::2],
        "fortran": numpy.asfortranarray(BASE),
        "transposed": BASE.T,
        "negative": BASE.ravel()[::-1],
        "both negative": BASE[::-1, ::-2],
        "no dimension": numpy.array(7.25),
        "empty": numpy.empty((0, 3)),
        "bool": BASE > 7,
        "complex64": (BASE + 1j).astype(numpy.complex64),
        "complex128 column": (BASE + 1j)[:, 1],
        "float16": BASE.astype(numpy.float16),
        "int8": BASE.astype(numpy.int8),
        "uint64": BASE.astype(numpy.uint64),
        "big endian": BASE.astype(">f8"),
        "records": records,
        "every second record": records[::2],
        "a field of records": records["mass"],
        "records with gaps": gaps,
        "no type": numpy.array([b"one", b"two"], "V5"),
        "text": numpy.array(["one", "three"]),
        "bytes": numpy.array([b"one", b"three"]),
        "dates": numpy.array(["2026-11-24", "1999-01-01"], "datetime64[D]"),
        "objects": numpy.array([{"a": 1}, None, "x"], dtype=object),
        "read-only": read_only,
        "five dimensions": numpy.arange(2 * 3 * 4 * 5 * 6).reshape(2, 3, 4, 5, 6)[:, ::2, 1:, ::-1],
        "large": large,
        "large column": large[:, 10:500:3],
        "large fortran": numpy.asfortranarray(large),
        "broadcast": numpy.broadcast_to(numpy.arange(3), (4, 3)),
    }


def assert_same(got, wanted, name: str) -> None:
    assert type(got) is type(wanted), f"{name}: {type(got)}"
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, f"{name}: {got.dtype} {got.shape}"
    assert got.tobytes() == wanted.tobytes() if wanted.dtype != object else (got == wanted).all(), name


async def layouts_arrive() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    for name, wanted in layouts().items():
        if brant.rank() == 0:
            await channel.send(wanted)
        else:
            assert_same(await channel.recv(), wanted, name)


async def layouts_land_in_layouts() -> None:
    """Any order of elements into any other."""
    channel = brant.channel(1 - brant.rank(), 1)
    sources = [numpy.arange(60_000.0).reshape(200, 300), numpy.arange(6.0).reshape(2, 3)]
    for source in sources:
        rows, columns = source.shape
        outs = [
            numpy.zeros((rows, columns)),
            numpy.zeros((rows, columns), order="F"),
            numpy.zeros((2 * rows, columns))[::-2],
            numpy.zeros((columns, rows)).T,
            brant.empty((rows, columns)),
        ]
        for form in (source, numpy.asfortranarray(source), source[::-1, ::-1]):
            for out in outs:
                if brant.rank() == 0:
                    await channel.send(form)
                else:
                    out[...] = 0
                    assert await channel.recv(out) is out
                    assert (out == form).all()


async def a_hundred_arrays_in_one_call() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    small = [numpy.full(3, i) for i in range(100)]
    large = [numpy.full(3000, i) for i in range(100)]
    mixed = [numpy.zeros(0), b"abc", {"key": numpy.arange(4)}, "text", 7, None, BASE.T]
    if brant.rank() == 0:
        for message in (small, large, mixed, small):
            await channel.send(*message)
        return
    for wanted in (small, large):
        got = await channel.recv()
        assert len(got) == 100 and all((a == b).all() for a, b in zip(got, wanted, strict=True))
    got = await channel.recv()
    assert got[0].shape == (0,) and got[1] == b"abc" and got[3:6] == ("text", 7, None)
    assert (got[2]["key"] == numpy.arange(4)).all() and (got[6] == BASE.T).all()
    outs = [numpy.zeros(3, int) for _ in range(100)]
    await channel.recv(out=outs)
    assert all((a == b).all() for a, b in zip(outs, small, strict=True))


async def objects_arrive() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    big = numpy.arange(100_000)
    masked = numpy.ma.masked_array([1, 2, 3], mask=[False, True, False])
    nested = {"deep": [big, {"er": big[::2]}]}
    things = ["text", 12345678901234567890, nested, numpy.float64(2.5), masked, (1, 2), b"", b"x" * 100_000]
    if brant.rank() == 0:
        for thing in things:
            await channel.send(thing)
        await channel.send(bytearray(b"abc"))
        await channel.send(array.array("i", [1, 2, 3]))
        await channel.send(memoryview(b"abcdef")[::2])
        await channel.send(Pair(1, 2.5))
        with pytest.raises(brant.InvalidArgument, match="c_void_p cannot be pickled"):
            channel.send(ctypes.c_void_p(5))
        return
    for thing in things:
        got = await channel.recv()
        assert type(got) is type(thing), thing
        if isinstance(thing, dict):
            assert (got["deep"][0] == big).all() and (got["deep"][1]["er"] == big[::2]).all()
            got["deep"][0][0] = 1  # it may be written
        elif thing is masked:
            assert (got.mask == masked.mask).all()
        else:
            assert got == thing
    assert bytes(await channel.recv()) == b"abc"
    assert (await channel.recv()).tolist() == [1, 2, 3]
    assert bytes(await channel.recv()) == b"ace"
    pair = await channel.recv()
    assert (pair.letter, pair.number) == (1, 2.5)


async def an_array_that_nobody_holds_arrives() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 0:
        sends = [channel.send(numpy.full(200_000, i)) for i in range(5)]
        gc.collect()
        junk = [numpy.full(200_000, 99) for _ in range(5)]  # whoever freed one too early gets these
        for send in sends:
            await send
        assert len(junk) == 5
    else:
        await brant.sleep(0.1)
        for i in range(5):
            assert ((await channel.recv()) == i).all()


async def an_operation_that_nobody_awaits_goes_on() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    if brant.rank() == 0:
        for i in range(5):
            channel.send(numpy.full(200_000, i))
        gc.collect()
        assert await channel.recv() == "done"
    else:
        for i in range(5):
            assert ((await channel.recv()) == i).all()
        await channel.send("done")


class Foreign:
    """An array of another library, which knows DLPack alone."""

    def __init__(self, values: numpy.ndarray):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


async def arrays_of_dlpack_arrive() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    orders = [BASE, numpy.asfortranarray(BASE), BASE[:, ::2], BASE[::-1].T]
    forms = [*orders, BASE > 7, (BASE + 1j).astype("c8"), numpy.array(3)]
    for form in forms:
        if brant.rank() == 0:
            await channel.send(Foreign(form))
            await channel.send(form)
        else:
            assert_same(await channel.recv(), numpy.array(form), str(form))
            landing = numpy.zeros(form.shape[::-1], form.dtype).T
            await channel.recv(Foreign(landing))
            assert (landing == form).all()
    if brant.rank() == 0:
        await channel.send(HalfPrecision(BASE))
    else:
        assert_same(await channel.recv(), BASE, "a type that DLPack alone has")


class HalfPrecision(Foreign):
    """As tensors of PyTorch in bfloat16, whose type the CUDA interface has no name for."""

    __cuda_array_interface__ = {"typestr": "<V2", "shape": (3,), "data": (0, False), "version": 2}


class OnDevice:
    """An array as CuPy or Numba show theirs; the memory is that of the emulated device."""

    def __init__(self, memory, shape: tuple[int, ...], read_only: bool = False, **more):
        data = (memory.address, read_only)
        self.memory = memory
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<i8", "data": data, "version": 3, **more}


async def arrays_of_the_cuda_interface_arrive() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    values = numpy.arange(12)
    memory = brant.empty(12, "i8", memory="emulated")
    memory.copy_from(values)
    in_columns = OnDevice(memory, (3, 4), strides=(8, 24))
    if brant.rank() == 0:
        await channel.send(OnDevice(memory, (3, 4)))
        await channel.send(in_columns)
        await channel.send(OnDevice(memory, (3, 4), strides=None))
        with pytest.raises(brant.NotSupported, match="contiguous"):
            brant.Segment(OnDevice(memory, (3, 2), strides=(32, 16)))
        with pytest.raises(brant.NotSupported, match="mask"):
            channel.send(OnDevice(memory, (3, 4), mask=memory))
        with pytest.raises(brant.WrongKind, match="without one"):
            channel.send(OnDevice(memory, (3, 4), stream=1))  # a stream of CUDA, which is not here
        with pytest.raises(brant.InvalidArgument, match="read-only"):
            channel.recv(OnDevice(memory, (3, 4), read_only=True))
        return
    seen = numpy.zeros(12, int)
    for order in "CF":
        got = await channel.recv()
        got.copy_to(seen)
        assert got.memory == "emulated" and (seen == values).all()
        assert got.strides == numpy.empty((3, 4), int, order).strides
    landing = brant.empty(12, "i8", memory="emulated")
    await channel.recv(OnDevice(landing, (3, 4)))
    landing.copy_to(seen)
    assert (seen == values).all()


def strided_like(array, device):
    """A view of an array of NumPy, but of a copy of its base that lies on the device."""
    offset = array.__array_interface__["data"][0] - array.base.__array_interface__["data"][0]
    view = OnDevice(device, array.shape, strides=array.strides)
    view.__cuda_array_interface__["data"] = (device.address + offset, False)
    return view


def views_of(base) -> list:
    cube = base.reshape(10, 10, -1)
    return [
        base[::2],
        base[::-1],
        base[3:-3:3],
        cube[:, 3],
        cube[:, :, 0],
        cube[2:7, ::-2, 1::4],
        cube.T,
        cube[::-1].T[1:],
    ]


async def strides_on_a_device_arrive() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    raw = brant.channel(1 - brant.rank(), 2, raw=True)
    for count in (400, 100_000):  # within a frame, and beside it
        base = numpy.arange(count, dtype="i8")
        device = brant.empty(count, "i8", memory="emulated")
        for view in views_of(base):
            if brant.rank() == 0:
                device.copy_from(base)
                await channel.send(strided_like(view, device))
                await raw.send(strided_like(view, device))
                for source in (numpy.ascontiguousarray(view), numpy.asfortranarray(view)):
                    await channel.send(source)
                continue
            got = await channel.recv()
            in_rows = got.strides == numpy.empty(view.shape, "i8").strides
            seen = numpy.zeros(view.shape, "i8", "C" if in_rows else "F")
            got.copy_to(seen)
            assert got.memory == "emulated" and (seen == view).all()
            flat = numpy.zeros(view.size, "i8")
            assert await raw.recv(flat) == view.nbytes and (flat == view.ravel("F" if view.flags.fnc else "C")).all()
            for _ in range(2):
                device.copy_from(numpy.full(count, -1))
                await channel.recv(strided_like(view, device))
                whole, expected = numpy.zeros(count, "i8"), numpy.full(count, -1)
                device.copy_to(whole)
                expected[view.ravel()] = view.ravel()
                assert (whole == expected).all(), view.shape


def test_strides_on_a_device_arrive() -> None:
    run_job(strides_on_a_device_arrive, BRANT_GPU="emulated")


async def three_gib_arrive() -> None:
    """More than 31 bits count. What is sent is mostly pages that were never written, which take no memory."""
    channel = brant.channel(1 - brant.rank(), 1)
    count, step = 3 << 30, (64 << 20) - 8
    if brant.rank() == 0:
        mine = numpy.zeros(count, "u1")
        mine[::step] = mine[-1] = 7
        await channel.send(mine)
        return
    landing = numpy.empty(count, "u1")
    await channel.recv(landing)
    assert (landing[::step] == 7).all() and landing[-1] == 7
    landing[::step] = landing[-1] = 0
    assert not landing.view("u8").any()


async def raw_channels_send_bytes() -> None:
    channel = brant.channel(1 - brant.rank(), 1, raw=True)
    for count in (1, 100_000):
        mine, theirs = numpy.full((count, 2), 1.0 + brant.rank())[:, 1], numpy.zeros(2 * count)
        incoming = channel.recv(theirs)
        await channel.send(mine)
        assert await incoming == 8 * count
        assert (theirs[:count] == 2 - brant.rank()).all() and not theirs[count:].any()
    with pytest.raises(brant.TimedOut):
        await brant.channel(1 - brant.rank(), 2, raw=True).recv(theirs, timeout=0.01)
    await channel.send(b"abc")
    strided = numpy.zeros(6, "u1")[::2]
    assert await channel.recv(strided) == 3 and bytes(strided) == b"abc"
    with pytest.raises(brant.InvalidArgument, match="raw=True"):
        brant.channel(1 - brant.rank(), 3, path="courier")
    with pytest.raises(brant.InvalidArgument, match="is no path"):
        brant.channel(1 - brant.rank(), 3, path="by post")
    for wrong in (lambda: channel.send(1), lambda: channel.send(b"a", b"b"), channel.recv, channel.__anext__):
        with pytest.raises(brant.InvalidArgument, match="is raw"):
            wrong()
    short = numpy.zeros(10)
    outgoing = channel.send(numpy.zeros(100_000))
    with pytest.raises(brant.Truncated):
        await channel.recv(short)
    with contextlib.suppress(brant.Truncated):
        await outgoing


async def the_swap_of_cxx() -> None:
    """examples/01_swap, written in Python: the other process runs the one in C++."""
    channel = brant.channel(0, 7, raw=True)
    mine, theirs = numpy.zeros(1 << 20, "u1"), numpy.zeros(1 << 20, "u1")
    outgoing = channel.send(mine)
    assert await channel.recv(theirs) == 1 << 20
    await outgoing


async def memory_of_brant_is_shown() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    mine = brant.empty((100, 50), "f4", memory="pinned")
    mine[...] = brant.rank()
    theirs = brant.empty((100, 50), "f4")
    outgoing = channel.send(mine)
    await channel.recv(theirs)
    await outgoing
    assert (theirs == 1 - brant.rank()).all()


async def memory_of_a_device_arrives() -> None:
    """From a device into another process's, whether the receiver has said where or not."""
    channel = brant.channel(1 - brant.rank(), 1)
    for count in (3, 100_000):
        mine, theirs = brant.empty(count, "i8", memory="emulated"), brant.empty(count, "i8", memory="emulated")
        mine.copy_from(numpy.arange(count) + brant.rank())
        seen = numpy.zeros(count, "i8")
        for landing in (theirs, None, seen):
            outgoing = channel.send(mine)
            got = await channel.recv(landing)
            await outgoing
            if landing is not seen:
                assert got.memory == "emulated" and got.shape == (count,)
                got.copy_to(seen)
            assert (seen == numpy.arange(count) + 1 - brant.rank()).all()
            seen[...] = 0
    table = brant.empty((2, 3), "i8", memory="emulated")
    table.copy_from(numpy.arange(6))
    for other in (table.copy_from, table.copy_to):
        with pytest.raises(brant.InvalidArgument, match="order of elements"):
            other(numpy.zeros((2, 3), "i8", order="F"))


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_arrays_of_every_layout_arrive_bit_for_bit(loop: str) -> None:
    run_job(layouts_arrive, loop=loop)


def test_any_order_of_elements_lands_in_any_other() -> None:
    run_job(layouts_land_in_layouts)


def test_a_hundred_arrays_travel_in_one_call() -> None:
    run_job(a_hundred_arrays_in_one_call)


def test_an_array_of_three_gib_arrives() -> None:
    free = next(line for line in pathlib.Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
    if int(free.split()[1]) < 6 << 20:
        pytest.skip("there are less than 6 GiB of free memory")
    run_job(three_gib_arrive, limit_s=300)  # seconds, where nothing else runs


def test_objects_arrive_with_the_arrays_inside_them() -> None:
    run_job(objects_arrive)


def test_an_array_is_held_while_it_is_sent() -> None:
    run_job(an_array_that_nobody_holds_arrives)


def test_an_operation_that_nobody_awaits_goes_on() -> None:
    run_job(an_operation_that_nobody_awaits_goes_on)


def test_arrays_of_dlpack_arrive_and_receive() -> None:
    run_job(arrays_of_dlpack_arrive)


def test_arrays_of_the_cuda_interface_arrive_and_receive() -> None:
    run_job(arrays_of_the_cuda_interface_arrive, BRANT_GPU="emulated")


def test_a_raw_channel_sends_bytes_alone() -> None:
    run_job(raw_channels_send_bytes)


def test_a_program_of_cxx_may_be_at_the_other_end() -> None:
    *launcher, interpreter, start, file, name, loop = command(the_swap_of_cxx)
    swap = PROGRAMS / "swap"
    if not swap.exists():
        pytest.skip("needs the release build: run 'make build'")
    script = f'[ "$BRANT_RANK" = 0 ] && exec {swap}; exec {interpreter} {start} {file} {name} {loop}'
    done = subprocess.run(
        [*launcher, "/bin/sh", "-c", script], env=environment(), text=True, capture_output=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert "rank 0 has the 1048576 bytes of rank 1" in done.stdout


def test_memory_of_brant_is_a_numpy_array() -> None:
    run_job(memory_of_brant_is_shown)


def test_device_memory_arrives_in_device_memory() -> None:
    run_job(memory_of_a_device_arrives, BRANT_GPU="emulated")
