"""The tests of brant.torch: each starts processes that run a function of the test's own file in a process group."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("BRANT_PYTHONPATH", ROOT / "build" / "release" / "python"))
FRAMEWORKS = ROOT / ".frameworks"  # where PyTorch is not installed: for tests on CPUs
START = pathlib.Path(__file__).with_name("start.py")
LIMIT_S = 600  # of a machine that does much else


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = None
    if not list((PACKAGE / "brant").glob("_brant*.so")):
        reason = f"{PACKAGE} has no extension module: run 'make build', on a Python with its headers"
    elif not (FRAMEWORKS / "torch").exists() and importlib.util.find_spec("torch") is None:
        reason = "THERE IS NO PYTORCH, so nothing of brant.torch is tested: run tools/frameworks.py"
    for item in items:
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def count_gpus() -> int:
    """Asked without PyTorch, which pytest itself may not have, and without the driver, which processes inherit."""
    lists = shutil.which("nvidia-smi")
    if lists is None:
        return 0
    shown = subprocess.run([lists, "-L"], capture_output=True, text=True)
    return len(shown.stdout.splitlines()) if shown.returncode == 0 else 0


on_two_gpus = pytest.mark.skipif(count_gpus() < 2, reason="there are no two CUDA GPUs")


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BRANT_", "UCX_"))}
    return {
        **plain,
        "PYTHONPATH": f"{PACKAGE}:{FRAMEWORKS}",
        "XDG_CACHE_HOME": str(ROOT / "build" / "cache"),
        "OMP_NUM_THREADS": "1",
        "BRANT_CALIBRATION": "off",
        **more,
    }


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Before the clock of the first test runs."""
    command = [sys.executable, "-m", "brant.torch"]
    done = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(body, ranks: int, *arguments: str) -> list[subprocess.Popen[str]]:
    """Each process runs `body`, with the group that the arguments name (START)."""
    file = sys.modules[body.__module__].__file__
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    return [
        subprocess.Popen(
            [sys.executable, str(START), file, body.__name__, *arguments],
            env=environment(RANK=str(rank), LOCAL_RANK=str(rank), **place),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]


def outputs_of(processes: list[subprocess.Popen[str]]) -> list[str]:
    try:
        return [process.communicate(timeout=LIMIT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()


def run(body, ranks: int = 2, *arguments: str) -> list[str]:
    """Their outputs, by rank. All must end well."""
    processes = start(body, ranks, *arguments)
    outputs = outputs_of(processes)
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(outputs)
    return outputs
