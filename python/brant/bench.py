"""What messages of Python cost: a ping-pong between two processes.

    brant run -n 2 -- python3 -m brant.bench                       # channels, memory of NumPy and of brant
    brant run -n 2 -- python3 -m brant.bench --what raw            # channels without dtype, shape and objects
    brant run -n 2 -- python3 -m brant.bench --what chare          # entry methods of chares
    brant run -n 2 -- python3 -m brant.bench --memory cupy,cuda    # arrays on GPUs
    brant run -n 2 -- python3 -m brant.bench --loop asyncio --json rows.jsonl
    brant run -n 2 -- python3 -m brant.bench --peer all            # and mpi4py, charm4py, ucxx, sockets

One way is half a round trip. Every array is looked at in a pass that is not timed (`--check`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

import brant
from brant import _brant, _contest

KIB, MIB = 1 << 10, 1 << 20
SIZES = "8,1K,64K,1M,16M"
MEMORIES = ("numpy", "host", "pinned", "cuda", "cupy", "emulated", "bytes")
ON_DEVICE = ("cuda", "cupy", "emulated")


def size_of(text: str) -> int:
    units = {"K": KIB, "M": MIB, "G": KIB * MIB}
    try:
        size = int(text[:-1]) * units[text[-1].upper()] if text[-1:].upper() in units else int(text)
    except ValueError:
        size = -1
    if not 0 <= size < 1 << 40:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: for example 8, 64K or 1M")
    return size


def rounds(size: int) -> int:
    return 5000 if size <= 64 * KIB else 500 if size <= MIB else 60


class Memory:
    """Arrays of one kind, filled and looked at by the CPU."""

    def __init__(self, kind: str):
        self.kind = kind

    def make(self, size: int, value: int) -> Any:
        values = numpy.full(size, value, "u1")
        if self.kind == "numpy":
            return values
        if self.kind == "bytes":
            return values.tobytes()
        if self.kind == "cupy":
            import cupy

            cupy.cuda.Device(brant.local_rank() % cupy.cuda.runtime.getDeviceCount()).use()
            return cupy.asarray(values)
        array = brant.empty(size, "u1", memory=self.kind)
        if self.kind in ON_DEVICE:
            array.copy_from(values)
        else:
            array[...] = values
        return array

    def holds(self, array: Any, value: int) -> bool:
        if self.kind == "cupy" and not isinstance(array, brant.Array):  # arguments of chares come as those
            return bool((array == value).all())
        if self.kind in ON_DEVICE:
            seen = numpy.empty(array.shape, "u1")
            array.copy_to(seen)
            array = seen
        return bool((numpy.frombuffer(array, "u1") == value).all())


# --- Channels ----------------------------------------------------------------------------------------------------


async def ping_pong(channel: brant.Channel, mine: Any, landing: Any, count: int) -> list[float]:
    """Seconds of each round trip, on rank 0."""
    times = []
    out = None if isinstance(mine, bytes) else landing
    for _ in range(count):
        begin = time.perf_counter()
        if brant.rank() == 0:
            await channel.send(mine)
            await channel.recv(out)
        else:
            await channel.recv(out)
            await channel.send(mine)
        times.append(time.perf_counter() - begin)
    return times


async def check_channel(channel: brant.Channel, memory: Memory, size: int) -> None:
    for value in range(1, 4):
        mine, landing = memory.make(size, value + 10 * brant.rank()), memory.make(size, 0)
        outgoing = channel.send(mine)
        got = await channel.recv(None if memory.kind == "bytes" else landing)
        await outgoing
        if not memory.holds(got if memory.kind == "bytes" else landing, value + 10 * (1 - brant.rank())):
            raise SystemExit(f"brant.bench: {size} bytes of {memory.kind} memory did not arrive as they were sent")


def path_since(before: dict[str, int]) -> str:
    """By which most of the bytes went that this process has sent since then: the name that rows of C++ have."""
    after = _brant.bytes_by_path()
    return max(after, key=lambda path: after[path] - before[path])


async def measure_channels(options: argparse.Namespace, tell: Callable[[dict], None]) -> None:
    raw = options.what == "raw"
    for number, kind in enumerate(options.memory):
        memory, channel = Memory(kind), brant.channel(1 - brant.rank(), number, raw=raw)
        for size in options.sizes:
            if options.check:
                await check_channel(channel, memory, size)
            count = options.iterations or rounds(size)
            mine, landing = memory.make(size, 1), memory.make(size, 0)
            await ping_pong(channel, mine, landing, max(1, count // 10))
            before = _brant.bytes_by_path()
            times = await ping_pong(channel, mine, landing, count)
            if brant.rank() == 0:
                row = row_of("python raw channel" if raw else "python channel", kind, size, times, options)
                tell({**row, "path": path_since(before)})
        channel.close()


# --- Chares ------------------------------------------------------------------------------------------------------


class Player(brant.Chare):
    """Plays its argument back to the other process, as often as it is told to."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.left = 0
        self.begin = 0.0

    @brant.entry
    def start(self, ball: Any, count: int, done: brant.Future) -> None:
        self.times, self.left, self.done = [], count, done
        self.other = self.array_proxy[1 - self.index]
        self.ball = ball
        self.serve()

    def serve(self) -> None:
        self.begin = time.perf_counter()
        self.other.back(self.ball)

    @brant.entry
    def back(self, ball: Any) -> None:
        self.array_proxy[1 - self.index].home(ball)

    @brant.entry
    def home(self, ball: Any) -> None:
        self.times.append(time.perf_counter() - self.begin)
        self.left -= 1
        if self.left == 0:
            self.done(self.times)
        else:
            self.serve()

    @brant.entry
    def same(self, ball: Any) -> Any:
        return ball


async def measure_chares(options: argparse.Namespace, tell: Callable[[dict], None]) -> None:
    players = Player.group()
    for kind in options.memory:
        memory = Memory(kind)
        for size in options.sizes:
            ball = memory.make(size, 1)
            if options.check and not memory.holds(await players[1].same.reply(ball), 1):
                raise SystemExit(f"brant.bench: {size} bytes of {kind} memory did not arrive as they were sent")
            count = options.iterations or rounds(size)
            times: list[float] = []
            for turns in (max(1, count // 10), count):
                done = brant.Future()
                players[0].start(ball, turns, done)
                times = await done
            tell(row_of("python chare", kind, size, times, options))


# --- Rivals ------------------------------------------------------------------------------------------------------

RIVAL_ROUNDS = {64 * KIB: 500, MIB: 50}  # at most, from that size on: some take a second for 1 MB


def rival_rounds(size: int, asked: int | None) -> int:
    fewer = [most for least, most in RIVAL_ROUNDS.items() if size >= least]
    return asked or min([rounds(size), *fewer])


def measure_rivals(options: argparse.Namespace, tell: Callable[[dict], None], each_second: Callable[[], None]) -> None:
    """On rank 0. Each plays in two processes of its own, with what it calls an array's natural way."""
    model = "python chare" if options.what == "chare" else "python channel"
    counts = [(size, rival_rounds(size, options.iterations)) for size in options.sizes]
    memories = ["numpy", "cupy"] if {"cuda", "cupy"} & set(options.memory) else ["numpy"]
    for name in options.peer:
        for memory in memories:
            try:
                seen = _contest.play(name, options.what, memory, counts, each_second)
            except _contest.CannotPlay as why:
                print(f"{name}, {memory}: not measured, {why}", flush=True)
                continue
            rival = {"peer": name, "peer_version": seen["version"], "loop": _contest.LOOPS.get(name)}
            for figure in seen["figures"]:
                tell({**row_of(model, memory, figure["bytes"], figure["times"], options), **rival})
            if seen["note"]:
                print(f"{name}, {memory}: {seen['note']}", flush=True)


def let_rivals_play(options: argparse.Namespace, tell: Callable[[dict], None]) -> None:
    """The other process waits meanwhile, and sleeps; what comes each second keeps it from asking after a silence."""
    channel = brant.channel(1 - brant.rank(), len(MEMORIES))
    if brant.rank() == 0:
        measure_rivals(options, tell, lambda: channel.send(True).wait())
        channel.send(False).wait()
    else:
        while channel.recv().wait():
            pass


# --- What comes of it --------------------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """What this machine is, as `brant info` sees it; nothing without that command."""
    program = os.environ.get("BRANT_BIN") or shutil.which("brant") or str(pathlib.Path(sys.prefix, "bin", "brant"))
    try:
        done = subprocess.run([program, "info", "--json"], capture_output=True, text=True, timeout=60, check=True)
        seen = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    gpus = seen["cuda"]["gpus"]
    return {
        "brant": seen["brant"],
        "ucx": seen["ucx"]["version"],
        "cuda": seen["cuda"]["driver"],
        "gpu": gpus[0]["name"] if gpus else None,
        "cpu": seen["cpu"],
        "host": seen["host"],
    }


def row_of(model: str, memory: str, size: int, times: list[float], options: argparse.Namespace) -> dict[str, Any]:
    ways = sorted(1e6 * each / 2 for each in times)
    middle = statistics.median(ways)
    return {
        "bench": "latency",
        "model": model,
        "memory": memory,
        "loop": options.loop,
        "path": None,
        "bytes": size,
        "window": 1,
        "ranks": 2,
        "n": len(ways),
        "us": {"min": round(ways[0], 3), "p50": round(middle, 3), "p99": round(ways[int(0.99 * (len(ways) - 1))], 3)},
        "gb_s": round(size / middle / 1e3, 4),
        "peer": None,
        "python": ".".join(map(str, sys.version_info[:3])),
    }


class Teller:
    def __init__(self, file: str | None):
        self.file, self.seen = file, facts() if file else {}
        print(f"{'':18} {'memory':10} {'bytes':>9} {'min us':>9} {'p50 us':>9} {'p99 us':>9} {'GB/s':>9}", flush=True)

    def __call__(self, row: dict[str, Any]) -> None:
        us = row["us"]
        cells = f"{us['min']:9.3f} {us['p50']:9.3f} {us['p99']:9.3f} {row['gb_s']:9.4g}"
        who = row["peer"] or row["model"]
        print(f"{who:18} {row['memory']:10} {row['bytes']:9} {cells}", flush=True)
        if self.file is None:
            return
        with open(self.file, "a") as rows:
            rows.write(json.dumps({**row, **self.seen}) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m brant.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--what", choices=("channel", "raw", "chare"), default="channel", help="who sends (default channel)"
    )
    parser.add_argument("--memory", default="numpy,host", help=f"of {', '.join(MEMORIES)} (default numpy,host)")
    parser.add_argument("--sizes", default=SIZES, help=f"bytes of an array (default {SIZES})")
    parser.add_argument("--loop", choices=("brant", "asyncio"), default="brant")
    parser.add_argument("--iterations", type=int, help="round trips (default by size)")
    parser.add_argument("--peer", help=f"rivals, where installed: {', '.join(_contest.MODULES)}, or all")
    parser.add_argument("--check", action="store_true", help="look at every byte first, not timed")
    parser.add_argument("--json", help="append one JSON object for each line to this file")
    options = parser.parse_args()
    options.memory = options.memory.split(",")
    unknown = [kind for kind in options.memory if kind not in MEMORIES]
    if unknown:
        parser.error(f"there is no memory '{unknown[0]}': use {', '.join(MEMORIES)}")
    if options.what == "raw" and "bytes" in options.memory:
        parser.error("a raw channel receives into an array that is there already: --memory bytes needs --what channel")
    try:
        options.sizes = [size_of(each) for each in options.sizes.split(",")]
        options.peer = _contest.names_of(options.peer) if options.peer else []
    except (argparse.ArgumentTypeError, ValueError) as error:
        parser.error(str(error))
    if options.iterations is not None and options.iterations < 1:
        parser.error("--iterations is 1 or more")
    return options


def main() -> None:
    options = arguments()
    if brant.size() != 2:
        raise SystemExit(f"brant.bench measures between 2 processes, not {brant.size()}: brant run -n 2 -- ...")
    tell: Callable[[dict], None] = Teller(options.json) if brant.rank() == 0 else (lambda row: None)
    measured = (
        brant.program(measure_chares, options, tell) if options.what == "chare" else measure_channels(options, tell)
    )
    (asyncio.run if options.loop == "asyncio" else brant.run)(measured)
    if options.peer:
        let_rivals_play(options, tell)


if __name__ == "__main__":
    main()
