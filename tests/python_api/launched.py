"""Functions that the tests of brant.launch run in processes: in a module, as those of a user's program are."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time

import brant
import numpy


def place(factor: int, *, offset: int = 0) -> tuple[int, int]:
    return brant.rank() * factor + offset, brant.size()


async def round_the_ring(array: numpy.ndarray) -> numpy.ndarray:
    """What the rank before this one has, plus its rank."""
    rank, size = brant.rank(), brant.size()
    to, back = brant.channel((rank + 1) % size, id=rank), brant.channel((rank - 1) % size, id=(rank - 1) % size)
    sent = to.send(array + rank)
    got = await back.recv()
    await sent
    return numpy.array(got)


class Unlucky(Exception):
    def __init__(self, number: int):
        super().__init__(f"unlucky {number}")
        self.number = number

    def __reduce__(self):
        return Unlucky, (self.number,)


async def fails_in(rank: int) -> None:
    if brant.rank() == rank:
        raise Unlucky(rank)
    await brant.channel(rank, id=1).recv()  # the others see the loss of that process, later


def raises_what_cannot_travel() -> None:
    error = ValueError("from over there")
    error.numbers = (number for number in range(3))
    raise error


async def dies(rank: int) -> None:
    if brant.rank() == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    await brant.channel(rank, id=1).recv()


def leaves_with(code: int) -> None:
    brant.rank()
    os._exit(code)


def asks_to_exit() -> None:
    sys.exit(3)


def returns_what_cannot_travel() -> object:
    return (number for number in range(3))


def launches() -> None:
    brant.launch(2, place, 1)


def prints() -> None:
    print(f"out of {brant.rank()}")
    print(f"error of {brant.rank()}", file=sys.stderr)


def megabytes(data: bytes) -> bytes:
    return data[::-1]


def sleeps(folder: str) -> None:
    """Says which process it is, and then stays."""
    pathlib.Path(folder, str(brant.rank())).write_text(str(os.getpid()))
    time.sleep(60)
