"""What is in every cell of the fields of a halo exchange, before and after."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

UNWRITTEN = -1.0


def _cells(cells: int, parts: int, at: int, ghost: int, periodic: bool) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Along one axis of a block: the numbers of the cells of its array in the grid, and which of them it owns."""

    def cut(part: int) -> int:
        return part * (cells // parts) + min(part, cells % parts)

    low, high = cut(at), cut(at + 1)
    numbers = numpy.arange(low - ghost, high + ghost)
    first = low if periodic or at > 0 else low - ghost
    last = high if periodic or at < parts - 1 else high + ghost
    return (numbers % cells if periodic else numbers), (first <= numbers) & (numbers < last)


def content(block: int, round_: int, exchanged: bool, *, grid, divide, periodic, ghost, variables=1, **_: Any):
    """A field: the number of each cell in the grid, with its variable and the round. Ghosts that others own are
    unwritten before an exchange."""
    places = list(itertools.product(*map(range, divide)))[block]  # z is the fastest
    (x, own_x), (y, own_y), (z, own_z) = (
        _cells(grid[axis], divide[axis], places[axis], ghost[axis], periodic[axis]) for axis in range(3)
    )
    variable = numpy.arange(variables) + 10 * round_
    number = variable[:, None, None, None] * 100.0 + x[None, None, None, :] + 20
    number = number * 100 + y[None, None, :, None] + 20
    number = number * 100 + z[None, :, None, None] + 20
    own = own_z[None, :, None, None] & own_y[None, None, :, None] & own_x[None, None, None, :]
    return number if exchanged else numpy.where(own, number, UNWRITTEN)
