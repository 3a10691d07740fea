"""The runtime of a process, its channels, and waiting for several things at once."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Awaitable
from typing import Any

from brant import _brant
from brant._errors import InvalidArgument


class Runtime:
    """This process's part in the job, for a `with` statement. Without one it begins when it is first needed, and ends
    with the interpreter.

    Beginning and end are collective over the job. The end waits for the other processes, some 20 s at most; an
    exception that leaves the block does not wait. Once in a process.

    Args:
        gpu: "auto", "none", "emulated" or "cuda"; None: what BRANT_GPU says.
        joining: "host" (processes of this host may be joined later), "network" (others too), "off"; None: what
            BRANT_JOIN says.
        via: a communicator of mpi4py, `torch.distributed` or a process group of it, or the like, through which the
            processes meet: see brant.init. None: what the launcher offers.

    Raises:
        Error: what makes a start impossible, in words.
    """

    def __init__(self, gpu: str | None = None, joining: str | None = None, via: Any = None):
        _brant.init(gpu, joining, via)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        _brant.end(kind is not None)
        if "brant._asyncio" in sys.modules and not _brant.is_running():
            from brant import _asyncio

            _asyncio.forget_loops()

    @property
    def rank(self) -> int:
        """Of this process, 0 to size - 1."""
        return _brant.rank()

    @property
    def size(self) -> int:
        """How many processes the job has."""
        return _brant.size()


def channel(peer: int, id: int, *, raw: bool = False, path: str | None = None) -> _brant.ChannelEnd:
    """Opens this process's end of channel `id` with the process of rank `peer`. Does not wait for the other end.

    With `peer` = own rank the first call gives one end and the second the other.

    Args:
        peer: a rank of the job, or of a process that has joined (`brant.join`): to one of those arrays and bytes
            travel, and no objects, which would be pickled.
        id: the channel's name, the same at both ends and used by no other channel of the two: 0 to 251658239.
        raw: a message is the bytes of one array and nothing else, as channels of C++ have them; for a channel whose
            other end is in C++. `recv` takes `out`, and awaited gives the number of bytes that came.
        path: forces the path of all transfers, for measuring (`brant explain` names them). Those that carry device
            memory alone (`copy_engine`, `courier`) serve raw channels.

    Raises:
        InvalidArgument: there is no such rank or path, or the id is in use.
        PeerLost: that process has ended.
    """
    peer, id = operator.index(peer), operator.index(id)
    if not -(2**31) <= peer < 2**31:
        raise InvalidArgument(f"there is no rank {peer}: the job has ranks 0 to {_brant.size() - 1}")
    if not 0 <= id < 2**32:
        raise InvalidArgument(f"channel id {id} with rank {peer}: use 0 to 251658239")
    return _brant.ChannelEnd(peer, id, path or "", raw)


def address() -> str:
    """Text by which a process that is not of this job joins this one (`brant.join`). Some thousand characters, to be
    handed on as a password is: there is a key in it, and whoever has that may send to this process and use the segments
    whose tickets it knows. From the first call on this process may be joined, until `stop_accepting`; it answers while
    its loop runs, or while it waits for something of brant.

    Raises:
        NotSupported: this process was started without joining="host" or "network" (BRANT_JOIN).
    """
    text = _brant.join_address()
    if "asyncio" in sys.modules:
        from brant import _asyncio

        _asyncio.watch()
    return text


def world(*, patience: float | None = None, way: str = "automatic") -> _brant.Team:
    """A team of all processes of the job. All of them call it; it waits for them.

    Args: as of `Team`.
    """
    return _brant.Team(list(range(_brant.size())), patience=patience, way=way)


async def gather(*awaitables: Awaitable) -> list:
    """Waits for all of them, which run side by side: their results in the order of the arguments. Raises the first
    exception in that order, once those before it have ended; the others go on.

    Coroutines are started as tasks of brant's own loop; under asyncio use asyncio.gather.
    """
    under_way = [_brant.spawn(one) if inspect.iscoroutine(one) else one for one in awaitables]
    return [await one for one in under_way]
