"""A pickle that does not carry the seal of the job is never read: reading one runs what it says."""

from __future__ import annotations

import pathlib
import pickle
import shlex

import pytest
from conftest import PROGRAMS, brant, command, run_command, run_job

FORGER = PROGRAMS / "forged_pickle"
BOTH = pytest.mark.parametrize("loop", ["brant", "asyncio"])
SEALS = {"none": "", "short": "00" * 8, "wrong": "00" * 16, "long": "00" * 24}


class Hostile:
    """Makes a file where it is unpickled."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file

    def __reduce__(self):
        return pathlib.Path.touch, (self.file,)


def test_the_hostile_pickle_is_one(tmp_path) -> None:
    pickle.loads(pickle.dumps(Hostile(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


async def receives_from_a_forger() -> None:
    channel = brant.channel(1, 1)
    with pytest.raises(brant.PeerRejected, match="without the seal of this job") as caught:
        await channel.recv(timeout=20)
    assert caught.value.peer == 1
    assert await channel.recv(timeout=20) == b"ok", "what comes behind it is read"


@pytest.mark.skipif(not FORGER.exists(), reason=f"{FORGER} is not there: run 'make build'")
@BOTH
@pytest.mark.parametrize("seal", SEALS)
def test_a_pickle_without_the_seal_is_refused_and_not_read(tmp_path, loop, seal) -> None:
    ran = tmp_path / "ran"
    launch = command(receives_from_a_forger, loop=loop)
    begin = launch.index("--") + 1
    rank_1 = shlex.join([str(FORGER), pickle.dumps(Hostile(ran)).hex(), SEALS[seal]])
    either = f"if [ $BRANT_RANK = 1 ]; then exec {rank_1}; else exec {shlex.join(launch[begin:])}; fi"
    done = run_command([*launch[:begin], "sh", "-c", either])
    assert done.returncode == 0, done.stdout + done.stderr
    assert not ran.exists(), "the pickle was read"
    assert done.stderr.count("the seal of this job (pickles)") == 1, done.stderr
    assert "Cure:" in done.stderr and "network.md" in done.stderr


async def sends_objects() -> None:
    if brant.rank() == 0:
        await brant.channel(1, 1).send({"a": [1, 2]})
    else:
        assert await brant.channel(0, 1).recv(timeout=20) == {"a": [1, 2]}


def test_objects_of_the_job_are_read() -> None:
    done = run_job(sends_objects)
    assert "seal" not in done.stderr
