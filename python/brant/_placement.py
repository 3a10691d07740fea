"""Where the elements of an array live."""

from __future__ import annotations

import array
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

from brant import _brant
from brant._errors import InvalidArgument, LimitReached

Placement = str | Callable[[Any], int]

LISTED_MAX = 1 << 24
"""Elements whose ranks travel in one message: of Placement::listed of C++."""


def listed(name: str, shape: tuple[int, ...], placement: Placement) -> str | bytes:
    """What the extension module takes: a name, or the rank of each element in row-major order, 4 bytes each.

    Raises:
        InvalidArgument: the function gives something else than a rank of the job; the text names the element.
        LimitReached: there are more elements than that.
    """
    if not callable(placement):
        return placement
    if math.prod(shape) > LISTED_MAX:
        text = f"{name}{list(shape)} has {math.prod(shape)} elements: a function places {LISTED_MAX} at most"
        raise LimitReached(f"{text}. Use block, round_robin or hashed")
    size = _brant.size()
    ranks = array.array("i")
    for place in itertools.product(*map(range, shape)):
        index = place[0] if len(place) == 1 else place
        ranks.append(_checked(name, place, placement(index), size))
    return ranks.tobytes()


def _checked(name: str, place: tuple[int, ...], rank: Any, size: int) -> int:
    try:
        number = -1 if isinstance(rank, bool) else operator.index(rank)
    except TypeError:
        number = -1
    if 0 <= number < size:
        return number
    where = f"{name}[{', '.join(map(str, place))}]"
    raise InvalidArgument(f"the placement function puts {where} on {rank!r}: use a rank, 0 to {size - 1}")
