#!/usr/bin/env python3
"""Tries brant on a GPU machine where nothing can be installed, and measures it.

    tools/gpu_check.py [--bundle FILE|FOLDER] [--out FOLDER] [--only GROUP,...] [--quick] [--share-gpu]

Takes the bundle of `make dist` (`tools/bundle.py --with-tests` for the conformance programs), or build/bin. Every
program runs under a time limit. What it prints goes to OUT/log.txt, its rows to OUT/rows.jsonl, the verdicts to
OUT/summary.json, all up to date while the rest runs; what `brant calibrate` measured to OUT/calibration.txt. A failure
does not stop the rest. Needs Python 3.9, and two GPUs for everything that moves bytes between GPUs; with fewer it runs
what it can and says what it left out; `--share-gpu` lets processes share a GPU for all that is judged and not timed.
The groups `python` and `torch` try the package that BRANT_PYTHONPATH names, with CuPy and PyTorch; `torch` compiles
what connects the two. All groups take about 18 minutes, and one call ends after 9: name groups, in two calls. Exit
status 1 if something failed.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tarfile
import tempfile

from gpu_checks.check import ROOT, Check, line_of
from gpu_checks.figures import ratio_lines
from gpu_checks.steps import GROUPS, all_steps


def report(check: Check) -> int:
    print("\n=== gpu_check: summary", f"({check.gpus} GPUs)")
    for verdict in check.verdicts:
        print(line_of(verdict))
    for line in ratio_lines(check.rows):
        print(line)
    bad = [each.name for each in check.verdicts if each.result not in ("ok", "skipped")]
    done = sum(each.result == "ok" for each in check.verdicts)
    print(f"{done} ok, {len(bad)} failed, {len(check.verdicts) - done - len(bad)} skipped; results in {check.out}")
    return 1 if bad else 0


# --- Where the programs are ---------------------------------------------------------------------------------------


def programs_in(bundle: pathlib.Path | None, scratch: pathlib.Path) -> pathlib.Path:
    """The bin folder of a bundle, unpacked if need be; else that of the build."""
    packed = [ROOT, ROOT / "build" / "dist", pathlib.Path.cwd()]
    if bundle is None:
        found = sorted({path for folder in packed for path in folder.glob("brant-*.tar.xz")})
        bundle = found[-1] if found else ROOT / "build"
    if bundle.is_file():
        with tarfile.open(bundle) as tar:
            tar.extractall(scratch, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(scratch)
        bundle = next(scratch.iterdir())
    for folder in (bundle / "bin", bundle):
        if os.access(folder / "brant", os.X_OK):
            return folder.resolve()
    raise SystemExit(f"gpu_check: no program 'brant' in {bundle}: run `make dist` and carry the file, or `make build`")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, help="a bundle, its folder, or a folder with the programs")
    parser.add_argument("--out", type=pathlib.Path, help="where logs and rows go (default $OUT, else ./gpu_check_out)")
    parser.add_argument("--only", default="", help=f"groups with commas: {' '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="few sizes, small problems")
    parser.add_argument(
        "--share-gpu", action="store_true", help="with too few GPUs, what measures nothing shares those there are"
    )
    parser.add_argument("--list", action="store_true", help="only say what would run")
    options = parser.parse_args()
    out = (options.out or pathlib.Path(os.environ.get("OUT") or "gpu_check_out")).resolve()
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as scratch:
        unpacked, work = pathlib.Path(scratch, "bundle"), pathlib.Path(scratch, "work")
        unpacked.mkdir()
        work.mkdir()
        check = Check(programs_in(options.bundle, unpacked), out, work, options.quick, options.share_gpu)
        steps = all_steps(check)
        wanted = [name for name in options.only.split(",") if name] or GROUPS
        unknown = [name for name in wanted if name not in GROUPS]
        if unknown:
            parser.error(f"unknown group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
        for step in steps:
            if step.group not in wanted:
                continue
            if options.list:
                print(f"{step.group:<10} {step.name:<34} {' '.join(step.command)}")
            else:
                check.run(step)
        return 0 if options.list else report(check)


if __name__ == "__main__":
    sys.exit(main())
