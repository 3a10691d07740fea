"""Starting over two hosts: what the servers of the launchers bring, and how a start ends that cannot succeed."""

import hosts
import pytest
from brant_command import BIN
from test_hosts_jobs import start

LAUNCHERS = ["slurm", "open_mpi_4", "open_mpi_5"]
PROBE = BIN / "boot_probe"


# What speaks PMI-1 tells of no death and names no rank that is late: of it these tests ask what it promises.
ALL_LAUNCHERS = [*LAUNCHERS, "slurm_pmi2"]


def probe(building, launcher, scenario, ranks=4):
    return start(building, launcher, [PROBE, scenario], ranks=ranks, PROBE_SIZE=str(ranks)).finish(30)


@pytest.mark.parametrize("launcher", ALL_LAUNCHERS)
@pytest.mark.parametrize("scenario", ["rounds", "big", "missing", "bad_input", "overwrites", "late", "abandons"])
def test_exchanges_keep_their_promises(two_hosts, launcher, scenario):
    done = probe(two_hosts, launcher, scenario)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("launcher", ALL_LAUNCHERS)
def test_ranks_that_leave_at_once_are_not_missed(two_hosts, launcher):
    """The server of a rank that has left may forget what it put, so nobody leaves before all have it."""
    for _ in range(5):
        done = probe(two_hosts, launcher, "missing")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("scenario", ["killed", "quits"])
def test_a_rank_that_ends_before_the_fence_is_named(two_hosts, launcher, scenario):
    done = probe(two_hosts, launcher, scenario)
    assert done.exit_code != 124, done.output
    assert "last error" not in done.output, done.output  # what the probe says when a promise was broken


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_fence_without_a_rank_that_left_well_does_not_succeed(two_hosts, launcher):
    done = probe(two_hosts, launcher, "leaves")
    assert done.exit_code == 0, done.output


def test_ranks_of_slurm_without_a_server_are_refused_with_the_cure(two_hosts):
    done = two_hosts.slurm.srun([PROBE, "name"], "-N2", "-n2", "--mpi=none").finish(30)
    assert done.exit_code == 65, done.output
    assert "srun --mpi=pmix" in done.output


def batch(building, *commands):
    """What a batch script of two tasks on two hosts prints. (sbatch --wait asks every ten seconds only.)"""
    (building.run / "script").write_text("\n".join(["#!/bin/sh", *map(str, commands), "echo finished", ""]))
    said = building.run / "script.out"
    said.unlink(missing_ok=True)
    done = building.slurm.command("sbatch", "-N2", "-n2", "-o", "/run/script.out", "/run/script")
    assert done.exit_code == 0, done.output
    hosts.wait_until(lambda: said.exists() and "finished" in said.read_text(), "the batch script ended")
    return said.read_text()


def test_a_batch_script_is_a_job_of_one_and_starts_jobs(two_hosts):
    """SLURM_PROCID is set in it, and is no rank."""
    said = batch(two_hosts, f"{PROBE} name", f"srun --mpi=pmix {PROBE} name")
    assert "bootstrap=single rank=0 size=1" in said
    assert "bootstrap=pmix rank=0 size=2" in said
    assert "bootstrap=pmix rank=1 size=2" in said


@pytest.mark.parametrize("version", [4, 5])
def test_mpirun_in_an_allocation_is_believed_not_slurm(two_hosts, version):
    """Its ranks see SLURM_PROCID and SLURM_STEP_NUM_TASKS of the step that runs mpirun's daemons."""
    program = "mpirun.openmpi" if version == 4 else hosts.LAUNCHERS / "openmpi5" / "bin" / "mpirun"
    said = batch(two_hosts, f"{program} --allow-run-as-root --bind-to none -n 2 {PROBE} name")
    assert "bootstrap=pmix rank=0 size=2" in said
    assert "bootstrap=pmix rank=1 size=2" in said


def test_a_pmix_server_in_another_network_is_named_at_once(two_hosts):
    """As in a container that was given a rank's variables and a network of its own."""
    address = "pmix-server.7;tcp4://127.0.0.1:9"
    gone = {"PMIX_NAMESPACE": "job", "PMIX_RANK": "0", "PMIX_SERVER_URI41": address, "PMIX_SERVER_URI2": address}
    done = two_hosts.hosts[0].on([PROBE, "name"], **gone).finish(10)
    assert done.exit_code == 65, done.output
    assert address in done.output
    assert "runs in another network" in done.output
    assert done.seconds < 5
