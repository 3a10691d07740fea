"""Jacobi3D in Python: the mean of a cell and its six neighbours, again and again, on as many processes as wanted.

brant run -n 2 -- python3 jacobi3d.py --size 64 --blocks 4 --check
brant run -n 2 -- python3 jacobi3d.py --size 512 --memory cuda
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import pathlib
import statistics
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import brant
import numpy
from block import Block, Figures, Plan
from brant.bench import facts
from grid import Box, Cut, cut, start_planes
from halo import Team, number_of
from kernels import HostKernels

PlaneOf = Callable[[int, int], Awaitable]  # of a block's number and z: its cells [y, x]

CHECKED_MAX = 128_000_000  # cells
UPDATES_MAX = 2_000_000_000


def whole(low: int, high: int = 10**12):
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {low} to {high}")
        return number

    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = whole(1, 500_000)
    parser.add_argument("--size", type=size, nargs="+", default=[64], help="cells: N for a cube, or NX NY NZ")
    parser.add_argument("--blocks", type=whole(1, 4096), default=1, help="of each process (default 1)")
    parser.add_argument("--iterations", type=whole(1), default=100, help="that are timed (default 100)")
    parser.add_argument("--warmup", type=whole(0), default=10, help="iterations before them (default 10)")
    parser.add_argument("--memory", choices=("host", "cuda"), default="host", help="where the field lives")
    parser.add_argument("--host-staging", action="store_true", help="faces of a GPU go by host memory, to compare")
    modes = ("fused", "direct", "graph", "resident", "stream", "stacked", "shapes")
    parser.add_argument("--halo", choices=modes, help="ghosts by a brant.HaloExchange in this mode, not by channels")
    parser.add_argument("--tolerance", type=float, default=0.0, help="end when no cell changes by more (default never)")
    parser.add_argument("--every", type=whole(1), default=10, help="iterations between two looks at that (default 10)")
    parser.add_argument("--check", action="store_true", help="compare every bit with a run of one process by NumPy")
    parser.add_argument("--output", metavar="FILE", help="where the field goes, as .npy [x, y, z], x contiguous")
    parser.add_argument("--json", metavar="FILE", help="append a row to this file")
    options = parser.parse_args()
    if len(options.size) == 2 or len(options.size) > 3:
        parser.error("--size is one number for a cube, or three: NX NY NZ")
    options.size = tuple(options.size * 3 if len(options.size) == 1 else options.size)
    if options.host_staging and options.memory == "host":
        parser.error("--host-staging is for --memory cuda: in host memory there is nothing to stage")
    if options.host_staging and options.halo:
        parser.error("--host-staging is for faces that go by channels: not with --halo")
    if not options.tolerance >= 0.0:
        parser.error("--tolerance is 0 or more")
    cells = numpy.prod(options.size, dtype=float)
    updates = cells * (options.iterations + options.warmup)
    if options.check and (cells > CHECKED_MAX or updates > UPDATES_MAX):
        parser.error(f"--check computes all on one core: at most {UPDATES_MAX:,} updates of {CHECKED_MAX:,} cells")
    return options


def solve_serially(size: tuple[int, int, int], iterations: int) -> numpy.ndarray:
    kernels, everything = HostKernels(), Box((0, 0, 0), size)
    old, new = (kernels.field(size) for _ in range(2))
    for field in (old, new):
        kernels.fill(field, start_planes(numpy, size, everything))
    sweeps = kernels.sweep_of(new, old), kernels.sweep_of(old, new)
    for iteration in range(iterations):
        sweeps[iteration % 2]()
    if iterations % 2:
        old, new = new, old
    return old[1:-1, 1:-1, 1:-1]


async def check(planes: PlaneOf, plan: Plan, iterations: int) -> None:
    expected = solve_serially(plan.cut.size, iterations)
    differences, first = 0, ""
    async for place, plane in planes_of(planes, plan.cut):
        wanted = expected[place]
        wrong = numpy.argwhere(plane.view("u8") != numpy.ascontiguousarray(wanted).view("u8"))
        if len(wrong) and not first:
            y, x = wrong[0]
            first = f"cell {place}[{y}, {x}] is {plane[y, x]!r}, computed by one process {wanted[y, x]!r}"
        differences += len(wrong)
    if differences:
        raise SystemExit(f"error: the check failed: {differences} cells differ; the first, {first}")
    print(f"checked: all cells are what one process computes, to the last bit after {iterations} iterations")


async def planes_of(planes: PlaneOf, cut: Cut):
    """All cells, a plane of a block at a time: where it lies in an array [z, y, x] of the whole, and the cells."""
    for number in range(math.prod(cut.blocks)):
        box = cut.box(number)
        for z in range(box.extent[2]):
            place = (box.low[2] + z, slice(box.low[1], box.high[1]), slice(box.low[0], box.high[0]))
            yield place, numpy.ascontiguousarray(await planes(number, z))


async def write(planes: PlaneOf, plan: Plan, name: str) -> None:
    """Beside its final name first, so that there is never half a file."""
    path = pathlib.Path(name)
    part = path.with_name(path.name + ".part")
    try:
        whole = numpy.lib.format.open_memmap(part, "w+", "f8", plan.cut.size, fortran_order=True)
        async for place, plane in planes_of(planes, plan.cut):
            whole.T[place] = plane
        whole.flush()
        part.rename(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SystemExit(f"error: {name}: could not write it: {error.strerror}") from error


def row_of(figures: list[Figures], plan: Plan, options: argparse.Namespace) -> dict[str, Any]:
    """A process takes as long as its blocks; those compute one after another in host memory."""
    iterations = figures[0].iterations
    each = len(figures) // brant.size()  # of a process: blocks, or with --halo all of them together
    count = len(figures) * iterations
    iteration = sum(block.total for block in figures) / count
    compute = each * sum(block.compute for block in figures) / count
    split = each == 1
    samples = sorted(sample for block in figures for sample in block.samples)
    halo = max(sum(block.face_bytes for block in figures[at : at + each]) for at in range(0, len(figures), each))
    return {
        "bench": "jacobi3d",
        "model": "python",
        "memory": options.memory,
        "trigger": "host",
        "path": "staged" if options.host_staging else None,
        "bytes": halo,
        "window": 1,
        "ranks": brant.size(),
        "n": iterations,
        "us": {
            "min": round(samples[0], 3),
            "p50": round(statistics.median(samples), 3),
            "p99": round(samples[int(0.99 * (len(samples) - 1))], 3),
        },
        "gb_s": round(halo / (iteration - compute) / 1e3, 4) if split and halo else None,
        "peer": None,
        **facts(),
        "cells": list(plan.cut.size),
        "grid": list(plan.cut.blocks),
        "overlap": each > 1,
        "chares": plan.each,
        "halo": options.halo,
        "per_iteration_us": round(iteration, 3),
        "compute_us": round(compute, 3) if split else None,
        "communication_us": round(iteration - compute, 3) if split else None,
        "host_staging": options.host_staging,
        "change": figures[0].change,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def tell(row: dict[str, Any]) -> None:
    text = f"{row['n']} iterations of {row['per_iteration_us']:.1f} us"
    if row["compute_us"] is not None:
        text += f", {row['compute_us']:.1f} of them computing and {row['communication_us']:.1f} communicating"
    print(f"{text}; {row['bytes'] / 1e6:.3f} MB of faces leave a process in each")
    print(f"a cell changes by {row['change']:.3g} at most")


async def by_channels(options: argparse.Namespace, plan: Plan) -> tuple[list[Figures], PlaneOf]:
    blocks = Block.array(plan.each * brant.size(), plan)
    return await blocks.solve.reply(), lambda number, z: blocks[number].plane.reply(z)


async def by_halo(options: argparse.Namespace, plan: Plan) -> tuple[list[Figures], PlaneOf]:
    team = Team.group(plan, options.halo)
    ranks = {number_of(plan, block): block // plan.each for block in range(plan.each * brant.size())}
    return await team.solve.reply(), lambda number, z: team[ranks[number]].plane.reply(number, z)


async def main(options: argparse.Namespace, plan: Plan) -> None:
    names = collections.OrderedDict(cells=plan.cut.size, blocks=plan.cut.blocks)
    described = ", ".join(f"{' x '.join(map(str, extent))} {name}" for name, extent in names.items())
    print(f"Jacobi3D in Python: {described}, {brant.size()} processes, {options.memory} memory", flush=True)
    figures, planes = await (by_halo if options.halo else by_channels)(options, plan)
    row = row_of(figures, plan, options)
    tell(row)
    if options.check:
        await check(planes, plan, options.warmup + figures[0].iterations)
    if options.output:
        await write(planes, plan, options.output)
    if options.json:
        with open(options.json, "a") as rows:
            rows.write(json.dumps(row) + "\n")


def run(options: argparse.Namespace) -> None:
    brant.init(gpu="cuda" if options.memory == "cuda" else "none")
    try:
        plan = Plan(
            cut(options.size, options.blocks * brant.size()),
            options.blocks,
            options.memory,
            options.host_staging,
            options.iterations,
            options.warmup,
            options.tolerance,
            options.every,
        )
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    # A sweep of a large block takes longer than a second, in which nothing seems to go on.
    brant.run(brant.program(main, options, plan, deadlock_after=0.0))


if __name__ == "__main__":
    run(arguments())
