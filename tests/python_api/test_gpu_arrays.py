"""Arrays of CuPy and PyTorch travel between GPUs as they are. Without a GPU or the library a test is skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess

import numpy
import pytest
from conftest import brant, run_job
from halo_content import content

LISTS_GPUS = shutil.which("nvidia-smi")
HAS_GPU = LISTS_GPUS is not None and subprocess.run([LISTS_GPUS, "-L"], capture_output=True).returncode == 0


def on_gpu(*libraries: str) -> pytest.MarkDecorator:
    missing = [] if HAS_GPU else ["CUDA GPU"]
    missing += [library for library in libraries if importlib.util.find_spec(library) is None]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {' and no '.join(missing)}")


def cupy_here():
    """CuPy on the GPU of this process, which is that of its rank."""
    import cupy

    cupy.cuda.Device(brant.rank() % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy


def torch_here():
    import torch

    torch.cuda.set_device(brant.rank() % torch.cuda.device_count())
    return torch


async def arrays_of_cupy_arrive() -> None:
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1)
    for dtype in ("f4", "f8", "c8", "?", "i1", "f2", "u8"):
        for count in (0, 1, 7, 1000, 1 << 20):
            mine = (cupy.arange(count) % 2 == brant.rank() % 2).astype(dtype)
            outgoing = channel.send(mine)
            got = await channel.recv()
            await outgoing
            assert got.memory == "cuda"
            seen = cupy.asarray(got)
            assert seen.dtype == mine.dtype and seen.shape == (count,)
            assert (seen == (cupy.arange(count) % 2 == 1 - brant.rank() % 2).astype(dtype)).all(), (dtype, count)
            landing = cupy.zeros(count, dtype)
            outgoing = channel.send(mine)
            assert await channel.recv(landing) is landing
            await outgoing
            assert (landing == seen).all()


async def arrays_of_cupy_go_by_the_path_named() -> None:
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1, path=os.environ["BRANT_TEST_PATH"], raw=True)
    for count in (1, 1000, 1 << 20):
        mine, landing = cupy.full(count, brant.rank() + 1.5), cupy.zeros(count)
        outgoing = channel.send(mine)
        assert await channel.recv(landing) == 8 * count
        await outgoing
        assert (landing == 2.5 - brant.rank()).all()


async def arrays_of_cupy_keep_their_order() -> None:
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1)
    values = cupy.arange(6000.0).reshape(60, 100)
    for form in (values, cupy.asfortranarray(values), values.T, values[10:20], cupy.asarray(3.5)):
        outgoing = channel.send(form)
        seen = cupy.asarray(await channel.recv())
        await outgoing
        assert seen.shape == form.shape and (seen == form).all()


async def arrays_of_a_stream_of_their_own_arrive() -> None:
    """Work that is still under way on another stream has ended before its array is sent."""
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1)
    for round_ in range(20):
        with cupy.cuda.Stream(non_blocking=True):
            mine = cupy.zeros(1 << 22)
            for _ in range(20):
                mine += 1
            mine += brant.rank() + round_
            outgoing = channel.send(mine)
        seen = cupy.asarray(await channel.recv())
        await outgoing
        assert (seen == 20 + 1 - brant.rank() + round_).all()


async def what_torch_still_computes_arrives() -> None:
    """On torch's default stream, on one of its own, and where an earlier read of the landing is still under way."""
    torch = torch_here()
    channel = brant.channel(1 - brant.rank(), 1)
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for round_ in range(5):
                landing = torch.full((1 << 20,), -1.0, device="cuda")
                torch.cuda._sleep(20_000_000)
                before = landing.clone()
                mine = torch.full((1 << 20,), float(brant.rank() + round_), device="cuda")
                outgoing = channel.send(mine)
                await channel.recv(landing)
                await outgoing
                assert bool((before == -1).all()) and bool((landing == 1 - brant.rank() + round_).all())


async def from_a_gpu_to_the_host_and_back() -> None:
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1)
    for count in (1, 5000, 1 << 21):
        if brant.rank() == 0:
            await channel.send(cupy.arange(count))
            landing = cupy.zeros(count, int)
            await channel.recv(landing)
            assert (landing == cupy.arange(count) + 1).all()
        else:
            landing = numpy.zeros(count, int)
            await channel.recv(landing)
            assert (landing == numpy.arange(count)).all()
            await channel.send(landing + 1)


async def tensors_arrive() -> None:
    torch = torch_here()
    channel = brant.channel(1 - brant.rank(), 1)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.float16, torch.bool):
        for count in (1, 100, 1 << 20):
            mine = (torch.arange(count, device="cuda") + brant.rank()).to(dtype)
            landing = torch.empty_like(mine)
            outgoing = channel.send(mine)
            await channel.recv(landing)
            await outgoing
            assert torch.equal(landing, (torch.arange(count, device="cuda") + 1 - brant.rank()).to(dtype))
            outgoing = channel.send(mine)
            got = torch.from_dlpack(await channel.recv())
            await outgoing
            assert torch.equal(got, landing)


async def a_parameter_without_its_gradient_arrives() -> None:
    torch = torch_here()
    channel = brant.channel(1 - brant.rank(), 1)
    weights = torch.ones(10, device="cuda", requires_grad=True)
    outgoing = channel.send(weights.detach())
    landing = torch.zeros(10, device="cuda")
    await channel.recv(landing)
    await outgoing
    assert torch.equal(landing, weights.detach())


async def memory_of_brant_is_an_array_of_both() -> None:
    cupy, torch = cupy_here(), torch_here()
    channel = brant.channel(1 - brant.rank(), 1)
    mine, theirs = brant.empty(1 << 18, "f4", memory="cuda"), brant.empty(1 << 18, "f4", memory="cuda")
    cupy.asarray(mine)[...] = brant.rank() + 1
    outgoing = channel.send(mine)
    await channel.recv(theirs)
    await outgoing
    assert torch.all(torch.from_dlpack(theirs) == 2 - brant.rank())


async def segments_of_cupy_are_read_and_written() -> None:
    cupy = cupy_here()
    channel = brant.channel(1 - brant.rank(), 1)
    memory = cupy.full(1 << 20, brant.rank(), "i4")
    segment = brant.Segment(memory)
    await channel.send(segment.ticket())
    there = brant.RemoteSegment(1 - brant.rank(), await channel.recv())
    landing = cupy.zeros(1 << 19, "i4")
    await there.get(landing, offset=1 << 20)
    assert (landing == 1 - brant.rank()).all()
    await channel.send("read")
    await channel.recv()
    await there.put(cupy.full(100, 7, "i4"), offset=400)
    await channel.send("written")
    await channel.recv()
    assert (memory[100:200] == 7).all() and (memory[:100] == brant.rank()).all()
    there.close()
    await channel.send("closed")
    await channel.recv()
    segment.close()


HALO = {"grid": (9, 8, 7), "divide": (3, 2, 2), "periodic": (True, True, False), "ghost": (2, 1, 3), "variables": 3}


def expected(exchange, round_: int, exchanged: bool) -> list[numpy.ndarray]:
    return [content(exchange.first_block + i, round_, exchanged, **HALO) for i in range(exchange.blocks)]


async def every_ghost_of_cupy_is_filled() -> None:
    cupy = cupy_here()
    for mode in ("fused", "direct", "resident", "stream", "stacked", "shapes"):
        with brant.HaloExchange(**HALO, mode=mode) as exchange:
            fields = [cupy.asarray(field) for field in exchange.empty("cuda")]
            if mode not in ("direct", "resident"):
                fields = [cupy.empty_like(field) for field in fields]  # memory of CuPy's own pool
            stream = cupy.cuda.Stream(non_blocking=True)
            for round_ in (1, 2):
                with stream:  # which the exchange waits for
                    for field, values in zip(fields, expected(exchange, round_, False), strict=True):
                        field.set(values)
                    under_way = exchange.run(fields)
                await under_way
                for field, values in zip(fields, expected(exchange, round_, True), strict=True):
                    numpy.testing.assert_array_equal(field.get(stream), values, err_msg=mode)


async def every_ghost_of_torch_is_filled() -> None:
    torch = torch_here()
    for mode in ("fused", "direct"):
        with brant.HaloExchange(**HALO, mode=mode) as exchange:
            fields = [torch.from_dlpack(field) for field in exchange.empty("cuda")]
            for round_ in (1, 2):
                for field, values in zip(fields, expected(exchange, round_, False), strict=True):
                    field.copy_(torch.from_numpy(values))
                await exchange.run(fields)
                for field, values in zip(fields, expected(exchange, round_, True), strict=True):
                    numpy.testing.assert_array_equal(field.cpu().numpy(), values, err_msg=mode)


@on_gpu("cupy")
@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_every_ghost_of_cupy_is_filled(loop: str) -> None:
    run_job(every_ghost_of_cupy_is_filled, loop=loop, BRANT_GPU="cuda")


@on_gpu("torch")
def test_every_ghost_of_torch_is_filled() -> None:
    run_job(every_ghost_of_torch_is_filled, BRANT_GPU="cuda")


@on_gpu("cupy")
@pytest.mark.parametrize("loop", ["brant", "asyncio"])
def test_arrays_of_cupy_arrive(loop: str) -> None:
    run_job(arrays_of_cupy_arrive, loop=loop, BRANT_GPU="cuda")


@on_gpu("cupy")
@pytest.mark.parametrize("path", ["copy_engine", "courier", "ucx", "staged"])
def test_arrays_of_cupy_arrive_by_every_path(path: str) -> None:
    run_job(arrays_of_cupy_go_by_the_path_named, BRANT_GPU="cuda", BRANT_TEST_PATH=path)


@on_gpu("cupy")
def test_arrays_of_cupy_keep_their_order() -> None:
    run_job(arrays_of_cupy_keep_their_order, BRANT_GPU="cuda")


@on_gpu("cupy")
def test_work_on_another_stream_ends_before_its_array_is_sent() -> None:
    run_job(arrays_of_a_stream_of_their_own_arrive, BRANT_GPU="cuda")


@on_gpu("torch")
def test_what_torch_still_computes_arrives() -> None:
    run_job(what_torch_still_computes_arrives, BRANT_GPU="cuda")


@on_gpu("cupy")
def test_a_gpu_array_lands_in_host_memory() -> None:
    run_job(from_a_gpu_to_the_host_and_back, BRANT_GPU="cuda")


@on_gpu("torch")
@pytest.mark.parametrize("allocator", ["native", "expandable"])
def test_tensors_arrive(allocator: str) -> None:
    more = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if allocator == "expandable" else {}
    run_job(tensors_arrive, BRANT_GPU="cuda", **more)


@on_gpu("torch")
def test_a_parameter_is_sent_without_its_gradient() -> None:
    run_job(a_parameter_without_its_gradient_arrives, BRANT_GPU="cuda")


@on_gpu("cupy", "torch")
def test_memory_of_brant_is_an_array_of_both() -> None:
    run_job(memory_of_brant_is_an_array_of_both, BRANT_GPU="cuda")


@on_gpu("cupy")
def test_segments_of_cupy_arrays_are_read() -> None:
    run_job(segments_of_cupy_are_read_and_written, BRANT_GPU="cuda")
