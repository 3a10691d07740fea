"""Chare classes of C++, which libraries expose, and proxies that go between the languages."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from typing import Any

from brant import _brant
from brant._chares import Array, Chare, Element, Method, Section, _Proxy, shape_of
from brant._errors import InvalidArgument, NotFound
from brant._placement import Placement, listed

_loaded: dict[str, list[CppClass]] = {}


class CppMethod(Method):
    """An entry of C++ of an element, an array or a section: to be called. What C++ says about the types of arguments
    holds: a TypeError names those that do not fit, before anything is sent. Arguments have no names."""

    __slots__ = ()
    _takes_results = False

    def __init__(self, who: _Proxy, name: str, number: int):
        self._who, self._name, self._number = who, name, number
        self._address, self._priority = who._address, who._priority

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._refuse_names(kwargs)
        _brant.call_cpp(self._who._class._line, self._number, self._address, args, self._priority)

    def _ask(self, args: tuple, kwargs: dict[str, Any]) -> _brant.Awaitable:
        self._refuse_names(kwargs)
        return _brant.ask_cpp(self._who._class._line, self._number, self._address, args, self._priority)

    def _refuse_names(self, kwargs: dict[str, Any]) -> None:
        if kwargs:
            who = f"{self._who._class.__name__}.{self._name}"
            raise TypeError(f"{who} is of C++, whose arguments have no names: {', '.join(kwargs)}")


class CppClass:
    """A chare class of C++, as `brant.cpp` gives it:

        brant.load("./libblocks.so")
        blocks = brant.cpp("Block").array(8, 1.5)
        blocks[3].scale(2.0)                         # returns at once
        print(await blocks[3].norm.reply())          # waits for the result

    Proxies are those of Python's chares, and may be given to either language.
    """

    _brant_method = CppMethod

    def __init__(self, line: _brant.CppLine):
        self._line = line
        self.__name__ = line.name
        self._brant_entries = {name: number for number, name in enumerate(line.entries)}
        if len(self._brant_entries) != len(line.entries):
            raise InvalidArgument(f"{line.name} exposes two entries of one name: give one another, .entry<...>(name)")
        for name in line.entries:
            if any(hasattr(kind, name) for kind in (Array, Element, Section)):
                text = f"{line.name}.{name} cannot be an entry of Python, since proxies have something of that name"
                raise InvalidArgument(f"{text}: expose it as .entry<...>(another name)")

    def array(self, shape: int | tuple[int, ...], *args: Any, placement: Placement = "block") -> Array:
        """As `brant.Chare.array`: `args` are those of the constructor that C++ has exposed.

        Raises:
            TypeError: arguments that it does not take.
            InvalidArgument: a wrong shape, placement; no constructor is exposed; no program of chares runs.
        """
        shape = shape_of(shape)
        if len(shape) != self._line.dimensions:
            raise InvalidArgument(f"{self.__name__} has arrays of {self._line.dimensions} dimensions, not {len(shape)}")
        return Array(self, _brant.create_cpp(self._line, shape, listed(self.__name__, shape, placement), args), shape)

    def group(self, *args: Any) -> Array:
        """Makes one element in every process of the job: `group[rank]`."""
        return self.array(_brant.size(), *args)

    def __repr__(self) -> str:
        return f"<chare class {self._line.type_name} of C++>"

    def __reduce__(self) -> tuple:
        return cpp, (self.__name__,)


def load(path: str | os.PathLike[str]) -> list[CppClass]:
    """Opens a library of C++ that exposes chare classes (`brant/chare/expose.h`): in every process, and before the
    first program of chares.

    Args:
        path: the shared library, linked with the libbrant.so that this package uses.

    Returns:
        The classes that it has exposed.

    Raises:
        NotFound: it cannot be opened, or exposes nothing; the text says why.
        InvalidArgument: a program of chares has begun in this process.
    """
    if _brant.programs_begun() != 0:
        raise InvalidArgument(f"brant.load({str(path)!r}) comes too late: load it before the first program of chares")
    place = os.path.realpath(path)
    if place in _loaded:
        return _loaded[place]
    before = set(_brant.exposed_names())
    try:
        ctypes.CDLL(os.fspath(path), mode=os.RTLD_NOW | os.RTLD_NODELETE)
    except OSError as error:
        raise NotFound(f"the library {str(path)!r} cannot be opened: {error}") from error
    brought = [name for name in _brant.exposed_names() if name not in before]
    if not brought:
        text = "exposes no chare class, or is linked with another libbrant.so than this package"
        raise NotFound(f"the library {str(path)!r} {text}")
    return _loaded.setdefault(place, [cpp(name) for name in brought])


@functools.lru_cache(maxsize=4096)
def cpp(name: str) -> CppClass:
    """The chare class of C++ that a library has exposed under that name.

    Raises:
        NotFound: nobody has.
        InvalidArgument: two classes are exposed under it.
    """
    line = _brant.exposed(name)
    if line is None:
        known = ", ".join(sorted(_brant.exposed_names())) or "none is"
        raise NotFound(f"no class of C++ is exposed as {name!r} here: brant.load its library. Exposed: {known}")
    return CppClass(line)


def parts_of(proxy: Any, letter: str, type_name: str) -> tuple[_brant.Address, tuple[int, ...], str] | None:
    """What C++ needs of a proxy; None if it is no such one. Called by the extension module."""
    is_cpp = letter in "AE"
    if not isinstance(proxy, Array if letter in "AP" else Element) or isinstance(proxy._class, CppClass) != is_cpp:
        return None
    cls = proxy._class
    if is_cpp and cls._line.type_name != type_name:
        return None
    name = cls.__name__ if is_cpp else f"{cls.__module__}:{cls.__qualname__}"
    if isinstance(proxy, Array):
        return proxy._address, proxy.shape, name
    return proxy._address, (0,) * (len(proxy.index) if isinstance(proxy.index, tuple) else 1), name


def proxy_of(letter: str, name: str, address: _brant.Address, index: Any) -> Array | Element:
    """The proxy that C++ has sent; `index` is the extent of an array. Called by the extension module."""
    cls = cpp(name) if letter in "AE" else _class_of(name)
    if letter in "AP":
        return Array(cls, address, index if isinstance(index, tuple) else (index,))
    return Element(cls, address, index)


def construction_of(name: str, shape: Any, args: tuple) -> tuple:
    """What `brant._chares.construct` takes, for an array that C++ makes. Called by the extension module."""
    cls = _class_of(name)
    return cls, tuple(cls._brant_entries), shape if isinstance(shape, tuple) else (shape,), args, {}


def _class_of(name: str) -> type[Chare]:
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, Chare)):
        raise InvalidArgument(f"a proxy of {name} came, which is no chare class")
    return found
