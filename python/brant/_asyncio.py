"""brant under asyncio: its descriptor is one of those the loop sleeps on.

Each loop has a bridge. While something happens the bridge takes a turn in every round of the loop; when nothing does it
arms brant, and sleeps until its descriptor becomes readable.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

from brant import _brant

SPIN_S = 10e-6  # a turn in which nothing happens looks for so long
PATIENCE_S = 50e-6  # so long after the last event it goes on to look instead of sleeping


class _Bridge:
    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = weakref.ref(loop)
        self._next: asyncio.Handle | None = None
        self._last_event = 0.0
        self._descriptor = _brant.fd()
        loop.add_reader(self._descriptor, self._turn)

    def close(self) -> None:
        """brant has ended: its descriptor may be somebody else's from now on."""
        self._loop().remove_reader(self._descriptor)

    def kick(self) -> None:
        """Something waits: look at the network soon."""
        self._last_event = time.perf_counter()
        self._soon()

    def _soon(self) -> None:
        if isinstance(self._next, asyncio.TimerHandle):
            self._next.cancel()
            self._next = None
        if self._next is None:
            self._next = self._loop().call_soon(self._scheduled)

    def _scheduled(self) -> None:
        self._next = None
        self._turn()

    def _after_sleep(self) -> None:
        self._next = None
        self._turn(0.0)

    def _turn(self, spin_s: float = SPIN_S) -> None:
        if not _brant.is_running():
            return None  # it has ended inside the loop: nothing waits any more
        if _brant.turn(spin_s):
            self._last_event = time.perf_counter()
            return self._soon()
        if time.perf_counter() - self._last_event < PATIENCE_S:
            return self._soon()
        seconds = _brant.arm()
        if seconds <= 0:
            return self._soon()
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop().call_later(seconds, self._after_sleep)
        return None


_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Bridge] = weakref.WeakKeyDictionary()


def _bridge_of(loop: asyncio.AbstractEventLoop) -> _Bridge:
    bridge = _bridges.get(loop)
    if bridge is None:
        for old in [one for one in _bridges if one.is_closed()]:
            del _bridges[old]  # what it had scheduled refers to its loop
        bridge = _bridges[loop] = _Bridge(loop)
    return bridge


def forget_loops() -> None:
    """brant has ended while loops of asyncio go on: they sleep on its descriptor no more."""
    for loop, bridge in list(_bridges.items()):
        if not loop.is_closed():
            bridge.close()
    _bridges.clear()


def watch() -> None:
    """From here on the loop that runs, if one does, moves brant also when nothing of it is awaited: other processes may
    want something of this one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    _bridge_of(loop).kick()


def make_future() -> asyncio.Future:
    """A future of the loop that runs, in the state in which a coroutine yields it to its task."""
    loop = asyncio.get_running_loop()
    _bridge_of(loop).kick()
    future = loop.create_future()
    future._asyncio_future_blocking = True
    return future


def start_entry(
    coroutine: Coroutine[Any, Any, Any],
    on_begin: Callable[[], None],
    on_end: Callable[[Any, BaseException | None], None],
) -> asyncio.Task:
    """An async entry of a chare as a task of the loop that runs; it tells when it begins and what it ends with."""
    task = asyncio.get_running_loop().create_task(_run_entry(coroutine, on_begin, on_end))
    note_woken()
    return task


async def _run_entry(
    coroutine: Coroutine[Any, Any, Any],
    on_begin: Callable[[], None],
    on_end: Callable[[Any, BaseException | None], None],
) -> None:
    # The end is told from inside: a callback of the task would come a round later, when all may seem to be quiet.
    on_begin()
    try:
        result = await coroutine
    except asyncio.CancelledError as error:
        on_end(None, error)
        raise
    except BaseException as error:
        on_end(None, error)
    else:
        on_end(result, None)


async def call_later(function: Callable[..., Any], chare: Any, args: tuple, keywords: dict[str, Any] | None) -> Any:
    """A call of an entry that waits its turn behind others, which are tasks that have not begun."""
    result = function(chare, *args, **(keywords or {}))
    return await result if asyncio.iscoroutine(result) else result


def note_woken() -> None:
    """A task was made to go on and will, in this loop's next round: until then there is no quiescence."""
    if not _brant.has_program():
        return
    _brant.note_woken(True)
    asyncio.get_running_loop().call_soon(_brant.note_woken, False)
