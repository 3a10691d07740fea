"""`brant info --jobs` and `--job`: what runs, seen from outside."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIVEN = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build" / "bin"))
BRANT = GIVEN / "brant" if GIVEN.is_dir() else GIVEN
LIMIT_S = 60

pytestmark = pytest.mark.skipif(not os.access(BRANT, os.X_OK), reason=f"{BRANT} is not built (BRANT_BIN names another)")


def info(home: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(BRANT), "info", *arguments],
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
        env={**os.environ, "XDG_RUNTIME_DIR": str(home)},
    )


def listed(home: pathlib.Path) -> dict:
    done = info(home, "--jobs", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for(found, what: str, seconds: float = 20):
    end = time.monotonic() + seconds
    while True:
        if value := found():
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def running(
    home: pathlib.Path, *bench: str, around: Sequence[str] = (), **environment: str
) -> Iterator[subprocess.Popen]:
    """Two ranks that exchange messages for longer than any test takes, or until they are ended."""
    command = [BRANT, "run", "-n", "2", "--", BRANT, "bench", *(bench or ("latency", "--sizes", "64K"))]
    with subprocess.Popen(
        [*around, *map(str, command), "--iterations", "10000000", "--warmup", "0"],
        env={**os.environ, "BRANT_CALIBRATION": "off", "XDG_RUNTIME_DIR": str(home), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as job:
        try:
            yield job
        finally:
            job.terminate()
            job.wait(20)


def guardian_of(launcher: int) -> int:
    """The child of a `brant run` that has its command line, and that `pgrep` finds beside it."""
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return next(int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "brant-guardian\n")


def mine(home: pathlib.Path, launcher: int) -> dict | None:
    """The job of this `brant run`, once both ranks have sent something."""
    done = info(home, "--job", str(launcher), "--json")
    if done.returncode != 0:
        return None
    job = json.loads(done.stdout)
    busy = [process for process in job["processes"] if any(path["sent"] for path in process["paths"].values())]
    return job if len(busy) == 2 else None


def test_a_running_job_is_listed_counted_and_watched_until_it_ends(tmp_path: pathlib.Path) -> None:
    with running(tmp_path) as launcher:
        job = wait_for(lambda: mine(tmp_path, launcher.pid), "both ranks send")
        assert (job["size"], job["program"], job["launcher"]) == (2, "brant", "brant run")
        assert [process["rank"] for process in job["processes"]] == [0, 1]
        assert 0 < job["uptime_s"] < LIMIT_S
        total = job["total"]["paths"]
        for figure in ("sent", "bytes_sent", "received", "bytes_received"):
            assert sum(path[figure] for path in total.values()) > 0
            for name, path in total.items():
                ranks = [rank["paths"][name][figure] for rank in job["processes"] if name in rank["paths"]]
                assert path[figure] == sum(ranks)
        assert job["total"]["failures"] == 0
        rank = job["processes"][1]["pid"]
        for wanted in (str(rank), job["job"], str(guardian_of(launcher.pid))):
            assert json.loads(info(tmp_path, "--job", wanted, "--json").stdout)["job"] == job["job"]
        assert job["job"] in [each["job"] for each in listed(tmp_path)["jobs"]]
        text = info(tmp_path, "--job", str(rank)).stdout
        assert job["job"] in text and "failures" in text and all(name in text for name in total)
        assert str(rank) in info(tmp_path, "--jobs").stdout
        watch = subprocess.Popen(
            [str(BRANT), "info", "--job", job["job"], "--json", "--watch", "0.1"],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert json.loads(watch.stdout.readline())["job"] == job["job"]
        rates = [json.loads(watch.stdout.readline()) for _ in range(3)]
    assert watch.wait(20) == 0, "it ends with the job"
    watch.stdout.close()
    for rate in rates:
        assert rate["seconds"] >= 0.1
    # Not in every tenth of a second: a busy machine may leave the ranks out of one.
    assert sum(path["sent"] for rate in rates for path in rate["per_second"]["paths"].values()) > 0
    assert job["job"] not in [each["job"] for each in listed(tmp_path)["jobs"]]


def test_chares_are_counted_too(tmp_path: pathlib.Path) -> None:
    with running(tmp_path, "latency", "--model", "message", "--sizes", "64K") as launcher:
        job = wait_for(lambda: mine(tmp_path, launcher.pid), "both ranks send")
    assert sum(path["received"] for path in job["total"]["paths"].values()) > 0


def test_what_killed_processes_leave_is_recognised_and_removed(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "brant"
    with running(tmp_path) as launcher:
        job = wait_for(lambda: mine(tmp_path, launcher.pid), "both ranks send")
        assert len(list(folder.iterdir())) == 2
        os.kill(job["processes"][1]["pid"], signal.SIGKILL)
        launcher.wait(20)
    left = [file.name for file in folder.iterdir()]
    assert str(job["processes"][1]["pid"]) in {name.split("-")[0] for name in left}
    report = listed(tmp_path)
    assert report["removed"] >= len(left)
    assert job["job"] not in [each["job"] for each in report["jobs"]]
    assert list(folder.iterdir()) == []


UNSHARE = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0,
    reason="no pid namespace can be made here",
)
def test_a_job_of_another_pid_namespace_is_marked_and_forgotten_when_it_was_killed(tmp_path: pathlib.Path) -> None:
    def jobs_there() -> list[dict]:
        return [job for job in listed(tmp_path)["jobs"] if len(job["processes"]) == 2]

    with running(tmp_path, around=UNSHARE) as unshare:
        [job] = wait_for(jobs_there, "both ranks are listed")
        assert all(process["other_pid_namespace"] for process in job["processes"])
        text = info(tmp_path, "--jobs").stdout
        assert f" {job['processes'][0]['pid']}* " in text and "another pid namespace" in text
        unshare.kill()  # and with it everything in the namespace
        wait_for(lambda: not jobs_there(), "the dead job is forgotten")
    wait_for(lambda: info(tmp_path, "--jobs").returncode == 0 and not list((tmp_path / "brant").iterdir()), "its pages")


def test_the_next_job_removes_them_as_well(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "brant"
    folder.mkdir(mode=0o700)
    namespace = os.stat("/proc/self/ns/pid").st_ino
    (folder / f"{os.getpid()}-1-{namespace}-0").write_text("of an earlier process with this pid")
    (folder / "notes").write_text("of somebody else")
    with running(tmp_path) as launcher:
        wait_for(lambda: mine(tmp_path, launcher.pid), "both ranks send")
        names = {file.name for file in folder.iterdir()}
        assert "notes" in names and len(names) == 3
        assert any("notes" in problem for problem in listed(tmp_path)["problems"])


def test_off_is_off(tmp_path: pathlib.Path) -> None:
    with running(tmp_path, BRANT_STATISTICS="off") as launcher:
        time.sleep(1)
        assert mine(tmp_path, launcher.pid) is None
    assert not (tmp_path / "brant").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--job", "no-such-job"], "no-such-job"),
        (["--job", ""], "brant info --jobs"),
        (["--job", "1", "--jobs"], "excludes"),
        (["--watch", "1"], "requires"),
        (["--job", "1", "--watch", "0"], "--watch"),
    ],
)
def test_wrong_questions_are_named(arguments: list[str], text: str, tmp_path: pathlib.Path) -> None:
    done = info(tmp_path, *arguments)
    assert done.returncode != 0
    assert text in done.stderr + done.stdout
