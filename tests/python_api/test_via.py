"""Starting through what a program has: a communicator of mpi4py, or something with the same methods."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
from conftest import START, brant, environment, run_command

if brant is not None:
    import fake_mpi
    import numpy


def run_together(body, size: int, folder: pathlib.Path, **more: str) -> list[tuple[int, str]]:
    """Runs it in so many processes that nobody started as ranks: exit code and output of each."""
    command = [sys.executable, str(START), __file__, body.__name__, "none"]
    processes = []
    for rank in range(size):
        place = {"FAKE_SOCKET": str(folder / "hub"), "FAKE_RANK": str(rank), "FAKE_SIZE": str(size)}
        processes.append(
            subprocess.Popen(
                command,
                env=environment(**place, BRANT_BOOT_TIMEOUT_MS="10000", **more),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=60)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]


async def around() -> None:
    rank, size = brant.rank(), brant.size()
    ends = brant.channel((rank + 1) % size, id=rank), brant.channel((rank - 1) % size, id=(rank - 1) % size)
    sent = ends[0].send(numpy.full(1000, rank))
    assert (await ends[1].recv())[0] == (rank - 1) % size
    await sent


def ring() -> None:
    communicator = fake_mpi.communicator()
    brant.init(via=communicator)
    assert (brant.rank(), brant.size()) == (communicator.Get_rank(), communicator.Get_size())
    assert (brant.local_rank(), brant.local_size()) == (brant.rank(), brant.size())
    brant.run(around())
    assert communicator.allgather(brant.rank()) == list(range(brant.size()))  # it is still the program's own


@pytest.mark.parametrize("size", [1, 3])
def test_processes_meet_through_a_communicator(size: int, tmp_path: pathlib.Path):
    done = run_together(ring, size, tmp_path)
    assert [code for code, _ in done] == [0] * size, done


def slow_end() -> None:
    """Who is at the end already keeps the network moving: a transfer that came late is served."""
    brant.init(via=fake_mpi.communicator())
    global segment  # until the end of the interpreter: others read it
    segment = brant.Segment(numpy.arange(1_000_000.0)) if brant.rank() == 0 else None

    async def main() -> None:
        channel = brant.channel(1 - brant.rank(), id=1)
        if brant.rank() == 0:
            await channel.send(segment.ticket())
            return
        ticket = await channel.recv()
        time.sleep(1)
        out = numpy.empty(1_000_000)
        await brant.RemoteSegment(0, ticket).get(out)
        assert out[-1] == 999_999

    brant.run(main())


def test_who_ends_early_serves_those_who_do_not(tmp_path: pathlib.Path):
    # By TCP the process that has the memory takes part in every get.
    done = run_together(slow_end, 2, tmp_path, BRANT_PATH="ucx", UCX_TLS="tcp,self")
    assert [code for code, _ in done] == [0, 0], done


def one_is_not_brant() -> None:
    communicator = fake_mpi.communicator()
    if communicator.Get_rank() == 1:
        communicator.allgather(b"not what brant gives")
        os._exit(0)
    try:
        brant.init(via=communicator)
    except brant.Error as error:
        print("refused:", error)


def test_something_else_that_is_gathered_is_refused(tmp_path: pathlib.Path):
    code, output = run_together(one_is_not_brant, 2, tmp_path)[0]
    assert code == 0 and "brought as the record of rank 1 something else" in output, output


def wrong_things() -> None:
    class Liar:
        Get_rank = staticmethod(lambda: 3)
        Get_size = staticmethod(lambda: 2)
        allgather = Barrier = None

    class Failing(Liar):
        def allgather(self, mine: bytes):
            raise RuntimeError("the network is down")

        Get_rank = staticmethod(lambda: 0)

    for via, words in [(7, "lacks Get_rank, Get_size, allgather, Barrier"), (Liar(), "rank 3 of 2")]:
        with pytest.raises(brant.InvalidArgument, match=words):
            brant.init(via=via)
    with pytest.raises(brant.Error, match="RuntimeError: the network is down"):
        brant.init(via=Failing())

    class Texts(Failing):
        allgather = staticmethod(lambda mine: ["a text"] * 2)

    class Named(Failing):
        Get_rank = staticmethod(lambda: "first")

    with pytest.raises(brant.Error, match="allgather brought an object of type str, where each gave bytes"):
        brant.init(via=Texts())
    with pytest.raises(brant.Error, match="Get_rank gave 'first', which is no rank or size"):
        brant.init(via=Named())
    brant.init(gpu="none")
    with pytest.raises(brant.InvalidArgument, match="running already"):
        brant.init(via=Failing())


def test_what_is_no_communicator_is_refused_in_words():
    done = run_command([sys.executable, str(START), __file__, "wrong_things", "none"])
    assert done.returncode == 0, done.stderr


def beside_mpi() -> None:
    from mpi4py import MPI

    brant.init(via=MPI.COMM_WORLD)
    assert (brant.rank(), brant.size()) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
    brant.run(around())
    assert MPI.COMM_WORLD.allreduce(brant.rank()) == sum(range(brant.size()))


def test_beside_mpi4py():
    beside = pathlib.Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if importlib.util.find_spec("mpi4py") is None or mpiexec is None:
        pytest.skip("no mpi4py or no mpiexec here: pip install mpi4py mpich")
    done = run_command([mpiexec, "-n", "2", sys.executable, str(START), __file__, "beside_mpi", "none"])
    assert done.returncode == 0, done.stdout + done.stderr
