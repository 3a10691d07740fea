"""Starts the rivals of `python3 -m brant.bench --peer`, one after another, while the processes of brant are idle."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import brant

MODULES = {  # of each rival, and how one gets it
    "connection": ("multiprocessing", ""),
    "streams": ("asyncio", ""),
    "mpi4py": ("mpi4py", "pip install mpi4py mpich"),
    "charm4py": ("charm4py", "pip install charm4py"),
    "ucxx": ("ucxx", "pip install ucxx-cu12"),
    "ucx-py": ("ucp", "pip install ucx-py-cu12"),
}
LOOPS = {"streams": "asyncio", "ucxx": "asyncio", "ucx-py": "asyncio"}
ON_DEVICE = ("ucxx", "ucx-py")  # those that take arrays of CuPy
LIMIT_S = 120.0


class CannotPlay(Exception):  # noqa: N818, the name says what it is
    """Why a rival is not measured here, in a sentence."""


def names_of(text: str) -> list[str]:
    """Of `--peer`.

    Raises:
        ValueError: there is no such rival.
    """
    names = list(MODULES) if text == "all" else text.split(",")
    for name in names:
        if name not in MODULES:
            raise ValueError(f"there is no peer '{name}': use {', '.join(MODULES)}, or all")
    return names


def command_of(name: str) -> list[str]:
    """What starts a program of it in two processes, in front of the program's own file."""
    module, cure = MODULES[name]
    if importlib.util.find_spec(module) is None:
        raise CannotPlay(f"it is not installed: {cure}")
    if name == "mpi4py":
        beside = pathlib.Path(sys.executable).with_name("mpiexec")
        mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
        if mpiexec is None:
            raise CannotPlay("there is no mpiexec: pip install mpich")
        return [mpiexec, "-n", "2", sys.executable]
    if name == "charm4py":
        return [sys.executable, "-m", "charmrun.start", "+p2", "++local", "++quiet"]
    return [sys.executable]


def environment() -> dict[str, str]:
    """Nothing of the launcher that started this process; another one starts the rival."""
    ours = ("BRANT_", "UCX_", "PMI_", "PMIX_", "OMPI_", "SLURM_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    folder = str(pathlib.Path(sys.executable).parent)  # charmrun looks there for what it starts
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**plain, **root, "PATH": folder + os.pathsep + plain.get("PATH", "")}


def end_of(process: subprocess.Popen, limit_s: float, each_second: Callable[[], None]) -> int | None:
    """Its exit code; None when it was ended after so many seconds. brant makes progress meanwhile."""
    end, tick = time.monotonic() + limit_s, time.monotonic()
    try:
        while process.poll() is None:
            if time.monotonic() > end:
                return None
            if time.monotonic() > tick:
                each_second()
                tick += 1.0
            brant.sleep(0.05).wait()
        return process.returncode
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # it is the first of a session; none of them stays behind
        process.wait()


def play(
    name: str,
    what: str,
    memory: str,
    counts: list[tuple[int, int]],
    each_second: Callable[[], None],
    limit_s: float = LIMIT_S,
) -> dict[str, Any]:
    """Runs a rival in two processes of its own.

    Args:
        what: "channel", or "chare" for entry methods.
        memory: "numpy" or "cupy".
        counts: bytes of a message, and round trips.
        each_second: is called while it plays.

    Returns:
        "version"; "figures", a list of {"bytes", "times"}, a time being the seconds of a round trip; "note", what went
        wrong before the last size, or "".

    Raises:
        CannotPlay: it cannot, or gave nothing.
    """
    if what == "chare" and name != "charm4py":
        raise CannotPlay("it has no entry methods: measure it with --what channel")
    if memory == "cupy" and name not in ON_DEVICE:
        raise CannotPlay("it is measured with memory of NumPy only")
    start = command_of(name)
    program = str(pathlib.Path(__file__).with_name("_rivals.py"))
    with tempfile.TemporaryDirectory(prefix="brant-rival-") as folder:
        file, said = pathlib.Path(folder, "seen"), pathlib.Path(folder, "said")
        text = ",".join(f"{size}:{count}" for size, count in counts)
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*start, program, name, what, memory, text, str(file)],
                env=environment(),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        code = end_of(process, limit_s, each_second)
        note = ""
        if code != 0:
            note = f"it was ended after {limit_s:.0f} s" if code is None else f"it ended with exit code {code}"
            note = ": ".join([note, *said.read_text(errors="replace").strip().splitlines()[-1:]])
        if not file.exists():
            raise CannotPlay(note or "it ended before the first size")
        return {**json.loads(file.read_text()), "note": note}
