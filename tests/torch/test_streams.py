"""Tensors of a GPU without one: brant's emulated device stands under PyTorch (fake_gpu.cc). Calls go to the backend
itself, since PyTorch's layers above it ask for streams of CUDA."""

from __future__ import annotations

import datetime
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from conftest import count_gpus, environment, outputs_of, run, start

try:
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import AllgatherOptions, AllreduceOptions, BarrierOptions
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = None


pytestmark = pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU, whose place the emulated device would take")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    command = [sys.executable, str(pathlib.Path(__file__).with_name("fake_gpu.py"))]
    done = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def begin():
    """The fake device's functions, and the backend of a group whose job works with it."""
    import brant.torch
    import fake_gpu

    os.environ["BRANT_GPU"] = "emulated"
    brant.torch._gpu = lambda options: 0
    dist.init_process_group("brant", timeout=datetime.timedelta(seconds=100))
    fake = fake_gpu.load()
    fake.install(brant.torch._extension.runtime_of_default())
    return fake, dist.group.WORLD._get_backend(torch.device("cpu"))


def options(kind, waits: bool = False):
    made = kind()
    made.asyncOp = not waits
    return made


def summed(backend, tensor, waits: bool = False):
    return backend.allreduce([tensor], options(AllreduceOptions, waits))


def same(fake, tensor, wanted: float) -> None:
    assert set(fake.read(tensor)) == {wanted}


def streams_carry_calls_out() -> None:
    fake, backend = begin()
    rank = dist.get_rank()
    for count in (1, 1000, 100_000):
        for stream in (1, 7, 8):
            fake.use_stream(stream)
            tensors, works = [fake.make(count) for _ in range(6)], []
            for step, tensor in enumerate(tensors):
                fake.keep_busy(2)
                fake.fill(tensor, rank + step + 1.0)
                works.append(summed(backend, tensor, waits=step % 2 == 1))
            for step, (tensor, work) in enumerate(zip(tensors, works, strict=True)):
                work.wait()
                same(fake, tensor, 2 * step + 3.0)
                assert work.is_completed()
    tensor, whole = fake.make(1000), fake.make(2000)
    fake.fill(tensor, rank + 5.0)
    backend.all_gather_single_coalesced([whole], [tensor], options(AllgatherOptions)).wait()
    assert fake.read(whole) == [5.0] * 1000 + [6.0] * 1000
    # A future's callback runs on a stream that comes behind the call.
    fake.keep_busy(4)
    fake.fill(tensor, rank + 1.0)
    seen = []
    future = summed(backend, tensor).get_future()
    future.then(lambda done: seen.append(fake.read(done.value()[0])[0])).wait()
    assert seen == [3.0]
    work = summed(backend, tensor)
    work.wait(datetime.timedelta(seconds=60))
    assert work.is_completed()
    # Another group has a stream of its own, and what is left is waited for at the end.
    other = dist.new_group([0, 1])._get_backend(torch.device("cpu"))
    fake.fill(tensor, rank + 1.0)
    summed(other, tensor).wait()
    same(fake, tensor, 3.0)
    fake.keep_busy(10)
    summed(backend, tensor)
    dist.destroy_process_group()


def the_host_waits_for_streams() -> None:
    fake, backend = begin()
    rank = dist.get_rank()
    other = 1 - rank
    for count in (1, 1000, 100_000):
        tensor, landing = fake.make(count), fake.make(count)
        fake.fill(landing, -1.0)
        fake.keep_busy(10)
        fake.fill(tensor, rank + 1.0)
        works = [backend.send([tensor], other, 4), backend.recv([landing], other, 4)]
        # Calls on tensors of the CPU do not overtake: a group has one order.
        on_cpu = torch.full((4,), rank + 1.0)
        works += [summed(backend, on_cpu), backend.barrier(options(BarrierOptions))]
        for work in reversed(works):
            work.wait()
        assert on_cpu.tolist() == [3.0] * 4
        same(fake, landing, other + 1.0)
        summed(backend, landing).wait()
        same(fake, landing, 3.0)
    future = backend.recv([landing], other, 5).get_future()
    backend.send([tensor], other, 5).wait()
    future.wait()
    same(fake, landing, other + 1.0)
    try:
        backend.allreduce_coalesced([on_cpu, tensor])
    except RuntimeError as error:
        assert "tensors on the CPU and on a GPU" in str(error), error
    else:
        raise AssertionError("tensors of two kinds were taken")
    dist.destroy_process_group()


def one_dies() -> None:
    fake, backend = begin()
    tensor = fake.make(1000)
    summed(backend, tensor).wait()
    fake.read(tensor)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        work = summed(backend, tensor)
        work.wait()
        fake.read(tensor)  # the kernel has given up
        assert work.is_completed()
        work.wait()
    except RuntimeError as error:
        assert "rank 1" in str(error), error
        print("told of the death", flush=True)
        os._exit(0)


def test_streams_carry_collectives_out_in_order() -> None:
    run(streams_carry_calls_out, 2, "none")


def test_the_host_waits_for_streams_and_keeps_the_order() -> None:
    run(the_host_waits_for_streams, 2, "none")


def test_a_death_ends_the_kernel_that_waits_and_is_told() -> None:
    processes = start(one_dies, 2, "none")
    output = outputs_of(processes)[0]
    assert "told of the death" in output, output
