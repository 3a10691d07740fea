"""Chares: objects that live in one process of the job, and whose entry methods others call by messages."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from typing import Any, TypeVar

from brant import _brant, _futures
from brant._errors import Error, InvalidArgument
from brant._futures import Future
from brant._placement import Placement, listed
from brant._reducing import check

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


class RemoteError(Error):
    """An exception of a chare that could not travel as what it is: its text and its traceback."""


class RemoteTraceback(Exception):  # noqa: N818, the name says what it shows
    """The cause of an exception that came from a chare: where it was raised there."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text


class Chare:
    """Base of classes whose objects live in one process each and are called by messages.

        class Block(brant.Chare):
            def __init__(self, cells):
                self.cells = numpy.ones(cells)

            @brant.entry
            def scale(self, factor):
                self.cells *= factor

            @brant.entry
            async def first(self):
                return self.cells[0]

        blocks = Block.array((8, 4), 100)
        blocks[1, 2].scale(5.0)                      # returns at once
        print(await blocks[1, 2].first.reply())      # waits for the result
        blocks.scale(2.0)                            # all of them

    Entries of one process run one after another, never inside a call; those of one sender to one element in the order
    in which they were sent. One that is `async` lets others run while it waits. The class is known by its name in
    every process of the job, so it stands in a module, not in a function.
    """

    _brant_place: _brant.Place
    _brant_entries: dict[str, int]
    _brant_table: tuple[Callable[..., Any], ...]
    _brant_conditions: tuple[Callable[..., bool] | None, ...]
    _brant_posts: tuple[Callable[..., Any] | None, ...]
    _brant_method: type[Method]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = sorted(_entry_names(cls))
        for name in names:
            if hasattr(_Proxy, name) or hasattr(Array, name) or hasattr(Element, name):
                raise InvalidArgument(f"{cls.__name__}.{name} cannot be an entry: proxies have something of that name")
        cls._brant_entries = {name: number for number, name in enumerate(names)}
        cls._brant_table = tuple(getattr(cls, name) for name in names)
        cls._brant_conditions = tuple(getattr(function, "__brant_when__", None) for function in cls._brant_table)
        cls._brant_posts = tuple(getattr(function, "__brant_post__", None) for function in cls._brant_table)

    @property
    def index(self) -> Any:
        """Where it is in its array: a number, or a tuple of as many as the array has dimensions."""
        return self._brant_place.index

    @property
    def proxy(self) -> Element:
        """This element's own proxy, which may be sent to others."""
        return self.array_proxy[self.index]

    @property
    def array_proxy(self) -> Array:
        """The array, or the group, that it belongs to."""
        return self._brant_array

    def contribute(
        self,
        value: Any,
        operation: str | Callable[[Any, Any], Any],
        to: Method | Future,
        *,
        section: Section | None = None,
    ) -> None:
        """Gives this element's part of a reduction over its array, or over a section that it is a member of. When all
        have given theirs, the combined value goes to `to`: an entry of an element, an array or a section, or a future.

        The n-th contribution of each element belongs to the n-th reduction. Returns at once; the value is copied if it
        is an array of NumPy.

        Args:
            value: numbers, arrays of one shape (combined element by element), or whatever the operation takes. Arrays
                of PyTorch, JAX and of a device are copied to the host, and combined there as NumPy's.
            operation: "sum", "product", "min", "max", "and", "or", "xor", "gather" (a list in the order of indices), or
                a function of two values that can be pickled. It is associative and commutative.

        Raises:
            InvalidArgument: it does not fit what others in this process have contributed.
        """
        check(operation)
        if isinstance(to, Method) and not to._takes_results:
            raise InvalidArgument(f"the result of a reduction goes to chares of Python and futures, not to {to!r}")
        team = None if section is None else section._address
        method = to._number if isinstance(to, Method) else 0
        _brant.contribute(self._brant_place, team, value, operation, to._address, method)

    def all_reduce(
        self, value: Any, operation: str | Callable[[Any, Any], Any], *, section: Section | None = None
    ) -> _brant.Awaitable:
        """As `contribute`, with the result to every element: await it."""
        check(operation)
        team = None if section is None else section._address
        return _brant.contribute(self._brant_place, team, value, operation, None, 0)

    def barrier(self, *, section: Section | None = None) -> _brant.Awaitable:
        """Awaited, it waits until every element of the array has come here."""
        return self.all_reduce(None, "barrier", section=section)

    def wait(self, condition: Callable[[], bool]) -> _brant.Awaitable:
        """Awaited, it waits until `condition()` is true: it is looked at now, and whenever an entry of this object has
        run."""
        return _brant.wait_for(self._brant_place, condition)

    @classmethod
    def array(cls, shape: int | tuple[int, ...], *args: Any, placement: Placement = "block", **kwargs: Any) -> Array:
        """Makes an element for every index, spread over the processes. Returns at once; one process makes it.

        Args:
            shape: the number of elements in each of 1 to 6 dimensions.
            args, kwargs: what the constructor of each element gets.
            placement: "block" (runs of neighbours), "round_robin" or "hashed", or a function that gives the rank of the
                element at an index (a number, or a tuple). It is called here, once for each element, of which there are
                2**24 at most then; the ranks travel with the message that makes the array.

        Raises:
            InvalidArgument: a wrong shape or placement, a rank that the job has not; no program of chares runs.
            LimitReached: more elements than a function places.
        """
        shape = shape_of(shape)
        what = (cls, tuple(cls._brant_entries), shape, args, kwargs)
        return Array(cls, _brant.create(shape, listed(cls.__name__, shape, placement), _Pickled(what)), shape)

    @classmethod
    def group(cls, *args: Any, **kwargs: Any) -> Array:
        """Makes one element in every process of the job: `group[rank]`."""
        return cls.array(_brant.size(), *args, **kwargs)


def _whole_number(number: Any) -> int:
    """A coordinate: also one of NumPy, but no truth value, which is a mistake as a rule."""
    if isinstance(number, bool) or type(number).__name__ in ("bool", "bool_"):
        raise InvalidArgument(f"{number} is no coordinate of an index: use a whole number")
    try:
        return operator.index(number)
    except TypeError as error:
        raise InvalidArgument(f"{number!r} is no coordinate of an index: use a whole number") from error


def shape_of(shape: int | Iterable[int]) -> tuple[int, ...]:
    """What an array was asked for as, as a tuple."""
    return tuple(_whole_number(at) for at in shape) if isinstance(shape, Iterable) else (_whole_number(shape),)


class _Pickled:
    """Keeps a tuple from being taken for an array."""

    def __init__(self, what: tuple):
        self._what = what

    def __reduce__(self) -> tuple:
        return tuple, (self._what,)


def _entry_names(cls: type) -> set[str]:
    """Those of the class and its bases; what stands in for an entry of a base is one too."""
    return {
        name
        for base in cls.__mro__
        for name, thing in vars(base).items()
        if getattr(thing, "__brant_entry__", False) and callable(getattr(cls, name))
    }


class Method:
    """An entry of an element, an array or a section: to be called."""

    __slots__ = ("_address", "_name", "_number", "_posted", "_priority", "_who")
    _takes_results = True  # of reductions

    def __init__(self, who: _Proxy, name: str, number: int):
        self._who, self._name, self._number = who, name, number
        self._address, self._priority = who._address, who._priority
        self._posted = who._class._brant_posts[number] is not None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Calls it and returns at once. Arrays travel beside the message, copied within the call; everything else is
        pickled. An exception in there ends the job."""
        _brant.call(self._address, self._number, args, kwargs, self._priority, self._posted)

    def reply(self, *args: Any, **kwargs: Any) -> _brant.Awaitable | Replies:
        """Calls it. Awaited, it gives the result, and raises what was raised there: `__cause__` has the traceback. Of
        an array it gives a list in the order of indices, and raises the first exception when all have answered; that
        costs a message for each element."""
        if isinstance(self._who, Array):
            return Replies([getattr(element, self._name).reply(*args, **kwargs) for element in self._who])
        if isinstance(self._who, Section):
            text = f"{self._who!r} gives no replies: ask its elements one by one, or let them contribute to a future"
            raise InvalidArgument(text)
        return self._ask(args, kwargs)

    def _ask(self, args: tuple, kwargs: dict[str, Any]) -> _brant.Awaitable:
        return _brant.ask(self._address, self._number, args, kwargs, self._priority, self._posted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and (self._who, self._name) == (other._who, other._name)

    def __hash__(self) -> int:
        return hash((self._who, self._name))

    def __repr__(self) -> str:
        return f"{self._who!r}.{self._name}"

    def __reduce__(self) -> tuple:
        return getattr, (self._who, self._name)


Chare._brant_method = Method


class Replies:
    """The answers of all elements of an array: to be awaited."""

    def __init__(self, replies: list[_brant.Awaitable]):
        self._replies = replies

    def __await__(self) -> Generator[Any, None, list]:
        results, failures = [], []
        for reply in self._replies:
            try:
                results.append((yield from reply.__await__()))
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return results


class _Proxy:
    __slots__ = ("_address", "_class", "_priority")

    def __init__(self, cls: Any, address: _brant.Address):
        self._class, self._address, self._priority = cls, address, 0

    def __getattr__(self, name: str) -> Method:
        number = self._class._brant_entries.get(name)
        if number is None:
            raise AttributeError(
                f"{self._class.__name__} has no entry {name!r}: mark the method with @brant.entry", name=name, obj=self
            )
        return self._class._brant_method(self, name, number)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._class._brant_entries]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Proxy) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def with_priority(self, priority: int) -> Any:
        """The same, whose calls run before those of lower priority where they wait. 0 as a rule."""
        if not -(2**31) <= operator.index(priority) < 2**31:
            raise InvalidArgument(f"priority {priority}: a priority has 32 bits")
        other = object.__new__(type(self))
        for name in itertools.chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(self).__mro__):
            setattr(other, name, getattr(self, name))
        other._priority = operator.index(priority)
        return other


class Element(_Proxy):
    """The proxy of one chare, wherever it lives. May be sent to others."""

    __slots__ = ("index",)

    def __init__(self, cls: type[Chare], address: _brant.Address, index: Any):
        super().__init__(cls, address)
        self.index = index

    def destroy(self) -> None:
        """Deletes it, behind the calls that were made before from here."""
        _brant.destroy(self._address)

    def __repr__(self) -> str:
        return element_name(self._class, self.index)

    def __reduce__(self) -> tuple:
        return _element, (self._class, bytes(self._address), self.index)


class Array(_Proxy):
    """The proxy of all elements of an array or a group. Its entries are those of every element; an index gives one
    element, slices a section: `blocks[0, :]`. May be sent to others."""

    __slots__ = ("shape",)

    def __init__(self, cls: type[Chare], address: _brant.Address, shape: tuple[int, ...]):
        super().__init__(cls, address)
        self.shape = shape

    def __getitem__(self, index: Any) -> Any:
        shape = self.shape
        place = index if type(index) is tuple else (index,)
        is_one = all(type(at) is int for at in place)
        if not is_one:
            place = tuple(at if isinstance(at, slice) else _whole_number(at) for at in place)
            index, is_one = place, not any(isinstance(at, slice) for at in place)
        if len(place) == len(shape):
            if is_one:
                for at, extent in zip(place, shape, strict=False):
                    if not 0 <= at < extent:
                        raise InvalidArgument(f"{element_name(self._class, index)} is outside the array: {shape}")
                if len(place) == 1:
                    index = place[0]
                return Element(self._class, _brant.element(self._address, index, len(shape)), index)
            ranges = [
                range(*at.indices(extent)) if isinstance(at, slice) else range(at, at + 1)
                for at, extent in zip(place, shape, strict=False)
            ]
            return self.section(itertools.product(*ranges))
        raise InvalidArgument(f"an index of {self!r} has {len(shape)} coordinates, not {len(place)}")

    def __iter__(self) -> Iterator[Element]:
        for index in itertools.product(*map(range, self.shape)):
            yield self[index]

    def __len__(self) -> int:
        return self.shape[0]

    def section(self, indices: Any) -> Section:
        """Some of the elements, to be called and reduced together. All processes are told."""
        members = [tuple(map(_whole_number, index if type(index) is tuple else (index,))) for index in indices]
        for index in members:
            self[index]  # raises outside the array
        return Section(self._class, _brant.section(self._address, members, len(self.shape)))

    def destroy(self) -> None:
        """Deletes all elements and the array: once, from one process."""
        _brant.destroy(self._address)

    def __repr__(self) -> str:
        return f"{self._class.__name__}{list(self.shape)}"

    def __reduce__(self) -> tuple:
        return _array, (self._class, bytes(self._address), self.shape)


class Section(_Proxy):
    """The proxy of some elements of an array. May be sent to others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"a section of {self._class.__name__}"

    def __reduce__(self) -> tuple:
        return _section, (self._class, bytes(self._address))


def _element(cls: type[Chare], address: bytes, index: Any) -> Element:
    return Element(cls, _brant.Address.of(address), index)


def _array(cls: type[Chare], address: bytes, shape: tuple[int, ...]) -> Array:
    return Array(cls, _brant.Address.of(address), shape)


def _section(cls: type[Chare], address: bytes) -> Section:
    return Section(cls, _brant.Address.of(address))


def element_name(cls: type, index: Any) -> str:
    """What errors call an element: "Block[1, 2]"."""
    return f"{cls.__name__}[{', '.join(map(str, index)) if isinstance(index, tuple) else index}]"


def construct(place: _brant.Place, what: tuple) -> tuple[Chare, tuple, tuple, tuple]:
    """Makes an element where it shall live. Called by the extension module."""
    cls, names, shape, args, kwargs = what
    if names != tuple(cls._brant_entries):
        raise InvalidArgument(f"{cls.__name__} has other entries here than where the array was made")
    made = cls.__new__(cls)
    made._brant_place = place
    made._brant_array = Array(cls, _brant.array_of(place), shape)
    made.__init__(*args, **kwargs)
    return made, cls._brant_table, cls._brant_conditions, cls._brant_posts


def warn_of_kept(chare: Chare, number: int, count: int) -> bool:
    """Calls that will never run. Called by the extension module."""
    name = f"{element_name(type(chare), chare.index)}.{list(type(chare)._brant_entries)[number]}"
    warnings.warn(f"{count} calls wait for a condition when {name} ends, and never ran", RuntimeWarning, stacklevel=1)
    return True


def warn_of_dropped(chare: Chare, number: int) -> bool:
    """An async entry that its chare's end has ended. Called by the extension module."""
    name = f"{element_name(type(chare), chare.index)}.{list(type(chare)._brant_entries)[number]}"
    warnings.warn(f"{name} was still waiting when its chare was destroyed", RuntimeWarning, stacklevel=1)
    return True


def warn_of_unheard(error: BaseException) -> bool:
    """An exception of a reply or a future that was let go before anybody awaited it. Called by the extension module."""
    text = str(error.__cause__ or error).strip()
    warnings.warn(f"nobody awaited a reply or a future that has an exception: {text}", RuntimeWarning, stacklevel=1)
    return True


def raise_remote(described: tuple[BaseException | None, str]) -> None:
    """Called by the extension module."""
    raise remote_exception(described)


def describe_failure(chare: Chare, number: int, error: BaseException) -> tuple[BaseException | None, str]:
    """The exception, if it can travel, and a text that says where it was raised. Called by the extension module."""
    names = list(type(chare)._brant_entries)
    method = names[number] if number < len(names) else "(unknown entry)"
    text = f"{element_name(type(chare), chare.index)}.{method} on rank {_brant.rank()} raised an exception:\n"
    text += _futures.text_of(error)
    return (error if _futures.may_travel(error) else None), text


def remote_exception(described: tuple[BaseException | None, str]) -> BaseException:
    """What the caller of an entry gets. Called by the extension module."""
    error, text = described
    if error is None:
        return RemoteError(text)
    error.__cause__ = RemoteTraceback(text)
    return error


async def program(main: Callable[..., Coroutine[Any, Any, _T]], *args: Any, deadlock_after: float | None = None) -> _T:
    """Runs a program of chares: `main(*args)` in the process of rank 0, and what it calls everywhere. Every process
    awaits it, under either loop:

        brant.run(brant.program(main))

    It ends in all processes when `main` has ended there.

    Args:
        deadlock_after: seconds for which nothing can go on in any process before the program ends with a list of who
            waits for what; 0: it waits for ever. None: 1 under brant's own loop, and 0 under asyncio, which may wait
            for what brant does not know.

    Returns:
        What `main` returned, on rank 0; None elsewhere.

    Raises:
        Error: an entry that nobody asked for a reply raised an exception, a process was lost, a deadlock. What `main`
        raises comes out here on rank 0.
    """
    ours = _brant.loop_runs()
    limit = (1.0 if ours else 0.0) if deadlock_after is None else deadlock_after
    end = _brant.begin_program(limit)
    outcome: dict[str, Any] = {}
    task = None
    try:
        if _brant.rank() == 0:
            running = _run_main(main, args, outcome)
            if ours:
                task = _brant.spawn(running)
            else:
                import asyncio

                task = asyncio.create_task(running)
        try:
            await end
        except Error:
            if "error" in outcome:
                raise outcome["error"] from None
            raise
        return outcome.get("result")
    finally:
        if task is not None and not task.done():
            task.cancel()
        _brant.end_program()
        _futures.forget_open()


async def _run_main(main: Callable[..., Coroutine[Any, Any, Any]], args: tuple, outcome: dict[str, Any]) -> None:
    try:
        outcome["result"] = await main(*args)
    except BaseException as error:
        outcome["error"] = error
        if _brant.has_program():
            _brant.fail_program(f"the main function on rank 0 raised an exception:\n{_futures.text_of(error)}")
        return
    if _brant.has_program():
        _brant.exit_program(0)


def quiescence() -> _brant.Awaitable:
    """Awaited, it waits until no call is under way in any process and no entry runs."""
    return _brant.quiescence()
