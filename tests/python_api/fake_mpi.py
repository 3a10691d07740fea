"""A communicator over sockets, with the four methods that brant asks for; variables tell a process its place."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Client, Connection, Listener


class Communicator:
    def __init__(self, path: str, rank: int, size: int):
        self._rank, self._size = rank, size
        self._others: list[Connection] = []
        if rank == 0:
            listener = Listener(path, "AF_UNIX")
            accepted = [listener.accept() for _ in range(size - 1)]
            self._others = [one for _, one in sorted((one.recv(), one) for one in accepted)]
        else:
            while True:
                try:
                    self._hub = Client(path, "AF_UNIX")
                    break
                except (FileNotFoundError, ConnectionRefusedError):
                    time.sleep(0.02)
            self._hub.send(rank)

    def Get_rank(self) -> int:  # noqa: N802
        return self._rank

    def Get_size(self) -> int:  # noqa: N802
        return self._size

    def allgather(self, mine: object) -> list:
        if self._rank != 0:
            self._hub.send(mine)
            return self._hub.recv()
        every = [mine, *(one.recv() for one in self._others)]
        for one in self._others:
            one.send(every)
        return every

    def Barrier(self) -> None:  # noqa: N802
        self.allgather(None)


def communicator() -> Communicator:
    return Communicator(os.environ["FAKE_SOCKET"], int(os.environ["FAKE_RANK"]), int(os.environ["FAKE_SIZE"]))
