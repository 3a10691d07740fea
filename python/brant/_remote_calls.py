"""Calls of functions in other processes of the job."""

from __future__ import annotations

import importlib
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

from brant import _brant, _futures
from brant._errors import Canceled, InvalidArgument, NotFound, NotSupported


def rpc(rank: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _brant.Awaitable:
    """Calls a function in the process of `rank`. It is under way from here on, whether it is awaited or not; awaited it
    gives the result.

    The function runs when that process makes progress: while it awaits or waits for something of brant, except that
    none runs while a team is made or a space closed. Those that one process calls run in the order in which it called
    them; answers come in any order. A plain function holds up its process until it ends, and must not wait; an async
    one runs beside the others, and the answer goes when it has ended.

    Args:
        function: found over there by its module and qualified name: one at the top of a module, or of the program.
        args, kwargs: arrays as they are, everything else pickled, copied within the call.

    Raises (here, or when awaited):
        What the function raised: `__cause__` has the traceback over there. `RemoteError` for what cannot travel.
        InvalidArgument: no such rank, a function without such a name, arguments that cannot be pickled.
        NotFound: that process has no such function.
        PeerLost: that process has died. Error with status "shutting_down": it has ended its program.
        LimitReached: 65536 calls or 16 MiB are on their way to that process, and as much again waits here.
    """
    name = _name_of(function)
    watch()
    rank = operator.index(rank)
    return _brant.ask_function(rank, (name, *args), kwargs, f"{'.'.join(name)} at rank {rank}")


def tell(rank: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Calls a function in the process of `rank`, and returns at once: nobody hears of its end. An exception in there
    ends the job.

    Args: as of `rpc`.

    Raises:
        InvalidArgument, PeerLost, LimitReached: as `rpc`.
    """
    name = _name_of(function)
    watch()
    rank = operator.index(rank)
    _brant.tell_function(rank, (name, *args), kwargs, f"{'.'.join(name)} at rank {rank}")


def watch() -> None:
    """From here on a loop of asyncio that runs moves brant also when it awaits nothing of it."""
    if "asyncio" in sys.modules:
        from brant import _asyncio

        _asyncio.watch()


def _name_of(function: Callable[..., Any]) -> tuple[str, str]:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not callable(function) or not isinstance(module, str) or not isinstance(name, str):
        raise InvalidArgument(
            f"{function!r} has no name by which another process finds it: call a function of a module"
        )
    if "<" in name:
        raise InvalidArgument(
            f"{module}.{name} is a lambda or stands in another function, and other processes find functions by their "
            "names: define it at the top of a module"
        )
    if _look_up(module, name) is not function:
        raise InvalidArgument(f"{module}.{name} is something else than {function!r}: call what has that name")
    return module, name


def _look_up(module: str, name: str) -> Any:
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


def find(name: tuple[str, str]) -> Callable[..., Any]:
    """What another process calls here. Called by the extension module."""
    function = _look_up(*name)
    if function is None:
        raise NotFound(f"rank {_brant.rank()} has no function {'.'.join(name)}")
    return function


def require_loop(name: tuple[str, str], coroutine: Any) -> None:
    """Before a coroutine is started outside brant's own loop. Called by the extension module."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        coroutine.close()
        text = f"{'.'.join(name)} is async, and rank {_brant.rank()} runs no loop: brant.run or asyncio.run"
        raise NotSupported(text) from None


def describe(name: tuple[str, str] | None, error: BaseException, told: bool) -> tuple[BaseException | None, str] | None:
    """The exception, if it can travel, and a text that says where it was raised. None: nobody need hear of it. Called
    by the extension module."""
    called = ".".join(name) if name else "a remote call"
    if told and _was_withdrawn(error):
        warnings.warn(f"{called} was still waiting when its loop ended", RuntimeWarning, stacklevel=1)
        return None
    text = f"{called} on rank {_brant.rank()} raised an exception:\n{_futures.text_of(error)}"
    return (error if _futures.may_travel(error) else None), text


def _was_withdrawn(error: BaseException) -> bool:
    if isinstance(error, Canceled):
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
