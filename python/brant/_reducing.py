"""What reductions of chares do with two contributions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from brant import _brant
from brant._arrays import _numpy, empty_like
from brant._errors import InvalidArgument
from brant._futures import may_travel, text_of


def _smaller(left: Any, right: Any) -> Any:
    return _numpy().minimum(left, right) if _is_array(left) else min(left, right)


def _larger(left: Any, right: Any) -> Any:
    return _numpy().maximum(left, right) if _is_array(left) else max(left, right)


def _is_array(value: Any) -> bool:
    numpy = _numpy()
    return numpy is not None and isinstance(value, numpy.ndarray)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "product": operator.mul,
    "min": _smaller,
    "max": _larger,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "gather": operator.add,  # of lists: see begin and end
    "barrier": lambda left, right: None,
}


@functools.lru_cache(maxsize=64)
def check(operation: str | Callable[[Any, Any], Any]) -> None:
    """Raises InvalidArgument for what is no operation."""
    if not callable(operation) and operation not in _OPERATIONS:
        known = ", ".join(name for name in _OPERATIONS if name != "barrier")
        raise InvalidArgument(f"operation {operation!r}: use {known}, or a function of two values")


def _on_host(value: Any) -> Any:
    """Arrays of PyTorch, JAX, CuPy and brant as NumPy's, which is what comes from other processes."""
    of_others = hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")
    if _numpy() is None or isinstance(value, _numpy().ndarray) or not of_others:
        return value
    shape, format, itemsize, _, is_host = _brant.layout_of(value)
    if is_host:
        return _numpy().from_dlpack(value)
    host = empty_like(format, shape, False, itemsize)
    if not isinstance(value, _brant.Array):
        theirs, value = value, _brant.new_array(list(shape), format, itemsize, _brant.device())
        value.copy_from(theirs)
    value.copy_to(host)
    return host


def begin(operation: str | Callable[[Any, Any], Any], value: Any, index: Any) -> Any:
    """The contribution of one element, which may go on with what it gave."""
    if operation == "gather":
        return [(index, value.copy() if _is_array(value) else value)]
    value = _on_host(value)
    return value.copy() if _is_array(value) else value


def combine(operation: str | Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Arrays of different shapes are not stretched: all contributions look alike."""
    shapes = [value.shape if _is_array(value) else None for value in (left, right)]
    if operation != "gather" and shapes[0] != shapes[1]:
        raise InvalidArgument(f"values of shapes {shapes[0]} and {shapes[1]} do not fit together (None: no array)")
    return operation(left, right) if callable(operation) else _OPERATIONS[operation](left, right)


def describe_failure(error: BaseException) -> tuple[BaseException | None, str]:
    """What a reduction gives that failed. Called by the extension module."""
    return (error if may_travel(error) else None), f"a reduction raised an exception:\n{text_of(error)}"


def end(operation: str | Callable[[Any, Any], Any], value: Any) -> Any:
    """The result."""
    if operation == "gather":
        return [given for _, given in sorted(value, key=operator.itemgetter(0))]
    return value
