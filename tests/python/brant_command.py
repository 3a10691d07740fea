"""The programs that the tests of this folder start: those of build/bin, or of the folder that BRANT_BIN names. It may
also name the program `brant` in that folder."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIVEN = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build" / "bin"))
BRANT = GIVEN if GIVEN.is_file() else GIVEN / "brant"
BIN = BRANT.parent

needs_brant = pytest.mark.skipif(
    not os.access(BRANT, os.X_OK), reason=f"{BRANT} is not built (BRANT_BIN names another)"
)


def plain_environment() -> dict[str, str]:
    """As a new user has it: no variables of brant and UCX."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("BRANT_", "UCX_"))}


def ranks_of(launcher: int) -> list[int]:
    """The processes of a job that `brant run` started, as far as they are there, in the order of their ranks."""
    found = []
    with contextlib.suppress(OSError):
        for child in pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
            with contextlib.suppress(OSError):
                if b"BRANT_RANK=" in pathlib.Path("/proc", child, "environ").read_bytes():
                    found.append(int(child))
    return found


def expect_a_killed_process_to_end_the_job(command: list, banner: bytes, gpu: str) -> None:
    """Kills the last process of a job once that has said its first line: the others end within seconds."""
    job = subprocess.Popen(
        command, env={**os.environ, "BRANT_GPU": gpu}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert banner in job.stdout.readline()
        os.kill(ranks_of(job.pid)[-1], signal.SIGKILL)
        begin = time.monotonic()
        assert job.wait(timeout=20) != 0
        assert time.monotonic() - begin < 20
    finally:
        job.kill()
        job.stdout.close()


def brant(*arguments: str | os.PathLike, limit_s: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a new user has it: of the variables of brant and UCX it sees only those given here. What
    somebody measured on this machine counts unless BRANT_CALIBRATION=off is among them."""
    return subprocess.run(
        [BRANT, *arguments],
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=limit_s,
        env={**plain_environment(), **environment},
    )


def bench(*arguments: str, **environment: str) -> str:
    """What `brant bench` prints, whatever somebody measured on this machine."""
    done = brant("bench", *arguments, **{"BRANT_CALIBRATION": "off", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows_of(path: pathlib.Path) -> list[dict]:
    """The rows of a file of --json."""
    return [json.loads(line) for line in path.read_text().splitlines()]
