"""The tests of brant for Python: each starts a job whose processes run an async function of the test's own file."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

try:
    import brant
except ImportError:  # in pytest itself, which only starts the processes that have it
    brant = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "release"
PACKAGE = pathlib.Path(os.environ.get("BRANT_PYTHONPATH", TREE / "python"))
BRANT = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build" / "bin" / "brant"))
PROGRAMS = ROOT / "build" / "bin"  # of C++, that tests of both start
START = pathlib.Path(__file__).with_name("start.py")


def pytest_configure() -> None:
    # A shell that starts the tests in the background has SIGINT ignored, and so would every launcher they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not list((PACKAGE / "brant").glob("_brant*.so")):
        reason = f"{PACKAGE} has no extension module: run 'make build', on a Python with its headers"
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BRANT_", "UCX_"))}
    # What pytest finds by a path of its own (PyTorch, in the stage that unpacks it) the processes find as well.
    path = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**plain, "PYTHONPATH": path, "BRANT_CALIBRATION": "off", "BRANT_GPU": "none", **more}


LIMIT_S = 60


def command(
    body, ranks: int = 2, loop: str = "brant", options: tuple[str, ...] = (), limit_s: int = LIMIT_S
) -> list[str]:
    """What starts `body`, an async function of a test file without arguments, in each process of a job."""
    file = sys.modules[body.__module__].__file__
    started = [sys.executable, str(START), file, body.__name__, loop]
    return [str(BRANT), "run", "-n", str(ranks), "--timeout", str(limit_s), *options, "--", *started]


def run_command(what: list[str], limit_s: int = LIMIT_S, **more: str) -> subprocess.CompletedProcess[str]:
    """With `more` in its environment."""
    return subprocess.run(
        what,
        env=environment(**more),
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=limit_s + 30,
    )


def run_job(
    body,
    *,
    ranks: int = 2,
    loop: str = "brant",
    options: tuple[str, ...] = (),
    limit_s: int = LIMIT_S,
    fails: bool = False,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end, which must be a good one unless it `fails`."""
    done = run_command(command(body, ranks, loop, options, limit_s), limit_s, **more)
    assert (done.returncode != 0) == fails, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
