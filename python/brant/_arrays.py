"""Arrays in memory that brant allocated, and those that it makes for what is received."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

from brant import _brant
from brant._errors import InvalidArgument


@functools.lru_cache(maxsize=1)
def _numpy() -> Any:
    """NumPy, or None where it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def elements_of(dtype: Any) -> tuple[str, int]:
    """Of what NumPy takes for an element type: its name in the language of the module struct, and its bytes."""
    numpy = _numpy()
    if numpy is None:
        raise ImportError("this needs NumPy, for its element types: pip install numpy")
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise InvalidArgument(f"elements of {kind} are references to objects of this process: use a numeric type")
    try:
        return memoryview(numpy.empty(1, kind)).format, kind.itemsize
    except ValueError as error:
        raise InvalidArgument(f"elements of {kind} have no name in the language of the module struct") from error


def empty(shape: int | tuple[int, ...], dtype: Any = float, memory: str = "host") -> Any:
    """An array whose contents are undefined, in memory that other processes of this host can map: what is sent from
    there is copied once at most, and what is received there likewise. It is registered once, and kept for long.

    Args:
        shape: the number of elements in each dimension.
        dtype: what NumPy takes for one.
        memory: "host", "pinned" (host memory that GPUs reach), "cuda", "emulated" (of the device made of threads).

    Returns:
        A NumPy array of host memory; of a device's a `brant.Array`, which CuPy, PyTorch and others show by
        `__cuda_array_interface__` and DLPack without a copy.

    Raises:
        InvalidArgument: a negative extent; elements that are objects, times or dates.
        NotSupported: this process has no such device.
        OutOfMemory: there is not so much memory.
    """
    format, itemsize = elements_of(dtype)
    extents = [shape] if isinstance(shape, int) else list(shape)
    return _brant.new_array(extents, format, itemsize, memory)


def show(array: _brant.Array) -> Any:
    """What a program gets of an array in host memory: NumPy's view, which keeps it alive."""
    numpy = _numpy()
    return memoryview(array) if numpy is None else numpy.asarray(array)


@functools.lru_cache(maxsize=1024)
def dtype_of(format: str, itemsize: int) -> Any:
    """NumPy reads the struct module's language itself; structured types in particular. Where it has written it, unused
    bytes behind the last field are missing; others, who say "<", may have left out those between fields too."""
    if format == f"{itemsize}x":
        return _numpy().dtype(f"V{itemsize}")
    by_numpy = format.startswith("T{") and "<" not in format
    for unused in range(max(1, itemsize) if by_numpy else 1):
        padded = f"{format[:-1]}{unused}x}}" if unused != 0 else format
        try:
            return _numpy().asarray(_brant.new_array([1], padded, itemsize, "host")).dtype
        except RuntimeError as error:  # it finds elements of another size
            failure = error
    raise InvalidArgument(f"NumPy does not understand elements of {itemsize} bytes that are {format}") from failure


def empty_like(format: str, shape: tuple[int, ...], fortran: bool, itemsize: int) -> Any:
    """Where an array lands that the program gave no place for."""
    numpy = _numpy()
    if numpy is not None:
        return numpy.empty(shape, dtype_of(format, itemsize), "F" if fortran else "C")
    if fortran:
        return show(_brant.new_array(list(shape), format, itemsize, "host"))
    flat = memoryview(bytearray(math.prod(shape) * itemsize))
    return flat if format == "B" and len(shape) == 1 else flat.cast(format, list(shape))


def combine(function: Any, format: str, itemsize: int, accumulated: memoryview, following: memoryview) -> None:
    """What a function of the program makes of two arrays, into the first: for collectives."""
    numpy = _numpy()
    if numpy is None:
        raise ImportError("a function that combines arrays needs NumPy: pip install numpy")
    dtype = dtype_of(format, itemsize)
    first = numpy.frombuffer(accumulated, dtype)
    first[...] = function(first, numpy.frombuffer(following, dtype))


assert sys.byteorder == "little", "brant runs on x86-64"
