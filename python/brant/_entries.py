"""What makes a method of a chare an entry."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from brant._errors import InvalidArgument

_F = TypeVar("_F", bound=Callable[..., Any])


def entry(function: _F) -> _F:
    """Makes a method of a chare one that others may call by its proxy. It is plain, or `async def`; inside its object
    it is called like any method.
    """
    function.__brant_entry__ = True
    return function


def when(condition: str | Callable[..., bool]) -> Callable[[_F], _F]:
    """An entry whose calls wait, in the order of arrival, until the condition holds:

        @brant.when("self.step == step")
        def halo(self, step, face): ...

    It is looked at when the call arrives and whenever another entry of the same object has run.

    Args:
        condition: an expression of `self` and the parameters, or a function of them.
    """

    def decorate(function: _F) -> _F:
        function.__brant_when__ = condition if callable(condition) else _compiled(condition, function)
        return entry(function)

    return decorate


@dataclasses.dataclass(frozen=True)
class Coming:
    """What a post function is told of an array that has not come yet."""

    shape: tuple[int, ...]
    format: str
    """The type of the elements in the language of the module struct: "d" for 64-bit floats."""
    nbytes: int
    memory: str
    """Of the sender's: "host", "pinned", "cuda" or "emulated"."""
    source: int
    """The rank of the sender."""


def post(of: Callable[..., Any]) -> Callable[[_F], _F]:
    """Says where the arrays of an entry land, before they come:

        @brant.entry
        def halo(self, step, face): ...

        @brant.post(halo)
        def _(self, step, face):
            return self.ghosts[step % 2]

    It gets the arguments of the call, with a `Coming` in place of each array, and returns an array of that shape, type
    and order, of the host or of a device; of several a tuple, with None for one that the runtime finds memory for. The
    entry then gets these very arrays. They belong to the runtime from here until the entry runs. A plain function,
    which must not wait.

    All arrays of such a call go from where they are to where they land: they are held, and must not be written, until
    they have left. What is pickled of the arguments is unpickled twice.

    Args:
        of: the entry, declared before.
    """

    def decorate(function: _F) -> _F:
        if not getattr(of, "__brant_entry__", False):
            raise InvalidArgument(f"{of!r} is no entry: a post function is declared behind one, with its name")
        of.__brant_post__ = function
        return function

    return decorate


def _compiled(condition: str, function: Callable[..., Any]) -> Callable[..., bool]:
    """The condition as a function with the parameters, defaults included, of `function`."""
    names: dict[str, Any] = {}
    parameters = []
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        plain = parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
        if parameter.default is not inspect.Parameter.empty:
            names[f"_default{number}"] = parameter.default
            if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in parameters):
                parameters.append("*")
            parameters.append(f"{plain}=_default{number}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in parameters):
            parameters.append("*")
        parameters.append(str(plain))
    source = f"lambda {', '.join(parameters)}: ({condition})"
    try:
        code = compile(source, f"<condition of {function.__qualname__}>", "eval")
    except SyntaxError as error:
        raise InvalidArgument(f"the condition {condition!r} of {function.__qualname__} is no expression") from error
    return eval(code, {**function.__globals__, **names})
