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
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)
CXX_FOLDERS = ["include", "src", "apps", "bench", "examples", "tests"]
CXX_SUFFIXES = (".h", ".cc", ".cu", ".cuh")


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


def stage_tidy() -> None:
    """Not part of `make test`: it takes longer than everything else together."""
    build_tree("dev")
    ours = [str(ROOT / path) for path in cxx_sources() if path.endswith(".cc") and "compile_fail" not in path]
    commands = json.loads((ROOT / "build" / "dev" / "compile_commands.json").read_text())
    compiled = {entry["file"] for entry in commands}
    run("run-clang-tidy.py", "-quiet", "-j", JOBS, "-p", "build/dev", *(path for path in ours if path in compiled))


def stage_layers() -> None:
    run(sys.executable, "tools/check_layers.py")


def build_tree(preset: str, build_preset: str | None = None) -> None:
    run("cmake", "--preset", preset, quiet=True)
    for old in (ROOT / "build" / preset / "test-results").glob("*.json"):
        old.unlink()  # results of tests that no longer exist must not be listed
    run("cmake", "--build", "--preset", build_preset or preset, "-j", JOBS, quiet=True)


def shared_memory_mb() -> float:
    """What lies in /dev/shm: it is memory, and it outlives the process that forgot it."""
    usage = shutil.disk_usage("/dev/shm")
    return usage.used / 1e6


def run_ctest(preset: str) -> None:
    """Runs a tree's tests; says so when they left shared memory behind, which would starve the stages after it."""
    before = shared_memory_mb()
    try:
        run("ctest", "--preset", preset, "-j", JOBS)
    finally:
        left = shared_memory_mb() - before
        if left > 64:
            print(f"=== {left:.0f} MB more in /dev/shm than before these tests: one of them leaks it", flush=True)
    show_skips(ROOT / "build" / preset)


def stage_asan() -> None:
    build_tree("asan")
    run_ctest("asan")


def stage_tsan() -> None:
    build_tree("tsan", "tsan-unit")
    run_ctest("tsan")


def stage_pytest() -> None:
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/python")


def stage_release() -> None:
    build_tree("release")
    run_ctest("release")


def stage_hosts() -> None:
    """Jobs over hosts in namespaces, with the programs of the release tree; skipped by name where there can be none."""
    run(sys.executable, "-m", "pytest", "-q", "-ra", "tests/hosts")


STAGES = {
    "format": stage_format,
    "layers": stage_layers,
    "asan": stage_asan,
    "tsan": stage_tsan,
    "release": stage_release,
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
        if name != chosen[-1]:  # the last stage's own closing lines stay the last
            now = time.monotonic()
            print(f"=== {name} passed in {now - begin:.0f} s ({now - start:.0f} s so far)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
