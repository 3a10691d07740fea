"""Arrays of JAX, PyTorch and Numba are sent as they are, from the CPU and from GPUs. What is not installed is skipped.

Their arrays on GPUs of CuPy and PyTorch have a file of their own, test_gpu_arrays.py.
"""

from __future__ import annotations

import importlib.util
import os

import numpy
import pytest
from conftest import brant, run_job
from test_gpu_arrays import on_gpu

BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])

# pytest itself does not have the package, and only starts the processes that do.
Chare, entry = (brant.Chare, brant.entry) if brant else (object, lambda function: function)


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"there is no {library}")


async def there_and_here(channel, mine, out=None):
    """Sends an array and receives the other process's."""
    outgoing = channel.send(mine)
    got = await channel.recv(out)
    await outgoing
    return got


class Echo(Chare):
    @entry
    def back(self, values, more):
        return type(values).__name__, values, more


# --- JAX ---------------------------------------------------------------------------------------------------------


def of_jax(dtype: str, shape: tuple[int, ...], rank: int):
    import jax

    count = int(numpy.prod(shape, dtype=int))
    return jax.numpy.arange(count).reshape(shape).astype(dtype) + jax.numpy.asarray(rank, dtype)


async def arrays_of_jax_arrive() -> None:
    import jax

    channel = brant.channel(1 - brant.rank(), 1)
    for dtype in ("float32", "int32", "uint8", "complex64", "float16", "bool"):
        for shape in ((0,), (), (7,), (3, 5), (4, 1 << 16)):
            mine, theirs = (of_jax(dtype, shape, rank) for rank in (brant.rank(), 1 - brant.rank()))
            got = await there_and_here(channel, mine)
            assert isinstance(got, numpy.ndarray) and got.dtype == dtype and got.shape == shape
            numpy.testing.assert_array_equal(got, numpy.asarray(theirs))
            assert bool((jax.numpy.asarray(got) == theirs).all())
            assert bool((jax.numpy.from_dlpack(got) == theirs).all())
            landing = numpy.zeros(shape, dtype)
            await there_and_here(channel, mine, landing)
            numpy.testing.assert_array_equal(landing, numpy.asarray(theirs))


async def what_jax_still_computes_arrives() -> None:
    import jax

    channel = brant.channel(1 - brant.rank(), 1)
    square = jax.jit(lambda a: (a @ a.T).sum(axis=0))
    ones = jax.numpy.ones((700, 700)) * (brant.rank() + 1)
    got = await there_and_here(channel, square(ones))  # dispatched, and not computed yet
    numpy.testing.assert_allclose(got, 700 * 700 * (2 - brant.rank()) ** 2)


async def arrays_of_jax_cannot_receive() -> None:
    import jax

    channel = brant.channel(1 - brant.rank(), 1)
    landing = jax.numpy.zeros(5)
    with pytest.raises(brant.InvalidArgument, match="read-only array cannot receive"):
        channel.recv(landing)
    assert await there_and_here(channel, "it goes on") == "it goes on"
    assert bool((landing == 0).all())


async def arrays_of_jax_are_parts_of_objects() -> None:
    channel = brant.channel(1 - brant.rank(), 1)
    parts = {"weights": of_jax("float32", (3, 4), brant.rank()), "step": brant.rank()}
    got = await there_and_here(channel, parts)
    assert got["step"] == 1 - brant.rank()
    numpy.testing.assert_array_equal(
        numpy.asarray(got["weights"]), numpy.asarray(of_jax("float32", (3, 4), got["step"]))
    )


async def a_chare_gets_arrays_of_jax() -> None:
    async def main():
        echoes = Echo.group()
        values = of_jax("float32", (5, 2), 3)
        for echo in echoes:
            kind, got, more = await echo.back.reply(values, more=[values, "and more"])
            assert kind == "ndarray" and more[1] == "and more"
            numpy.testing.assert_array_equal(got, numpy.asarray(values))
            numpy.testing.assert_array_equal(numpy.asarray(more[0]), numpy.asarray(values))

    await brant.program(main)


async def arrays_of_jax_arrive_beside_those_of_the_sender() -> None:
    """On the GPU of each process or on its CPU, as BRANT_TEST_JAX says."""
    import jax

    platform = os.environ["BRANT_TEST_JAX"]
    devices = jax.devices(platform)
    device = devices[brant.rank() % len(devices)]
    channel = brant.channel(1 - brant.rank(), 1)
    double = jax.jit(lambda values: values + values)
    for dtype in ("float32", "int32", "float16", "complex64"):
        for shape in ((7,), (3, 5), (1 << 20,)):
            mine, theirs = (
                jax.device_put(of_jax(dtype, shape, rank), device) for rank in (brant.rank(), 1 - brant.rank())
            )
            got = await there_and_here(channel, double(mine))  # dispatched, and perhaps not computed yet
            assert isinstance(got, numpy.ndarray) if platform == "cpu" else got.memory == "cuda"
            landing = brant.empty(shape, dtype, memory="host" if platform == "cpu" else "cuda")
            assert await there_and_here(channel, mine, landing) is landing
            shown, landed = jax.numpy.from_dlpack(got), jax.numpy.from_dlpack(landing)
            assert shown.devices() == landed.devices() == {device}
            numpy.testing.assert_array_equal(numpy.asarray(shown), numpy.asarray(double(theirs)))
            numpy.testing.assert_array_equal(numpy.asarray(double(landed)), numpy.asarray(shown))


async def what_jax_still_computes_on_a_gpu_arrives() -> None:
    import jax

    channel = brant.channel(1 - brant.rank(), 1)
    gpus = jax.devices("gpu")
    product = jax.jit(lambda a: jax.lax.fori_loop(0, 20, lambda _, b: b @ a, a))
    eye = jax.device_put(jax.numpy.eye(2048), gpus[brant.rank() % len(gpus)])
    for round_ in range(5):
        got = await there_and_here(channel, product(eye) * (brant.rank() + round_))  # dispatched, and not computed yet
        numpy.testing.assert_array_equal(
            numpy.asarray(jax.numpy.from_dlpack(got)), numpy.eye(2048) * (1 - brant.rank() + round_)
        )


@needs("jax")
@BOTH
def test_arrays_of_jax_arrive(loop: str) -> None:
    run_job(arrays_of_jax_arrive, loop=loop, JAX_PLATFORMS="cpu")


@needs("jax")
def test_what_jax_still_computes_arrives() -> None:
    run_job(what_jax_still_computes_arrives, JAX_PLATFORMS="cpu")


@needs("jax")
def test_arrays_of_jax_cannot_receive() -> None:
    run_job(arrays_of_jax_cannot_receive, JAX_PLATFORMS="cpu")


@needs("jax")
def test_arrays_of_jax_are_parts_of_objects() -> None:
    run_job(arrays_of_jax_are_parts_of_objects, JAX_PLATFORMS="cpu")


@needs("jax")
def test_a_chare_gets_arrays_of_jax() -> None:
    run_job(a_chare_gets_arrays_of_jax, JAX_PLATFORMS="cpu")


@needs("jax")
def test_arrays_of_jax_arrive_beside_those_of_the_sender() -> None:
    run_job(arrays_of_jax_arrive_beside_those_of_the_sender, JAX_PLATFORMS="cpu", BRANT_TEST_JAX="cpu")


@on_gpu("jax")
def test_arrays_of_jax_on_gpus_arrive() -> None:
    more = {"BRANT_TEST_JAX": "gpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    run_job(arrays_of_jax_arrive_beside_those_of_the_sender, BRANT_GPU="cuda", **more)


@on_gpu("jax")
def test_what_jax_still_computes_on_a_gpu_arrives() -> None:
    run_job(what_jax_still_computes_on_a_gpu_arrives, BRANT_GPU="cuda", XLA_PYTHON_CLIENT_PREALLOCATE="false")


# --- PyTorch on CPUs ---------------------------------------------------------------------------------------------


def of_torch(dtype, shape: tuple[int, ...], rank: int):
    import torch

    return (torch.arange(int(numpy.prod(shape, dtype=int))).reshape(shape) + rank).to(dtype)


async def tensors_of_the_cpu_arrive() -> None:
    import torch

    channel = brant.channel(1 - brant.rank(), 1)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float16):
        for shape in ((0,), (), (7,), (6, 4), (2, 3, 1 << 15)):
            mine, theirs = (of_torch(dtype, shape, rank) for rank in (brant.rank(), 1 - brant.rank()))
            got = await there_and_here(channel, mine)
            assert torch.equal(torch.from_numpy(got), theirs)
            landing = torch.zeros_like(theirs)
            assert await there_and_here(channel, mine, landing) is landing
            assert torch.equal(landing, theirs)


async def tensors_of_any_strides_arrive() -> None:
    import torch

    channel = brant.channel(1 - brant.rank(), 1)
    mine, theirs = (of_torch(torch.float64, (6, 4, 5), rank) for rank in (brant.rank(), 1 - brant.rank()))
    views = (
        lambda t: t.T,
        lambda t: t[::2, :, 1],
        lambda t: t.permute(1, 2, 0),
        lambda t: t[:, 3],
        lambda t: t[2, 1, 4],
    )
    for view in views:
        assert torch.equal(torch.from_numpy(await there_and_here(channel, view(mine))), view(theirs))
        whole = torch.zeros_like(theirs)
        await there_and_here(channel, view(mine), view(whole))
        assert torch.equal(view(whole), view(theirs))


async def bfloat16_arrives_in_a_tensor() -> None:
    import torch

    channel = brant.channel(1 - brant.rank(), 1)
    landing = torch.zeros(300, dtype=torch.bfloat16)
    await there_and_here(channel, of_torch(torch.bfloat16, (300,), brant.rank()), landing)
    assert torch.equal(landing, of_torch(torch.bfloat16, (300,), 1 - brant.rank()))


async def a_tensor_with_a_gradient_is_named() -> None:
    import torch

    channel = brant.channel(1 - brant.rank(), 1)
    weights = torch.ones(4, requires_grad=True)
    with pytest.raises(Exception, match="detach"):
        await channel.send(weights)
    got = await there_and_here(channel, weights.detach())
    assert got.tolist() == [1.0] * 4


async def modules_and_chares_take_tensors() -> None:
    import torch

    channel = brant.channel(1 - brant.rank(), 1)
    torch.manual_seed(brant.rank())
    got = await there_and_here(channel, torch.nn.Linear(3, 2).state_dict())
    torch.manual_seed(1 - brant.rank())
    assert all(torch.equal(got[name], value) for name, value in torch.nn.Linear(3, 2).state_dict().items())

    async def main():
        values = of_torch(torch.float32, (5, 2), 3)
        for echo in Echo.group():
            kind, array, more = await echo.back.reply(values, more=[values])
            assert kind == "ndarray" and torch.equal(torch.from_numpy(array), values) and torch.equal(more[0], values)

    await brant.program(main)


@needs("torch")
@BOTH
def test_tensors_of_the_cpu_arrive(loop: str) -> None:
    run_job(tensors_of_the_cpu_arrive, loop=loop)


@needs("torch")
@pytest.mark.parametrize(
    "body",
    [
        tensors_of_any_strides_arrive,
        bfloat16_arrives_in_a_tensor,
        a_tensor_with_a_gradient_is_named,
        modules_and_chares_take_tensors,
    ],
)
def test_tensors(body) -> None:
    run_job(body)


# --- Numba -------------------------------------------------------------------------------------------------------


async def arrays_of_numba_on_gpus_arrive() -> None:
    from numba import cuda

    cuda.select_device(brant.rank() % len(cuda.gpus))
    channel = brant.channel(1 - brant.rank(), 1)
    for count in (1, 1000, 1 << 20):
        mine = cuda.to_device(numpy.arange(count, dtype="f4") + brant.rank())
        landing = cuda.device_array(count, "f4")
        await there_and_here(channel, mine, landing)
        expected = numpy.arange(count, dtype="f4") + 1 - brant.rank()
        numpy.testing.assert_array_equal(landing.copy_to_host(), expected)
        got = await there_and_here(channel, mine)
        numpy.testing.assert_array_equal(cuda.as_cuda_array(got).copy_to_host(), expected)


async def what_numba_compiles_computes_on_what_came() -> None:
    import numba

    channel = brant.channel(1 - brant.rank(), 1)
    total = numba.njit(lambda values: values.sum())
    assert total(await there_and_here(channel, numpy.full(1000, brant.rank() + 1.0))) == 1000 * (2 - brant.rank())


@on_gpu("numba")
def test_arrays_of_numba_on_gpus_arrive() -> None:
    run_job(arrays_of_numba_on_gpus_arrive, BRANT_GPU="cuda")


@needs("numba")
def test_what_numba_compiles_computes_on_what_came() -> None:
    run_job(what_numba_compiles_computes_on_what_came)
