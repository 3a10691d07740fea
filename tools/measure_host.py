#!/usr/bin/env python3
"""Measures what docs/numbers says of host memory, on this machine, and writes it to docs/numbers/<cpu>-<date>.jsonl.

    make build && tools/measure_host.py            some minutes; leave the machine alone meanwhile

Rows name the commit they were measured with. So a tree with changes that are not committed is refused, and so is a
build of another commit; and a machine that others use, unless --even-if-busy says that it shall be. The file appears
when all is measured, or not at all. Needs only Python 3.10 and git.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs" / "numbers"
BUSY_LOAD = 0.5  # of the cores, over the last minute
LIMIT_S = 900  # of one step
CHANNEL_SIZES = "8,1K,8K,12K,16K,32K,64K,128K,256K,512K,1M,4M,16M"
MESSAGE_SIZES = "8,1K,8K,16K,64K,256K,1M,4M"


class Refused(Exception):
    """Why nothing is measured or written, and what to do."""


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    command: list[str]


def steps(programs: pathlib.Path, rows: pathlib.Path, few: list[str]) -> list[Step]:
    """What is measured, in order. `few`: more options of `brant bench`, to try it in seconds."""
    brant = str(programs / "brant")
    bench = {
        "channel": ["--sizes", CHANNEL_SIZES, "--peer", "ucx"],
        "message": ["--model", "message", "--sizes", MESSAGE_SIZES, "--peer", "ucx"],
        "put": ["--model", "put", "--sizes", CHANNEL_SIZES, "--peer", "ucx"],
        "get": ["--model", "get", "--sizes", CHANNEL_SIZES, "--peer", "ucx"],
    }
    found = []
    for model, options in bench.items():
        for what in ("latency", "bandwidth"):
            command = [brant, "bench", what, "--memory", "host", *options, *few, "--json", str(rows)]
            found.append(Step(f"{what}, {model}", command))
    four = [brant, "run", "-n", "4", "--", brant, "bench", "latency", "--memory", "host", "--sizes", "8"]
    found.append(Step("latency, 4 processes", [*four, *few, "--json", str(rows)]))
    if not few:  # it has no repetitions to choose
        cost = [str(programs / "chare_cost"), "--json", str(rows)]
        found.append(Step("chares in one process", cost))
        found.append(Step("chares in two processes", [brant, "run", "-n", "2", "--", *cost]))
    jacobi = [brant, "run", "-n", "2", "--no-prefix", "--", str(programs / "jacobi3d"), "--memory", "host"]
    for overlap in ([], ["--overlap"]):
        size = ["--size", "128", "128", "256", "--iterations", "5" if few else "200", "--warmup", "5"]
        name = f"jacobi3d, 128^3 per process{', overlap' if overlap else ''}"
        found.append(Step(name, [*jacobi, *size, *overlap, "--json", str(rows)]))
    return found


def file_name(cpu: str, day: datetime.date) -> str:
    """ "AMD EPYC, 2 cores" of 23 November 2026: amd-epyc-2-cores-2026-11-23.jsonl."""
    machine = re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
    return f"{machine}-{day.isoformat()}.jsonl"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=ROOT, text=True, capture_output=True)
    if done.returncode != 0:
        raise Refused(f"git {' '.join(arguments)}: {done.stderr.strip()}: rows must name a commit")
    return done.stdout.rstrip()


def require_committed(changes: str) -> None:
    if changes:
        raise Refused(f"there are changes that are not committed, commit or remove them first:\n{changes}")


def require_same_commit(version: str, head: str) -> None:
    built = re.fullmatch(r"[^+]+\+g([0-9a-f]{7,})", version)
    if not built or not head.startswith(built[1]):
        raise Refused(f"the programs are brant {version}, this is commit {head[:7]}: build them again (make build)")


def require_quiet(load: float, cores: int) -> None:
    if load > cores * BUSY_LOAD:
        raise Refused(
            f"this machine is busy (load {load:.1f} on {cores} cores): the figures would be its neighbours'. Wait, or "
            "say --even-if-busy"
        )


def environment() -> dict[str, str]:
    """As a new user has it: no variables of brant or UCX, and the built-in choice of paths."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BRANT_", "UCX_"))}
    return {**plain, "BRANT_CALIBRATION": "off", "BRANT_GPU": "none"}


def run(step: Step) -> None:
    print(f"{step.name} ...", flush=True)
    try:
        done = subprocess.run(
            step.command, env=environment(), text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Refused(f"{step.name}: {fault}") from fault
    if done.returncode != 0:
        raise Refused(f"{step.name} ended with {done.returncode}:\n{done.stderr.strip()}")


def require_rows(text: str, version: str) -> int:
    """All rows are of the program that was to be measured. Gives their number."""
    rows = [json.loads(line) for line in text.splitlines() if line]
    for row in rows:
        if row["brant"] != version:
            raise Refused(f"a row of {row['bench']} is of brant {row['brant']}, not of {version}: nothing is kept")
    if not rows:
        raise Refused("no step wrote a row: nothing is kept")
    return len(rows)


def info(brant: pathlib.Path) -> dict:
    try:
        done = subprocess.run([brant, "info", "--json"], env=environment(), text=True, capture_output=True, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as fault:
        raise Refused(f"{brant} does not say what it is ({fault}): build it first (make build)") from fault


def measure(programs: pathlib.Path, target: pathlib.Path | None, few: list[str], even_if_busy: bool) -> pathlib.Path:
    machine = info(programs / "brant")
    require_committed(git("status", "--porcelain", "--untracked-files=no"))
    require_same_commit(machine["brant"], git("rev-parse", "HEAD"))
    if not even_if_busy:
        require_quiet(os.getloadavg()[0], machine["cores"])
    name = file_name(f"{machine['cpu']}, {machine['cores']} cores", datetime.date.today())
    target = target or NUMBERS / name
    if target.exists():
        raise Refused(f"{target} is there already: remove it first, or name another with --out")
    with tempfile.TemporaryDirectory() as scratch:
        rows = pathlib.Path(scratch) / "rows.jsonl"
        for step in steps(programs, rows, few):
            run(step)
        text = rows.read_text()
        count = require_rows(text, machine["brant"])
        target.write_text(text)
    print(f"{count} rows of brant {machine['brant']} in {target}")
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "bin", help="where brant was built")
    parser.add_argument("--out", type=pathlib.Path, help="another file")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to try this tool: no figures to keep")
    parser.add_argument("--even-if-busy", action="store_true", help="measure although others use the machine")
    arguments = parser.parse_args()
    if arguments.quick and not arguments.out:
        parser.error("--quick needs --out: its figures do not belong into docs/numbers")
    few = ["--iterations", "5", "--warmup", "1"] if arguments.quick else []
    try:
        measure(arguments.programs.resolve(), arguments.out, few, arguments.even_if_busy)
    except Refused as fault:
        print(f"measure_host: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
