"""Every collective of torch.distributed on tensors of two GPUs, bit for bit; and in which order streams do them."""

from __future__ import annotations

import datetime
import functools
import operator
import os
import signal

from conftest import on_two_gpus, run, start

try:
    import torch
    import torch.distributed as dist
except ImportError:  # in pytest itself, which only starts the processes that have it
    torch = dist = None

COUNTS = (0, 1, 7, 1000, 100_003, 1 << 20)


def of_rank(rank: int, count: int, dtype):
    """Small whole numbers, of which sums and products are exact in each type."""
    values = (torch.arange(count, device="cuda") * 7 + 3 * rank) % 9
    return values.to(dtype) if dtype in (torch.uint8, torch.bool) else (values - 3).to(dtype)


def of_all(count: int, dtype) -> list:
    return [of_rank(rank, count, dtype) for rank in range(dist.get_world_size())]


def mine(count: int, dtype):
    return of_rank(dist.get_rank(), count, dtype)


def same(got, wanted, *what) -> None:
    assert got.is_cuda and torch.equal(got, wanted), (what, got, wanted)


def every_reduction() -> None:
    op = dist.ReduceOp
    folds = {
        op.SUM: operator.add,
        op.PRODUCT: operator.mul,
        op.MIN: torch.minimum,
        op.MAX: torch.maximum,
        op.BAND: operator.and_,
        op.BOR: operator.or_,
        op.BXOR: operator.xor,
    }
    floats = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    integers = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for dtype in (*floats, *integers):
        for how, fold in folds.items():
            if dtype.is_floating_point and how in (op.BAND, op.BOR, op.BXOR):
                continue
            for count in COUNTS:
                wanted = functools.reduce(fold, of_all(count, dtype))
                got = mine(count, dtype)
                dist.all_reduce(got, op=how)
                same(got, wanted, dtype, how, count)
                to_root = mine(count, dtype)
                dist.reduce(to_root, 1, op=how)
                same(to_root, wanted if dist.get_rank() == 1 else mine(count, dtype), dtype, how, count)
    for dtype in floats:
        got = mine(1000, dtype)
        dist.all_reduce(got, op=op.AVG)
        same(got, functools.reduce(operator.add, of_all(1000, dtype)) / 2, dtype)
    truths = mine(1000, torch.bool)
    dist.all_reduce(truths)
    same(truths, functools.reduce(operator.or_, of_all(1000, torch.bool)))
    turned = torch.complex(mine(100, torch.float32), mine(100, torch.float32))
    dist.all_reduce(turned)
    total = functools.reduce(operator.add, of_all(100, torch.float32))
    same(turned, torch.complex(total, total))
    apart = mine(1200, torch.float32).view(30, 40)[::2, 1:]
    dist.all_reduce(apart)
    same(apart, functools.reduce(operator.add, of_all(1200, torch.float32)).view(30, 40)[::2, 1:])


def every_movement() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8):
        for count in COUNTS:
            every = of_all(count, dtype)
            for root in range(size):
                got = mine(count, dtype)
                dist.broadcast(got, root)
                same(got, every[root], "broadcast", dtype, count)
                places = [torch.empty_like(got) for _ in range(size)] if rank == root else None
                dist.gather(every[rank], places, dst=root)
                for place, wanted in zip(places or [], every, strict=False):
                    same(place, wanted, "gather", dtype, count)
                got = torch.empty_like(got)
                dist.scatter(got, [one + root for one in every] if rank == root else None, src=root)
                same(got, every[rank] + root, "scatter", dtype, count)
            places = [torch.empty_like(got) for _ in range(size)]
            dist.all_gather(places, every[rank])
            whole = torch.empty(size * count, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(whole, every[rank])
            same(whole, torch.cat(every), "all_gather_into_tensor", dtype, count)
            same(torch.cat(places), whole, "all_gather", dtype, count)
            blocks = mine(size * count, dtype)
            total = functools.reduce(operator.add, of_all(size * count, dtype))
            part = torch.empty(count, dtype=dtype, device="cuda")
            dist.reduce_scatter_tensor(part, blocks)
            same(part, total[rank * count : (rank + 1) * count], "reduce_scatter_tensor", dtype, count)
            part.zero_()
            dist.reduce_scatter(part, list(blocks.view(size, count)))
            same(part, total[rank * count : (rank + 1) * count], "reduce_scatter", dtype, count)
            swapped = torch.empty_like(blocks)
            dist.all_to_all_single(swapped, blocks)
            wanted = [one[rank * count : (rank + 1) * count] for one in of_all(size * count, dtype)]
            same(swapped, torch.cat(wanted), "all_to_all_single", dtype, count)
            places = [torch.empty_like(part) for _ in range(size)]
            dist.all_to_all(places, [one.clone() for one in blocks.view(size, count)])
            same(torch.cat(places), torch.cat(wanted), "all_to_all", dtype, count)


def what_the_host_does() -> None:
    """Blocks of different sizes, and messages: their streams are waited for, and what comes next finds their bytes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    other = 1 - rank
    for count in (1, 1000, 1 << 20):
        going = [count * (1 + rank + 2 * to) for to in range(size)]
        coming = [count * (1 + source + 2 * rank) for source in range(size)]
        torch.cuda._sleep(20_000_000)
        given = torch.cat([torch.full((going[to],), 10.0 * rank + to, device="cuda") for to in range(size)])
        got = torch.zeros(sum(coming), device="cuda")
        dist.all_to_all_single(got, given, coming, going)
        wanted = [torch.full((coming[source],), 10.0 * source + rank, device="cuda") for source in range(size)]
        same(got, torch.cat(wanted), "split sizes", count)
        places = [torch.zeros(count * (1 + source), device="cuda") for source in range(size)]
        dist.all_gather(places, torch.full((count * (1 + rank),), float(rank), device="cuda"))
        for source, place in enumerate(places):
            same(place, torch.full_like(place, float(source)), "all_gather of different sizes", count)
        torch.cuda._sleep(20_000_000)
        message = torch.full((count,), 1.0 + rank, device="cuda") * 2
        landing = torch.zeros(count, device="cuda")
        works = [dist.isend(message, other), dist.irecv(landing, other)]
        for work in works:
            work.wait()
        same(landing * 3, torch.full_like(landing, 6.0 * (1 + other)), "messages", count)
        requests = [dist.P2POp(dist.isend, landing, other), dist.P2POp(dist.irecv, message, other)]
        for work in dist.batch_isend_irecv(requests):
            work.wait()
        same(message, torch.full_like(message, 2.0 * (1 + rank)), "a batch", count)
        if rank == 0:
            landing.zero_()
            assert dist.recv(landing) == 1
            same(landing, torch.full_like(landing, 5.0), "from anybody", count)
        else:
            dist.send(torch.full((count,), 5.0, device="cuda"), 0)
    on_cpu = torch.full((3,), 1.0 + rank)
    dist.all_reduce(on_cpu)
    assert on_cpu.tolist() == [3.0] * 3
    dist.barrier()


def order_of_streams() -> None:
    rank = dist.get_rank()
    wanted = torch.full((1 << 20,), 3.0, device="cuda")
    for way in (True, False):  # what is used for the first time is loaded, which waits for the GPU
        tensor = torch.full((1 << 20,), 1.0 + rank, device="cuda")
        work = dist.all_reduce(tensor, async_op=way)
        if way:
            work.wait()
        same(tensor * 2, wanted * 2)
    for _ in range(3):
        # What is computed before is waited for by the GPU, and what comes after finds the sum; the CPU waits for none.
        torch.cuda._sleep(400_000_000)  # 0.2 s and more
        tensor = torch.full((1 << 20,), 1.0 + rank, device="cuda")
        end = torch.cuda.Event()
        work = dist.all_reduce(tensor, async_op=True)
        assert not work.is_completed()
        work.wait()
        end.record()
        assert not end.query(), "work.wait() has waited for the GPU"
        doubled = tensor * 2
        same(doubled, wanted * 2)
        assert work.is_completed()
        torch.cuda._sleep(400_000_000)
        tensor = torch.full((1 << 20,), 1.0 + rank, device="cuda")
        dist.all_reduce(tensor)
        end.record()
        assert not end.query(), "all_reduce has waited for the GPU"
        same(tensor, wanted)
    # On other streams, with tensors that go before the call has run.
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            works, sums = [], []
            for step in range(20):
                torch.cuda._sleep(1_000_000)
                tensor = torch.full((100_000,), float(rank + step), device="cuda")
                works.append(dist.all_reduce(tensor, async_op=True))
                sums.append(tensor)
                del tensor
                torch.full((100_000,), -1.0, device="cuda")  # where a tensor may have been
            for step, (work, total) in enumerate(zip(works, sums, strict=True)):
                work.wait()
                same(total, torch.full_like(total, 2.0 * step + 1))
    # A future's callbacks run on streams that come behind.
    torch.cuda._sleep(100_000_000)
    tensor = torch.full((1 << 20,), 1.0 + rank, device="cuda")
    future = dist.all_reduce(tensor, async_op=True).get_future()
    halved = future.then(lambda done: [done.value()[0] / 2])
    same(halved.wait()[0], wanted / 2)
    # With a limit, waiting waits.
    torch.cuda._sleep(100_000_000)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait(datetime.timedelta(seconds=20))
    assert work.is_completed()
    with dist._coalescing_manager(async_ops=True) as together:
        parts = [torch.full((size,), 1.0 + rank, device="cuda") for size in (10, 1000, 100_000)]
        for part in parts:
            dist.all_reduce(part)
    together.wait()
    for part in parts:
        same(part, torch.full_like(part, 3.0))


def captured() -> None:
    rank = dist.get_rank()
    tensor, total = torch.full((5000,), 1.0 + rank, device="cuda"), torch.zeros(5000, device="cuda")
    dist.all_reduce(total)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        total.copy_(tensor)
        dist.all_reduce(total)
        tensor += total
    values = [1.0, 2.0]
    for _ in range(5):
        graph.replay()
        values = [value + sum(values) for value in values]
    same(tensor, torch.full_like(tensor, values[rank]))
    dist.all_reduce(tensor)
    same(tensor, torch.full_like(tensor, sum(values)))


def on_the_wrong_gpu() -> None:
    elsewhere = torch.ones(3, device=f"cuda:{1 - dist.get_rank()}")
    try:
        dist.all_reduce(elsewhere)
    except RuntimeError as error:
        assert "the process group works with cuda:" in str(error), error
    else:
        raise AssertionError("a tensor of another GPU was taken")
    own = torch.full((4,), 1.0 + dist.get_rank(), device="cuda")
    dist.all_reduce(own)
    same(own, torch.full_like(own, 3.0))


def several_groups() -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    for step in range(10):
        tensors = [torch.full((50_000,), float(dist.get_rank() + step + i), device="cuda") for i in range(2)]
        works = [dist.all_reduce(one, group=group, async_op=True) for one, group in zip(tensors, groups, strict=True)]
        for i, (work, tensor) in enumerate(zip(works, tensors, strict=True)):
            work.wait()
            same(tensor, torch.full_like(tensor, 2.0 * (step + i) + 1))
    dist.destroy_process_group(groups[0])
    same_again = torch.ones(3, device="cuda")
    dist.all_reduce(same_again, group=groups[1])
    same(same_again, torch.full_like(same_again, 2.0))


def one_dies() -> None:
    tensor = torch.ones(1000, device="cuda")
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(tensor)
        torch.cuda.synchronize()
        dist.all_reduce(tensor)
    except RuntimeError as error:
        assert "rank 1" in str(error), error
        print("told of the death", flush=True)
        os._exit(0)


@on_two_gpus
def test_every_reduction_is_right() -> None:
    run(every_reduction)


@on_two_gpus
def test_every_movement_is_right() -> None:
    run(every_movement)


@on_two_gpus
def test_what_streams_do_not_carry_out_the_host_does() -> None:
    run(what_the_host_does)


@on_two_gpus
def test_streams_keep_the_order_and_the_cpu_does_not_wait() -> None:
    run(order_of_streams)


@on_two_gpus
def test_collectives_are_captured_in_graphs() -> None:
    run(captured)


@on_two_gpus
def test_both_devices_may_be_named() -> None:
    run(what_the_host_does, 2, "cuda:brant,cpu:brant")


@on_two_gpus
def test_a_tensor_on_another_gpu_is_refused() -> None:
    run(on_the_wrong_gpu)


@on_two_gpus
def test_groups_do_not_disturb_each_other() -> None:
    run(several_groups)


@on_two_gpus
def test_a_death_is_told_while_a_stream_waits() -> None:
    processes = start(one_dies, 2)
    output = processes[0].communicate(timeout=120)[0]
    processes[1].wait()
    assert "told of the death" in output, output
