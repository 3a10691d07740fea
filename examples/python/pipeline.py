"""A network of layers over all processes: each has some of them, and while it computes, the next batch comes in.

The layers are modules of PyTorch where that is installed, on CPUs or on the GPU of each process; else of NumPy.
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

import brant
import numpy

WIDTH = 64


class OfNumpy:
    """Layers, batches and memory of NumPy."""

    promise = "to the last bit"

    def __init__(self, options: argparse.Namespace):
        self.rows = options.rows

    def layer(self, number: int) -> numpy.ndarray:
        return numpy.random.default_rng(number).normal(scale=WIDTH**-0.5, size=(WIDTH, WIDTH))

    def batch(self, number: int) -> numpy.ndarray:
        return numpy.random.default_rng(1000 + number).normal(size=(self.rows, WIDTH))

    def forward(self, layers: list[numpy.ndarray], values: numpy.ndarray) -> numpy.ndarray:
        for weights in layers:
            values = numpy.maximum(values @ weights, 0.0)
        return values

    def memory(self) -> numpy.ndarray:
        """For one batch, where neighbours can map it."""
        return brant.empty((self.rows, WIDTH))

    def fill(self, memory: numpy.ndarray, values: numpy.ndarray) -> None:
        memory[...] = values

    def equal(self, a: numpy.ndarray, b: numpy.ndarray) -> bool:
        return numpy.array_equal(a, b)


class OfTorch:
    """Modules and tensors of PyTorch. On a GPU a tensor goes from device to device."""

    promise = "as near as a sum of 32 bits is"

    def __init__(self, options: argparse.Namespace):
        import torch

        self.torch, self.rows = torch, options.rows
        torch.set_grad_enabled(False)
        if options.device == "cuda":
            self.device = torch.device("cuda", brant.local_rank() % torch.cuda.device_count())
            torch.cuda.set_device(self.device)
        else:
            self.device = torch.device("cpu")
            torch.set_num_threads(1)  # of each process: there are several on this host

    def layer(self, number: int) -> Any:
        self.torch.manual_seed(number)
        nn = self.torch.nn
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()).to(self.device)

    def batch(self, number: int) -> Any:
        generator = self.torch.Generator().manual_seed(1000 + number)
        return self.torch.randn(self.rows, WIDTH, generator=generator).to(self.device)

    def forward(self, layers: list, values: Any) -> Any:
        for module in layers:
            values = module(values)
        return values

    def memory(self) -> Any:
        kind = "cuda" if self.device.type == "cuda" else "host"
        return self.torch.from_dlpack(brant.empty((self.rows, WIDTH), "f4", memory=kind))

    def fill(self, memory: Any, values: Any) -> None:
        memory.copy_(values)

    def equal(self, a: Any, b: Any) -> bool:
        return self.torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4, help="of each process")
    parser.add_argument("--batches", type=int, default=8, help="small ones, that follow each other")
    parser.add_argument("--rows", type=int, default=32, help="of a batch")
    installed = "torch" if importlib.util.find_spec("torch") else "numpy"
    parser.add_argument("--of", choices=("torch", "numpy"), default=installed, help=f"here {installed}")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it is computed, with PyTorch")
    options = parser.parse_args()
    if min(options.layers, options.batches, options.rows) < 1:
        parser.error("--layers, --batches and --rows are 1 or more")
    if options.device == "cuda" and options.of == "numpy":
        parser.error("--device cuda needs PyTorch: pip install torch")
    return options


async def main(options: argparse.Namespace) -> None:
    rank, last = brant.rank(), brant.size() - 1
    of = (OfTorch if options.of == "torch" else OfNumpy)(options)
    layers = [of.layer(rank * options.layers + number) for number in range(options.layers)]
    before = brant.channel(rank - 1, id=rank) if rank > 0 else None
    after = brant.channel(rank + 1, id=rank + 1) if rank < last else None
    # Two landings and two results: one is at work while the other travels.
    landings, results = [of.memory() for _ in range(2)], [of.memory() for _ in range(2)]
    incoming = before.recv(out=landings[0]) if before else None
    outgoing = [None, None]
    outputs = []
    for number in range(options.batches):
        values = of.batch(number) if incoming is None else await incoming
        if before and number + 1 < options.batches:
            incoming = before.recv(out=landings[(number + 1) % 2])
        values = of.forward(layers, values)
        if after is None:
            outputs.append(values)
            continue
        if outgoing[number % 2] is not None:
            await outgoing[number % 2]  # its array may be written again
        of.fill(results[number % 2], values)
        outgoing[number % 2] = after.send(results[number % 2])
    for sent in outgoing:
        if sent is not None:
            await sent
    if rank == last:
        every = [of.layer(number) for number in range(brant.size() * options.layers)]
        for number, output in enumerate(outputs):
            if not of.equal(output, of.forward(every, of.batch(number))):
                raise SystemExit(f"batch {number} is not what one process computes")
        print(f"{len(outputs)} batches are what one process computes, {of.promise}")


if __name__ == "__main__":
    options = arguments()
    brant.init(gpu="cuda" if options.device == "cuda" else None)
    brant.run(main(options))
