"""Memory of all processes of a job, named by pointers, and copies that the owners take no part in."""

from __future__ import annotations

import functools
import math
import operator
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from brant import _brant
from brant._arrays import dtype_of, elements_of, empty
from brant._errors import InvalidArgument
from brant._remote_calls import watch


class GlobalPtr:
    """Where elements of an array lie: process, segment, offset, what they are and how many. It holds nothing, may be
    sent to others by any means, and says nothing of whether the segment still exists: that is found out when it is
    used.

    `p + n` begins n elements later and ends where `p` does; `p[i]`, `p[i:j]` are parts along the first dimension.
    `GlobalPtr()` is null, and false.
    """

    __slots__ = ("device", "dtype", "kind", "offset", "rank", "segment", "shape")

    def __init__(
        self,
        rank: int = -1,
        segment: int = 0,
        offset: int = 0,
        kind: str = "host",
        device: int = 0,
        dtype: Any = "uint8",
        shape: tuple[int, ...] = (0,),
    ):
        elements = _dtype(dtype)
        for name, value in zip(
            GlobalPtr.__slots__, (device, elements, kind, offset, rank, segment, shape), strict=True
        ):
            object.__setattr__(self, name, value)

    rank: int
    """The process that owns the memory; -1 for a null pointer."""
    segment: int
    """Of that process; 0 for a null pointer."""
    offset: int
    """In bytes, from the beginning of the segment."""
    kind: str
    """ "host", "pinned", "cuda" or "emulated"."""
    device: int
    """The ordinal that the device has in the owner's process."""
    dtype: Any
    shape: tuple[int, ...]

    def __setattr__(self, name: str, _: Any) -> None:
        raise AttributeError(f"a global pointer does not change: {name}", name=name, obj=self)

    @property
    def count(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    def __bool__(self) -> bool:
        return self.segment != 0

    def __add__(self, items: int) -> GlobalPtr:
        items = operator.index(items)
        if items > self.count:
            raise InvalidArgument(f"{self!r} has {self.count} elements, and {items} is past its end")
        return self._part(items, (self.count - items,))

    def __sub__(self, items: int) -> GlobalPtr:
        return self + -operator.index(items)

    def __getitem__(self, index: int | slice) -> GlobalPtr:
        if not self.shape:
            raise InvalidArgument(f"{self!r} points to one element, which has no parts")
        row = math.prod(self.shape[1:])
        if isinstance(index, slice):
            first, end, step = index.indices(self.shape[0])
            if step != 1:
                raise InvalidArgument(f"{self!r}: elements of a slice lie together, so its step is 1 and not {step}")
            return self._part(first * row, (max(end - first, 0), *self.shape[1:]))
        at = operator.index(index)
        at += self.shape[0] if at < 0 else 0
        if not 0 <= at < self.shape[0]:
            raise IndexError(f"{self!r} has no element {index}")
        return self._part(at * row, self.shape[1:])

    def _part(self, items: int, shape: tuple[int, ...]) -> GlobalPtr:
        offset = self.offset + items * self.dtype.itemsize
        if offset < 0:
            raise InvalidArgument(f"{self!r}: {-items} elements before it is outside the segment")
        return GlobalPtr(self.rank, self.segment, offset, self.kind, self.device, self.dtype, shape)

    def _parts(self) -> tuple:
        return self.rank, self.segment, self.offset, self.kind, self.device, self.dtype, self.shape

    def _place(self) -> tuple[int, int, int, str, int]:
        return self.rank, self.segment, self.offset, self.kind, self.device

    def _target(self) -> tuple[tuple[int, int, int, str, int], int, str, int]:
        return self._place(), self.count, *_elements_of(self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalPtr) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple:
        return GlobalPtr, self._parts()

    def __repr__(self) -> str:
        if not self:
            return "GlobalPtr()"
        where = f"rank {self.rank}, segment {self.segment}, offset {self.offset}, {self.kind}"
        return f"<GlobalPtr: {self.dtype}{list(self.shape)} at {where}>"


_elements_of = functools.lru_cache(maxsize=256)(elements_of)


def _dtype(of: Any) -> Any:
    if hasattr(of, "itemsize") and hasattr(of, "hasobject"):
        return of
    elements_of(of)
    import numpy

    return numpy.dtype(of)


class GlobalSegment:
    """Memory of this process that global pointers point into. Made by a GlobalSpace, by this process alone. One that is
    let go is retired; its memory stays until nobody reaches it any more, and as long as its arrays are used."""

    def __init__(self, segment: _brant.OwnSegment, array: Any = None):
        self._segment, self._array = segment, array

    def allocate(self, shape: int | tuple[int, ...], dtype: Any = float) -> GlobalPtr:
        """Elements in a row, in C order, contents undefined; at multiples of 64 bytes, on devices of 256.

        Raises:
            OutOfMemory: the segment has no such room; the text says how much is used. InvalidArgument: it is retired.
        """
        extents = (shape,) if isinstance(shape, int) else tuple(map(operator.index, shape))
        if any(extent < 0 for extent in extents):
            raise InvalidArgument("an array has no negative extent")
        elements = _dtype(dtype)
        nbytes = math.prod(extents) * elements.itemsize
        return GlobalPtr(*self._segment.allocate(nbytes), elements, extents)

    def deallocate(self, pointer: GlobalPtr) -> None:
        """Gives back what `allocate` gave, and nothing else; a null pointer is fine. Who still uses it may read or
        write what comes to lie there."""
        if pointer:
            self._segment.deallocate(pointer._place())

    def array(self, pointer: GlobalPtr) -> Any:
        """The elements themselves: NumPy's view of host memory, a `brant.Array` of a device's. It keeps the memory.

        Raises:
            InvalidArgument: they do not lie in this segment, or it is retired.
        """
        return self._segment.array(pointer._target(), pointer.shape)

    @property
    def whole(self) -> GlobalPtr:
        """All of it: the elements of the array that was adopted, else bytes. Not to be mixed with `allocate`."""
        if self._array is None:
            return GlobalPtr(*self._segment.begin(), "uint8", (self.nbytes,))
        shape, format, itemsize, in_c_order, _ = _brant.layout_of(self._array)
        extents = shape if in_c_order else (math.prod(shape),)
        return GlobalPtr(*self._segment.begin(), dtype_of(format, itemsize), extents)

    def publish(self, ranks: Iterable[int] | None = None) -> None:
        """Tells these processes, or all, how the segment is reached, before they ask: their first use then takes no
        answer of this process."""
        self._segment.publish(None if ranks is None else [operator.index(rank) for rank in ranks])

    def retire(self) -> _brant.Awaitable:
        """No use that begins from now on finds it. Awaited, it waits until those under way have ended and nobody
        reaches the memory any more, which takes progress of those that used it."""
        return self._segment.retire()

    @property
    def nbytes(self) -> int:
        return self._segment.nbytes

    @property
    def nbytes_used(self) -> int:
        """By what `allocate` gave."""
        return self._segment.nbytes_used

    @property
    def is_open(self) -> bool:
        return self._segment.is_open


class SetFlag(NamedTuple):
    """What `set_flag` and `add_to` make."""

    flag: GlobalPtr
    value: int
    behind_all: bool = False
    adds: bool = False


def set_flag(flag: GlobalPtr, value: int, *, behind_all: bool = False) -> SetFlag:
    """What happens behind the bytes of a copy: one element of uint64, of any process and memory, gets a value. The
    target, a kernel or a stream of its may look at it.

    Args:
        behind_all: also behind all puts, copies and atomics that this process has started to the target's before.
    """
    return SetFlag(flag, _word_of(flag, value), behind_all)


def add_to(counter: GlobalPtr, value: int = 1, *, behind_all: bool = False) -> SetFlag:
    """What happens behind the bytes of a copy: a value is added to one element of uint64. It counts what has come:
    copies of any number of processes, which end in any order, may have one counter. Over the network the process whose
    memory it is must make progress.

    Args:
        behind_all: also behind all puts, copies and atomics that this process has started to the target's before.
    """
    return SetFlag(counter, _word_of(counter, value), behind_all, adds=True)


def _word_of(flag: GlobalPtr, value: int) -> int:
    if flag.dtype != _dtype("uint64") or flag.count < 1:
        raise InvalidArgument(f"a flag or a counter is an element of uint64, and not {flag!r}")
    if not 0 <= operator.index(value) < 2**64:
        raise InvalidArgument(f"{value} is no value of a flag or a counter, which has 64 bits")
    return operator.index(value)


class GlobalSpace:
    """The part of a process in the global address space: one at a time. It ends with the job, or with `close`, or with
    a `with` block. Others may use pointers to this process's segments as soon as they have them; where it never makes a
    space, they wait until it ends.

    The first use of a segment asks its owner how it is reached, unless it was published: that takes progress of the
    owner, once. From then on copies are one-sided. They are ordered neither with one another nor with messages, but by
    their completions.

    Copies are under way from the call on, hold their arrays until they have ended, and are awaited, or waited for in
    plain code: `space.put(p, a).wait()`. They raise, at the call or when awaited:
        InvalidArgument: a null pointer, elements of another type or number than the pointer's, outside the segment.
        NotFound: the segment is retired, or its space is gone. PeerLost: its process has ended.
        WrongKind: no array. LimitReached: 65536 copies are under way. TimedOut: the copy goes on.
    """

    def __init__(self) -> None:
        _brant.open_space()
        self._open = True
        watch()  # others ask for its segments

    def __enter__(self) -> GlobalSpace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is under way as Canceled, retires the segments, and waits until nobody reaches them any more, some
        20 s at most: the others must make progress."""
        if self._open:
            self._open = False
            _brant.close_space()

    def create(self, nbytes: int | str, memory: str = "host") -> GlobalSegment:
        """New memory: so many bytes, or as text, "64 MB".

        Args:
            memory: "host", "pinned", "cuda", "emulated".

        Raises:
            InvalidArgument: no such size or memory. NotSupported: no such device. OutOfMemory.
        """
        self._require_open()
        return GlobalSegment(_brant.OwnSegment(_bytes_of(nbytes), memory))

    def adopt(self, array: Any) -> GlobalSegment:
        """Around an array whose elements lie together, which may be written: of NumPy, CuPy, PyTorch, brant. It is kept
        until the segment is retired; `segment.whole` points to its elements."""
        self._require_open()
        return GlobalSegment(_brant.OwnSegment(array), array)

    def put(
        self,
        to: GlobalPtr,
        array: Any,
        *,
        at_target: SetFlag | Callable[[], Any] | None = None,
        timeout: float | None = None,
    ) -> _brant.Awaitable:
        """Copies an array there. When it has ended, the bytes are visible to the owner, whose program took no part.

        Args:
            array: as many elements of the same type as the pointer has, of any shape; of any strides in host memory. A
                pointer to uint8 takes any array of its size.
            at_target: what happens behind the bytes of this copy: `set_flag(flag, value)`, `add_to(counter)`, or a
                function without arguments, which is called here, perhaps within this call, and must not wait. What it
                raises is raised where the put is awaited.
            timeout: seconds after which the waiter gets `TimedOut`.
        """
        self._require_open()
        return _brant.put(to._target(), array, *_parts_of(at_target), timeout)

    def get(self, from_: GlobalPtr, out: Any = None, *, timeout: float | None = None) -> _brant.Awaitable:
        """Copies from there. Awaited, it gives the array: `out`, or a new one of the pointer's shape, in memory of this
        process's device if the elements lie in that of one."""
        self._require_open()
        if out is None:
            on_host = from_.kind in ("host", "pinned", "detect")
            out = empty(from_.shape, from_.dtype, "host" if on_host else _brant.device())
        return _brant.get(from_._target(), out, timeout)

    def copy(
        self,
        from_: GlobalPtr,
        to: GlobalPtr,
        count: int | None = None,
        *,
        at_target: SetFlag | Callable[[], Any] | None = None,
        timeout: float | None = None,
    ) -> _brant.Awaitable:
        """Copies between any two places: of this process, of another one, of two others. `count` elements; None: all of
        both, which have the same number."""
        self._require_open()
        if count is not None:
            count = operator.index(count)
            for pointer in (from_, to):
                if not 0 <= count <= pointer.count:
                    raise InvalidArgument(f"{count} elements are more than {pointer!r} has")
            from_, to = from_._part(0, (count,)), to._part(0, (count,))
        if from_.dtype != to.dtype or from_.count != to.count:
            raise InvalidArgument(f"{from_!r} cannot be copied to {to!r}: another type or number of elements")
        return _brant.copy(from_._target(), to._target(), *_parts_of(at_target), timeout)

    def atomic(
        self,
        at: GlobalPtr,
        operation: str,
        operand: int | float = 0,
        *,
        expected: int | float | None = None,
        timeout: float | None = None,
    ) -> _brant.Awaitable:
        """Changes one word so that nobody sees a half: of host or device memory, of any process. Awaited, it gives the
        value that was there before; None of a store.

        Args:
            at: one element of int32, uint32, int64, uint64, float32 or float64, aligned to its size.
            operation: "load", "store", "swap", "compare_swap", "add", "min", "max"; of integers, which wrap around,
                also "and", "or", "xor".
            expected: of a compare_swap alone: `operand` is stored if this is there, by its bits.

        Raises:
            InvalidArgument: no such operation, another type, an operand that the type cannot hold, more than one
                element. NotSupported: device memory that is not mapped here. Others: as copies.
        """
        self._require_open()
        letter = _ATOMIC_LETTERS.get((at.dtype.kind, at.dtype.itemsize))
        if letter is None or at.count != 1:
            raise InvalidArgument(f"an atomic works on one number of 4 or 8 bytes, and not on {at!r}")
        if (operation == "compare_swap") != (expected is not None):
            raise InvalidArgument("a compare_swap, and nothing else, is told what it expects")
        bits = [_bits_of(letter, value, at) for value in (operand, expected or 0)]
        return _brant.atomic(at._target(), operation, letter, *bits, timeout)

    def fetch_add(self, at: GlobalPtr, value: int | float, *, timeout: float | None = None) -> _brant.Awaitable:
        """`atomic(at, "add", value)`."""
        return self.atomic(at, "add", value, timeout=timeout)

    def compare_swap(
        self, at: GlobalPtr, expected: int | float, desired: int | float, *, timeout: float | None = None
    ) -> _brant.Awaitable:
        """Stores `desired` if `expected` is there. Awaited, it gives what was there before."""
        return self.atomic(at, "compare_swap", desired, expected=expected, timeout=timeout)

    def local(self, pointer: GlobalPtr) -> Any:
        """NumPy's view of memory of the host, of this process or another one of this host which is mapped here; None
        elsewhere, and before the segment was reached. It must not be used once the segment is retired, nor after this
        space was closed."""
        self._require_open()
        return _brant.local_array(pointer._target(), pointer.shape)

    def reach(self, pointer: GlobalPtr, *, timeout: float | None = None) -> _brant.Awaitable:
        """Awaited, it waits until the pointer's segment can be reached from here, or never will be."""
        self._require_open()
        return _brant.reach(pointer._target(), timeout)

    def fence(self, rank: int, *, timeout: float | None = None) -> _brant.Awaitable:
        """Awaited, it waits until all puts of this process to that one are visible there: what is put from then on
        comes behind them."""
        self._require_open()
        return _brant.fence(operator.index(rank), timeout)

    def _require_open(self) -> None:
        if not self._open:
            raise InvalidArgument("this global space is closed: make another one")


# By kind and size of a dtype: what `struct` and the bindings call it.
_ATOMIC_LETTERS = {("i", 4): "i", ("u", 4): "I", ("i", 8): "q", ("u", 8): "Q", ("f", 4): "f", ("f", 8): "d"}


def _bits_of(letter: str, value: int | float, at: GlobalPtr) -> int:
    try:
        return int.from_bytes(struct.pack(f"<{letter}", value), "little")
    except (struct.error, OverflowError, TypeError) as fault:
        raise InvalidArgument(f"{value!r} is no value of {at.dtype}, which lies at {at!r}: {fault}") from None


_SIZE = re.compile(r"(\d+)\s*([KMGT]?)I?B?", re.IGNORECASE)


def _bytes_of(size: int | str) -> int:
    """Units are powers of 1024."""
    found = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    nbytes = int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ") if found else size
    if isinstance(nbytes, str) or not 0 < operator.index(nbytes) < 2**48:
        raise InvalidArgument(f"{size!r} is no size of a segment: for example 65536 or '64 MB'")
    return operator.index(nbytes)


def _parts_of(at_target: SetFlag | Callable[[], Any] | None) -> tuple[Any, Any]:
    if at_target is None:
        return None, None
    if isinstance(at_target, SetFlag):
        return (at_target.flag._place(), at_target.value, bool(at_target.behind_all), bool(at_target.adds)), None
    if not callable(at_target):
        raise InvalidArgument(
            f"{at_target!r} cannot happen at a target: use brant.set_flag, brant.add_to or a function"
        )
    return None, at_target
