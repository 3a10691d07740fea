"""Jacobi's method in two dimensions: a plate with a warm left edge, cut into chares that exchange their edges."""

from __future__ import annotations

import brant
import numpy

TILES = (2, 3)
CELLS = 12  # of a tile, in each direction
STEPS = 200


class Tile(brant.Chare):
    def __init__(self, cells: int, steps: int):
        self.old = numpy.zeros((cells + 2, cells + 2))  # with the edges of the neighbours around
        self.new = self.old.copy()
        if self.index[1] == 0:
            self.old[:, 0] = self.new[:, 0] = 1.0
        self.step, self.steps = -1, steps  # edges that come before `start` are kept
        self.neighbours = []
        row, column = self.index
        rows, columns = self.array_proxy.shape
        for name, at in {"up": (row - 1, column), "down": (row + 1, column)}.items():
            if 0 <= at[0] < rows:
                self.neighbours.append((name, self.array_proxy[at]))
        for name, at in {"left": (row, column - 1), "right": (row, column + 1)}.items():
            if 0 <= at[1] < columns:
                self.neighbours.append((name, self.array_proxy[at]))
        self.missing = len(self.neighbours)

    @brant.entry
    def start(self, change: brant.Future) -> None:
        self.change, self.step = change, 0
        self.send_edges()

    def send_edges(self) -> None:
        edges = {"up": self.old[1, :], "down": self.old[-2, :], "left": self.old[:, 1], "right": self.old[:, -2]}
        for name, neighbour in self.neighbours:
            neighbour.edge(self.step, name, edges[name])

    @brant.when("self.step == step")
    def edge(self, step: int, name: str, cells: numpy.ndarray) -> None:
        """`name` is the direction in which the edge went."""
        if name == "up":
            self.old[-1, :] = cells
        elif name == "down":
            self.old[0, :] = cells
        elif name == "left":
            self.old[:, -1] = cells
        else:
            self.old[:, 0] = cells
        self.missing -= 1
        if self.missing == 0:
            self.relax()

    def relax(self) -> None:
        old, inner = self.old, self.new[1:-1, 1:-1]
        inner[:] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        change = float(numpy.abs(inner - old[1:-1, 1:-1]).max())
        self.old, self.new = self.new, self.old
        self.step, self.missing = self.step + 1, len(self.neighbours)
        if self.step < self.steps:
            self.send_edges()
        else:
            self.contribute(change, "max", self.change)

    @brant.entry
    def cells(self) -> numpy.ndarray:
        return self.old[1:-1, 1:-1]


async def main() -> None:
    tiles = Tile.array(TILES, CELLS, STEPS)
    change = brant.Future()
    tiles.start(change)
    print(f"after {STEPS} steps a cell changes by {await change:.6f} at most")
    replies = [tile.cells.reply() for tile in tiles]
    blocks = [await reply for reply in replies]
    columns = TILES[1]
    plate = numpy.block([blocks[row * columns : (row + 1) * columns] for row in range(TILES[0])])
    print(f"the plate is {plate.mean():.6f} warm on average, and {plate[12, 0]:.6f} beside the edge")


if __name__ == "__main__":
    brant.run(brant.program(main))
