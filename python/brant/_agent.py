"""An agent hands out descriptors of arrays, by which other processes, of this job or of none, read and write them."""

from __future__ import annotations

import base64
import itertools
import json
import math
import operator
import secrets
import zlib
from collections.abc import Generator, Iterator
from typing import Any

from brant import _brant
from brant._arrays import empty, empty_like
from brant._errors import InvalidArgument, LimitReached, NotFound, NotSupported, PeerLost, PeerRejected
from brant._runtime import address

_MAGIC = b"brant-region-2\n"
_SLOTS = 2048  # of the book, which has the size from which others map it
_RUNS_MAX = 16384  # of one transfer over a network, which starts them all
_STEPS_MAX = 8  # dimensions of a shape


class Agent:
    """Gives others access to arrays of this process, and gets at theirs, without the owner's program taking part:

        agent = brant.Agent()                                # the owner
        region = agent.register(numpy.zeros((100, 8)))
        path.write_bytes(region.descriptor())                # to the other, by any means

        there = await agent.connect(path.read_bytes())       # a process of any job
        rows = await there[10:20].read()
        await there[3].write(numpy.ones(8))

    Both processes are started with joining="host" or "network" (`brant.init`, BRANT_JOIN). The owner answers to
    `connect` while its loop runs, or while it waits for something of brant. Belongs to the thread of the runtime.

    A descriptor is a secret. Whoever has it may read that array as long as it is registered, and write it unless the
    descriptor is for reading alone, and may join this process, which lets him send messages to it; objects are never
    unpickled from there. It leads to no other array, but brant is no border against a program that forges tickets or
    writes what it may only read (SECURITY.md).

    Raises:
        NotSupported: this process was started without joining.
    """

    def __init__(self) -> None:
        self._address = address()
        self._book = empty(_SLOTS, "uint64")
        self._book[:] = 0
        self._book_segment = _brant.Segment(self._book)
        self._regions: dict[int, Region] = {}
        self._peers: dict[str, int] = {}
        self._remote: list[RemoteRegion] = []
        self._is_open = True

    def register(self, array: Any, *, read_only: bool = False) -> Region:
        """Opens an array, of the host or of a device, to whoever gets its descriptor. It is held until `Region.close`.
        Memory of `brant.empty` and of a device is reached directly by processes of this host, other memory by way of
        the network library. Costs a registration, so register once and use often.

        Args:
            read_only: all its descriptors are for reading alone, and it need not be one that can be written.

        Raises:
            InvalidArgument: it is empty or cannot be written, or its elements do not lie together in C order.
            WrongKind: it is no array.
            LimitReached: 2048 arrays are registered.
        """
        self._check_open()
        shape, format, itemsize, c_order, _ = _brant.layout_of(array)
        if not c_order:
            raise InvalidArgument("an agent registers arrays in C order: numpy.ascontiguousarray, or its transpose")
        free = next((slot for slot in range(_SLOTS) if slot not in self._regions), None)
        if free is None:
            raise LimitReached(f"an agent has {_SLOTS} arrays at most: close some regions")
        layout = {"shape": shape, "format": format, "item": itemsize, "read_only": read_only}
        region = Region(self, free, _brant.Segment(array, read_only), array, layout)
        self._regions[free] = region
        self._book[free] = region._token
        return region

    async def connect(self, descriptor: bytes, *, timeout: float | None = 10.0) -> RemoteRegion:
        """Gets at an array by what `Region.descriptor` gave. The first one of a process joins it, which takes
        milliseconds.

        Args:
            timeout: seconds for the answer of that process.

        Raises:
            InvalidArgument: that is no descriptor, or a damaged one.
            NotFound: the array is not registered any more.
            TimedOut: no answer: its program makes no progress, or takes nobody any more (`brant.stop_accepting`).
            PeerLost: that process has ended.
        """
        self._check_open()
        what = _unpacked(descriptor)
        peer = self._peers.get(what["address"])
        if peer is not None:
            try:
                return await self._open(peer, what, timeout)
            except PeerLost:  # it may have parted from us, and live
                del self._peers[what["address"]]
        peer = await _brant.join(what["address"], timeout=timeout)
        self._peers[what["address"]] = peer
        return await self._open(peer, what, timeout)

    async def close(self) -> None:
        """Closes all regions of either kind, and parts from the processes that were joined. What is under way with them
        ends with `PeerLost`."""
        self._is_open = False
        for remote in list(self._remote):
            remote.close()
        for region in list(self._regions.values()):
            region.close()
        self._book_segment.close()
        while self._peers:
            _, peer = self._peers.popitem()
            if peer >= _brant.size():
                await _brant.leave(peer)

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self, peer: int, what: dict[str, Any], timeout: float | None) -> RemoteRegion:
        slot = empty(1, "uint64")
        book = _brant.RemoteSegment(peer, what["book"])
        try:
            await book.get(slot, what["slot"] * 8, timeout=timeout)
        finally:
            book.close()
        if int(slot[0]) != what["token"]:
            text = f"the array of this descriptor is not registered any more at rank {peer}"
            raise NotFound(text, subject="a descriptor", peer=peer)
        segment = _brant.RemoteSegment(peer, what["ticket"])
        if segment.nbytes != math.prod(what["shape"]) * what["item"]:
            segment.close()
            raise InvalidArgument("a descriptor contradicts itself: its shape is not that of its array", peer=peer)
        remote = RemoteRegion(segment, what, self._remote)
        self._remote.append(remote)
        return remote

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument("this agent is closed: make another one")


class Region:
    """An array of this process that an agent has registered."""

    def __init__(self, agent: Agent, slot: int, segment: _brant.Segment, array: Any, layout: dict[str, Any]):
        self._agent, self._slot, self._segment, self._layout = agent, slot, segment, layout
        self._token = 1 + secrets.randbits(62)
        self.array = array

    def descriptor(self, *, read_only: bool = False) -> bytes:
        """What another process needs to get at the array: some thousand bytes, which may travel by any means, and are
        to be kept as a secret. Good until `close`, `brant.stop_accepting` or the end of this process.

        Args:
            read_only: whoever connects by it gets `PeerRejected` where he writes. That guards against mistakes: it is
                the brant of the other process that refuses.

        Raises:
            InvalidArgument: the region is closed.
        """
        if not self._segment.is_open:
            raise InvalidArgument("this region is closed: register the array again")
        what = {
            **self._layout,
            "read_only": read_only or self._layout["read_only"],
            "address": self._agent._address,
            "book": base64.b85encode(self._agent._book_segment.ticket()).decode(),
            "ticket": base64.b85encode(self._segment.ticket()).decode(),
            "slot": self._slot,
            "token": self._token,
        }
        text = json.dumps(what).encode()
        return _MAGIC + zlib.crc32(text).to_bytes(4, "little") + text

    def close(self) -> None:
        """Its descriptors are worthless from here on: `connect` raises `NotFound`. Whoever is connected already can
        write until he closes his end, so tell him before."""
        if self._agent._regions.pop(self._slot, None) is not None:
            self._agent._book[self._slot] = 0
            self._segment.close()

    @property
    def nbytes(self) -> int:
        return self._segment.nbytes


class _Part:
    """A part of a remote array, of the shape that is left."""

    _segment: _brant.RemoteSegment
    _format: str
    _item: int
    _read_only: bool
    _runs: _Runs
    shape: tuple[int, ...]

    def read(self, out: Any = None, *, timeout: float | None = None) -> Transfer:
        """Reads it. Under way from the call on; awaited, it gives `out`, or a new array of the host.

        Args:
            out: an array of the same shape and element type, of the host or of a device, with any strides.
            timeout: seconds after which the waiter gets `TimedOut`; the transfer goes on, and holds its array.

        Raises (here, or when awaited):
            InvalidArgument: `out` has another shape or type.
            LimitReached: the part has more than 16,384 pieces that do not lie together, and a network carries each.
            NotSupported: so does one with an array on a device that is not in C order.
            PeerLost: the owner has ended, or parted.
        """
        if out is None:
            out = empty_like(self._format, self.shape, False, self._item)
        in_c_order, on_host = self._layout_of(out)
        staging = bytearray(self._runs.nbytes) if on_host and not in_c_order else None
        target = out if staging is None else staging
        return Transfer(self._start(self._segment.get, target, in_c_order, timeout), out, staging)

    def write(self, array: Any, *, timeout: float | None = None) -> Transfer:
        """Writes it. Under way from the call on; when it has ended the owner sees it. The array must not be written
        before. Takes and raises what `read` does, and `PeerRejected` where the descriptor is for reading alone."""
        if self._read_only:
            text = f"the descriptor of this array of rank {self._segment.peer} is for reading alone"
            raise PeerRejected(text, subject="a descriptor", peer=self._segment.peer)
        in_c_order, on_host = self._layout_of(array)
        source = array if in_c_order or not on_host else memoryview(array).tobytes()
        return Transfer(self._start(self._segment.put, source, in_c_order, timeout), None, None)

    def _layout_of(self, array: Any) -> tuple[bool, bool]:
        """Checks the array. Whether it is in C order, and in memory of the host."""
        shape, format, _, in_c_order, on_host = _brant.layout_of(array)
        if shape != self.shape or format != self._format:
            theirs, ours = f"{self._format} of shape {self.shape}", f"{format} of shape {shape}"
            raise InvalidArgument(f"a part of {theirs} of a remote array, and an array of {ours}")
        return in_c_order, on_host

    def _start(self, move: Any, array: Any, in_c_order: bool, timeout: float | None) -> list[_brant.Awaitable]:
        """`move` is what a segment does: it takes all runs at once where it is mapped, else one after the other."""
        runs, together = self._runs, in_c_order or isinstance(array, (bytes, bytearray))
        if runs.count == 1 and together:
            return [move(array, runs.first, timeout=timeout)]
        if self._segment.is_mapped and len(runs.steps) <= _STEPS_MAX:
            return [move(array, runs.first, timeout=timeout, steps=(runs.length, runs.steps))]
        if not together:
            raise NotSupported(
                "an array on a device that is not in C order, and a part of a remote array that is reached over a "
                "network: make it contiguous first"
            )
        if runs.count > _RUNS_MAX:
            text = f"this part has {runs.count} pieces that do not lie together, of {_RUNS_MAX}: take larger ones"
            raise LimitReached(text)
        parts = zip(itertools.count(0, runs.length), runs.begins(), strict=False)
        return [move(array, begin, timeout=timeout, part=(at, runs.length)) for at, begin in parts]


class RemoteRegion(_Part):
    """An array of another process. Indexing it gives a part of it, as of an array of NumPy: `there[10:20, 3]`. Made by
    `Agent.connect`."""

    def __init__(self, segment: _brant.RemoteSegment, what: dict[str, Any], among: list[RemoteRegion]):
        self._segment, self._format, self._item = segment, what["format"], what["item"]
        self._read_only = what["read_only"]
        self.shape = tuple(what["shape"])
        self._runs = _Runs(0, segment.nbytes, [])
        self._among = among

    def __getitem__(self, index: Any) -> _Part:
        part = _Part()
        part._segment, part._format, part._item = self._segment, self._format, self._item
        part._read_only = self._read_only
        part.shape, part._runs = _slice(self.shape, self._item, index if type(index) is tuple else (index,))
        return part

    def __len__(self) -> int:
        return self.shape[0]

    def close(self) -> None:
        """Lets go of it here, when what is under way has ended."""
        self._segment.close()
        if self in self._among:
            self._among.remove(self)

    @property
    def nbytes(self) -> int:
        return self._segment.nbytes

    @property
    def is_read_only(self) -> bool:
        """Its descriptor is for reading alone."""
        return self._read_only

    @property
    def peer(self) -> int:
        """The rank of its owner in this process."""
        return self._segment.peer


class Transfer:
    """A read or a write under way: to be awaited."""

    def __init__(self, under_way: list[_brant.Awaitable], out: Any, staging: bytearray | None):
        self._under_way, self._out, self._staging = under_way, out, staging

    def done(self) -> bool:
        """It has ended, and awaiting it does not wait."""
        return all(each.done() for each in self._under_way)

    def __await__(self) -> Generator[Any, None, Any]:
        failure = None
        for each in self._under_way:
            try:
                yield from each.__await__()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
        if self._staging is not None:
            _copy(self._staging, self._out)
            self._staging = None
        return self._out


def _copy(source: bytearray, out: Any) -> None:
    import numpy  # an array with strides is one of NumPy, as good as always

    view = numpy.asarray(out)
    view[...] = numpy.frombuffer(source, view.dtype).reshape(view.shape)


class _Runs:
    """Runs of bytes of equal length in a segment."""

    def __init__(self, first: int, length: int, steps: list[tuple[int, int]]):
        self.first, self.length = first, length
        self.steps = steps  # how many there are how far apart, innermost first

    @property
    def count(self) -> int:
        return math.prod(count for count, _ in self.steps)

    @property
    def nbytes(self) -> int:
        return self.count * self.length

    def begins(self) -> Iterator[int]:
        outermost_first = [range(0, count * stride, stride) for count, stride in reversed(self.steps)]
        return (self.first + sum(places) for places in itertools.product(*outermost_first))


def _slice(shape: tuple[int, ...], item: int, index: tuple[Any, ...]) -> tuple[tuple[int, ...], _Runs]:
    """What NumPy's basic indexing leaves of a shape, and the runs of bytes that it is made of."""
    if len(index) > len(shape):
        raise InvalidArgument(f"an index of {len(index)} parts, and the array has {len(shape)} dimensions")
    ranges, left = [], []
    for at, extent in itertools.zip_longest(index, shape, fillvalue=slice(None)):
        if isinstance(at, slice):
            ranges.append(range(*at.indices(extent)))
            if ranges[-1].step < 0:
                raise InvalidArgument("a part of a remote array is taken forwards: its steps are positive")
            left.append(len(ranges[-1]))
            continue
        place = operator.index(at)
        place += extent if place < 0 else 0
        if not 0 <= place < extent:
            raise InvalidArgument(f"index {at} is outside a remote array of shape {shape}")
        ranges.append(range(place, place + 1))
    strides = [item * math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    if any(len(places) == 0 for places in ranges):
        raise InvalidArgument("this part of a remote array is empty")
    # From behind: dimensions that are whole, and one more if it goes step by step, are one run.
    inner, length = len(shape), item
    while inner > 0 and (ranges[inner - 1].step == 1 or len(ranges[inner - 1]) == 1):
        inner -= 1
        length *= len(ranges[inner])
        if len(ranges[inner]) != shape[inner]:
            break
    first = sum(places.start * stride for places, stride in zip(ranges, strides, strict=True))
    outer = zip(ranges[:inner], strides, strict=False)
    steps = [(len(places), places.step * stride) for places, stride in outer if len(places) > 1]
    return tuple(left), _Runs(first, length, steps[::-1])


def _unpacked(descriptor: bytes) -> dict[str, Any]:
    """Of what came from anywhere: it is text, and nothing in it is run."""
    begin = len(_MAGIC) + 4
    damaged = InvalidArgument("these bytes are no descriptor of an agent of this version, or are damaged")
    if not isinstance(descriptor, bytes) or not descriptor.startswith(_MAGIC):
        raise damaged
    if zlib.crc32(descriptor[begin:]).to_bytes(4, "little") != descriptor[len(_MAGIC) : begin]:
        raise damaged
    try:
        what = json.loads(descriptor[begin:])
        what["shape"] = tuple(int(extent) for extent in what["shape"])
        what["book"], what["ticket"] = (base64.b85decode(what[name]) for name in ("book", "ticket"))
        kinds = {"address": str, "format": str, "item": int, "slot": int, "token": int, "read_only": bool}
        sound = all(isinstance(what[name], kind) for name, kind in kinds.items())
    except (ValueError, KeyError, TypeError) as error:
        raise damaged from error
    if not sound or any(letter in what["format"] for letter in "OP&") or not 0 <= what["slot"] < _SLOTS:
        raise damaged
    return what
