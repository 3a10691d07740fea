"""Processes that are of no common job meet, and one reads and writes what an agent of the other has registered."""

from __future__ import annotations

import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import numpy
import pytest
from conftest import START, brant, environment, run_job
from test_arrays import OnDevice

PLACE = pathlib.Path(os.environ.get("MEETING_PLACE", "."))
LIMIT_S = 40


def start(body, folder: pathlib.Path, loop: str, **more: str) -> subprocess.Popen[str]:
    """A process of its own, of no job."""
    place = {"MEETING_PLACE": str(folder), "BRANT_JOIN": "host"}
    return subprocess.Popen(
        ["timeout", "-s", "KILL", str(LIMIT_S), sys.executable, str(START), __file__, body.__name__, loop],
        env=environment(**{**place, **more}),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def meet(owner, others: list, folder: pathlib.Path, loop: str, **more: str) -> None:
    """Runs all to their good ends."""
    processes = [start(body, folder, loop, **more) for body in (owner, *others)]
    said = [process.communicate(timeout=LIMIT_S + 10) for process in processes]
    codes = [process.returncode for process in processes]
    assert codes == [0] * len(codes), f"{codes}\n" + "\n".join(out + error for out, error in said)


def say(name: str, what: bytes) -> None:
    (PLACE / "unfinished").write_bytes(what)
    (PLACE / "unfinished").rename(PLACE / name)


async def pause() -> None:
    await brant.sleep(0.005)


async def hear(name: str) -> bytes:
    deadline = time.monotonic() + 20
    while not (PLACE / name).exists():
        assert time.monotonic() < deadline, f"nobody said {name}"
        await pause()
    return (PLACE / name).read_bytes()


# Joining


async def waits_for_a_client() -> None:
    say("address", brant.address().encode())
    client = await brant.accept(timeout=20)
    assert client >= brant.size() == 1
    channel = brant.channel(client, 1)
    with pytest.raises(brant.NotSupported, match="would be pickled"):
        channel.send({"a": 1})
    array, text = await channel.recv(timeout=10)
    assert text == b"text"
    await channel.send(array * 2)
    with pytest.raises(brant.TimedOut, match="no process has joined"):
        await brant.accept(timeout=0.01)
    with pytest.raises(brant.PeerLost) as caught:
        await channel.recv(timeout=10)
    assert caught.value.peer == client


async def joins_and_leaves() -> None:
    address = (await hear("address")).decode()
    service = await brant.join(address, timeout=20)
    channel = brant.channel(service, 1)
    outgoing = channel.send(numpy.arange(100_000), b"text")
    assert (await channel.recv(timeout=10)).tolist() == list(range(0, 200_000, 2))
    await outgoing
    await brant.leave(service)
    await brant.leave(service)  # of no effect
    with pytest.raises(brant.PeerLost):
        await channel.send(b"too late")
    with pytest.raises(brant.InvalidArgument, match="has not joined"):
        brant.leave(0)
    for wrong in ("no address", address[:-9], address[:200] + "x" + address[201:]):
        with pytest.raises(brant.InvalidArgument):
            brant.join(wrong)
    assert await brant.join(brant.address()) == brant.rank()


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_two_processes_meet_by_an_address_and_part(loop: str, tmp_path: pathlib.Path) -> None:
    meet(waits_for_a_client, [joins_and_leaves], tmp_path, loop)


async def asks_without_leave() -> None:
    with pytest.raises(brant.NotSupported, match="BRANT_JOIN"):
        brant.address()
    with pytest.raises(brant.NotSupported, match="BRANT_JOIN"):
        brant.Agent()
    with pytest.raises(brant.InvalidArgument):
        brant.join("no address", timeout=-1)


def test_nobody_is_joined_who_did_not_say_so() -> None:
    run_job(asks_without_leave, ranks=1)


async def stops_accepting() -> None:
    address = brant.address()
    brant.stop_accepting()
    say("address", address.encode())
    await hear("done")


async def joins_in_vain() -> None:
    address = (await hear("address")).decode()
    with pytest.raises(brant.TimedOut, match="has not answered"):
        await brant.join(address, timeout=0.3)
    joining = brant.join(address, timeout=None)
    joining.cancel()
    with pytest.raises(brant.Canceled):
        await joining
    say("done", b"")


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_an_address_that_was_withdrawn_is_worthless(loop: str, tmp_path: pathlib.Path) -> None:
    meet(stops_accepting, [joins_in_vain], tmp_path, loop)


async def reads_no_pickle() -> None:
    say("address", brant.address().encode())
    channel = brant.channel(await brant.accept(timeout=20), 1)
    with pytest.raises(brant.PeerRejected, match="pickle came from a process that is not of this job"):
        await channel.recv(timeout=10)
    with pytest.raises(brant.InvalidArgument, match="contradicts itself"):
        await channel.recv(timeout=10)
    assert not (PLACE / "harm").exists()
    say("done", b"")


async def forges_frames() -> None:
    """What frame.h says, written by hand: a pickle that does harm, and an array of pointers to objects."""
    channel = brant.channel(await brant.join((await hear("address")).decode(), timeout=20), 1, raw=True)
    pickled = b"cos\nsystem\n(S'touch " + str(PLACE / "harm").encode() + b"'\ntR."
    item = struct.pack("<BBBBHHQQ", 3, 0, 0, 0, 0, 0, 1, len(pickled))
    await channel.send(struct.pack("<IHHII", 0x31707962, 1, 1, 1, len(item)) + item + pickled)
    pointer = struct.pack("<BBBBHHQQq", 1, 0, 0, 1, 1, 0, 8, 8, 1) + b"O" + bytes(7)
    await channel.send(struct.pack("<IHHII", 0x31707962, 1, 1, 1, len(pointer)) + pointer + bytes(8))
    await hear("done")


def test_no_pickle_of_a_process_of_another_job_is_read(tmp_path: pathlib.Path) -> None:
    meet(reads_no_pickle, [forges_frames], tmp_path, "brant")


# The agent


async def owns_arrays() -> None:
    mapped, plain = brant.empty((100, 50)), numpy.empty((100, 50))
    async with brant.Agent() as agent:
        for name, array in (("mapped", mapped), ("plain", plain)):
            array[:] = numpy.arange(5000).reshape(100, 50)
            say(name, agent.register(array).descriptor())
        with pytest.raises(brant.InvalidArgument, match="C order"):
            agent.register(mapped.T)
        with pytest.raises(brant.WrongKind):
            agent.register("text")
        old = agent.register(numpy.zeros(10))
        say("old", old.descriptor())
        await hear("got old")
        old.close()
        with pytest.raises(brant.InvalidArgument, match="closed"):
            old.descriptor()
        agent.register(numpy.zeros(10))  # in the same place
        say("closed", b"")
        await hear("done")
        for array in (mapped, plain):
            expected = numpy.arange(5000.0).reshape(100, 50)
            expected[10:20, 3] = -1
            expected[30] = 7
            expected[50:60:3, 10:20] = numpy.arange(40).reshape(4, 10)
            expected[60:70] *= -1
            assert (array == expected).all()


async def reads_and_writes() -> None:
    agent = brant.Agent()
    whole = numpy.arange(5000.0).reshape(100, 50)
    for name in ("mapped", "plain"):
        there = await agent.connect(await hear(name), timeout=20)
        assert there.shape == (100, 50) and there.nbytes == 40_000 and len(there) == 100
        assert (await there.read() == whole).all()
        for index in (
            3,
            (4, 5),
            slice(10, 20),
            (slice(10, 20), 3),
            (slice(None, None, 7), slice(2, 40, 3)),
            (-1, slice(3)),
        ):
            assert numpy.array_equal(await there[index].read(timeout=10), whole[index]), index
        table = numpy.zeros((20, 10))
        assert (await there[10:30, 5:15].read(table)) is table and (table == whole[10:30, 5:15]).all()
        columns = numpy.zeros((10, 20)).T
        await there[10:30, 5:15].read(columns)
        assert (columns == table).all()
        fortran = numpy.zeros((10, 50), order="F")
        for out in (fortran, numpy.zeros((10, 100))[:, ::2]):
            assert (await there[10:20].read(out)) is out and (out == whole[10:20]).all()
        await there[60:70].write(numpy.asfortranarray(-whole[60:70]))
        await all_of(there[10:20, 3].write(numpy.full(10, -1.0)), there[30].write(numpy.full(50, 7.0)))
        await there[50:60:3, 10:20].write(numpy.arange(40.0).reshape(4, 10), timeout=10)
        for wrong in (numpy.zeros(7), numpy.zeros(50, "int64"), numpy.zeros((50, 1))):
            with pytest.raises(brant.InvalidArgument, match="a part of"):
                there[0].read(wrong)
        for index in (100, (0, 0, 0), slice(5, 5), slice(None, None, -1)):
            with pytest.raises(brant.InvalidArgument):
                there[index]
        there.close()
    await not_registered(agent)
    await agent.close()
    with pytest.raises(brant.InvalidArgument, match="closed"):
        await agent.connect(b"")
    say("done", b"")


async def all_of(*transfers) -> None:
    for transfer in transfers:
        await transfer


async def not_registered(agent: brant.Agent) -> None:
    descriptor = await hear("old")
    (await agent.connect(descriptor)).close()
    say("got old", b"")
    await hear("closed")
    with pytest.raises(brant.NotFound, match="not registered any more"):
        await agent.connect(descriptor)
    for damaged in (b"", b"nonsense", descriptor[:-1], descriptor[:40] + b"!" + descriptor[41:], "text"):
        with pytest.raises(brant.InvalidArgument, match="no descriptor"):
            await agent.connect(damaged)


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_an_agent_gets_at_arrays_of_a_process_of_another_job(loop: str, tmp_path: pathlib.Path) -> None:
    meet(owns_arrays, [reads_and_writes], tmp_path, loop)


async def owns_device_memory() -> None:
    agent = brant.Agent()
    array = brant.empty((64, 512), memory="emulated")
    array.copy_from(numpy.arange(64 * 512.0).reshape(64, 512))
    say("descriptor", agent.register(array).descriptor())
    await hear("done")
    host = numpy.zeros((64, 512))
    array.copy_to(host)
    assert (host[3] == -1).all() and (host[4] == numpy.arange(2048, 2560)).all()


async def reads_device_memory() -> None:
    agent = brant.Agent()
    there = await agent.connect(await hear("descriptor"), timeout=20)
    here = brant.empty((10, 512), memory="emulated")
    await there[10:20].read(here)
    host = numpy.zeros((10, 512))
    here.copy_to(host)
    assert (host == numpy.arange(5120, 10240).reshape(10, 512)).all()
    assert (await there[5].read())[0] == 5 * 512
    await there[3].write(numpy.full(512, -1.0))
    say("done", b"")
    await agent.close()


def test_an_agent_gets_at_memory_of_a_device(tmp_path: pathlib.Path) -> None:
    meet(owns_device_memory, [reads_device_memory], tmp_path, "brant", BRANT_GPU="emulated")


WHOLE = numpy.arange(40 * 30 * 20, dtype="int64").reshape(40, 30, 20)
PARTS = [
    (slice(None), 3),
    (slice(2, 30, 7),),
    (slice(None), slice(None), 5),
    (slice(1, 40, 2), slice(0, 30, 3), slice(2, 18)),
    (slice(3, 9), slice(None, None, 4), slice(None, None, 5)),
    (7, slice(1, None, 6)),
    (slice(4, 5), slice(2, 3), 7),
]


def on_device(values: numpy.ndarray):
    array = brant.empty(values.shape, values.dtype, memory="emulated")
    array.copy_from(values)
    return array


async def owns_memory_of_both_kinds() -> None:
    """Mapped memory of a device, mapped memory of the host, and memory that a network reaches."""
    agent = brant.Agent()
    arrays = [on_device(WHOLE), brant.empty(WHOLE.shape, "int64"), WHOLE.copy()]
    arrays[1][...] = WHOLE
    for array, name in zip(arrays, ("device", "host", "network"), strict=True):
        say(name, agent.register(array).descriptor())
    await hear("done")
    expected = WHOLE.copy()
    for index in PARTS:
        expected[index] = -expected[index]
    seen = numpy.zeros_like(WHOLE)
    arrays[0].copy_to(seen)
    for array in (seen, *arrays[1:]):
        numpy.testing.assert_array_equal(array, expected)


async def slices_of_several_runs_and_devices() -> None:
    agent = brant.Agent()
    for name in ("device", "host", "network"):
        there = await agent.connect(await hear(name), timeout=20)
        for index in PARTS:
            part = WHOLE[index]
            host, device = numpy.zeros(part.shape, "int64"), on_device(numpy.zeros(part.shape, "int64"))
            assert await there[index].read(host) is host
            numpy.testing.assert_array_equal(host, part)
            host[...] = 0
            assert await there[index].read(device, timeout=10) is device
            device.copy_to(host)
            numpy.testing.assert_array_equal(host, part)
        # Into an array of the device that is not in C order.
        columns = on_device(numpy.zeros((20, 40), "int64"))
        in_columns = OnDevice(columns, (40, 20), strides=(8, 320))
        if name == "network":
            with pytest.raises(brant.NotSupported, match="make it contiguous first"):
                there[:, 3].read(in_columns)
        else:
            await there[:, 3].read(in_columns)
            seen = numpy.zeros((20, 40), "int64")
            columns.copy_to(seen)
            numpy.testing.assert_array_equal(seen.T, WHOLE[:, 3])
        current = WHOLE.copy()
        for number, index in enumerate(PARTS):
            negative = numpy.ascontiguousarray(-current[index])
            await there[index].write(on_device(negative) if number % 2 == 0 else negative)
            current[index] = -current[index]
        with pytest.raises(brant.InvalidArgument, match="a part of"):
            there[:, 3].read(on_device(numpy.zeros((40, 21), "int64")))
        there.close()
    say("done", b"")
    await agent.close()


def test_slices_of_several_runs_come_from_and_into_devices(tmp_path: pathlib.Path) -> None:
    both = [slices_of_several_runs_and_devices]
    meet(owns_memory_of_both_kinds, both, tmp_path, "brant", BRANT_GPU="emulated")


async def owns_what_is_only_read() -> None:
    agent = brant.Agent()
    array, constant = numpy.arange(1000.0), numpy.arange(50)
    constant.setflags(write=False)
    with pytest.raises(brant.InvalidArgument, match="read-only"):
        agent.register(constant)
    region = agent.register(array)
    say("reads", region.descriptor(read_only=True))
    say("constant", agent.register(constant, read_only=True).descriptor())
    say("writes", region.descriptor())
    await hear("done")
    assert (array[:10] == -1).all() and (array[10:] == numpy.arange(10.0, 1000)).all()


async def reads_what_is_only_read() -> None:
    async with brant.Agent() as agent:
        reads, constant, writes = [await agent.connect(await hear(name)) for name in ("reads", "constant", "writes")]
        assert (reads.is_read_only, constant.is_read_only, writes.is_read_only) == (True, True, False)
        assert (await constant.read() == numpy.arange(50)).all() and (await reads[3:5].read()).tolist() == [3, 4]
        for part, values in (
            (reads, numpy.zeros(1000)),
            (reads[::2], numpy.zeros(500)),
            (constant[1], numpy.zeros(())),
        ):
            with pytest.raises(brant.PeerRejected, match="for reading alone") as caught:
                part.write(values)
            assert caught.value.peer == reads.peer
        await writes[:10].write(numpy.full(10, -1.0))
        assert (await reads[:10].read() == -1).all()
        say("done", b"")


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_a_descriptor_may_be_for_reading_alone(loop: str, tmp_path: pathlib.Path) -> None:
    meet(owns_what_is_only_read, [reads_what_is_only_read], tmp_path, loop)


# Ends


async def owns_until_it_is_killed() -> None:
    agent = brant.Agent()
    array = numpy.zeros(1_000_000)
    say("descriptor", agent.register(array).descriptor())
    await hear("die")
    os.kill(os.getpid(), signal.SIGKILL)


async def sees_its_owner_die() -> None:
    agent = brant.Agent()
    descriptor = await hear("descriptor")
    there = await agent.connect(descriptor, timeout=20)
    await there.read()
    say("die", b"")
    with pytest.raises(brant.PeerLost) as caught:
        while True:
            await there.read()
    assert caught.value.peer == there.peer
    with pytest.raises(brant.PeerLost):
        await there[3:5].write(numpy.ones(2))
    with pytest.raises(brant.PeerLost):
        await agent.connect(descriptor, timeout=20)
    await agent.close()


@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_who_reads_from_an_owner_that_is_killed_is_told(loop: str, tmp_path: pathlib.Path) -> None:
    owner, client = start(owns_until_it_is_killed, tmp_path, loop), start(sees_its_owner_die, tmp_path, loop)
    out, error = client.communicate(timeout=LIMIT_S + 10)
    owner.communicate(timeout=LIMIT_S + 10)
    assert client.returncode == 0, out + error


async def owns_for_two() -> None:
    array = numpy.zeros(100_000)
    agent = brant.Agent()
    say("descriptor", agent.register(array).descriptor())
    await hear("done")
    assert (array == 1).all()
    await agent.close()


async def is_killed_while_it_writes() -> None:
    there = await brant.Agent().connect(await hear("descriptor"), timeout=20)
    there.write(numpy.ones(100_000))
    say("written", b"")
    os.kill(os.getpid(), signal.SIGKILL)


async def comes_after_it() -> None:
    await hear("written")
    async with brant.Agent() as agent:
        there = await agent.connect(await hear("descriptor"), timeout=20)
        await there.write(numpy.ones(100_000))
        assert (await there.read() == 1).all()
    say("done", b"")


def test_an_owner_outlives_who_is_killed_while_he_writes(tmp_path: pathlib.Path) -> None:
    bodies = (owns_for_two, is_killed_while_it_writes, comes_after_it)
    owner, killed, last = (start(body, tmp_path, "brant") for body in bodies)
    said = [process.communicate(timeout=LIMIT_S + 10) for process in (owner, last, killed)]
    assert owner.returncode == last.returncode == 0, said
