"""A parameter server: workers send it gradients, and compute the next one while the answer is on its way."""

from __future__ import annotations

import argparse

import brant
import numpy

TRUTH = numpy.array([3.0, -1.0, 0.5, 2.0])


class Server(brant.Chare):
    def __init__(self, rate: float):
        self.weights, self.rate = numpy.zeros(len(TRUTH)), rate

    @brant.entry
    def push(self, gradient: numpy.ndarray) -> numpy.ndarray:
        """Gives the weights as they are now, with the gradients of all workers that have come so far."""
        self.weights -= self.rate * gradient
        return self.weights


class Worker(brant.Chare):
    def __init__(self) -> None:
        random = numpy.random.default_rng(self.index)
        self.inputs = random.normal(size=(256, len(TRUTH)))
        self.outputs = self.inputs @ TRUTH

    @brant.entry
    async def train(self, server: brant.Chare, steps: int) -> None:
        weights = numpy.zeros(len(TRUTH))
        under_way = None
        for _ in range(steps):
            gradient = self.inputs.T @ (self.inputs @ weights - self.outputs) / len(self.inputs)
            previous, under_way = under_way, server.push.reply(gradient)
            if previous is not None:
                weights = await previous  # one step old
        await under_way


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400, help="gradients of each worker")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps is 1 or more")
    return options


async def main(options: argparse.Namespace) -> None:
    server = Server.array(1, 0.1 / brant.size())[0]
    await Worker.group().train.reply(server, options.steps)
    weights = await server.push.reply(numpy.zeros(len(TRUTH)))
    print("the weights are", " ".join(f"{weight:.3f}" for weight in weights))


if __name__ == "__main__":
    brant.run(brant.program(main, arguments()))
