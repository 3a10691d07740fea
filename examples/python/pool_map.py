"""Map over a pool: pi by throwing darts, in all processes."""

from __future__ import annotations

import argparse

import brant
import numpy

DARTS = 100_000


def hits(seed: int) -> int:
    at = numpy.random.default_rng(seed).random((DARTS, 2))
    return int(((at**2).sum(axis=1) < 1.0).sum())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throws", type=int, default=40, help=f"of {DARTS} darts each")
    options = parser.parse_args()
    if options.throws < 1:
        parser.error("--throws is 1 or more")
    return options


async def main(throws: int) -> None:
    inside = sum(await brant.pool.map(hits, range(throws)))
    print(f"pi is about {4 * inside / (throws * DARTS):.4f}")


if __name__ == "__main__":
    brant.run(brant.program(main, arguments().throws))
