"""Kernels of CuPy that test_gpu_bells.py runs: RawModule, with brant's header as it is."""

from __future__ import annotations

import brant
import cupy
import numpy

NAME = f"CuPy {cupy.__version__}"
THREADS = {"thread": 1, "warp": 32, "block": 256}

CODE = r"""
#include "brant/device/notify.cuh"
using namespace brant::notify;

template <typename Scope>
__device__ void steps(long long* face, DeviceBell packed, DeviceBell go, Word first, Word last, Word patience_ns) {
  KernelControl control;
  control.patience_ns = patience_ns;
  Word epoch = first;
  for (; epoch <= last; ++epoch) {
    if (wait(control, go, epoch, Scope{}) != Waited::rung) break;
    face[threadIdx.x] = 1000 * epoch + threadIdx.x;
    ring(packed, epoch, Scope{});
  }
  if (threadIdx.x == 0) face[blockDim.x] = epoch - 1;
}

#define STEPS(name, Scope) \
  extern "C" __global__ void name(long long* face, DeviceBell packed, DeviceBell go, Word first, Word last, \
                                  Word patience_ns) { \
    steps<Scope>(face, packed, go, first, last, patience_ns); \
  }
STEPS(steps_thread, Thread)
STEPS(steps_warp, Warp)
STEPS(steps_block, Block)

extern "C" __global__ void together(long long* face, DeviceBell bell, FanIn all, Word epoch) {
  const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
  face[me] = 1000 * epoch + me;
  arrive(bell, all, epoch);
}
"""
MODULE = cupy.RawModule(code=CODE, options=("-std=c++17", "-I" + brant.include_dir()))


def pinned(count: int):
    """Words that both sides reach, and how kernels get them."""
    memory = cupy.cuda.alloc_pinned_memory(8 * count)
    words = numpy.frombuffer(memory, numpy.int64, count)
    words[:] = -1
    return words, memory.ptr


def value(structure: tuple[int, int]):
    return numpy.array(structure, "u8,u8")


def steps(scope: str, face, packed, go, first: int, last: int, patience_ns: int) -> None:
    kernel = MODULE.get_function(f"steps_{scope}")
    kernel((1,), (THREADS[scope],), (face, value(packed), value(go), first, last, patience_ns))


def together(blocks: int, threads: int, face, bell, all_of_them, epoch: int) -> None:
    MODULE.get_function("together")((blocks,), (threads,), (face, value(bell), value(all_of_them), epoch))


def synchronize() -> None:
    cupy.cuda.Device().synchronize()
