"""Each process hands an array on to the next one, until it is back where it came from."""

from __future__ import annotations

import brant
import numpy


async def main() -> None:
    rank, size = brant.rank(), brant.size()
    previous = (rank - 1) % size
    to_next = brant.channel((rank + 1) % size, id=rank)  # a channel is named by whoever sends on it
    from_previous = brant.channel(previous, id=previous)
    token = numpy.zeros((2, 3))
    for _ in range(size):
        outgoing = to_next.send(token + 1)
        token = await from_previous.recv()
        await outgoing
    print(f"rank {rank} has its array back, with {token[0, 0]:.0f} in it")


if __name__ == "__main__":
    brant.run(main())
