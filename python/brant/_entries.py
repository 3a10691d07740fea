"""What makes a method of a chare an entry."""

from __future__ import annotations

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
