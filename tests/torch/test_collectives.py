"""Every collective of torch.distributed, beside gloo in the same processes: the results are equal."""

from __future__ import annotations

import pytest
from conftest import run

try:
    import torch
    import torch.distributed as dist
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = None


def groups():
    """The default one is of brant; and the same ranks with gloo."""
    return dist.group.WORLD, dist.new_group(backend="gloo")


def of_rank(shape=(3, 4), dtype=None):
    generator = torch.Generator().manual_seed(dist.get_rank() + 1)
    return torch.randint(-5, 9, shape, generator=generator).to(dtype or torch.float32)


def both(act) -> None:
    """What `act(group)` returns, tensors or lists of them, is the same by both groups."""
    ours, theirs = (act(group) for group in groups_made)
    ours, theirs = ([one] if isinstance(one, torch.Tensor) else one for one in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)


groups_made: list = []


def reduced(group, tensor, **how):
    dist.all_reduce(tensor, group=group, **how)
    return tensor


def each_collective() -> None:
    groups_made.extend(groups())
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "brant"
    op = dist.ReduceOp
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.int8):
        for how in (op.SUM, op.MIN, op.MAX, op.PRODUCT):
            both(lambda group, dtype=dtype, how=how: reduced(group, of_rank(dtype=dtype), op=how))
    for how in (op.BAND, op.BOR, op.BXOR):
        both(lambda group, how=how: reduced(group, of_rank(dtype=torch.int32), op=how))
    for shape in ((0,), (), (1,), (100_003,), (300, 400)):
        both(lambda group, shape=shape: reduced(group, of_rank(shape)))
    for dtype in (torch.float16, torch.bfloat16):
        torch.testing.assert_close(
            reduced(None, torch.full((9,), rank + 1.5, dtype=dtype)).float(),
            torch.full((9,), sum(range(size)) + 1.5 * size),
        )
    torch.testing.assert_close(
        reduced(None, torch.full((3,), float(rank)), op=op.AVG), torch.full((3,), (size - 1) / 2)
    )
    complex_sum = reduced(None, torch.full((3,), complex(rank, 1)))
    torch.testing.assert_close(complex_sum, torch.full((3,), complex(sum(range(size)), size)))
    truths = reduced(None, torch.tensor([rank == 0, False, True]))
    assert truths.tolist() == [True, False, True]
    apart = of_rank((6, 4))[::2, 1:]
    together = apart.contiguous()
    reduced(None, apart)
    torch.testing.assert_close(apart, reduced(None, together))

    for root in range(size):

        def told(group, root=root):
            tensor = of_rank()
            dist.broadcast(tensor, root, group=group)
            return tensor

        def to_root(group, root=root):
            tensor = of_rank()
            dist.reduce(tensor, root, group=group)
            return tensor if rank == root else torch.zeros(1)

        def gathered(group, root=root):
            places = [torch.zeros(3, 4) for _ in range(size)] if rank == root else None
            dist.gather(of_rank(), places, dst=root, group=group)
            return places or []

        def scattered(group, root=root):
            parts = list(of_rank((size, 5))) if rank == root else None
            tensor = torch.zeros(5)
            dist.scatter(tensor, parts, src=root, group=group)
            return tensor

        for act in (told, to_root, gathered, scattered):
            both(act)

    def all_gathered(group):
        places = [torch.zeros(3, 4) for _ in range(size)]
        dist.all_gather(places, of_rank(), group=group)
        return places

    def into_tensor(group):
        place = torch.zeros(size * 3, 4)
        dist.all_gather_into_tensor(place, of_rank(), group=group)
        return place

    def scattered_sum(group):
        tensor = torch.zeros(5)
        dist.reduce_scatter(tensor, list(of_rank((size, 5))), group=group)
        return tensor

    def scattered_tensor(group):
        tensor = torch.zeros(1, 5)
        dist.reduce_scatter_tensor(tensor, of_rank((size, 5)), group=group)
        return tensor

    def single(group):
        tensor = torch.zeros(size, 5)
        dist.all_to_all_single(tensor, of_rank((size, 5)), group=group)
        return tensor

    def uneven(group):
        # Rank r sends r + j + 1 rows to rank j.
        gives = [rank + other + 1 for other in range(size)]
        tensor = torch.zeros(sum(gives), 2)
        dist.all_to_all_single(tensor, of_rank((sum(gives), 2)), gives, gives, group=group)
        return tensor

    for act in (all_gathered, into_tensor, scattered_sum, scattered_tensor, single, uneven):
        both(act)

    places = [torch.zeros(other + 1) for other in range(size)]
    dist.all_to_all(places, [torch.full((rank + 1,), float(other)) for other in range(size)])
    assert [place.tolist() for place in places] == [[float(rank)] * (other + 1) for other in range(size)]
    places = [torch.zeros(other + 1) for other in range(size)]
    dist.all_gather(places, torch.full((rank + 1,), float(rank)))
    assert [place.tolist() for place in places] == [[float(other)] * (other + 1) for other in range(size)]
    many: list = [None] * size
    dist.all_gather_object(many, {"rank": rank})
    assert many == [{"rank": other} for other in range(size)]
    with dist._coalescing_manager():
        several = [torch.full((3,), float(rank + one)) for one in range(3)]
        for one in several:
            dist.all_reduce(one)
    assert [one[0].item() for one in several] == [sum(range(size)) + size * one for one in range(3)]
    half = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        assert reduced(half, torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("ranks", [2, 3])
def test_each_collective_gives_what_gloo_gives(ranks: int) -> None:
    run(each_collective, ranks)


def work_objects() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [torch.full((1000,), float(rank + call)) for call in range(40)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    told = []
    futures = [work.get_future().then(lambda future: told.append(future.value()[0][0].item())) for work in works]
    for work in reversed(works):
        assert work.wait() and work.is_completed()
    torch.futures.wait_all(futures)
    assert sorted(told) == [float(sum(range(size)) + size * call) for call in range(40)]
    assert tensors[3][0] == sum(range(size)) + size * 3

    # Messages: by tag, and in order; from anybody; both ways at once.
    to, back = (rank + 1) % size, (rank + size - 1) % size
    sends = [dist.isend(torch.full((call + 1,), float(rank)), to, tag=call % 2) for call in range(6)]
    for tag in (1, 0):
        for call in range(tag, 6, 2):
            got = torch.zeros(call + 1)
            assert dist.recv(got, back, tag=tag) == back
            assert got.tolist() == [float(back)] * (call + 1)
    for send in sends:
        send.wait()
    if rank == 0:
        senders = set()
        for _ in range(size - 1):
            got = torch.zeros(3)
            senders.add(dist.recv(got, tag=9))
            assert got[0].item() in senders
        assert senders == set(range(1, size))
        dist.barrier()
        last = torch.zeros(3)
        dist.recv(last, 1, tag=9)
        assert last[0].item() == 77
    else:
        dist.send(torch.full((3,), float(rank)), 0, tag=9)
        dist.barrier()
        if rank == 1:
            dist.send(torch.full((3,), 77.0), 0, tag=9)
    large, landing = torch.full((400_000,), float(rank)), torch.zeros(400_000)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, large, to), dist.P2POp(dist.irecv, landing, back)]):
        work.wait()
    assert (landing == back).all()

    with pytest.raises(RuntimeError, match="scale the tensor"):
        dist.all_reduce(torch.ones(2), op=dist._make_nccl_premul_sum(2.0))
    with pytest.raises(RuntimeError, match="to_dense"):
        dist.all_reduce(torch.ones(2).to_sparse())
    with pytest.raises(RuntimeError, match="cannot combine elements"):
        dist.all_reduce(torch.ones(2), op=dist.ReduceOp.BAND)
    dist.barrier()


def test_work_objects_messages_and_refusals() -> None:
    run(work_objects, 3)


def teams_of_python() -> None:
    """`brant` itself starts through the process group, beside it; its teams take tensors."""
    import brant

    brant.init(gpu="none", via=dist)
    team = brant.world()
    assert (team.rank, team.size) == (dist.get_rank(), dist.get_world_size())
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
        mine = torch.full((4, 3), team.rank + 1).to(dtype)
        assert team.allreduce(mine, out=mine).wait() is mine
        assert (mine == 3).all(), mine
        apart = torch.zeros(4, 6, dtype=dtype)[:, ::2]
        team.allreduce(torch.ones(4, 3, dtype=dtype), out=apart).wait()
        assert (apart == 2).all(), apart
    with pytest.raises(brant.NotSupported, match="pass out=tensor"):
        team.allreduce(torch.ones(3, dtype=torch.bfloat16))
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2]


def test_teams_of_python_take_tensors_beside_a_process_group() -> None:
    run(teams_of_python, 2)
