"""A network of layers over all processes: each has some of them, and while it computes, the next batch comes in."""

from __future__ import annotations

import argparse

import brant
import numpy

WIDTH = 64


def layer(number: int) -> numpy.ndarray:
    return numpy.random.default_rng(number).normal(scale=WIDTH**-0.5, size=(WIDTH, WIDTH))


def batch(number: int, rows: int) -> numpy.ndarray:
    return numpy.random.default_rng(1000 + number).normal(size=(rows, WIDTH))


def forward(layers: list[numpy.ndarray], values: numpy.ndarray) -> numpy.ndarray:
    for weights in layers:
        values = numpy.maximum(values @ weights, 0.0)
    return values


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=4, help="of each process")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rows", type=int, default=32, help="of a batch")
    options = parser.parse_args()
    if min(options.layers, options.batches, options.rows) < 1:
        parser.error("--layers, --batches and --rows are 1 or more")
    return options


async def main(options: argparse.Namespace) -> None:
    rank, last = brant.rank(), brant.size() - 1
    layers = [layer(rank * options.layers + number) for number in range(options.layers)]
    before = brant.channel(rank - 1, id=rank) if rank > 0 else None
    after = brant.channel(rank + 1, id=rank + 1) if rank < last else None
    # Two landings and two results in memory that neighbours can map: one is at work while the other travels.
    shape = (options.rows, WIDTH)
    landings, results = [brant.empty(shape) for _ in range(2)], [brant.empty(shape) for _ in range(2)]
    incoming = before.recv(out=landings[0]) if before else None
    outgoing = [None, None]
    outputs = []
    for number in range(options.batches):
        values = batch(number, options.rows) if incoming is None else await incoming
        if before and number + 1 < options.batches:
            incoming = before.recv(out=landings[(number + 1) % 2])
        values = forward(layers, values)
        if after is None:
            outputs.append(values)
            continue
        if outgoing[number % 2] is not None:
            await outgoing[number % 2]  # its array may be written again
        results[number % 2][...] = values
        outgoing[number % 2] = after.send(results[number % 2])
    for sent in outgoing:
        if sent is not None:
            await sent
    if rank == last:
        every = [layer(number) for number in range(brant.size() * options.layers)]
        for number, output in enumerate(outputs):
            if not numpy.array_equal(output, forward(every, batch(number, options.rows))):
                raise SystemExit(f"batch {number} is not what one process computes")
        print(f"{len(outputs)} batches are what one process computes, to the last bit")


if __name__ == "__main__":
    options = arguments()
    brant.run(main(options))
