"""A block of the grid: a chare with a channel to each neighbour, over which its faces travel as they lie in memory."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, Protocol

import brant
import numpy
from grid import AXES, Cut, start_planes
from kernels import DeviceKernels, HostKernels, inner

SAMPLES_MAX = 1 << 16


@dataclasses.dataclass(frozen=True)
class Plan:
    """What all blocks do."""

    cut: Cut
    each: int  # blocks of a process
    memory: str
    staged: bool  # faces of a GPU go by host memory, as those of a program that knows no better way
    iterations: int
    warmup: int
    tolerance: float  # ends it when no cell changes by more
    every: int  # iterations between two looks at that


@dataclasses.dataclass
class Figures:
    """What a block has seen, in us; of as many iterations as it was timed for."""

    iterations: int
    change: float  # by which a cell of the whole grid changed at most, in the last iteration
    total: float = 0.0
    compute: float = 0.0
    samples: list[float] = dataclasses.field(default_factory=list)
    face_bytes: int = 0


class Solver(Protocol):
    """What iterates, and says when the ghosts were there and by how much a cell has changed."""

    async def iterate(self) -> float: ...
    async def change(self) -> float: ...


async def timed(solver: Solver, plan: Plan, face_bytes: int) -> Figures:
    """The warm-up, and the iterations until one of the ends that the plan has."""
    figures = Figures(0, 0.0, face_bytes=face_bytes)
    for _ in range(plan.warmup):
        await solver.iterate()
    while figures.iterations < plan.iterations:
        figures.iterations += 1
        begin = time.perf_counter()
        exchanged = await solver.iterate()
        end = time.perf_counter()
        figures.total += 1e6 * (end - begin)
        figures.compute += 1e6 * (end - exchanged)
        if len(figures.samples) < SAMPLES_MAX:
            figures.samples.append(1e6 * (end - begin))
        if plan.tolerance > 0 and figures.iterations % plan.every == 0 and await solver.change() <= plan.tolerance:
            break
    figures.change = await solver.change()
    return figures


def layer(field: Any, axis: int, at: int) -> Any:
    """The cells of one layer, without the edges around it: two-dimensional, with whatever strides."""
    index: list[Any] = [slice(1, -1)] * 3
    index[2 - axis] = at
    return field[tuple(index)]


class Face:
    """One side of a block: the channel to the neighbour, the cells that go there and the ghosts that come, of both
    fields."""

    def __init__(
        self,
        channel: brant.Channel,
        fields: list[Any],
        axis: int,
        high: bool,
        shown: Callable[[Any], Any] = lambda array: array,
    ):
        self.channel = channel
        self.cells = [shown(layer(field, axis, -2 if high else 1)) for field in fields]
        self.ghosts = [shown(layer(field, axis, -1 if high else 0)) for field in fields]

    def receive(self, which: int) -> brant.Awaitable:
        return self.channel.recv(out=self.ghosts[which])

    def send(self, which: int) -> brant.Awaitable:
        return self.channel.send(self.cells[which])

    def land(self, which: int) -> None:
        """What arrived is where it belongs."""


class StagedFace(Face):
    """The same by pinned host memory: down, over, up."""

    def __init__(self, channel: brant.Channel, fields: list[Any], axis: int, high: bool):
        import cupy

        super().__init__(channel, fields, axis, high)
        shape = self.cells[0].shape
        self._down, self._up = brant.empty(shape, memory="pinned"), brant.empty(shape, memory="pinned")
        self._landing = cupy.empty(shape)  # CuPy copies from the host to what lies together

    def receive(self, which: int) -> brant.Awaitable:
        return self.channel.recv(out=self._up)

    def send(self, which: int) -> brant.Awaitable:
        self.cells[which].get(out=self._down)  # waits for the copy
        return self.channel.send(self._down)

    def land(self, which: int) -> None:
        self._landing.set(self._up)
        self.ghosts[which][...] = self._landing


class Block(brant.Chare):
    def __init__(self, plan: Plan):
        self.plan = plan
        self.kernels = DeviceKernels() if plan.memory == "cuda" else HostKernels()
        self.box = plan.cut.box(self.index)
        self.fields = [self.kernels.field(self.box.extent) for _ in range(2)]
        for field in self.fields:
            self.kernels.fill(field, start_planes(self.kernels.xp, plan.cut.size, self.box))
        self.sweeps = [self.kernels.sweep_of(self.fields[1 - now], self.fields[now]) for now in range(2)]
        self.now = 0  # the field that holds the cells; the other one is written
        self.faces = [face for axis in AXES for high in (False, True) if (face := self.face(axis, high))]

    def face(self, axis: int, high: bool) -> Face | None:
        neighbour = self.plan.cut.neighbour(self.index, axis, high)
        if neighbour is None:
            return None
        # Arrays are placed in runs of neighbours. The channel between two blocks has the number of the lower one, and
        # the axis; if both live in this process, whoever comes second gets the other end.
        number = min(self.index, neighbour) * len(AXES) + axis
        channel = brant.channel(neighbour // self.plan.each, number)
        if self.plan.staged:
            return StagedFace(channel, self.fields, axis, high)
        return Face(channel, self.fields, axis, high, self.kernels.shown)

    @brant.entry
    async def solve(self) -> Figures:
        figures = await timed(self, self.plan, sum(face.cells[0].nbytes for face in self.faces))
        for face in self.faces:
            face.channel.close()
        return figures

    async def iterate(self) -> float:
        """One iteration. Returns when the faces had travelled, by the clock of `time.perf_counter`."""
        now, kernels = self.now, self.kernels
        with kernels.current():
            receives = [face.receive(now) for face in self.faces]
            sends = [face.send(now) for face in self.faces]
        for operation in receives + sends:
            await operation
        with kernels.current():
            for face in self.faces:
                face.land(now)
        exchanged = time.perf_counter()
        self.sweeps[now]()
        await kernels.finish()
        self.now = 1 - now
        return exchanged

    async def change(self) -> float:
        """By how much a cell of the whole grid has changed in the last iteration at most."""
        here = self.kernels.change(self.fields[self.now], self.fields[1 - self.now])
        return await self.all_reduce(here, "max")

    @brant.entry
    def plane(self, z: int) -> numpy.ndarray:
        """The cells [y, x] of one plane of this block."""
        return self.kernels.to_host(inner(self.fields[self.now])[z])
