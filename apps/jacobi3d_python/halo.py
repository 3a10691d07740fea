"""All blocks of a process together: a chare in each process, whose ghosts a brant.HaloExchange fills."""

from __future__ import annotations

import time
from typing import Any

import brant
import numpy
from block import Figures, Plan, timed
from grid import AXES, start_planes
from kernels import DeviceKernels, HostKernels, inner


def number_of(plan: Plan, block: int) -> int:
    """Of a block in the cut. Exchanges number them with z the fastest, the cut with x."""
    x, y, z = plan.cut.blocks
    across, along = divmod(block // z, y)
    return across + x * (along + y * (block % z))


class Team(brant.Chare):
    def __init__(self, plan: Plan, mode: str):
        self.plan = plan
        make = DeviceKernels if plan.memory == "cuda" else HostKernels
        # An exchange for each of the two fields of a block: modes may be bound to theirs.
        ids = 2 * brant.size()
        self.exchanges = [
            brant.HaloExchange(plan.cut.size, plan.cut.blocks, mode=mode, first_channel=which * ids)
            for which in range(2)
        ]
        self.memories = [exchange.empty(plan.memory) for exchange in self.exchanges]
        self.now = 0  # the fields that hold the cells; the other ones are written
        blocks = range(self.exchanges[0].blocks)
        self.kernels = [make() for _ in blocks]  # a stream for each block
        self.fields = [
            [kernels.xp.asarray(array)[0] for kernels, array in zip(self.kernels, arrays, strict=True)]
            for arrays in self.memories
        ]
        first = self.exchanges[0].first_block
        self.numbers = [number_of(plan, first + i) for i in blocks]
        self.boxes = [plan.cut.box(number) for number in self.numbers]
        for fields in self.fields:
            for kernels, field, box in zip(self.kernels, fields, self.boxes, strict=True):
                kernels.fill(field, start_planes(kernels.xp, plan.cut.size, box))
        self.sweeps = [
            [kernels.sweep_of(new, old) for kernels, new, old in zip(self.kernels, news, olds, strict=True)]
            for olds, news in (self.fields, reversed(self.fields))
        ]

    def face_bytes(self) -> int:
        """That a block shows its neighbours, as those of the blocks with channels."""
        cells = 0
        for number, box in zip(self.numbers, self.boxes, strict=True):
            x, y, z = box.extent
            for axis, face in zip(AXES, (y * z, x * z, x * y), strict=True):
                cells += face * sum(self.plan.cut.neighbour(number, axis, high) is not None for high in (False, True))
        return 8 * cells

    @brant.entry
    async def solve(self) -> Figures:
        figures = await timed(self, self.plan, self.face_bytes())
        for exchange in self.exchanges:
            exchange.close()
        return figures

    async def iterate(self) -> float:
        """One iteration. Returns when the ghosts were there, by the clock of `time.perf_counter`."""
        now = self.now
        await self.exchanges[now].run(self.memories[now])
        exchanged = time.perf_counter()
        for sweep in self.sweeps[now]:
            sweep()
        for kernels in self.kernels:
            await kernels.finish()
        self.now = 1 - now
        return exchanged

    async def change(self) -> float:
        """By how much a cell of the whole grid has changed in the last iteration at most."""
        new, old = self.fields[self.now], self.fields[1 - self.now]
        here = max(kernels.change(a, b) for kernels, a, b in zip(self.kernels, new, old, strict=True))
        return await self.all_reduce(here, "max")

    @brant.entry
    def plane(self, number: int, z: int) -> numpy.ndarray:
        """The cells [y, x] of one plane of a block of this process, by its number in the cut."""
        at = self.numbers.index(number)
        cells: Any = inner(self.fields[self.now][at])[z]
        return self.kernels[at].to_host(cells)
