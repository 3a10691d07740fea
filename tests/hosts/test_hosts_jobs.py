"""Programs give the right answer over two hosts, whoever starts them."""

import hosts
import pytest
from brant_command import BIN, BRANT

LAUNCHERS = ["slurm", "slurm_pmi2", "open_mpi_4", "open_mpi_5", "unshare"]


def start(building, launcher, command, *, ranks=2, **environment):
    match launcher:
        case "slurm":
            return building.slurm.srun(command, "-N2", f"-n{ranks}", "--mpi=pmix", **environment)
        case "slurm_pmi2":
            return building.slurm.srun(command, "-N2", f"-n{ranks}", "--mpi=pmi2", **environment)
        case "open_mpi_4":
            return hosts.mpirun(building, 4, command, ranks=ranks, **environment)
        case "open_mpi_5":
            return hosts.mpirun(building, 5, command, ranks=ranks, **environment)
    # Processes that share no memory and no name are on different hosts for brant and UCX, also on one machine.
    alone = ["unshare", "--ipc", "--uts"]
    return building.hosts[0].on([BRANT, "run", "-n", str(ranks), "--no-prefix", "--", *alone, *command], **environment)


def expect_good(done):
    assert done.exit_code == 0, done.output
    return done.output


BENCH = ["--check", "--sizes", "8,64K,4M", "--iterations", "20"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("model", ["channel", "message", "put", "get"])
def test_every_byte_arrives_by_the_network(two_hosts, launcher, model):
    """`message` is chares that invoke each other."""
    command = [BRANT, "bench", "latency", "--model", model, *BENCH]
    output = expect_good(start(two_hosts, launcher, command).finish(60))
    rows = [line.split() for line in output.splitlines() if line.split()[:1] in (["8"], ["64K"], ["4M"])]
    assert len(rows) == 3, output
    assert all("ucx" in row for row in rows), output


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_windows_of_messages_arrive_whole(two_hosts, launcher):
    command = [BRANT, "bench", "bandwidth", "--check", "--sizes", "64K", "--iterations", "5"]
    expect_good(start(two_hosts, launcher, command).finish(60))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_device_memory_crosses_hosts(two_hosts, launcher):
    command = [BRANT, "bench", "latency", "--memory", "emulated", *BENCH]
    expect_good(start(two_hosts, launcher, command, BRANT_GPU="emulated").finish(60))


def jacobi(size):
    return [BIN / "jacobi3d", "--check", "--memory", "host", "--size", str(size), "--iterations", "5"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_jacobi3d_agrees_with_a_serial_run(two_hosts, launcher, ranks):
    output = expect_good(start(two_hosts, launcher, jacobi(32), ranks=ranks).finish(60))
    assert "all 32768 cells agree with a serial run to the last bit" in output


@pytest.mark.parametrize("launcher", ["slurm", "slurm_pmi2", "open_mpi_4", "open_mpi_5"])
def test_two_jobs_at_once_do_not_meet(two_hosts, launcher):
    jobs = [start(two_hosts, launcher, jacobi(size)) for size in (24, 32)]
    for job, cells in zip(jobs, (13824, 32768), strict=True):
        assert f"all {cells} cells agree" in expect_good(job.finish(60))
