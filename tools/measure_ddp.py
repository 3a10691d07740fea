#!/usr/bin/env python3
"""Steps of DDP and single all-reduces over brant and over a rival, in the same processes, turn by turn.

    PYTHONPATH=build/release/python:.frameworks .venv/bin/python tools/measure_ddp.py --json ddp.jsonl
    PYTHONPATH=... python tools/measure_ddp.py --device cuda --json ddp.jsonl

On the CPU the rival is gloo, on GPUs NCCL. Each process computes with one thread. A turn is some steps with one
backend; the turns alternate, so that what else the machine does falls on both. On GPUs the calls of a turn are queued,
and its time is that until the GPU has done them. Prints the smallest and the median time of a turn's steps, and of
all-reduces the bytes of a tensor by that time.
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
LARGEST = 256 << 20  # on GPUs
RIVALS = {"cpu": "gloo", "cuda": "nccl"}


def model(width: int):
    from torch import nn

    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def timed(act, count: int, device: str) -> float:
    import torch

    begin = time.perf_counter()
    for _ in range(count):
        act()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def steps_of(group, width: int, device: str):
    """A function that takes one step of training."""
    import torch
    from torch import nn

    net = nn.parallel.DistributedDataParallel(model(width).to(device), process_group=group, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    inputs, wanted = torch.randn(32, 256, device=device), torch.randint(0, 10, (32,), device=device)

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
    device = options.device
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["RANK"]))
    dist.init_process_group("brant")
    groups = {"brant": dist.group.WORLD, RIVALS[device]: dist.new_group(backend=RIVALS[device])}
    acts = {
        ("ddp step", width): {name: steps_of(group, width, device) for name, group in groups.items()}
        for width in options.width
    }
    for size in SIZES if device == "cpu" else [*SIZES, LARGEST]:
        tensor = torch.zeros(size // 4, device=device)
        acts["all_reduce", size] = {
            name: lambda group=group, tensor=tensor: dist.all_reduce(tensor, group=group)
            for name, group in groups.items()
        }
    rows = []
    for (what, size), each in acts.items():
        count = options.steps if what == "ddp step" or size >= 1 << 20 else options.steps * 10
        times: dict[str, list[float]] = {name: [] for name in groups}
        for turn in range(options.turns + 1):
            for name in groups:
                dist.barrier()
                seconds = timed(each[name], count, device)
                if turn != 0:  # the first is to warm up
                    times[name].append(seconds * 1e6)
        for name in groups:
            row = {"what": what, "size": size, "backend": name, "device": device, "ranks": dist.get_world_size()}
            row |= {"min_us": round(min(times[name]), 2), "median_us": round(statistics.median(times[name]), 2)}
            if what == "all_reduce":
                row["gb_per_s"] = round(size / row["median_us"] / 1e3, 3)
            rows.append(row)
    dist.destroy_process_group()
    return [] if int(os.environ["RANK"]) != 0 else rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--device", choices=RIVALS, default="cpu")
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
            f"  median {row['median_us']:>10.1f} us" + (f" {row['gb_per_s']:>9.3f} GB/s" if "gb_per_s" in row else "")
        )
    if options.json and rows:
        import torch

        name = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine()
        machine = {"machine": name, "torch": torch.__version__}
        with options.json.open("a") as file:
            file.writelines(json.dumps({**row, **machine}) + "\n" for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
