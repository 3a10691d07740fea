"""Trains a small network on rows that all processes share out, by DDP over brant.

python -m torch.distributed.run --nproc-per-node 2 ddp.py --steps 200
"""

from __future__ import annotations

import argparse

import brant.torch  # noqa: F401 (it makes the backend known)
import torch
import torch.distributed as dist
from torch import nn


def rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and whether they lie within a ring."""
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(count, 2, generator=generator) * 2 - 1
    distance = points.square().sum(1).sqrt()
    return points, ((distance > 0.4) & (distance < 0.8)).long()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--backend", default="brant", help="of torch.distributed: brant, gloo")
    options = parser.parse_args()

    dist.init_process_group(options.backend)
    torch.manual_seed(0)  # all begin with the same weights
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    points, wanted = (tensor[dist.get_rank() :: dist.get_world_size()] for tensor in rows(options.rows))
    for _ in range(options.steps):
        loss = nn.functional.cross_entropy(model(points), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    right = (model(points).argmax(1) == wanted).sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"{right.item() / options.rows:.0%} of {options.rows} points are told right after {options.steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
