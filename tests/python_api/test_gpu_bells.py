"""Kernels of CuPy, Numba and Triton ring bells and wait for them. Without a GPU or the library a test is skipped.

kernels_of_cupy.py, kernels_of_numba.py and kernels_of_triton.py have the kernels: the same ones, with the same calls.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time

import numpy
import pytest
from conftest import BRANT, ROOT, brant, command, run_command
from test_gpu_arrays import on_gpu

LIMIT_S = 150
PATIENCE_NS = 20_000_000_000  # of a kernel whose bell comes
SHORT_NS = 50_000_000  # of one whose bell does not
LIBRARIES = {"cupy": ("cupy",), "numba": ("numba", "numba_cuda"), "triton": ("triton", "torch")}
GUIDE = ROOT / "docs" / "guide" / "notify.md"


def kernels():
    """Those of the library that the test is about."""
    module = importlib.import_module(f"kernels_of_{os.environ['BRANT_TEST_KERNELS']}")
    print(f"{module.NAME}, {brant.device()}", flush=True)
    return module


async def step_by_step() -> None:
    """One kernel for all steps: Python says which one may begin, the kernel writes its face and rings, and Python finds
    the face of that very step while the kernel waits for the next one."""
    library = kernels()
    notifier = brant.Notifier(64)
    last = 20
    for scope, threads in library.THREADS.items():
        packed = brant.Bell(notifier)
        go = brant.Bell(notifier, rung_by="host", seen_by="device")
        face, argument = library.pinned(threads + 1)
        library.steps(scope, argument, packed.device(), go.device(), 1, last, PATIENCE_NS)
        for epoch in range(1, last + 1):
            assert packed.epoch == epoch - 1, f"{scope}: the kernel did not wait for step {epoch}"
            go.ring(epoch)
            seen = await packed.when(epoch, timeout=30)
            expected = 1000 * epoch + numpy.arange(threads)
            assert seen == epoch, f"{scope}: step {epoch} rang {seen}"
            wrong = numpy.flatnonzero(face[:threads] != expected)
            assert wrong.size == 0, f"{scope}: step {epoch} was rung before cells {wrong}: {face[wrong]}"
        library.synchronize()
        assert face[threads] == last, f"{scope}: the kernel ended with step {face[threads]}"
        print(f"{scope}: {last} steps", flush=True)


async def a_kernel_gives_up() -> None:
    """Python never rings: the wait of the kernel ends, and the one in Python says which bell is missing."""
    library = kernels()
    notifier = brant.Notifier(64)
    for scope, threads in library.THREADS.items():
        packed = brant.Bell(notifier)
        go = brant.Bell(notifier, rung_by="host", seen_by="device")
        face, argument = library.pinned(threads + 1)
        go.ring(2)
        begun = time.monotonic()
        library.steps(scope, argument, packed.device(), go.device(), 1, 5, SHORT_NS)
        number = packed.device().number
        with pytest.raises(brant.TimedOut, match=rf"bell {number}\b"):
            await packed.when(3, timeout=2)
        library.synchronize()
        took = time.monotonic() - begun
        assert face[threads] == 2, (
            f"{scope}: the kernel ended with step {face[threads]} instead of 2, after {took:.1f} s"
        )
        assert packed.epoch == 2, f"{scope}: the bell has {packed.epoch}"
        print(f"{scope}: gave up", flush=True)


async def the_last_block_rings() -> None:
    library = kernels()
    notifier = brant.Notifier(64)
    for blocks in (1, 7, 32):
        bell, all_of_them = brant.Bell(notifier), notifier.fan_in(blocks)
        threads = 64
        face, argument = library.pinned(blocks * threads)
        for epoch in range(1, 10):
            library.together(blocks, threads, argument, bell.device(), all_of_them, epoch)
            seen = await bell.when(epoch, timeout=30)
            wrong = numpy.flatnonzero(face != 1000 * epoch + numpy.arange(blocks * threads))
            assert seen == epoch, f"{blocks} blocks: epoch {epoch} rang {seen}"
            assert wrong.size == 0, f"{blocks} blocks: epoch {epoch} was rung before cells {wrong}: {face[wrong]}"
        library.synchronize()
        print(f"{blocks} blocks: 9 epochs", flush=True)


def programs_of_the_guide() -> dict[str, str]:
    """Those of Python, by their names."""
    found = re.findall(r"^```python\n# brant run -n 1 -- python (\w+)\.py\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    return dict(found)


def run_here(library: str, what: list[str]) -> str:
    done = run_command(what, LIMIT_S, BRANT_GPU="cuda", BRANT_TEST_KERNELS=library)
    if done.returncode != 0 and "AttributeError: module 'numpy' has no attribute" in done.stderr:
        pytest.skip(f"{library} does not go with NumPy {numpy.__version__}")
    assert done.returncode == 0, f"{library}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


each_library = pytest.mark.parametrize(
    "library", [pytest.param(name, marks=on_gpu(*needed), id=name) for name, needed in LIBRARIES.items()]
)


@each_library
@pytest.mark.parametrize(
    "main", [step_by_step, a_kernel_gives_up, the_last_block_rings], ids=lambda main: main.__name__
)
def test_kernels_ring_and_wait(library: str, main) -> None:
    run_here(library, command(main, ranks=1, limit_s=LIMIT_S))


@each_library
def test_the_program_of_the_guide_runs(library: str, tmp_path) -> None:
    (tmp_path / "program.py").write_text(programs_of_the_guide()[f"{library}_rings"])
    start = [str(BRANT), "run", "-n", "1", "--no-prefix", "--timeout", str(LIMIT_S), "--", sys.executable]
    assert run_here(library, [*start, str(tmp_path / "program.py")]) == "epoch 1 of a face of 1.0\n"
