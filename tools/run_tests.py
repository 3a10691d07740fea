#!/usr/bin/env python3
"""Everything CI checks, stage by stage; stops at the first stage that fails and names it.

    tools/run_tests.py            all stages (what `make test` and .ci/run do)
    tools/run_tests.py --list     the stages
    tools/run_tests.py STAGE ...  some of them
    tools/run_tests.py --skips BUILD_FOLDER   the skipped tests of a build tree, with their reasons

The runners' own closing lines (ctest's, pytest's) are shown as they are.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import changes

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)
PASSED: set[str] = set()  # The stages that did, so far.
CXX_FOLDERS = ["include", "src", "apps", "bench", "examples", "tests"]
CXX_SUFFIXES = (".h", ".cc", ".cu", ".cuh")

# What clang-tidy may take of `make test`: it reads a file in about 20 s of a core.
TIDY_FILES = 10
TIDY_SECONDS = 90  # after which it takes up no other file
TIDY_SECONDS_OF_LAST = 60


class StageFailed(Exception):
    """A command of a stage ended with a non-zero exit status."""


def run(*command: str, quiet: bool = False) -> None:
    """Runs a command in the source root; `quiet` shows its output only when it fails."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        text=True,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )
    if done.returncode != 0:
        if quiet:
            print(done.stdout, end="", flush=True)
        raise StageFailed(f"'{' '.join(command)[:160]}' ended with exit status {done.returncode}")


# --- Stages ------------------------------------------------------------------------------------------------------


def cxx_sources() -> list[str]:
    found = [path for top in CXX_FOLDERS for path in sorted((ROOT / top).rglob("*")) if path.suffix in CXX_SUFFIXES]
    return [str(path.relative_to(ROOT)) for path in found]


def stage_format() -> None:
    run("clang-format", "--dry-run", "-Werror", *cxx_sources())
    run("ruff", "format", "--check", "--diff", ".")
    run("ruff", "check", ".")


def apply_format() -> None:
    run("clang-format", "-i", *cxx_sources())
    run("ruff", "check", "--fix", "--quiet", ".")
    run("ruff", "format", "--quiet", ".")


# Compiled against a PyTorch by who imports brant.torch, and by no tree of CMake: clang-tidy would not find its headers.
OF_OTHERS = "src/bindings/torch/"


def compiled_sources() -> set[str]:
    """The sources of the debug tree, which is configured for that, and of which nothing but made headers is built."""
    run("cmake", "--preset", "dev", quiet=True)
    run("cmake", "--build", "--preset", "dev", "--target", "brant_mpi_generated", "brant_mpich_generated", quiet=True)
    commands = json.loads((ROOT / "build" / "dev" / "compile_commands.json").read_text())
    return {os.path.relpath(entry["file"], ROOT) for entry in commands}


def stage_tidy() -> None:
    """Not part of `make test`: it takes longer than everything else together."""
    compiled = compiled_sources()
    run("run-clang-tidy.py", "-quiet", "-j", JOBS, "-p", "build/dev", *(p for p in cxx_sources() if p in compiled))


def tidy_file(path: str, lines: dict[str, changes.Lines], deadline: float) -> str | None:
    """What clang-tidy finds in the changed lines while it reads this file; None: there was no time to read it."""
    seconds = deadline - time.monotonic()
    if seconds < 0:
        return None
    line_filter = json.dumps([{"name": name, "lines": of_file} for name, of_file in lines.items()])
    # A header is read as a file of its own, which clang warns of; its flags are those of the source most like it.
    command = ["clang-tidy", "-quiet", "-p", "build/dev", "--extra-arg=-Wno-pragma-once-outside-header"]
    try:
        done = subprocess.run(
            [*command, f"-line-filter={line_filter}", path],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=seconds + TIDY_SECONDS_OF_LAST,
        )
    except subprocess.TimeoutExpired:
        return None
    except FileNotFoundError:
        raise StageFailed("there is no clang-tidy: run 'make setup-dev'") from None
    return "" if done.returncode == 0 else done.stdout + done.stderr


def stage_tidy_changes() -> None:
    """clang-tidy on the lines that this branch changes: those with most of them, as far as time allows."""
    found = changes.base(ROOT)
    if found is None:
        print("tidy: no earlier commit is known here, so nothing is known to have changed", flush=True)
        return
    commit, why = found
    compiled = compiled_sources()
    lines = {
        name: of_file
        for name, of_file in changes.changed_lines(ROOT, commit).items()
        if name in compiled
        or (name.endswith(".h") and name.split("/")[0] in CXX_FOLDERS and not name.startswith(OF_OTHERS))
    }
    # Sources before headers, which most are read with.
    ordered = sorted(lines, key=lambda name: (name.endswith(".h"), -sum(b - a + 1 for a, b in lines[name]), name))
    deadline = time.monotonic() + TIDY_SECONDS
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        said = dict(zip(ordered, pool.map(lambda p: tidy_file(p, lines, deadline), ordered[:TIDY_FILES]), strict=False))
    read = [name for name in ordered if said.get(name) is not None]
    left = [name for name in ordered if said.get(name) is None]
    print(f"tidy: {len(read)} of {len(ordered)} C++ files changed since {commit[:7]}, {why}", flush=True)
    if left:
        print(f"tidy: not read, there being too many for the time: {', '.join(left)}", flush=True)
    bad = [name for name in read if said[name]]
    for name in bad:
        print(said[name], end="", flush=True)
    if bad:
        raise StageFailed(f"clang-tidy found something in changed lines of {', '.join(bad)}, or what they include")


def stage_layers() -> None:
    run(sys.executable, "tools/check_layers.py")


def stage_classes() -> None:
    run(sys.executable, "tools/check_classes.py")


def build_tree(preset: str, build_preset: str | None = None, *, left_out: list[str] | None = None) -> None:
    run("cmake", "--preset", preset, f"-DBRANT_LEFT_OUT_TESTS={';'.join(left_out or [])}", quiet=True)
    for old in (ROOT / "build" / preset / "test-results").glob("*.json"):
        old.unlink()  # results of tests that no longer exist must not be listed
    run("cmake", "--build", "--preset", build_preset or preset, "-j", JOBS, quiet=True)


def shared_memory_mb() -> float:
    """What lies in /dev/shm: it is memory, and it outlives the process that forgot it."""
    usage = shutil.disk_usage("/dev/shm")
    return usage.used / 1e6


def run_ctest(preset: str, *options: str) -> None:
    """Runs a tree's tests; says so when they left shared memory behind, which would starve the stages after it."""
    before = shared_memory_mb()
    try:
        run("ctest", "--preset", preset, "-j", JOBS, *options)
    finally:
        left = shared_memory_mb() - before
        if left > 64:
            print(f"=== {left:.0f} MB more in /dev/shm than before these tests: one of them leaks it", flush=True)
    show_skips(ROOT / "build" / preset)


def stage_asan() -> None:
    build_tree("asan")
    run_ctest("asan")


def stage_tsan() -> None:
    build_tree("tsan", "tsan-threaded")
    run_ctest("tsan")


def stage_pytest() -> None:
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/python")


# What the optimised tree neither builds nor runs again behind the tree of the address sanitizer, which is optimised too
# (-O1). Jobs of several processes (multi) run in both, but for those with an emulated device.
ONCE = "^(unit|conformance|fault|emulated)$"


def run_by_asan() -> list[str]:
    """Those tests, if that tree's have run in this call."""
    if "asan" not in PASSED:
        return []
    listing = subprocess.run(
        ["ctest", "--preset", "asan", "-L", ONCE, "--show-only=json-v1"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        check=True,
    )
    return [test["name"] for test in json.loads(listing.stdout)["tests"]]


def stage_release() -> None:
    once = run_by_asan()
    build_tree("release", left_out=once)
    named = ROOT / "build" / "release" / "run-by-asan.txt"
    named.write_text("".join(f"{name}\n" for name in once))
    print(f"release: {len(once)} tests have run with the address sanitizer, and do not run again", flush=True)
    run_ctest("release", *(["--exclude-from-file", str(named)] if once else []))


def stage_python_api() -> None:
    """The package for Python, of the release tree; skipped by name where Python has no headers."""
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/python_api")


def stage_python_numpy1() -> None:
    """Of these tests those of arrays once more, with the last NumPy before 2."""
    run(sys.executable, "tools/test_python_versions.py", "--numpy1")


# Of the tests of the package for Python those of tensors and of modules of PyTorch, which skip where there is none.
OF_TENSORS = ["tests/python_api/test_frameworks.py", "tests/python_api/test_examples_of_python.py"]


def stage_torch() -> None:
    """The backend of torch.distributed, and tensors in channels, with a PyTorch that tools/frameworks.py unpacks;
    without one, skipped."""
    subprocess.run([sys.executable, "tools/frameworks.py"], cwd=ROOT, stdin=subprocess.DEVNULL)
    with_torch = ["env", f"PYTHONPATH={ROOT / '.frameworks'}", "OMP_NUM_THREADS=1", sys.executable, "-m", "pytest"]
    run(*with_torch, "-q", "-ra", *OF_TENSORS, "-k", "tensor or modules")
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/torch")


# Of mpi4py's modules, those that call much in forms of their own and take seconds: test_datatype takes 50, in Python.
MPI4PY_MODULES = [
    *["test_comm", "test_comm_inter", "test_comm_topo", "test_file", "test_grequest", "test_io", "test_p2p_buf"],
    *["test_p2p_buf_part", "test_request", "test_rma", "test_status", "test_win"],
]


# Of its wheel, those that pass handles, statuses and functions of the program; 20 seconds.
MPI4PY_WHEEL_MODULES = [
    *["test_attributes", "test_cco_buf", "test_comm_inter", "test_datatype", "test_errhandler", "test_file"],
    *["test_grequest", "test_op", "test_p2p_buf", "test_request", "test_rma", "test_status", "test_win"],
]


def stage_mpi4py() -> None:
    """Some of mpi4py's own tests on two processes, by the standard's ABI and, of its wheel, by that of MPICH;
    tools/mpi4py_tests.py without modules runs all on 1, 2 and 4."""
    run(sys.executable, "tools/mpi4py_tests.py", "-n", "2", *MPI4PY_MODULES)
    run(sys.executable, "tools/mpi4py_tests.py", "--wheel", "-n", "2", *MPI4PY_WHEEL_MODULES)


def stage_hosts() -> None:
    """Jobs over hosts in namespaces, with the programs of the release tree; skipped by name where there can be none."""
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/hosts")


STAGES = {
    "format": stage_format,
    "layers": stage_layers,
    "classes": stage_classes,
    "tidy-changes": stage_tidy_changes,
    "asan": stage_asan,
    "tsan": stage_tsan,
    "release": stage_release,
    "python-api": stage_python_api,
    "python-numpy1": stage_python_numpy1,
    "torch": stage_torch,
    "mpi4py": stage_mpi4py,
    "hosts": stage_hosts,
    "pytest": stage_pytest,
}
EXTRA_STAGES = {"tidy": stage_tidy}


# --- Skipped tests -----------------------------------------------------------------------------------------------


def skipped_tests(build: pathlib.Path) -> dict[str, list[str]]:
    """Reason -> the tests skipped for it, from the GoogleTest results of a build tree."""
    skips: dict[str, list[str]] = collections.defaultdict(list)
    for file in sorted((build / "test-results").glob("*.json")):
        try:
            suites = json.loads(file.read_text())["testsuites"]
        except (json.JSONDecodeError, KeyError):
            skips["unreadable result file: the program ended while it wrote it"].append(file.stem)
            continue
        for suite in suites:
            for test in suite["testsuite"]:
                if test.get("result") != "SKIPPED":
                    continue
                # tests/main.cc records the reason; a skip in SetUpTestSuite is recorded with the suite.
                reason = test.get("skip_reason") or suite.get("skip_reason") or "no reason given"
                name = f"{file.stem.partition('.')[0]}: {suite['name']}.{test['name']}"
                if name not in skips[" ".join(reason.split())]:  # the ranks of one test skip together
                    skips[" ".join(reason.split())].append(name)
    return skips


def show_skips(build: pathlib.Path) -> None:
    skips = skipped_tests(build)
    total = sum(len(names) for names in skips.values())
    print(f"Skipped in build/{build.name}: {total} tests", flush=True)
    for reason, names in sorted(skips.items()):
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        print(f"  {len(names):4} x {reason}\n         {shown}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="stages to run, in this order (default: all)")
    parser.add_argument("--list", action="store_true", help="print the stages")
    parser.add_argument("--apply-format", action="store_true", help="format C++ and Python in place, run nothing")
    parser.add_argument("--skips", type=pathlib.Path, metavar="BUILD_FOLDER", help="list skipped tests of a build tree")
    options = parser.parse_args()
    if options.list:
        print("\n".join(STAGES))
        return 0
    if options.skips:
        show_skips(options.skips)
        return 0
    if options.apply_format:
        apply_format()
        return 0
    stages = STAGES | EXTRA_STAGES
    chosen = options.stages or list(STAGES)
    unknown = [name for name in chosen if name not in stages]
    if unknown:
        parser.error(f"unknown stage {unknown[0]!r}; the stages are {', '.join(stages)}")
    start = time.monotonic()
    for name in chosen:
        begin = time.monotonic()
        print(f"=== {name}", flush=True)
        try:
            stages[name]()
        except StageFailed as failure:
            print(f"=== {name} FAILED after {time.monotonic() - begin:.0f} s: {failure}", file=sys.stderr, flush=True)
            return 1
        PASSED.add(name)
        if name != chosen[-1]:  # the last stage's own closing lines stay the last
            now = time.monotonic()
            print(f"=== {name} passed in {now - begin:.0f} s ({now - start:.0f} s so far)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
