#!/usr/bin/env python3
"""Steps of DDP and single all-reduces over brant and over gloo, in the same processes, turn by turn.

    PYTHONPATH=build/release/python:.frameworks .venv/bin/python tools/measure_ddp.py --json ddp.jsonl

Each process computes with one thread. A turn is some steps with one backend; the turns alternate, so that what else the
machine does falls on both. Prints the smallest and the median time of a turn's steps.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys
import time

SIZES = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20]
BACKENDS = ("brant", "gloo")


def model(width: int):
    from torch import nn

    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def timed(act, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        act()
    return (time.perf_counter() - begin) / count


def steps_of(group, width: int):
    """A function that takes one step of training."""
    import torch
    from torch import nn

    net = nn.parallel.DistributedDataParallel(model(width), process_group=group, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    inputs, wanted = torch.randn(32, 256), torch.randint(0, 10, (32,))

    def step() -> None:
        loss = nn.functional.cross_entropy(net(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def measure(options: argparse.Namespace) -> list[dict]:
    import brant.torch  # noqa: F401
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("brant")
    groups = {"brant": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    acts = {
        ("ddp step", width): {name: steps_of(group, width) for name, group in groups.items()} for width in options.width
    }
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        acts["all_reduce", size] = {
            name: lambda group=group, tensor=tensor: dist.all_reduce(tensor, group=group)
            for name, group in groups.items()
        }
    rows = []
    for (what, size), each in acts.items():
        count = options.steps if what == "ddp step" or size >= 1 << 20 else options.steps * 10
        times: dict[str, list[float]] = {name: [] for name in BACKENDS}
        for turn in range(options.turns + 1):
            for name in BACKENDS:
                dist.barrier()
                seconds = timed(each[name], count)
                if turn != 0:  # the first is to warm up
                    times[name].append(seconds * 1e6)
        for name in BACKENDS:
            row = {"what": what, "size": size, "backend": name, "ranks": dist.get_world_size()}
            row |= {"min_us": round(min(times[name]), 2), "median_us": round(statistics.median(times[name]), 2)}
            rows.append(row)
    dist.destroy_process_group()
    return [] if int(os.environ["RANK"]) != 0 else rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10, help="of a turn; ten times as many of small all-reduces")
    parser.add_argument("--width", type=int, nargs="+", default=[64, 512, 1024], help="of the model's hidden layers")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="append a row for each line")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        place = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": str(options.ranks),
            "OMP_NUM_THREADS": "1",
        }
        running = [
            subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **place, "RANK": str(rank)})
            for rank in range(options.ranks)
        ]
        return max(abs(one.wait()) for one in running)
    rows = measure(options)
    for row in rows:
        print(
            f"{row['what']:12} {row['size']:>9} {row['backend']:6} min {row['min_us']:>10.1f} us"
            f"  median {row['median_us']:>10.1f} us"
        )
    if options.json and rows:
        import torch

        machine = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
        with options.json.open("a") as file:
            file.writelines(json.dumps({**row, **machine}) + "\n" for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
