"""What is computed on a block: by NumPy in host memory, by a kernel of CuPy's on a GPU; the same to the last bit.

A field is an array [z, y, x] with one layer of ghost cells around. Its rows are aligned as a GPU likes them, so it is a
view with strides of a larger array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import brant
import numpy

ROW = 16  # doubles: 128 bytes, a GPU's cache line
PLANES = 16  # that one thread walks along

SWEEP = r"""
extern "C" __global__ void jacobi_sweep(double* __restrict__ next, const double* __restrict__ now, long long nx,
                                        long long ny, long long nz, long long row, long long plane) {
  const long long x = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long y = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  const long long first = (long long)blockIdx.z * PLANES;
  if (x >= nx || y >= ny) return;
  const long long last = first + PLANES < nz ? first + PLANES : nz;
  long long at = (first + 1) * plane + (y + 1) * row + x + 1;
  double below = now[at - plane], centre = now[at];
  for (long long z = first; z < last; ++z, at += plane) {
    const double above = now[at + plane];
    next[at] = (centre + now[at - 1] + now[at + 1] + now[at - row] + now[at + row] + below + above) * (1.0 / 7.0);
    below = centre;
    centre = above;
  }
}
"""


def inner(field: Any) -> Any:
    """The cells without the ghosts."""
    return field[1:-1, 1:-1, 1:-1]


def memory_shape(extent: tuple[int, int, int]) -> tuple[int, int, int]:
    """Of the array that a field is a view of: cell 0 of each row is aligned, and its ghost is right before it."""
    nx, ny, nz = extent
    return nz + 2, ny + 2, ROW + (nx + ROW) // ROW * ROW


def field_in(memory: Any, extent: tuple[int, int, int]) -> Any:
    return memory[:, :, ROW - 1 : ROW + extent[0] + 1]


class Shown:
    """An array of a GPU, described once for all the times that it is handed to brant. It names no stream, so that
    brant waits for none: what is computed on it must be done by then. CuPy makes a new description for each call, and
    the wait takes the driver more than a microsecond even where the stream is idle.
    """

    def __init__(self, array: Any):
        self.array = array
        self.nbytes = array.nbytes
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}


class HostKernels:
    """By NumPy, in memory that the processes of this host can map."""

    xp = numpy
    memory = "host"

    def field(self, extent: tuple[int, int, int]) -> numpy.ndarray:
        return field_in(brant.empty(memory_shape(extent)), extent)

    def fill(self, field: numpy.ndarray, planes: Iterable[numpy.ndarray]) -> None:
        for target, plane in zip(field, planes, strict=True):
            target[...] = plane

    def sweep_of(self, new: numpy.ndarray, old: numpy.ndarray) -> Callable[[], None]:
        """One iteration, whenever it is called. The additions are in the order of apps/jacobi3d."""
        total = inner(new)
        first, second, *others = (
            inner(old),
            *(old[1:-1, 1:-1, :-2], old[1:-1, 1:-1, 2:]),
            *(old[1:-1, :-2, 1:-1], old[1:-1, 2:, 1:-1]),
            *(old[:-2, 1:-1, 1:-1], old[2:, 1:-1, 1:-1]),
        )

        def sweep() -> None:
            numpy.add(first, second, out=total)
            for other in others:
                numpy.add(total, other, out=total)
            numpy.multiply(total, 1.0 / 7.0, out=total)

        return sweep

    async def finish(self) -> None:
        """Waits until what was started is done: here everything is, when its call returns."""

    def current(self) -> contextlib.AbstractContextManager:
        """What arrays are handed to brant in."""
        return contextlib.nullcontext()

    def shown(self, array: numpy.ndarray) -> numpy.ndarray:
        """As it is handed to brant again and again, each time after `finish`."""
        return array

    def change(self, new: numpy.ndarray, old: numpy.ndarray) -> float:
        """By how much a cell has changed at most. Plane by plane: it takes no memory for a third field."""
        return max(float(numpy.abs(a - b).max()) for a, b in zip(inner(new), inner(old), strict=True))

    def to_host(self, cells: numpy.ndarray) -> numpy.ndarray:
        return cells


class DeviceKernels:
    """By CuPy, on a stream of its own, in memory of brant's on the process's GPU."""

    memory = "cuda"

    def __init__(self) -> None:
        import cupy

        cupy.cuda.Device(brant.local_rank() % cupy.cuda.runtime.getDeviceCount()).use()
        self.xp = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._notifier = brant.Notifier(bells=2)
        self._done = brant.Bell(self._notifier)
        self._sweeps = 0
        self._sweep = cupy.RawKernel(SWEEP.replace("PLANES", str(PLANES)), "jacobi_sweep")

    def field(self, extent: tuple[int, int, int]) -> Any:
        return field_in(self.xp.asarray(brant.empty(memory_shape(extent), memory="cuda")), extent)

    def fill(self, field: Any, planes: Iterable[Any]) -> None:
        with self._stream:
            for target, plane in zip(field, planes, strict=True):
                target[...] = plane
        self._stream.synchronize()

    def sweep_of(self, new: Any, old: Any) -> Callable[[], None]:
        nz, ny, nx = inner(old).shape
        plane, row, _ = (stride // old.itemsize for stride in old.strides)
        blocks = ((nx + 31) // 32, (ny + 7) // 8, (nz + PLANES - 1) // PLANES)
        arguments = (new, old, *map(self.xp.int64, (nx, ny, nz, row, plane)))

        def sweep() -> None:
            with self._stream:
                self._sweep(blocks, (32, 8, 1), arguments)
            self._sweeps += 1
            self._done.enqueue_ring(self._stream, self._sweeps)

        return sweep

    async def finish(self) -> None:
        """The stream rings when it has swept. Meanwhile the other blocks of the process go on."""
        await self._done.when(self._sweeps)

    def shown(self, array: Any) -> Shown:
        return Shown(array)

    def current(self) -> contextlib.AbstractContextManager:
        """Arrays name this stream to brant, which waits for what it still does."""
        return self._stream

    def change(self, new: Any, old: Any) -> float:
        with self._stream:
            largest = [self.xp.abs(a - b).max() for a, b in zip(inner(new), inner(old), strict=True)]
            return float(self.xp.stack(largest).max())

    def to_host(self, cells: Any) -> numpy.ndarray:
        with self._stream:
            return cells.get()
