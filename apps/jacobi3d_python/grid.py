"""How the grid is cut into blocks, and what its cells hold at first: as in apps/jacobi3d, to the last bit.

Extents and cells are (x, y, z); arrays are indexed [z, y, x], so x is contiguous.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy

Cell = tuple[int, int, int]
AXES = range(3)
WARM = 1.0  # around the grid: below (z = -1); the five other sides are at 0


@dataclasses.dataclass(frozen=True)
class Box:
    """The cells from `low` up to, not including, `high`."""

    low: Cell
    high: Cell

    @property
    def extent(self) -> Cell:
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))


@dataclasses.dataclass(frozen=True)
class Cut:
    """The grid as so many blocks along each axis, numbered with x first."""

    size: Cell
    blocks: Cell

    def coordinates(self, number: int) -> Cell:
        x, y, _ = self.blocks
        return number % x, number // x % y, number // (x * y)

    def box(self, number: int) -> Box:
        def begin(axis: int, at: int) -> int:  # the first (cells % parts) parts have one cell more
            cells, parts = self.size[axis], self.blocks[axis]
            return at * (cells // parts) + min(at, cells % parts)

        at = self.coordinates(number)
        low, high = (tuple(begin(axis, at[axis] + more) for axis in AXES) for more in (0, 1))
        return Box(low, high)

    def neighbour(self, number: int, axis: int, high: bool) -> int | None:
        """The number of the block on that side, if there is one."""
        strides = (1, self.blocks[0], self.blocks[0] * self.blocks[1])
        if self.coordinates(number)[axis] == (self.blocks[axis] - 1 if high else 0):
            return None
        return number + (strides[axis] if high else -strides[axis])


def cut(size: Cell, count: int) -> Cut:
    """Into `count` blocks of one cell at least, with the least surface between them.

    Raises:
        ValueError: there is no such cut.
    """
    x, y, z = size
    candidates = [(a, b, count // (a * b)) for a in range(1, count + 1) for b in range(1, count // a + 1)]
    usable = [
        blocks
        for blocks in candidates
        if blocks[0] * blocks[1] * blocks[2] == count and all(blocks[axis] <= size[axis] for axis in AXES)
    ]
    if not usable:
        raise ValueError(
            f"a grid of {x} x {y} x {z} cells cannot be cut into {count} blocks of a cell at least: use a larger "
            "--size, or fewer blocks or processes"
        )

    def cost(blocks: Cell) -> tuple[int, int, int]:
        surface = (blocks[0] - 1) * y * z + (blocks[1] - 1) * x * z + (blocks[2] - 1) * x * y
        return surface, -blocks[2], -blocks[1]

    return Cut(size, min(usable, key=cost))


def noise(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """Noise in [0, 1) from the global position, so that a cell that went to a wrong place is noticed.

    Args:
        xp: the module whose arrays these are: numpy or cupy.
        x, y, z: arrays of uint64 that can be broadcast together.
    """
    with numpy.errstate(over="ignore"):
        mixed = x * xp.uint64(0x9E3779B97F4A7C15)
        mixed = mixed ^ (y * xp.uint64(0xC2B2AE3D27D4EB4F) + (mixed >> xp.uint64(29)))
        mixed = mixed ^ (z * xp.uint64(0x165667B19E3779F9) + (mixed >> xp.uint64(31)))
        mixed = (mixed ^ (mixed >> xp.uint64(33))) * xp.uint64(0xFF51AFD7ED558CCD)
        return ((mixed ^ (mixed >> xp.uint64(33))) >> xp.uint64(11)) * 2.0**-53


def start_planes(xp: Any, size: Cell, box: Box) -> Iterator[Any]:
    """What a block holds before the first iteration, ghost cells included: its planes from z = -1 on, a float64 array
    [y, x] each. Ghost cells that belong to a neighbour are NaN: an exchange that does not happen cannot go unnoticed.
    """
    first = [low - 1 for low in box.low]
    x, y = (xp.arange(first[axis], box.high[axis] + 1) for axis in (0, 1))
    inside = ((y >= 0) & (y < size[1]))[:, None] & ((x >= 0) & (x < size[0]))[None, :]
    own = ((box.low[1] <= y) & (y < box.high[1]))[:, None] & ((box.low[0] <= x) & (x < box.high[0]))[None, :]
    x, y = x.astype("u8")[None, :], y.astype("u8")[:, None]
    for z in range(first[2], box.high[2] + 1):
        if not 0 <= z < size[2]:
            yield xp.full(inside.shape, WARM if z < 0 else 0.0)
        elif not box.low[2] <= z < box.high[2]:
            yield xp.where(inside, xp.nan, 0.0)
        else:
            plane = noise(xp, x, y, xp.full((1, 1), z, "u8"))
            yield xp.where(own, plane, xp.where(inside, xp.nan, 0.0))
