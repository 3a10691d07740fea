"""Jobs in which a rank is killed, or stands still for seconds, at a moment that nobody chose."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator

import pytest
from brant_command import BIN, BRANT, needs_brant, plain_environment, ranks_of

pytestmark = needs_brant

KNOWN_WITHIN_S = 15  # on two cores that other tests may use too; a death is known in milliseconds
PAGE_BYTES = 64 << 10  # what a killed process may leave behind: its page of statistics


@dataclasses.dataclass
class Program:
    """One that never ends by itself. All ranks have to do with one another."""

    ranks: int
    command: list[str | os.PathLike]


FACES = [BIN / "jacobi3d", "--size", "48", "--iterations", "1000000000"]
MESSAGES = ["--model", "message", "--chares-per-process", "4", "--overlap"]
BENCH = [BRANT, "bench", "bandwidth", "--iterations", "10000000", "--sizes"]
PROGRAMS = {
    "faces over channels": Program(4, FACES),
    "faces as messages": Program(4, [*FACES, *MESSAGES]),
    "small messages": Program(2, [*BENCH, "8", "--window", "1"]),
    "large messages": Program(2, [*BENCH, "4M"]),
    "entry methods": Program(2, [*BENCH, "64K", "--model", "message"]),
    "puts": Program(2, [*BENCH, "1M", "--model", "put"]),
}


@contextlib.contextmanager
def started(program: str, folder: pathlib.Path, *more: str) -> Iterator[subprocess.Popen]:
    """The job, once all ranks are there. Its own folder for pages of statistics shows what is left of it."""
    ranks = PROGRAMS[program].ranks
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "60", *more, "--", *PROGRAMS[program].command]
    with open(folder / "output", "w") as output:
        job = subprocess.Popen(
            list(map(str, command)),
            env={
                **plain_environment(),
                "XDG_RUNTIME_DIR": str(folder),
                "BRANT_GPU": "none",
                "BRANT_CALIBRATION": "off",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        limit = time.monotonic() + 20
        while len(ranks_of(job.pid)) < ranks:
            assert job.poll() is None and time.monotonic() < limit, (folder / "output").read_text()
            time.sleep(0.002)
        yield job
    finally:
        for rank in ranks_of(job.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)
        job.kill()
        job.wait()


@dataclasses.dataclass
class Kill:
    program: str
    seconds: float  # after the ranks have started; the first tenths are those in which they meet
    victim: int


def kills() -> list[Kill]:
    chance = random.Random(20261123)
    programs = [chance.choice(list(PROGRAMS)) for _ in range(32)]
    return [Kill(name, chance.uniform(0, 1), chance.randrange(PROGRAMS[name].ranks)) for name in programs]


def shared_memory() -> set[str]:
    return {entry.name for entry in pathlib.Path("/dev/shm").iterdir()} if pathlib.Path("/dev/shm").is_dir() else set()


@pytest.mark.parametrize("kill", kills(), ids=lambda kill: f"{kill.program}, {kill.seconds:.2f} s")
def test_survivors_of_a_kill_end_by_themselves_and_name_it(kill: Kill, tmp_path: pathlib.Path) -> None:
    before = shared_memory()
    with started(kill.program, tmp_path, "--keep-going") as job:
        time.sleep(kill.seconds)
        ranks = ranks_of(job.pid)
        assert len(ranks) == PROGRAMS[kill.program].ranks, (tmp_path / "output").read_text()
        os.kill(ranks[kill.victim], signal.SIGKILL)
        begin = time.monotonic()
        code = job.wait(60)
        took = time.monotonic() - begin
    text = (tmp_path / "output").read_text()
    assert code not in (0, 124), text
    assert took < KNOWN_WITHIN_S, text
    died = re.search(rf"rank (\d) \(pid {ranks[kill.victim]}\) was killed by signal 9", text)
    assert died, text
    survivors = [line for line in text.splitlines() if line.startswith("[") and not line.startswith(f"[{died[1]}]")]
    # One that is killed while they meet has not been talked to.
    lost = re.compile(r"ended, died or become unreachable|ended before rank \d+ connected")
    told = [line for line in survivors if re.search(rf"\brank {died[1]}\b", line) and lost.search(line)]
    assert told, text
    assert not [pid for pid in ranks if pathlib.Path("/proc", str(pid)).exists()]
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "output"]
    assert sum(path.stat().st_size for path in left) <= PAGE_BYTES, left
    named = shared_memory() - before
    assert not {name for name in named if "brant" in name}
    # UCX makes its segment and takes its name away at once: who is killed between the two leaves it.
    assert len({name for name in named if "ucx" in name}) <= 1, named


def run_time_ms(pid: int) -> float:
    """Of the first thread, on a core. Ticks would be too coarse."""
    return int(pathlib.Path("/proc", str(pid), "schedstat").read_text().split()[0]) / 1e6


def stand_still(program: str, seconds: float, victim: int) -> str:
    """Why the job did not go on, or nothing. A rank of one host that stands still is slow, not lost."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="brant-still."))
    try:
        with started(program, folder) as job:
            time.sleep(0.7)
            pid = ranks_of(job.pid)[victim]
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            if job.poll() is not None:
                return f"{program}: ended while rank {victim} stood still: {(folder / 'output').read_text()}"
            os.kill(pid, signal.SIGCONT)
            time.sleep(1)
            if job.poll() is not None:
                return f"{program}: ended after rank {victim} went on: {(folder / 'output').read_text()}"
            before = run_time_ms(pid)
            time.sleep(1)
            # Who waits for ever looks up ten times a second; who goes on gets some of even a busy core.
            return "" if run_time_ms(pid) > before + 3 else f"{program}: rank {victim} does not go on"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_rank_that_stands_still_is_not_lost() -> None:
    stops = [("faces over channels", 5, 1), ("faces as messages", 8, 0), ("large messages", 10, 1), ("puts", 6, 0)]
    with concurrent.futures.ThreadPoolExecutor(len(stops)) as pool:
        assert [why for why in pool.map(lambda stop: stand_still(*stop), stops) if why] == []
