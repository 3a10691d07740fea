"""Values that come later, in a program of chares."""

from __future__ import annotations

import pickle
import traceback
import weakref
from collections.abc import Generator
from typing import Any

from brant import _brant
from brant._errors import InvalidArgument


def text_of(error: BaseException) -> str:
    """What the interpreter says of it, as text that can be sent."""
    said = "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
    return said.encode("utf-8", "backslashreplace").decode()


def may_travel(error: BaseException) -> bool:
    """Not what ends loops, iterators or interpreters: that would do so where it is awaited."""
    if not isinstance(error, Exception) or isinstance(error, (StopIteration, StopAsyncIteration)):
        return False
    try:
        return isinstance(pickle.loads(pickle.dumps(error)), Exception)
    except BaseException:
        return False


class Future:
    """A value that comes later, awaited in the process that made it. It may be sent to others, who call it with the
    value; the first one counts. It may also be where a reduction goes to.

        done = brant.Future()
        blocks.solve(done)
        print(await done)
    """

    __slots__ = ("__weakref__", "_address", "_awaitable")

    def __init__(self) -> None:
        self._awaitable, self._address = _brant.new_future()
        _keep(self)

    def __call__(self, value: Any = None) -> None:
        """Gives it its value, from any process."""
        _brant.fulfil(self._address, value, False)

    def fail(self, error: BaseException) -> None:
        """Whoever awaits it gets this exception."""
        if not isinstance(error, BaseException):
            raise InvalidArgument(f"a future fails with an exception, not with {error!r}")
        _brant.fulfil(self._address, (error if may_travel(error) else None, text_of(error)), True)

    def done(self) -> bool:
        """It has a value, and this is the process that made it."""
        return self._awaitable is not None and self._awaitable.done()

    def __await__(self) -> Generator[Any, None, Any]:
        if self._awaitable is None:
            raise InvalidArgument("a future is awaited in the process that made it; elsewhere it is called")
        return self._awaitable.__await__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Future) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __reduce__(self) -> tuple:
        return _future, (bytes(self._address),)


_made_here: weakref.WeakValueDictionary[_brant.Address, Future] = weakref.WeakValueDictionary()
_open: list[Future] = []  # without a value, as far as is known: nobody here may hold them while they travel
_open_at_most = 64  # before those that have a value are let go


def _keep(future: Future) -> None:
    global _open_at_most
    _made_here[future._address] = future
    _open.append(future)
    if len(_open) > _open_at_most:
        _open[:] = [one for one in _open if not one.done()]
        _open_at_most = max(64, 2 * len(_open))


def _future(address_bytes: bytes) -> Future:
    address = _brant.Address.of(address_bytes)
    future = _made_here.get(address)
    if future is None:
        future = object.__new__(Future)
        future._awaitable, future._address = None, address
    return future


def forget_open() -> None:
    """The program has ended: nobody will give them a value."""
    _open.clear()
