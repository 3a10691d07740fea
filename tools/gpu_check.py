#!/usr/bin/env python3
"""Tries brant on a GPU machine where nothing can be installed, and measures it.

    tools/gpu_check.py [--bundle FILE|FOLDER] [--out FOLDER] [--only GROUP,...] [--quick]

Takes the bundle of `make dist` (`tools/bundle.py --with-tests` for the conformance programs), or build/bin. Every
program runs under a time limit. What it prints goes to OUT/log.txt, its rows to OUT/rows.jsonl, the verdicts to
OUT/summary.json, all up to date while the rest runs; what `brant calibrate` measured to OUT/calibration.txt. A failure
does not stop the rest. Needs Python 3.9, and two GPUs for everything that moves bytes between GPUs; with fewer it runs
what it can and says what it left out. Under 9 minutes. Exit status 1 if something failed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET_S = 520
GRACE_S = 6
MIB = 1 << 20
PERFTEST_SIZES = {8: 10000, 65536: 5000, MIB: 2000, 16 * MIB: 400}
TARGETS = "8,64K,1M,16M"
GROUPS = ["info", "doctor", "check", "latency", "bandwidth", "perftest", "jacobi", "chare", "stream", "memory", "wire"]
GROUPS += ["channel", "rma", "host", "courier", "calibrate", "sanitizer"]
HELPERS = {"wire_ucx_test": "wire_peer"}  # what a test starts and looks for beside itself
SANITIZER = "compute-sanitizer"


@dataclasses.dataclass
class Step:
    """One program with its arguments, or `act` for steps that need more than one."""

    name: str
    group: str
    command: list[str]
    timeout_s: int = 60
    gpus: int = 0
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    rows: bool = False  # it takes --json FILE
    tool: str = ""  # must be on PATH
    whole: bool = False  # not begun with less time left than its limit
    figure: Callable[[str, list[dict]], str] = lambda log, rows: ""
    excuse: Callable[[str], str] = lambda log: ""  # of a failure that says nothing about brant: why it was skipped
    act: Callable[[Check, Step], tuple[int | None, str]] | None = None


@dataclasses.dataclass
class Verdict:
    name: str
    result: str  # ok, failed (N), timed out, skipped
    seconds: float = 0
    figure: str = ""


class Check:
    """The programs, where the results go, and the time that is left."""

    def __init__(self, bin_folder: pathlib.Path, out: pathlib.Path, scratch: pathlib.Path, quick: bool) -> None:
        self.bin, self.out, self.scratch, self.quick = bin_folder, out, scratch, quick
        self.deadline = time.monotonic() + BUDGET_S
        self.verdicts: list[Verdict] = []
        self.rows: list[dict] = []
        out.mkdir(parents=True, exist_ok=True)
        (out / "log.txt").write_text("")
        self.gpus = self.count_gpus()

    def program(self, name: str) -> str:
        return str(self.bin / name)

    def count_gpus(self) -> int:
        try:
            done = subprocess.run([self.program("brant"), "info", "--json"], capture_output=True, text=True, timeout=60)
            return len(json.loads(done.stdout)["cuda"]["gpus"])
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as fault:
            print(f"gpu_check: brant info does not answer ({fault}): no GPU steps", flush=True)
            return 0

    def why_not(self, step: Step) -> str | None:
        if step.gpus > self.gpus:
            return f"needs {step.gpus} GPU{'s' if step.gpus > 1 else ''}, found {self.gpus}"
        if step.tool and not shutil.which(step.tool):
            return f"{step.tool} is not on PATH"
        ours = [each for each in step.command if each.startswith(f"{self.bin}/")]
        missing = next((each for each in ours if not os.access(each, os.X_OK)), None)
        if missing:
            return f"{pathlib.Path(missing).name} is not in the bundle"
        left = self.deadline - time.monotonic()
        if left < 5:
            return "no time left"
        if step.whole and left < step.timeout_s:
            return f"no time left, it may take {step.timeout_s} s: --only {step.group}"
        return None

    def start(self, command: list[str], log, environment: dict[str, str]) -> subprocess.Popen:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )

    def wait(self, process: subprocess.Popen, timeout_s: float) -> int | None:
        """The exit status, or None after the limit: then it was ended, with everything it started."""
        try:
            return process.wait(max(1.0, min(timeout_s, self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            end(process)
            return None

    def run(self, step: Step) -> None:
        reason = self.why_not(step)
        if reason:
            self.note(Verdict(step.name, "skipped", 0, reason))
            return
        log_path, rows_path = self.scratch / "log.txt", self.scratch / "rows.jsonl"
        rows_path.unlink(missing_ok=True)
        command = [*step.command, "--json", str(rows_path)] if step.rows else step.command
        begin = time.monotonic()
        if step.act:
            status, text = step.act(self, step)
        else:
            with open(log_path, "w") as log:
                log.write(f"$ {' '.join(command)}\n")
                log.flush()
                status = self.wait(self.start(command, log, step.environment), step.timeout_s)
            text = log_path.read_text(errors="replace")
        rows = read_rows(rows_path)
        if not step.name.startswith("check "):  # ten samples are no measurement
            self.rows += rows
        with open(self.out / "log.txt", "a") as log:
            log.write(f"=== {step.name}\n{text}\n")
        result = "timed out" if status is None else "ok" if status == 0 else f"failed ({status})"
        figure = ""
        with contextlib.suppress(LookupError, ValueError, TypeError, ZeroDivisionError):
            figure = step.figure(text, rows)
        if status != 0 and not figure:
            figure = last_line(text)
        excuse = step.excuse(text) if status else ""
        if excuse:
            result, figure = "skipped", excuse
        self.note(Verdict(step.name, result, time.monotonic() - begin, figure))

    def note(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        print(line_of(verdict), flush=True)
        (self.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        (self.out / "summary.json").write_text(
            json.dumps([dataclasses.asdict(each) for each in self.verdicts], indent=1)
        )


def end(process: subprocess.Popen) -> None:
    """SIGTERM lets `brant run` end its ranks, which are in groups of their own."""
    for which in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, which)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            return


def read_rows(path: pathlib.Path) -> list[dict]:
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:100] if lines else "no output"


def line_of(verdict: Verdict) -> str:
    return f"{verdict.name:<34} {verdict.result:<12} {verdict.seconds:6.1f} s  {verdict.figure}"


def short(size: int) -> str:
    for unit, name in ((MIB, "M"), (1024, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


# --- Key figures --------------------------------------------------------------------------------------------------


def find(rows: list[dict], size: int, peer: str | None) -> dict:
    return next(row for row in rows if row["bytes"] == size and row["peer"] == peer)


def sizes_in(rows: list[dict]) -> list[int]:
    return [size for size in PERFTEST_SIZES if any(row["bytes"] == size for row in rows)]


def latency_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for size in sizes_in(rows):
        ours = find(rows, size, None)["us"]["p50"]
        text = f"{short(size)} {ours:.4g} us"
        if any(row["peer"] == "ucx" for row in rows):
            text += f" ({ours / find(rows, size, 'ucx')['us']['p50']:.2f}x ucx)"
        parts.append(text)
    return ", ".join(parts)


def bandwidth_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for size in sizes_in(rows):
        ours = find(rows, size, None)["gb_s"]
        text = f"{short(size)} {ours:.4g} GB/s"
        if any(row["peer"] == "ucx" for row in rows):
            text += f" ({ours / find(rows, size, 'ucx')['gb_s']:.2f}x ucx)"
        parts.append(text)
    return ", ".join(parts)


def test_figure(log: str, _: list[dict]) -> str:
    counts = {}
    for word in ("PASSED", "SKIPPED", "FAILED"):
        numbers = re.findall(rf"\[  {word}  ?\] (\d+) test", log)
        if numbers:
            counts[word.lower()] = max(map(int, numbers))
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def doctor_figure(log: str, _: list[dict]) -> str:
    return next(line for line in reversed(log.splitlines()) if " problems" in line)


def info_figure(log: str, _: list[dict]) -> str:
    lines = [line.split(None, 1) for line in log.splitlines() if line]
    return ", ".join(f"{word[0]} {word[1].split(' from ')[0]}" for word in lines if word[0] in ("brant", "UCX", "CUDA"))


def jacobi_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for row in rows:
        text = (
            f"{row['path']}: {row['per_iteration_us']:.0f} us/iteration, communication {row['communication_us']:.0f} us"
        )
        if row.get("speedup_vs_staged"):
            text += f" ({row['speedup_vs_staged']['communication']:.1f}x staged)"
        if row.get("memory_bandwidth_fraction"):
            text += f", {100 * row['memory_bandwidth_fraction']:.0f} % of copy bandwidth"
        parts.append(text)
    return "; ".join(parts)


def calibrate_figure(log: str, _: list[dict]) -> str:
    return ", ".join(re.findall(r"^explain: (.* us)$", log, re.MULTILINE))


def sanitizer_figure(log: str, _: list[dict]) -> str:
    """Every process tells its own."""
    counts = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", log)
    return f"errors: {' + '.join(counts)}" if counts else ""


def sanitizer_excuse(log: str) -> str:
    return f"{SANITIZER} does not support this device" if "Device not supported" in log else ""


# --- Steps --------------------------------------------------------------------------------------------------------


def perftest(check: Check, step: Step) -> tuple[int | None, str]:
    """ucx_perftest of the bundled UCX: two processes, each with its own GPU. Rows have the peer 'ucx_perftest'."""
    kind, memory = step.command[1], step.command[2]
    log_path = check.scratch / "log.txt"
    environment = perftest_environment(check.bin)
    text, status = "", 0
    with open(log_path, "w") as log:
        for index, (size, count) in enumerate(PERFTEST_SIZES.items()):
            port = str(13700 + index + (10 if kind == "tag_bw" else 0) + os.getpid() % 1000)
            server = check.start([step.command[0], "-p", port], log, {**environment, "CUDA_VISIBLE_DEVICES": "0"})
            time.sleep(0.7)
            options = [
                "-t",
                kind,
                "-m",
                f"{memory},{memory}",
                "-s",
                str(size),
                "-n",
                str(count),
                "-w",
                str(count // 10),
            ]
            client = check.start(
                [step.command[0], "127.0.0.1", "-p", port, *options], log, {**environment, "CUDA_VISIBLE_DEVICES": "1"}
            )
            code = check.wait(client, 40)
            end(server) if code != 0 else check.wait(server, 5)
            text = log_path.read_text(errors="replace")
            if code != 0:
                status = code
                break
            write_perftest_row(check, kind, memory, size, count, text)
    return status, text


def perftest_environment(bin_folder: pathlib.Path) -> dict[str, str]:
    lib = bin_folder.parent / "lib"
    ucx = (lib / "libucx").resolve()
    extra = [str(ucx / "lib"), *map(str, ucx.parent.glob("libucx_cu*.libs")), *map(str, lib.glob("libucx_cu*.libs"))]
    return {"LD_LIBRARY_PATH": ":".join([*extra, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}


def write_perftest_row(check: Check, kind: str, memory: str, size: int, count: int, text: str) -> None:
    numbers = re.findall(r"^Final:\s+(.*)$", text, re.MULTILINE)[-1].split()
    row = {
        "bench": "latency" if kind == "tag_lat" else "bandwidth",
        "model": "channel",
        "memory": memory,
        "trigger": "host",
        "path": "ucx",
        "bytes": size,
        "window": 1 if kind == "tag_lat" else 32,
        "ranks": 2,
        "n": count,
        "us": {"min": None, "p50": float(numbers[1]), "p99": None},
        "gb_s": round(float(numbers[5]) * MIB / 1e9, 4),
        "peer": "ucx_perftest",
    }
    known = next((known for known in check.rows if known.get("peer") is None and known.get("memory") == memory), {})
    row.update({name: known.get(name) for name in ("brant", "ucx", "cuda", "gpu", "cpu", "host")})
    with open(check.scratch / "rows.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")


def perftest_figure(_: str, rows: list[dict]) -> str:
    if rows[0]["bench"] == "latency":
        return ", ".join(f"{short(row['bytes'])} {row['us']['p50']:.4g} us" for row in rows)
    return ", ".join(f"{short(row['bytes'])} {row['gb_s']:.4g} GB/s" for row in rows)


def test_steps(check: Check) -> list[Step]:
    """The packed tests that GPUs matter to. What needs two processes gets two GPUs."""
    table = next((path for path in (check.bin / "tests.tsv", ROOT / "build/release/tests.tsv") if path.exists()), None)
    steps = []
    for line in table.read_text().splitlines() if table else []:
        name, ranks, seconds, labels = line.split("\t")
        wanted = {"gpu", "conformance", "multi"} & set(labels.split(","))
        if not wanted or "emulated" in labels or name.startswith("boot"):
            continue
        group = next((each for each in ("memory", "wire", "rma") if name.startswith(each)), "channel")
        command = [check.program(name)]
        environment = {"CUDA_VISIBLE_DEVICES": "0"} if ranks == "0" and group == "memory" else {}
        if ranks != "0":
            command = [check.program("brant"), "run", "-n", ranks, "--timeout", seconds, "--", *command]
        if group != "memory":
            environment["BRANT_GPU"] = "cuda"
        gpus = int(ranks) if ranks != "0" else 0
        step = Step(f"test {name}", group, command, min(int(seconds), 100), gpus, environment, figure=test_figure)
        missing = [
            program for program in (name, HELPERS.get(name, name)) if not os.access(check.program(program), os.X_OK)
        ]
        steps.append(dataclasses.replace(step, command=[check.program(missing[0])]) if missing else step)
    return steps or [Step("tests", "memory", [check.program("tests.tsv")])]


def bench(check: Check, name: str, group: str, kind: str, *options: str, **more) -> Step:
    figure = latency_figure if kind == "latency" else bandwidth_figure
    command = [check.program("brant"), "run", "-n", "2", "--no-prefix", "--", check.program("brant"), "bench", kind]
    return Step(name, group, [*command, *options], rows=True, figure=figure, **more)


def check_steps(check: Check) -> list[Step]:
    steps = []
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "1,8,4097,64K,1M,16M"]
    cuda = [("cuda", path) for path in ("copy_engine", "ucx", "staged")]
    for kind in ("latency", "bandwidth"):
        for memory, path in (*cuda, ("cuda-managed", "auto"), ("pinned", "auto")):
            name = f"check {kind} {memory} {path}"
            steps.append(
                bench(check, name, "check", kind, "--memory", memory, "--path", path, *some, gpus=2, timeout_s=50)
            )
    return steps


def bench_steps(check: Check) -> list[Step]:
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    steps = []
    rival = ["--peer", "ucx"]
    for kind in ("latency", "bandwidth"):
        for path, more in (("copy_engine", rival), ("ucx", rival), ("staged", []), ("auto", [])):
            options = ["--memory", "cuda", "--path", path, *more, *sizes]
            steps.append(bench(check, f"{kind} cuda {path}", kind, kind, *options, gpus=2, timeout_s=80))
        tool = [check.program("ucx_perftest"), "tag_lat" if kind == "latency" else "tag_bw", "cuda"]
        steps.append(
            Step(f"ucx_perftest {tool[1]} cuda", "perftest", tool, gpus=2, figure=perftest_figure, act=perftest)
        )
    options = ["--memory", "cuda", "--path", "ucx", "--sizes", TARGETS, "--api", "await"]
    steps.append(bench(check, "latency cuda coroutines", "latency", "latency", *options, gpus=2))
    return steps


def stream_steps(check: Check) -> list[Step]:
    """Transfers that streams trigger, in captured graphs."""
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    stream = ["--memory", "cuda", "--trigger", "stream"]
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "0,1,8,4097,8K,8193,64K,1M,16M"]
    steps = []
    for kind in ("latency", "bandwidth"):
        steps.append(bench(check, f"check {kind} stream", "stream", kind, *stream, *some, gpus=2, timeout_s=50))
        steps.append(bench(check, f"{kind} cuda stream", "stream", kind, *stream, "--peer", "ucx", *sizes, gpus=2))
    return steps


def rma_steps(check: Check) -> list[Step]:
    """Puts and gets: every path of GPU memory with all bytes looked at, and what puts cost beside raw UCX."""
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "0,1,8,4097,64K,1M,16M"]
    steps = []
    for model in ("put", "get"):
        for memory, path in (("cuda", "copy_engine"), ("cuda", "courier"), ("cuda", "ucx"), ("cuda", "staged")):
            options = ["--model", model, "--memory", memory, "--path", path, *some]
            name = f"check {model} {memory} {path}"
            steps.append(bench(check, name, "rma", "latency", *options, gpus=2, timeout_s=50))
    sizes = ["--sizes", TARGETS] if check.quick else ["--sizes", "8,8K,64K,256K,1M,4M,16M"]
    for memory, gpus in (("host", 0), ("cuda", 2)):
        for kind in ("latency", "bandwidth"):
            options = ["--model", "put", "--memory", memory, "--peer", "ucx", *sizes]
            steps.append(bench(check, f"{kind} {memory} put", "rma", kind, *options, gpus=gpus))
    return steps


def host_steps(check: Check) -> list[Step]:
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    kinds = [(kind, path) for kind in ("latency", "bandwidth") for path in ("auto", "shm", "ucx")]
    return [
        *(
            bench(check, f"{kind} host {path}", "host", kind, "--path", path, "--peer", "ucx", *sizes, timeout_s=60)
            for kind, path in kinds
        ),
        bench(check, "latency pinned", "host", "latency", "--memory", "pinned", "--sizes", TARGETS, gpus=2),
    ]


def jacobi(check: Check) -> list[str]:
    brant = check.program("brant")
    return [brant, "run", "-n", "2", "--no-prefix", "--", check.program("jacobi3d"), "--memory", "cuda"]


def jacobi_steps(check: Check) -> list[Step]:
    run = jacobi(check)
    small = ["--size", "96", "65", "48", "--iterations", "30", "--check"]
    steps = [
        Step("jacobi3d check ucx", "jacobi", [*run, *small, "--path", "ucx"], gpus=2),
        Step("jacobi3d check staged", "jacobi", [*run, *small, "--path", "staged"], gpus=2),
        Step("jacobi3d check overlap", "jacobi", [*run, *small, "--overlap"], gpus=2),
    ]
    cells = "256" if check.quick else "1536"
    for overlap in ([], ["--overlap"]):
        options = [
            "--size-per-process",
            cells,
            cells,
            cells,
            "--iterations",
            "50",
            "--warmup",
            "5",
            "--compare",
            *overlap,
        ]
        name = f"jacobi3d {cells}^3 per GPU{' overlap' if overlap else ''}"
        steps.append(Step(name, "jacobi", [*run, *options], 100, 2, rows=True, figure=jacobi_figure))
    return steps


def chare_steps(check: Check) -> list[Step]:
    """Message-driven objects: device arguments against the channel on the same path, and overdecomposition."""
    sizes = ["--sizes", TARGETS]
    steps = []
    for memory in ("cuda", "host"):
        options = ["--model", "message", "--memory", memory, "--peer", "ucx", *sizes]
        gpus = 2 if memory == "cuda" else 0
        steps.append(bench(check, f"latency {memory} message", "chare", "latency", *options, "--check", gpus=gpus))
        steps.append(bench(check, f"bandwidth {memory} message", "chare", "bandwidth", *options, gpus=gpus))
    run = jacobi(check)
    small = ["--size", "96", "65", "48", "--iterations", "30", "--check"]
    cells = ["256"] * 3 if check.quick else ["768"] * 3
    large = ["--size-per-process", *cells, "--iterations", "50", "--warmup", "5", "--overlap"]
    for chares in ("1", "4", "16"):
        way = ["--model", "message", "--chares-per-process", chares]
        name = f"jacobi3d message {chares} chares"
        steps.append(Step(f"{name} check", "chare", [*run, *way, *small], gpus=2))
        steps.append(Step(name, "chare", [*run, *way, *large], 60, 2, rows=True, figure=jacobi_figure))
    steps.append(Step("jacobi3d channel", "chare", [*run, *large], 60, 2, rows=True, figure=jacobi_figure))
    return steps


def courier_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for bench, size in (("latency", 8), ("latency", 65536), ("bandwidth", 8192), ("bandwidth", 65536)):
        row = next(row for row in rows if row["bench"] == bench and row["bytes"] == size)
        value = f"{row['us']['p50']:.3g} us" if bench == "latency" else f"{row['gb_s']:.3g} GB/s"
        parts.append(f"{bench} {short(size)} {value}")
    return ", ".join(parts)


def courier_steps(check: Check) -> list[Step]:
    """The resident kernel by itself: messages, windows, and what the program beside it notices."""
    command = [check.program("courier_bench"), "--limit", "60"]
    return [Step("courier", "courier", command, 70, 2, rows=True, figure=courier_figure)]


def calibrate(check: Check, step: Step) -> tuple[int | None, str]:
    """Measures the paths into a file of this run, and asks `brant explain` whether it goes by that. The user's own
    calibration is neither read nor written."""
    log_path, file = check.scratch / "log.txt", check.scratch / "calibration"
    environment = {**step.environment, "BRANT_CALIBRATION": str(file)}
    with open(log_path, "w") as log:
        status = check.wait(check.start([*step.command, "--output", str(file)], log, environment), step.timeout_s)
    text = log_path.read_text(errors="replace")
    if status != 0:
        return status, text
    shutil.copy(file, check.out / "calibration.txt")
    faults = []
    for size in TARGETS.split(","):
        try:
            line = explained(check, size, environment, file)
            text += f"explain: {line}\n"
        except (OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired) as fault:
            faults.append(f"explain {size}: {fault}\n")
    return (1 if faults else 0), text + "".join(faults)


def explained(check: Check, size: str, environment: dict[str, str], file: pathlib.Path) -> str:
    """What `brant explain` says of one size. ValueError if it does not go by the numbers of the file."""
    command = [check.program("brant"), "explain", "--from", "cuda:0", "--to", "cuda:1", "--bytes", size, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, **environment})
    if done.returncode != 0:
        raise ValueError(f"exit status {done.returncode}: {last_line(done.stdout + done.stderr)}")
    answer = json.loads(done.stdout)
    numbers = answer["numbers"]
    if not numbers["measured"] or numbers["file"] != str(file):
        raise ValueError(f"it does not go by the numbers just measured: {numbers['refused'] or numbers['file']}")
    if answer["us"] is None:
        raise ValueError(f"path {answer['path']} has no measured time")
    return f"{size} {answer['path']} {answer['us']:.4g} us"


def calibrate_steps(check: Check) -> list[Step]:
    command = [check.program("brant"), "calibrate"]
    return [Step("calibrate", "calibrate", command, 90, 2, figure=calibrate_figure, act=calibrate)]


def sanitizer_steps(check: Check) -> list[Step]:
    """Bad accesses of all our kernels, and races in the shared memory of those that meet at barriers. Not of the
    courier's: its warps poll each other's words on purpose, which a race checker must report."""

    def watched(tool: str, program: str, *arguments: str) -> list[str]:
        # The tests ask the driver for what it must refuse: that is no error of theirs.
        options = ["--error-exitcode", "86", "--target-processes", "all", "--print-limit", "20"]
        options += ["--report-api-errors", "no"] if tool == "memcheck" else []
        return [SANITIZER, "--tool", tool, *options, check.program(program), *arguments]

    def step(name: str, gpus: int, command: list[str], timeout_s: int = 60) -> Step:
        ranks = [check.program("brant"), "run", "-n", "2", "--timeout", str(timeout_s - 5), "--"] if gpus == 2 else []
        environment = {"CUDA_VISIBLE_DEVICES": "0"} if gpus == 1 else {"BRANT_GPU": "cuda"}
        how = {"tool": SANITIZER, "whole": True, "figure": sanitizer_figure, "excuse": sanitizer_excuse}
        return Step(name, "sanitizer", [*ranks, *command], timeout_s, gpus, environment, **how)

    some = ["--memory", "cuda", "--check", "--iterations", "10", "--warmup", "1", "--sizes", "8,4097,64K,1M"]
    latency, bandwidth = ["bench", "latency", *some], ["bench", "bandwidth", *some]
    stencil = ["--memory", "cuda", "--size", "33", "31", "29", "--iterations", "5", "--check"]
    return [
        step("memcheck memory_test", 1, watched("memcheck", "memory_test", "--gtest_filter=*/cuda"), 90),
        step("memcheck jacobi3d", 1, watched("memcheck", "jacobi3d", *stencil)),
        step("memcheck channel_2_ranks_test", 2, watched("memcheck", "channel_2_ranks_test"), 90),
        step("memcheck courier", 2, watched("memcheck", "brant", *latency, "--path", "courier")),
        step("memcheck copy_engine", 2, watched("memcheck", "brant", *bandwidth, "--path", "copy_engine")),
        step("racecheck stream", 2, watched("racecheck", "brant", *latency, "--trigger", "stream")),
    ]


def all_steps(check: Check) -> list[Step]:
    brant = check.program("brant")
    return [
        Step("info", "info", [brant, "info"], figure=info_figure),
        Step("doctor", "doctor", [brant, "doctor"], figure=doctor_figure),
        *check_steps(check),
        *bench_steps(check),
        *jacobi_steps(check),
        *chare_steps(check),
        *stream_steps(check),
        *rma_steps(check),
        *test_steps(check),
        *host_steps(check),
        *courier_steps(check),
        *calibrate_steps(check),
        *sanitizer_steps(check),
    ]  # fmt: skip


# --- What it must reach -------------------------------------------------------------------------------------------


def ratio_lines(rows: list[dict]) -> list[str]:
    """The figures the project promises, from this run. Told, not judged: a figure is no test."""

    def value(kind: str, path: str, size: int, peer: str | None, field: str) -> float | None:
        wanted = (kind, "channel", "cuda", path, size, peer)
        keys = ("bench", "model", "memory", "path", "bytes", "peer")
        same = [row for row in rows if tuple(row.get(key) for key in keys) == wanted]
        if not same:
            return None
        # The check passes leave rows of ten samples; the measurement is the row with the most.
        row = max(same, key=lambda row: row.get("n") or 0)
        return row["gb_s"] if field == "gb_s" else row["us"]["p50"]

    lines = []
    for path in ("copy_engine", "ucx"):
        for size, wanted in ((8, 1.3), (MIB, 8), (16 * MIB, 20)):
            staged, direct = (value("latency", each, size, None, "us") for each in ("staged", path))
            if staged and direct:
                lines.append(f"latency {short(size)}: staged / {path} = {staged / direct:.2f} (wanted {wanted})")
        for size in (65536, MIB, 16 * MIB):
            staged, direct = (value("bandwidth", each, size, None, "gb_s") for each in ("staged", path))
            if staged and direct:
                lines.append(f"bandwidth {short(size)}: {path} / staged = {direct / staged:.2f} (wanted 10)")
    for size in (8, 65536, MIB):
        ours, perf = value("latency", "ucx", size, None, "us"), value("latency", "ucx", size, "ucx_perftest", "us")
        if ours and perf:
            lines.append(f"latency {short(size)}: ours / ucx_perftest = {ours / perf:.2f} (wanted at most 1.15)")
    ours, perf = (value("bandwidth", "ucx", 16 * MIB, peer, "gb_s") for peer in (None, "ucx_perftest"))
    if ours and perf:
        lines.append(f"bandwidth 16M: ours / ucx_perftest = {ours / perf:.2f} (wanted at least 0.87)")
    return lines


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
        found = sorted({path for folder in packed for path in folder.glob("brant-*.tar.gz")})
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
    parser.add_argument("--list", action="store_true", help="only say what would run")
    options = parser.parse_args()
    out = (options.out or pathlib.Path(os.environ.get("OUT") or "gpu_check_out")).resolve()
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as scratch:
        unpacked, work = pathlib.Path(scratch, "bundle"), pathlib.Path(scratch, "work")
        unpacked.mkdir()
        work.mkdir()
        check = Check(programs_in(options.bundle, unpacked), out, work, options.quick)
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
