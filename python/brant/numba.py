"""Bells in kernels of Numba:

    from brant.numba import arrive, ring, wait

    @cuda.jit
    def step(face, packed, go, epoch):
        if cuda.threadIdx.x == 0:
            came = wait(go, epoch, 1_000_000_000)
        cuda.syncthreads()
        ...
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            ring(packed, epoch)

    step[1, 128](face, packed.device().word, go.device().word, epoch)

Each is for one thread, which does it for its block between two `cuda.syncthreads()`. They are the functions of
brant/device/notify.cuh, compiled and linked by Numba; docs/guide/notify.md has the rest. The import needs numba-cuda.
"""

from __future__ import annotations

from numba import cuda as _cuda

from brant import _device_code

if not hasattr(_cuda, "CUSource"):
    raise ImportError(
        "brant.numba: this Numba has no numba.cuda.CUSource, with which functions of CUDA C++ are linked: install "
        "numba-cuda 0.10 or newer, and set no NUMBA_ENABLE_CUDASIM"
    )
_link = _cuda.CUSource(_device_code.numba_source(), name="brant_bells.cu")


def _declare(name: str, signature: str):
    return _cuda.declare_device(name, signature, link=_link)


# ring(word, epoch): what this thread wrote, and saw of its block's writes, is there for whoever sees the epoch.
ring = _declare("brant_ring", "void(int64, int64)")
# arrive(word, counts, of, epoch): the last of `of` callers rings for all; the two in the middle are a brant.FanIn.
arrive = _declare("brant_arrive", "void(int64, int64, int64, int64)")
# wait(word, epoch, patience_ns): true when the epoch has come, false when so many nanoseconds are over; 0: no end.
wait = _declare("brant_wait", "int32(int64, int64, int64)")
