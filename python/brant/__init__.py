"""brant for Python: arrays go from process to process, from any memory to any memory.

A program is started as several processes, `brant run -n 2 python ring.py`, and is ordinary Python with `async def`:

    import brant, numpy

    async def main():
        channel = brant.channel(peer=1 - brant.rank(), id=7)
        outgoing = channel.send(numpy.full(4, brant.rank()))
        print(await channel.recv())
        await outgoing

    brant.run(main())

`asyncio.run(main())` works as well, and slower. docs/guide/python.md has the rest.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys

from brant._agent import Agent, Region, RemoteRegion
from brant._arrays import empty
from brant._brant import (
    Array,
    Awaitable,
    Bell,
    Notifier,
    PreparedCall,
    RemoteSegment,
    Segment,
    Stream,
    Task,
    Team,
    accept,
    device,
    init,
    is_running,
    join,
    leave,
    local_rank,
    local_size,
    network,
    rank,
    run,
    size,
    sleep,
    spawn,
    stop_accepting,
)
from brant._brant import ChannelEnd as Channel
from brant._brant import end as _end
from brant._chares import Chare, RemoteError, RemoteTraceback, program, quiescence
from brant._cpp import CppClass, cpp, load
from brant._entries import Coming, entry, post, when
from brant._errors import (
    Canceled,
    DeviceFailed,
    Error,
    ForeignLibraryWarning,
    InvalidArgument,
    LimitReached,
    NotFound,
    NotSupported,
    OutOfMemory,
    PeerError,
    PeerLost,
    PeerRejected,
    TimedOut,
    Truncated,
    VersionMismatch,
    WrongKind,
)
from brant._futures import Future
from brant._global_memory import GlobalPtr, GlobalSegment, GlobalSpace, add_to, set_flag
from brant._halo import HaloExchange, HaloPhases
from brant._kernels import DeviceBell, FanIn, include_dir
from brant._launch import launch
from brant._pool import pool
from brant._remote_calls import rpc, tell
from brant._runtime import Runtime, address, channel, gather, world

__all__ = [
    "Agent",
    "Array",
    "Awaitable",
    "Bell",
    "Canceled",
    "Channel",
    "Chare",
    "Coming",
    "CppClass",
    "DeviceBell",
    "DeviceFailed",
    "Error",
    "FanIn",
    "ForeignLibraryWarning",
    "Future",
    "GlobalPtr",
    "GlobalSegment",
    "GlobalSpace",
    "HaloExchange",
    "HaloPhases",
    "InvalidArgument",
    "LimitReached",
    "NotFound",
    "NotSupported",
    "Notifier",
    "OutOfMemory",
    "PeerError",
    "PeerLost",
    "PeerRejected",
    "PreparedCall",
    "Region",
    "RemoteError",
    "RemoteRegion",
    "RemoteSegment",
    "RemoteTraceback",
    "Runtime",
    "Segment",
    "Stream",
    "Task",
    "Team",
    "TimedOut",
    "Truncated",
    "VersionMismatch",
    "WrongKind",
    "accept",
    "add_to",
    "address",
    "channel",
    "cpp",
    "device",
    "empty",
    "entry",
    "gather",
    "include_dir",
    "init",
    "is_running",
    "join",
    "launch",
    "leave",
    "load",
    "local_rank",
    "local_size",
    "network",
    "pool",
    "post",
    "program",
    "quiescence",
    "rank",
    "rpc",
    "run",
    "set_flag",
    "size",
    "sleep",
    "spawn",
    "stop_accepting",
    "tell",
    "when",
    "world",
]


def _end_of_interpreter() -> None:
    # After an error that nobody caught the other processes are not waited for: they learn of it at once.
    _end(getattr(_sys, "last_value", None) is not None)


_atexit.register(_end_of_interpreter)
