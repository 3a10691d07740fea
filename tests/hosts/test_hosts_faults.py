"""When a rank of another host is killed, every operation under way with it ends as peer_lost, and it is named; what is
only slow or lossy loses nobody."""

import signal

import hosts
import pytest
from brant_command import BIN, BRANT

STEADY_S = 6
LIMIT_S = 6  # the network tells at once, but the machine may be busy
SCENES = ["receives", "small", "flood"]


def start(building, scene, seconds=LIMIT_S):
    """Both ranks talk when this returns. They start without the network, which the test is going to break."""
    command = [BIN / "lost_peer", scene, str(seconds)]
    options = ["--keep-going", "--no-prefix"]
    job = hosts.brant_run(building, BRANT, command, *options)
    for rank in range(2):
        job.until_printed(f"rank {rank} under way")
    return job


def expect_lost(output, survivor):
    """All of its operations ended, some as peer_lost, and it names the other rank."""
    (counts,) = [line for line in output.splitlines() if line.startswith(f"rank {survivor}: ") and "pending" in line]
    assert " 0 otherwise, 0 pending" in counts and " 0 as peer_lost" not in counts, output
    assert f"rank {survivor}: rank {1 - survivor} (pid" in output, output


@pytest.mark.parametrize("scene", SCENES)
def test_a_killed_rank_is_lost(breakable, scene):
    job = start(breakable, scene)
    breakable.hosts[1].signal("lost_peer", signal.SIGKILL)
    expect_lost(job.finish().output, 0)


def expect_steady(job):
    for rank in range(2):
        job.until_printed(f"rank {rank} steady", STEADY_S + 10)
    assert "peer_lost" not in job.output()


def test_lost_packets_lose_nobody(breakable):
    for host in breakable.hosts:
        host.lose(5)
    expect_steady(start(breakable, "steady", STEADY_S))


def test_a_rank_that_was_stopped_for_a_moment_is_not_lost(breakable):
    job = start(breakable, "steady", STEADY_S)
    breakable.hosts[1].signal("lost_peer", signal.SIGSTOP)
    with pytest.raises(hosts.HostsError):  # nobody says anything meanwhile
        job.until_printed("peer_lost", 0.5)
    breakable.hosts[1].signal("lost_peer", signal.SIGCONT)
    expect_steady(job)


def test_a_rank_killed_under_slurm_is_lost(two_hosts):
    program = [BIN / "lost_peer", "receives", str(LIMIT_S)]
    job = two_hosts.slurm.srun(program, "-N2", "-n2", "--mpi=pmix")
    for rank in range(2):
        job.until_printed(f"rank {rank} under way")
    two_hosts.hosts[1].signal("lost_peer", signal.SIGKILL)
    expect_lost(job.finish().output, 0)
