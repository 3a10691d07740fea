"""Programs that train: by DDP, FSDP2, tensor parallel and in a pipeline, with the losses of one process."""

from __future__ import annotations

import pytest
from conftest import run

try:
    import torch
    import torch.distributed as dist
    from torch import nn
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = nn = None

STEPS = 6
FEATURES, CLASSES, ROWS = 24, 5, 32


def model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def batch(step: int):
    """Of all ranks: each takes its rows."""
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(ROWS, FEATURES, generator=generator)
    return inputs, (inputs[:, :CLASSES].argmax(1) + step) % CLASSES


def mine(tensor):
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def train(net, parameters, share=mine, steps: int = STEPS) -> list[float]:
    """The losses of all rows."""
    optimizer = torch.optim.SGD(parameters, lr=0.3)
    losses = []
    for step in range(steps):
        inputs, wanted = batch(step)
        loss = nn.functional.cross_entropy(net(share(inputs)), share(wanted))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def averaged(losses: list[float]) -> list[float]:
    every: list = [None] * dist.get_world_size()
    dist.all_gather_object(every, losses)
    return [sum(of_step) / len(every) for of_step in zip(*every, strict=True)]


def alone() -> list[float]:
    net = model()
    return train(net, net.parameters(), share=lambda tensor: tensor)


def data_parallel() -> None:
    expected = alone()
    assert expected[-1] < expected[0]
    for group in (None, dist.new_group(backend="gloo")):
        # Small buckets, so that several are under way beside the backward pass.
        net = nn.parallel.DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.01)
        torch.testing.assert_close(averaged(train(net, net.parameters())), expected, rtol=1e-5, atol=1e-6)
    # The same bits at all ranks.
    flat = torch.cat([one.detach().flatten() for one in net.parameters()])
    places = [torch.zeros_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(places, flat)
    assert all(torch.equal(place, flat) for place in places)
    print("DDP trained over", dist.get_backend())


@pytest.mark.parametrize("ranks", [2, 4])
def test_ddp_trains_as_one_process_does(ranks: int) -> None:
    assert all("DDP trained over brant" in output for output in run(data_parallel, ranks))


def fully_sharded() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    torch.testing.assert_close(averaged(train(net, net.parameters())), alone(), rtol=1e-4, atol=1e-5)


def test_fsdp_trains_as_one_process_does() -> None:
    run(fully_sharded, 2)


def tensor_parallel() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(net, mesh, plan)
    losses = train(net, net.parameters(), share=lambda tensor: tensor)
    torch.testing.assert_close(losses, alone(), rtol=1e-4, atol=1e-5)


def test_tensor_parallel_trains_as_one_process_does() -> None:
    run(tensor_parallel, 2)


def pipeline() -> None:
    """Two stages, micro-batches one behind the other: activations go one way, gradients the other."""
    rank, micro = dist.get_rank(), 4
    net = model()
    stage = net[:2] if rank == 0 else net[2:]
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.3)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, wanted = (tensor.chunk(micro) for tensor in batch(step))
        total = 0.0
        if rank == 0:
            outputs = [stage(part) for part in inputs]
            sends = [dist.isend(output.detach(), 1, tag=place) for place, output in enumerate(outputs)]
            for place, output in enumerate(outputs):
                gradient = torch.zeros_like(output)
                dist.recv(gradient, 1, tag=place)
                output.backward(gradient)
            for send in sends:
                send.wait()
        else:
            for place, part in enumerate(wanted):
                got = torch.zeros(len(part), 64, requires_grad=True)
                dist.recv(got.detach(), 0, tag=place)
                loss = nn.functional.cross_entropy(stage(got), part) / micro
                loss.backward()
                dist.send(got.grad, 0, tag=place)
                total += loss.item()
        optimizer.step()
        losses.append(total)
    if rank == 1:
        torch.testing.assert_close(losses, alone(), rtol=1e-5, atol=1e-6)


def test_a_pipeline_trains_as_one_process_does() -> None:
    run(pipeline, 2)
