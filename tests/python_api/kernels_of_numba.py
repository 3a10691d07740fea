"""Kernels of Numba that test_gpu_bells.py runs, by the functions of brant.numba."""

from __future__ import annotations

import numba
import numba_cuda
import numpy
from brant.numba import arrive, ring, wait
from numba import cuda

NAME = f"Numba {numba.__version__} with numba-cuda {numba_cuda.__version__}"
THREADS = {"thread": 1, "warp": 32, "block": 256}


@cuda.jit
def _steps(face, packed, go, first, last, patience_ns):
    me = cuda.threadIdx.x
    done = first - 1
    for epoch in range(first, last + 1):
        came = 0
        if me == 0:
            came = wait(go, epoch, patience_ns)
        if cuda.syncthreads_or(came) == 0:
            break
        face[me] = 1000 * epoch + me
        cuda.syncthreads()
        if me == 0:
            ring(packed, epoch)
        done = epoch
    if me == 0:
        face[cuda.blockDim.x] = done


@cuda.jit
def _together(face, bell, counts, of, epoch):
    me = cuda.grid(1)
    face[me] = 1000 * epoch + me
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        arrive(bell, counts, of, epoch)


def pinned(count: int):
    """Words that both sides reach, and how kernels get them."""
    words = cuda.mapped_array(count, numpy.int64)
    words[:] = -1
    return words, words


def steps(scope: str, face, packed, go, first: int, last: int, patience_ns: int) -> None:
    _steps[1, THREADS[scope]](face, packed.word, go.word, first, last, patience_ns)


def together(blocks: int, threads: int, face, bell, all_of_them, epoch: int) -> None:
    _together[blocks, threads](face, bell.word, *all_of_them, epoch)


def synchronize() -> None:
    cuda.synchronize()
