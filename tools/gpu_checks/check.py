"""Programs under a time limit, one after the other, and what became of each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGET_S = 520
GRACE_S = 6


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

    @property
    def measures(self) -> bool:
        """Whether its rows are figures. Ten samples of a check of the bytes are none."""
        return (self.rows or self.act is not None) and not self.name.startswith("check ")


@dataclasses.dataclass
class Verdict:
    name: str
    result: str  # ok, failed (N), timed out, skipped
    seconds: float = 0
    figure: str = ""


def machine_of(row: dict) -> dict:
    """The fields of a row that name versions and machine, for rows of rivals measured beside it."""
    return {name: row.get(name) for name in ("brant", "ucx", "cuda", "gpu", "cpu", "host")}


class Check:
    """The programs, where the results go, and the time that is left. With `share`, what needs several GPUs and measures
    nothing runs on fewer: its processes take turns on them."""

    def __init__(
        self, bin_folder: pathlib.Path, out: pathlib.Path, scratch: pathlib.Path, quick: bool, share: bool = False
    ) -> None:
        self.bin, self.out, self.scratch, self.quick, self.share = bin_folder, out, scratch, quick, share
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
        if step.gpus > self.gpus and not self.shares(step):
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

    def shares(self, step: Step) -> bool:
        return self.share and self.gpus > 0 and not step.measures

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
                sharing = {"BRANT_SHARE_GPU": "1"} if step.gpus > self.gpus else {}
                status = self.wait(self.start(command, log, {**step.environment, **sharing}), step.timeout_s)
            text = log_path.read_text(errors="replace")
        rows = read_rows(rows_path)
        if step.measures:
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
