"""The rivals of `python3 -m brant.bench --peer`: each plays the same ping-pong in two processes of its own.

    python3 _rivals.py NAME WHAT MEMORY 8:5000,65536:500 FILE

writes what it saw into the file, as JSON. It is started as a program, so that nothing of brant is in its processes, and
uses each rival as its own examples do.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: its _asyncio.py would stand in front of Python's own

import contextlib
import json
import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

Counts = list[tuple[int, int]]  # bytes of a message, round trips
START_S = 20.0
PYTHON = "Python " + sys.version.split()[0]


def counts_of(text: str) -> Counts:
    return [(int(size), int(count)) for size, count in (each.split(":") for each in text.split(","))]


def plays(counts: Counts) -> Iterator[tuple[int, int, bool]]:
    """Bytes, round trips, and whether they are kept: a pass before each that is not, in which bytes are looked at."""
    for size, count in counts:
        yield size, max(3, count // 10), False
        yield size, count, True


def make(memory: str, size: int, value: int) -> Any:
    if memory == "cupy":
        import cupy

        return cupy.full(size, value, "u1")
    return numpy.full(size, value, "u1")


def look(array: Any, value: int) -> None:
    """Every byte has travelled."""
    if not bool((numpy.frombuffer(array, "u1") == value if isinstance(array, bytes) else array == value).all()):
        raise SystemExit(f"{len(array)} bytes did not arrive as they were sent")


class Record:
    """What the first player has seen. It is in the file after each size: large messages of some rivals take minutes."""

    def __init__(self, file: str, version: str):
        self._file, self._version = pathlib.Path(file), version
        self._figures: list[dict[str, Any]] = []

    def add(self, size: int, times: list[float]) -> None:
        self._figures.append({"bytes": size, "times": times})
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"version": self._version, "figures": self._figures}))
        part.replace(self._file)


def blocking(counts: Counts, memory: str, record: Record | None, send: Callable, receive: Callable) -> None:
    """By calls that wait: `receive(array)` fills it. Who has a record is the first player."""
    first = record is not None
    for size, count, kept in plays(counts):
        mine, landing = make(memory, size, 1 if first else 2), make(memory, size, 0)
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            if first:
                send(mine)
                receive(landing)
            else:
                receive(landing)
                send(mine)
            times.append(time.perf_counter() - begin)
        look(landing, 2 if first else 1)
        if record and kept:
            record.add(size, times)


async def awaiting(counts: Counts, memory: str, record: Record | None, send: Callable, receive: Callable) -> None:
    """The same by calls that are awaited; `receive(array)` fills it, or returns bytes."""
    first = record is not None
    for size, count, kept in plays(counts):
        mine, landing = make(memory, size, 1 if first else 2), make(memory, size, 0)
        got = landing
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            if first:
                await send(mine)
                got = await receive(landing)
            else:
                got = await receive(landing)
                await send(mine)
            times.append(time.perf_counter() - begin)
        look(landing if got is None else got, 2 if first else 1)
        if record and kept:
            record.add(size, times)


@contextlib.contextmanager
def second_player() -> Iterator[bool]:
    """Starts the other process; true in the first one."""
    if "RIVAL_SECOND" in os.environ:
        yield False
        return
    other = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RIVAL_SECOND": "1"})
    try:
        yield True
        other.wait(START_S)
    finally:
        other.kill()
        other.wait()


def tries() -> Iterator[None]:
    """Until the other process is there: `for _ in tries()`, with a `break` where it is."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        yield
        time.sleep(0.01)
    raise SystemExit(f"the other process was not there in {START_S:.0f} s")


NOT_YET = (FileNotFoundError, ConnectionRefusedError)  # a socket has its name before anybody listens


# --- Sockets -----------------------------------------------------------------------------------------------------


def connection(what: str, memory: str, counts: Counts, file: str) -> None:
    """multiprocessing.connection over a Unix socket."""
    from multiprocessing.connection import Client, Listener

    path = pathlib.Path(file + ".socket")
    with second_player() as first:
        if first:
            with Listener(str(path), "AF_UNIX") as listener:
                link = listener.accept()
        else:
            for _ in tries():
                with contextlib.suppress(*NOT_YET):
                    link = Client(str(path), "AF_UNIX")
                    break
        with link:
            blocking(counts, memory, Record(file, PYTHON) if first else None, link.send_bytes, link.recv_bytes_into)


def streams(what: str, memory: str, counts: Counts, file: str) -> None:
    """asyncio's streams over a Unix socket."""
    import asyncio

    path, limit = pathlib.Path(file + ".socket"), 1 << 24

    async def play(first: bool) -> None:
        if first:
            accepted: asyncio.Future = asyncio.get_running_loop().create_future()
            server = await asyncio.start_unix_server(lambda *ends: accepted.set_result(ends), path, limit=limit)
            reader, writer = await asyncio.wait_for(accepted, START_S)
            server.close()
        else:
            for _ in tries():
                with contextlib.suppress(*NOT_YET):
                    reader, writer = await asyncio.open_unix_connection(path, limit=limit)
                    break

        async def send(array: numpy.ndarray) -> None:
            writer.write(array.data)
            await writer.drain()

        record = Record(file, PYTHON) if first else None
        await awaiting(counts, memory, record, send, lambda landing: reader.readexactly(len(landing)))
        writer.close()

    with second_player() as first:
        asyncio.run(play(first))


# --- Others ------------------------------------------------------------------------------------------------------


def mpi4py(what: str, memory: str, counts: Counts, file: str) -> None:
    """Send and Recv of buffers."""
    import mpi4py as package
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.size != 2:
        raise SystemExit(
            f"{world.size} processes of MPI instead of 2: mpiexec and mpi4py are of different kinds of MPI"
        )
    other = 1 - world.rank
    library = " ".join(MPI.Get_library_version().strip("\0 ").splitlines()[0].split())
    record = Record(file, f"{package.__version__}, {library}") if world.rank == 0 else None
    blocking(counts, memory, record, lambda it: world.Send(it, other), lambda it: world.Recv(it, other))


def ucx(module: str, memory: str, counts: Counts, file: str) -> None:
    """Endpoints of ucxx or ucx-py, under asyncio."""
    import asyncio
    import importlib

    library = importlib.import_module(module)
    path = pathlib.Path(file + ".port")

    async def play(first: bool) -> None:
        if first:
            accepted: asyncio.Future = asyncio.get_running_loop().create_future()
            listener = library.create_listener(accepted.set_result)
            path.with_suffix(".part").write_text(str(listener.port))
            path.with_suffix(".part").rename(path)
            end = await asyncio.wait_for(accepted, START_S)
        else:
            for _ in tries():
                with contextlib.suppress(*NOT_YET):
                    end = await library.create_endpoint("127.0.0.1", int(path.read_text()))
                    break

        async def receive(landing: Any) -> None:
            await end.recv(landing)

        version = f"{library.__version__}, UCX {'.'.join(map(str, library.get_ucx_version()))}"
        await awaiting(counts, memory, Record(file, version) if first else None, end.send, receive)
        await end.close()

    with second_player() as first:
        asyncio.run(play(first))


def ucxx(what: str, memory: str, counts: Counts, file: str) -> None:
    ucx("ucxx", memory, counts, file)


def ucx_py(what: str, memory: str, counts: Counts, file: str) -> None:
    ucx("ucp", memory, counts, file)


def charm4py(what: str, memory: str, counts: Counts, file: str) -> None:
    """Channels between two chares, or their entry methods."""
    from importlib.metadata import version

    from charm4py import Channel, Chare, Group, charm, coro

    release = version("charm4py")

    class Player(Chare):
        @coro
        def channels(self, done):
            first = self.thisIndex == 0
            record = Record(file, release) if first else None
            channel = Channel(self, remote=self.thisProxy[1 - self.thisIndex])
            for size, count, kept in plays(counts):
                mine, got, times = make(memory, size, 1 if first else 2), None, []
                for _ in range(count):
                    begin = time.perf_counter()
                    if first:
                        channel.send(mine)
                        got = channel.recv()
                    else:
                        got = channel.recv()
                        channel.send(mine)
                    times.append(time.perf_counter() - begin)
                look(got, 2 if first else 1)
                if record and kept:
                    record.add(size, times)
            if first:
                done()

        def begin(self, done):
            self.done, self.plays, self.other = done, plays(counts), self.thisProxy[1]
            self.record = Record(file, release)
            self.next_play()

        def next_play(self):
            play = next(self.plays, None)
            if play is None:
                return self.done()
            size, self.left, self.kept = play
            self.ball, self.times, self.began = make(memory, size, 1), [], time.perf_counter()
            return self.other.back(self.ball)

        def back(self, ball):
            self.thisProxy[0].home(ball)

        def home(self, ball):
            self.times.append(time.perf_counter() - self.began)
            self.left -= 1
            if self.left > 0:
                self.began = time.perf_counter()
                self.other.back(self.ball)
                return
            look(ball, 1)
            if self.kept:
                self.record.add(len(ball), self.times)
            self.next_play()

    def main(args):
        players, done = Group(Player), charm.createFuture()
        players[0].begin(done) if what == "chare" else players.channels(done)
        done.get()
        charm.exit()

    charm.start(main, classes=[Player])


RIVALS = {
    "connection": connection,
    "streams": streams,
    "mpi4py": mpi4py,
    "charm4py": charm4py,
    "ucxx": ucxx,
    "ucx-py": ucx_py,
}

if __name__ == "__main__":
    name, what, memory, text, file = sys.argv[1:6]
    RIVALS[name](what, memory, counts_of(text), file)
