#!/usr/bin/env python3
"""Builds mpi4py against brant's MPI and runs its own tests on it.

    tools/mpi4py_tests.py                  all of them, on 1, 2 and 4 processes
    tools/mpi4py_tests.py -n 2 test_rma    some modules on 2 processes
    tools/mpi4py_tests.py --wheel          the wheel of the package index instead, on brant's library of MPICH's ABI

mpi4py comes as source from the package index and is compiled by `build/bin/mpicc` into .mpi4py, half a minute; a stamp
of the inputs makes a second run take no time. Since it is built for the standard ABI, it stays as brant changes.

The wheel is that of .venv, compiled for MPICH and its libmpi.so.12; its tests are those of the source.

Tests that cannot pass are named in tests/mpi4py/excluded.txt, and those of the wheel alone in excluded_wheel.txt beside
it, each with its reason. A test fails this program if it is
not named there and fails, and a name fails it that no failing test has: the list must not grow old.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

import setup

MPI4PY = setup.ROOT / ".mpi4py"
REQUIREMENTS = setup.ROOT / "requirements-mpi4py.txt"
EXCLUDED = setup.ROOT / "tests" / "mpi4py" / "excluded.txt"
EXCLUDED_OF_WHEEL = EXCLUDED.with_name("excluded_wheel.txt")
PROGRAMS = setup.ROOT / "build" / "bin"
LIBRARIES = setup.ROOT / "build" / "release" / "lib"
SECONDS_MAX = 600  # for one run: nothing of it takes so long
# One test and how it ended, as unittest prints it; the rank stands before it where there are several.
RESULT = re.compile(r"^(?:\[(\d+)\] )?(\w+) \((?:unittest\.loader\._FailedTest\.)?([\w.]+)\) \.\.\. (.*)$")
ENDED = re.compile(r"^(?:\[(\d+)\] )?Ran (\d+) tests? in")


def header_flags() -> list[str] | None:
    """What finds Python's headers: the system's own, or those that setup.py has unpacked. None: there are none."""
    if setup.has_python_headers():
        return []
    unpacked = setup.DEPS / "usr" / "include"
    version = f"python3.{sys.version_info.minor}"
    return [f"-I{unpacked / version}", f"-I{unpacked}"] if (unpacked / version / "Python.h").is_file() else None


def build(fresh: pathlib.Path, flags: list[str]) -> None:
    pip, env = setup.pip_command(setup.VENV / "bin" / "python")
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    mpi4py = next(line for line in lines if line.startswith("mpi4py=="))
    tools = fresh / "tools"
    quiet = ["--quiet", "--no-deps", "--no-cache-dir"]
    setup.run([*pip, "install", *quiet, "--target", str(tools), *[line for line in lines if line != mpi4py]], env=env)
    # Without optimisation: what is tested is the library that it calls.
    env |= {
        "PYTHONPATH": str(tools),
        "MPICC": str(PROGRAMS / "mpicc"),
        "MPI4PY_BUILD_MPIABI": "1",
        "BRANT_MPI_CC": f"{setup.VENV / 'bin' / 'ccache'} cc",
        "CFLAGS": " ".join(["-O0 -g0", *flags]),
    }
    source = [*quiet, "--no-build-isolation", "--no-binary", "mpi4py"]
    setup.run([*pip, "download", *source, "-d", str(fresh), mpi4py], env=env)
    archive = next(fresh.glob("mpi4py-*.tar.gz"))
    shutil.unpack_archive(archive, fresh / "source")
    unpacked = next((fresh / "source").iterdir())
    setup.run([*pip, "install", *source, "--target", str(fresh / "lib"), str(unpacked)], env=env)
    (unpacked / "test").rename(fresh / "test")
    shutil.rmtree(fresh / "source")
    archive.unlink()


def make(flags: list[str]) -> None:
    want = setup.digest(REQUIREMENTS.read_text(), pathlib.Path(__file__).read_text(), sys.version)
    if setup.stamp_is(MPI4PY / ".stamp", want):
        return
    setup.say("building mpi4py, whose tests run on brant's MPI, into .mpi4py")
    fresh = setup.ROOT / ".mpi4py.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    build(fresh, flags)
    (fresh / ".stamp").write_text(want)
    shutil.rmtree(MPI4PY, ignore_errors=True)
    fresh.rename(MPI4PY)


def read_excluded(path: pathlib.Path) -> dict[str, str]:
    """Pattern of a test -> why it cannot pass."""
    excluded = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" ")
        if not reason.strip():
            raise SystemExit(f"{path}:{number}: {pattern} has no reason")
        excluded[pattern] = reason.strip()
    return excluded


def run(processes: int, modules: list[str], wheel: bool) -> str:
    """What the tests print on so many processes, as far as they come."""
    if wheel:
        python = str(setup.VENV / "bin" / "python")
        env = dict(os.environ, MPI4PY_LIBMPI=str(LIBRARIES / "mpich" / "libmpi.so.12"))
    else:
        python = sys.executable
        env = dict(os.environ, PYTHONPATH=str(MPI4PY / "lib"), LD_LIBRARY_PATH=str(LIBRARIES))
    command = [str(PROGRAMS / "brant"), "run", "-n", str(processes), "--", python, "main.py", "-v"]
    for module in modules:
        command += ["-i", rf"^{module}\.py$"]
    try:
        done = subprocess.run(
            command,
            cwd=MPI4PY / "test",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
        return printed.decode(errors="replace") if isinstance(printed, bytes) else printed
    return done.stdout


def check(processes: int, modules: list[str], wheel: bool, excluded: dict[str, str], used: set[str]) -> bool:
    """Runs them once; prints what is wrong. `used` gets the patterns that were needed."""
    printed = run(processes, modules, wheel)
    counts: collections.Counter[str] = collections.Counter()
    wrong = []
    ended = 0
    for line in printed.splitlines():
        ended += ENDED.match(line) is not None
        match = RESULT.match(line)
        if match is None:
            continue
        rank, _, name, result = match.groups()
        word = result.split()[0] if result else "unfinished"
        pattern = next((p for p in excluded if fnmatch.fnmatchcase(name, p)), None)
        if word in ("ok", "skipped", "expected"):
            counts["passed" if word == "ok" else "skipped"] += rank in (None, "0")
        elif pattern is not None:
            used.add(pattern)
            counts["excluded"] += rank in (None, "0")
        else:
            wrong.append(f"{name} on rank {rank or 0}: {result or 'did not end'}")
    tested = "the wheel of mpi4py" if wheel else "mpi4py"
    print(f"{tested} on {processes} processes: " + ", ".join(f"{counts[k]} {k}" for k in sorted(counts)), flush=True)
    if ended != processes:
        print("\n".join(printed.splitlines()[-40:]))
        print(f"{processes - ended} of {processes} processes did not come to the end of their tests")
    for text in wrong:
        print(f"  {text}")
    return not wrong and ended == processes and counts["passed"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", dest="processes", type=int, action="append", help="on so many (default: 1, 2 and 4)")
    parser.add_argument("--wheel", action="store_true", help="the wheel in .venv, on brant's libmpi.so.12")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="modules of its tests (default: all)")
    options = parser.parse_args()
    flags = header_flags()
    if flags is None:
        print("mpi4py: skipped, since this Python has no headers and none could be fetched", flush=True)
        return 0
    try:
        make(flags)
    except (setup.SetupError, OSError, StopIteration) as error:
        print(f"mpi4py cannot be built: {error}", file=sys.stderr)
        return 1
    known = sorted(path.stem for path in (MPI4PY / "test").glob("test_*.py"))
    unknown = [name for name in options.modules if name not in known]
    if unknown:
        parser.error(f"mpi4py has no tests {', '.join(unknown)}")
    excluded = read_excluded(EXCLUDED) | (read_excluded(EXCLUDED_OF_WHEEL) if options.wheel else {})
    whole = [p.removesuffix(".*") for p in excluded if p.removesuffix(".*") in known]  # modules that do not run at all
    modules = options.modules or [name for name in known if name not in whole]
    used: set[str] = set()
    good = True
    for processes in options.processes or [1, 2, 4]:
        good = check(processes, modules, options.wheel, excluded, used) and good
    if not options.modules and not options.processes:
        for pattern in [p for p in excluded if p not in used and p.removesuffix(".*") not in whole]:
            print(f"the lists of excluded tests name {pattern}, and no test failed by it: take it out")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
