"""Kernels of Triton that test_gpu_bells.py runs, by the functions of brant.triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from brant.triton import arrive, ring, wait

NAME = f"Triton {triton.__version__} with PyTorch {torch.__version__}"
THREADS = {"warp": 32, "block": 256}  # a cell for each


@triton.jit(do_not_specialize=["first", "last", "patience_ns"])
def _steps(face, packed, go, first, last, patience_ns, CELLS: tl.constexpr):
    cells = tl.arange(0, CELLS)
    place = tl.full((), face, tl.int64).to(tl.pointer_type(tl.int64))
    epoch = tl.full((), first, tl.int64)
    going = epoch <= last
    while going:
        going = wait(go, epoch, patience_ns)
        if going:
            tl.store(place + cells, 1000 * epoch + cells)
            ring(packed, epoch)
            epoch += 1
            going = epoch <= last
    tl.store(place + CELLS, epoch - 1)


@triton.jit(do_not_specialize=["epoch"])
def _together(face, bell, counts, of, epoch, CELLS: tl.constexpr):
    cells = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    place = tl.full((), face, tl.int64).to(tl.pointer_type(tl.int64))
    tl.store(place + cells, 1000 * epoch + cells)
    arrive(bell, counts, of, epoch)


def pinned(count: int):
    """Words that both sides reach, and how kernels get them."""
    words = torch.full((count,), -1, dtype=torch.int64, pin_memory=True)
    return words.numpy(), words.data_ptr()


def steps(scope: str, face, packed, go, first: int, last: int, patience_ns: int) -> None:
    threads = THREADS[scope]
    _steps[(1,)](face, packed.word, go.word, first, last, patience_ns, CELLS=threads, num_warps=threads // 32)


def together(blocks: int, threads: int, face, bell, all_of_them, epoch: int) -> None:
    _together[(blocks,)](face, bell.word, *all_of_them, epoch, CELLS=threads, num_warps=threads // 32)


def synchronize() -> None:
    torch.cuda.synchronize()
