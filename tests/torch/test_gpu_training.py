"""Training on two GPUs over brant goes as over NCCL."""

from __future__ import annotations

from conftest import on_two_gpus, run

try:
    import torch
    import torch.distributed as dist
    from torch import nn
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = nn = None

STEPS = 20
FEATURES, CLASSES, ROWS = 24, 5, 32


def model():
    torch.manual_seed(7)
    layers = [nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES)]
    return nn.Sequential(*layers).cuda()


def train(net, parameters) -> list[float]:
    """The losses of this rank's rows."""
    optimizer = torch.optim.SGD(parameters, lr=0.3)
    losses = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(2 * step + dist.get_rank())
        inputs = torch.randn(ROWS, FEATURES, generator=generator).cuda()
        wanted = inputs[:, :CLASSES].argmax(1)
        loss = nn.functional.cross_entropy(net(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def weights(net):
    return torch.cat([one.detach().flatten() for one in net.parameters()])


def data_parallel() -> None:
    runs = {}
    for name in ("brant", "nccl"):
        group = dist.group.WORLD if name == "brant" else dist.new_group(backend="nccl")
        # Small buckets, so that several are under way beside the backward pass.
        net = nn.parallel.DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.01)
        runs[name] = train(net, net.parameters()), weights(net)
    torch.testing.assert_close(runs["brant"][0], runs["nccl"][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(runs["brant"][1], runs["nccl"][1], rtol=1e-4, atol=1e-5)
    losses = runs["brant"][0]
    assert sum(losses[-5:]) < sum(losses[:5])
    places = [torch.zeros_like(runs["brant"][1]) for _ in range(2)]
    dist.all_gather(places, runs["brant"][1])
    assert torch.equal(*places)


def with_a_hook() -> None:
    """A hook for communication chains futures, on the streams that they stand for."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    runs = {}
    for name in ("brant", "nccl"):
        group = dist.group.WORLD if name == "brant" else dist.new_group(backend="nccl")
        net = nn.parallel.DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.01)
        net.register_comm_hook(group, default_hooks.bf16_compress_hook)
        runs[name] = train(net, net.parameters())
    torch.testing.assert_close(runs["brant"], runs["nccl"], rtol=1e-2, atol=1e-2)


def fully_sharded() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cuda", (2,))
    assert dist.get_backend(mesh.get_group()) == "brant"
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    sharded = train(net, net.parameters())
    plain = nn.parallel.DistributedDataParallel(model(), process_group=dist.new_group(backend="nccl"))
    torch.testing.assert_close(sharded, train(plain, plain.parameters()), rtol=1e-3, atol=1e-4)


@on_two_gpus
def test_ddp_trains_as_with_nccl() -> None:
    run(data_parallel)


@on_two_gpus
def test_hooks_of_ddp_find_streams_in_order() -> None:
    run(with_a_hook)


@on_two_gpus
def test_fsdp_trains_as_ddp_with_nccl() -> None:
    run(fully_sharded)
