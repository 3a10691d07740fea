"""k-means: every process keeps its points; only sums and counts of the clusters travel."""

from __future__ import annotations

import argparse

import brant
import numpy


class Points(brant.Chare):
    def __init__(self, points: int, clusters: int):
        # Around (0, 0), (10, 10), (20, 20), ...: the same points for any number of processes.
        every = numpy.random.default_rng(7).normal(scale=0.5, size=(points, 2))
        every += 10.0 * (numpy.arange(points) % clusters)[:, None]
        self.mine = every[self.index :: brant.size()]

    @brant.entry
    async def refine(self, centres: numpy.ndarray, rounds: int, done: brant.Future) -> None:
        for _ in range(rounds):
            distances = ((self.mine[:, None, :] - centres) ** 2).sum(axis=2)
            nearest = distances.argmin(axis=1)
            ours = numpy.zeros((len(centres), 3))  # for each cluster: the sum of x, of y, and how many
            numpy.add.at(ours, nearest, numpy.column_stack([self.mine, numpy.ones(len(self.mine))]))
            total = await self.all_reduce(ours, "sum")
            counts = total[:, 2:]
            centres = numpy.where(counts > 0, total[:, :2] / numpy.maximum(counts, 1), centres)
        if self.index == 0:
            done(centres)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    if not 1 <= options.clusters <= options.points or options.rounds < 1:
        parser.error("there are 1 to --points clusters, and 1 or more --rounds")
    return options


async def main(options: argparse.Namespace) -> None:
    points = Points.group(options.points, options.clusters)
    first = numpy.column_stack([10.0 * numpy.arange(options.clusters) + 2.0] * 2)
    done = brant.Future()
    points.refine(first, options.rounds, done)
    for x, y in await done:
        print(f"a cluster around ({x:.3f}, {y:.3f})")


if __name__ == "__main__":
    brant.run(brant.program(main, arguments()))
