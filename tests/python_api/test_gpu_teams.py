"""Collectives of Python on arrays of CuPy, PyTorch, JAX and Numba on GPUs. Without GPUs or the library: skipped."""

from __future__ import annotations

import os

import numpy
import pytest
from conftest import brant, run_job
from test_gpu_arrays import cupy_here, on_gpu, torch_here
from test_teams import of_all

COUNTS = (1, 700, 300_000)


async def collectives_of_cupy() -> None:
    cupy = cupy_here()
    team = brant.world()
    rank, size = team.rank, team.size
    for dtype in ("f4", "f8", "i4", "u1", "f2", "c8"):
        for count in COUNTS:
            every = of_all(size, (count,), dtype)
            mine, landing = cupy.asarray(every[rank]), cupy.zeros(count, dtype)
            total = cupy.asarray(await team.allreduce(mine))
            assert total.dtype == mine.dtype and (total.get() == sum(every)).all()
            assert await team.allreduce(mine, out=landing) is landing
            assert (landing.get() == sum(every)).all()
            assert (cupy.asarray(await team.allgather(mine)).get() == numpy.stack(every)).all()
            await team.broadcast(landing, root=1)
            into_host = numpy.zeros(count, dtype)
            await team.allreduce(mine, out=into_host)
            assert (into_host == sum(every)).all()
    with cupy.cuda.Stream(non_blocking=True):  # what is still computed there comes first
        mine = cupy.zeros(1 << 22)
        for _ in range(20):
            mine += 1
        total = cupy.asarray(await team.allreduce(mine + rank))
        assert (total == 41).all()


async def streams_of_cupy() -> None:
    cupy = cupy_here()
    team = brant.world()
    rank, size = team.rank, team.size
    team.prepare_streams()
    stream = cupy.cuda.Stream(non_blocking=True)
    for dtype in ("f4", "f8", "i8", "f2"):
        for count in COUNTS:
            every = of_all(size, (count,), dtype)
            with stream:
                mine, total = cupy.asarray(every[rank]), cupy.zeros(count, dtype)
                table = cupy.zeros((size, count), dtype)
                team.allreduce(mine, out=total, stream=stream)
                total *= 2
                team.allgather(total, out=table, stream=stream.ptr)
                table += 1
            stream.synchronize()
            assert team.fault == ""
            assert (table.get() == sum(every) * 2 + 1).all()
    # Arrays that another stream computes: the call's stream waits for it, and the CPU does not.
    with cupy.cuda.Stream(non_blocking=True) as theirs:
        mine = cupy.zeros(1 << 22)
        for _ in range(20):
            mine += 1
        assert cupy.cuda.get_current_stream() == theirs
        team.allreduce(mine, out=mine, stream=stream)
    stream.synchronize()
    assert (mine == 40).all()
    # On CUDA's default stream, whose handle is null.
    mine = cupy.full(1000, rank + 1.0)
    team.allreduce(mine, out=mine, stream=cupy.cuda.Stream.null)
    assert (mine == 3).all()


async def graphs_of_cupy() -> None:
    cupy = cupy_here()
    team = brant.world()
    team.prepare_streams()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        mine = cupy.full(5000, team.rank + 1.0)
        total = cupy.zeros(5000)
        team.allreduce(mine, out=total, stream=stream)
        mine += total  # is compiled before the capture
        mine[...] = team.rank + 1.0
        stream.synchronize()
        stream.begin_capture()
        team.allreduce(mine, out=total, stream=stream)
        mine += total
        graph = stream.end_capture()
    expected = numpy.array([1.0, 2.0])
    for _ in range(5):
        graph.launch(stream)
        expected += expected.sum()
    stream.synchronize()
    assert (mine == expected[team.rank]).all() and team.fault == ""


async def collectives_of_torch() -> None:
    torch = torch_here()
    team = brant.world()
    rank = team.rank
    team.prepare_streams()
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.float16, torch.uint8):
        for count in COUNTS:
            base = torch.arange(count, device="cuda") % 7
            mine = (base + rank).to(dtype)
            expected = (2 * base + 1).to(dtype)
            total = torch.empty_like(mine)
            assert await team.allreduce(mine, out=total) is total
            assert torch.equal(total, expected)
            assert torch.equal(torch.from_dlpack(await team.allreduce(mine)), expected)
            for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
                with torch.cuda.stream(stream):
                    slow = (base + rank).to(dtype)
                    torch.cuda._sleep(2_000_000)
                    slow = slow + 0
                    team.allreduce(slow, out=slow, stream=stream)
                    doubled = slow + slow
                    assert torch.equal(doubled, expected + expected), (dtype, count, stream)
    with pytest.raises(brant.InvalidArgument, match="is no stream"):
        team.allreduce(total, out=total, stream=torch)
    if torch.cuda.device_count() > 1:
        elsewhere = torch.ones(3, device=f"cuda:{(brant.rank() + 1) % torch.cuda.device_count()}")
        with pytest.raises(brant.InvalidArgument, match="this process works with GPU"):
            team.allreduce(elsewhere, out=elsewhere)
    await team.barrier()


async def collectives_of_jax() -> None:
    import jax

    devices = jax.devices("cuda")
    device = devices[brant.rank() % len(devices)]
    team = brant.world()
    double = jax.jit(lambda values: values + values)
    for count in COUNTS:
        every = of_all(team.size, (count,), "float32")
        mine = double(jax.device_put(every[team.rank], device))  # dispatched, and not computed yet
        total = await team.allreduce(mine)
        assert total.memory == "cuda"
        numpy.testing.assert_array_equal(numpy.asarray(jax.numpy.from_dlpack(total)), 2 * sum(every))


async def streams_of_numba() -> None:
    from numba import cuda

    cuda.select_device(brant.rank() % len(cuda.gpus))
    team = brant.world()
    team.prepare_streams()
    stream = cuda.stream()
    for count in COUNTS:
        every = of_all(team.size, (count,), "float32")
        mine = cuda.to_device(every[team.rank], stream=stream)
        team.allreduce(mine, out=mine, stream=stream)
        got = mine.copy_to_host(stream=stream)
        stream.synchronize()
        numpy.testing.assert_array_equal(got, sum(every))


BODIES = {
    "cupy": [collectives_of_cupy, streams_of_cupy, graphs_of_cupy],
    "torch": [collectives_of_torch],
    "jax": [collectives_of_jax],
    "numba": [streams_of_numba],
}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body, marks=on_gpu(library), id=body.__name__)
        for library, bodies in BODIES.items()
        for body in bodies
    ],
)
def test_arrays_of_a_library_are_combined(body) -> None:
    more = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PATH": os.environ["PATH"]}
    run_job(body, BRANT_GPU="cuda", **more)
