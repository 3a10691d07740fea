"""`brant bench rma` and `brant bench memspeed` as their users see them. Figures are read, never judged."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import sys

import brant_command
import pytest
from brant_command import BRANT, bench, rows_of

brant = functools.partial(brant_command.brant, BRANT_CALIBRATION="off")
pytestmark = brant_command.needs_brant

FEW = ["--iterations", "3", "--warmup", "1", "--window", "8"]
SYNCS = ["block", "flood", "notify", "inject"]
PATTERNS = ["gg", "sg", "pg", "gs", "ss", "ps"]
MACHINE = ["peer", "brant", "ucx", "cuda", "gpu", "cpu", "host"]
RMA_FIELDS = [
    "bench", "model", "pattern", "sync", "memory", "remote_memory", "trigger", "path", "bytes", "window", "ranks",
    "target", "n", "us", "gb_s", "m_s", "check", *MACHINE,
]  # fmt: skip
COPY_FIELDS = [
    "bench", "model", "from", "to", "memory", "to_memory", "trigger", "path", "short_path", "bytes", "short_bytes",
    "window", "ranks", "n", "us", "short_us", "gb_s", "check", *MACHINE,
]  # fmt: skip


def table_of(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len({len(line) for line in lines}) == 1, "columns are aligned\n" + text
    return lines


def kind_of(letter: str, device: str) -> str:
    return device if letter == "g" else "host"


def test_every_byte_of_all_patterns_is_right_and_told(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench("rma", "--device", "emulated", "--sizes", "1,4097", "--sync", ",".join(SYNCS), "--check",
                 "--json", str(file), *FEW)  # fmt: skip
    rows = rows_of(file)
    wanted = [
        (pattern, op, sync, size)
        for pattern in PATTERNS
        for op in ("put", "get")
        for sync in SYNCS
        for size in (1, 4097)
        if (op, sync) != ("get", "notify")
    ]
    assert [(row["pattern"], row["model"], row["sync"], row["bytes"]) for row in rows] == wanted
    lines = table_of(said)
    assert len(lines) == len(rows) + 1
    for row, line in zip(rows, lines[1:], strict=True):
        assert list(row) == RMA_FIELDS
        local, remote = row["pattern"]
        assert (row["memory"], row["remote_memory"]) == (kind_of(local, "emulated"), kind_of(remote, "emulated"))
        assert (row["bench"], row["ranks"], row["n"], row["check"]) == ("rma", 2, 3, True)
        assert row["window"] == (1 if row["sync"] == "block" else 8)
        assert (row["gb_s"] is None) == (row["sync"] == "inject")
        assert row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        # Between two host memories nothing but shared memory; what has a device at one end never goes that way.
        assert (row["path"] in ("shm", "ucx")) == (row["pattern"] in ("ss", "ps")), row
        assert line.split()[1:4] == [row["model"], row["pattern"], row["sync"]] and row["path"] in line


def test_rivals_of_host_memory_play_beside(tmp_path: pathlib.Path) -> None:
    mpiexec = pathlib.Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("the wheel of mpich is not installed")
    file = tmp_path / "rows.jsonl"
    said = bench("rma", "--pattern", "ss,ps", "--sizes", "64K", "--op", "get", "--sync", "block,inject", "--peer",
                 "ucx", "--peer", str(mpiexec), "--json", str(file), *FEW)  # fmt: skip
    rows = rows_of(file)
    cases = [(pattern, sync) for pattern in ("ss", "ps") for sync in ("block", "inject")]
    assert [(row["pattern"], row["sync"]) for row in rows[:4]] == cases
    assert {row["peer"] for row in rows[:4]} == {"mpi"} and rows[0]["peer_version"].startswith("MPICH")
    both = [(*case, peer) for case in cases for peer in (None, "ucx")]
    assert [(row["pattern"], row["sync"], row["peer"]) for row in rows[4:]] == both
    for row in rows:
        assert (row["n"], row["ranks"], row["path"] == "mpi") == (3, 2, row["peer"] == "mpi")
    assert "MPICH" in said and "beside raw UCX" in said


def test_raw_ucx_leaves_emulated_memory_and_notification_out(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    bench("rma", "--pattern", "ss,gg", "--device", "emulated", "--sizes", "8", "--op", "put", "--sync", "flood,notify",
          "--peer", "ucx", "--json", str(file), *FEW)  # fmt: skip
    rivals = [(row["pattern"], row["sync"]) for row in rows_of(file) if row["peer"] == "ucx"]
    assert rivals == [("ss", "flood")] and len(rows_of(file)) == 5


@pytest.mark.parametrize(("transports", "waits"), [("tcp,self", True), ("", False)])
def test_a_busy_target_tells_one_sided_from_emulated(transports: str, waits: bool, tmp_path: pathlib.Path) -> None:
    # Over TCP the target's CPU serves puts and gets; in memory of this host it takes no part.
    file = tmp_path / "rows.jsonl"
    environment = {"UCX_TLS": transports, "BRANT_PATH": "ucx"} if transports else {}
    said = bench("rma", "--pattern", "ss", "--sizes", "8", "--sync", "block", "--busy-target", "--busy-ms", "400",
                 "--iterations", "2", "--json", str(file), **environment)  # fmt: skip
    for row in rows_of(file):
        assert (row["target"], row["waited"]) == ("busy", waits), said
        assert (row["us"]["p50"] > 200e3) == waits
    assert said.count("busy: waited") == (2 if waits else 0)


def without_a_device() -> None:
    if json.loads(brant("info", "--json").stdout)["cuda"]["gpus"]:
        pytest.skip("this machine has a GPU")


def test_patterns_without_memory_are_left_out_and_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench("rma", "--device", "none", "--sizes", "8", "--sync", "block", "--json", str(file), *FEW)
    assert "# not measured, for want of a device: gg sg pg gs (--device emulated" in said
    assert {row["pattern"] for row in rows_of(file)} == {"ss", "ps"}


def test_a_pattern_that_is_asked_for_without_memory_is_an_error() -> None:
    without_a_device()
    done = brant("bench", "rma", "--pattern", "ss,sg", "--sizes", "8")
    assert done.returncode == 1 and done.stderr.count("brant bench:") == 1
    assert "--pattern sg: g is memory of a device" in done.stderr and "Cure:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--pattern", "sp"], "'sp' is no pattern"),
        (["--pattern", "gg", "--device", "none"], "patterns with g need a device"),
        (["--op", "get", "--sync", "notify"], "a get tells its target nothing"),
        (["--sync", "notify", "--busy-target"], "a busy target acknowledges nothing"),
        (["--sizes", "0,8"], "use sizes from 1 on"),
        (["--sizes", "8", "--max", "4"], "--sizes"),
        (["--window", "0"], "--window"),
        (["--op", "swap"], "--op"),
        (["--peer", "/nowhere"], "--peer /nowhere: there is no mpiexec"),
        (["--peer", "mpi", "--pattern", "gg"], "add --pattern ss or ps"),
        (["--peer", "mpi", "--sync", "notify", "--op", "put"], "MPI tells no target of puts"),
        (["--json", "/nowhere/rows"], "/nowhere/rows"),
        (["--path", "copy_engine", "--pattern", "ss", "--sizes", "8"], "copy_engine cannot carry 8 bytes"),
    ],
)
def test_puts_and_gets_that_cannot_be_measured_are_refused(arguments: list[str], text: str) -> None:
    done = brant("bench", "rma", *arguments)
    assert done.returncode != 0 and text in done.stderr
    assert done.stderr.count("brant bench:") <= 1, "one clear error"


@pytest.mark.parametrize(("verb", "ranks", "text"), [("rma", "1", "messages need two"), ("rma", "4", "2 processes"),
                                                     ("memspeed", "4", "1 or 2 processes")])  # fmt: skip
def test_other_numbers_of_processes_are_refused(verb: str, ranks: str, text: str) -> None:
    done = brant("run", "-n", ranks, "--no-prefix", "--", str(BRANT), "bench", verb)
    assert done.returncode != 0 and text in done.stderr


@pytest.mark.parametrize("device", ["emulated", "none"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_pair_of_memories_is_copied_right(device: str, ranks: int, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench("memspeed", "--device", device, "--bytes", "128K", "--iterations", "2", "--check", "--peer", "ucx",
                 "--ranks", str(ranks), "--json", str(file))  # fmt: skip
    kinds = ["host", "pinned", *(["emulated"] if device == "emulated" else [])]
    there = [f"1:{kind}" for kind in kinds] if ranks == 2 else []
    within = {(a, b, "copy") for a in kinds for b in kinds}
    between = {(a, b, "put") for a in kinds for b in there} | {(b, a, "get") for a in kinds for b in there}
    rows = [row for row in rows_of(file) if row["bench"] == "memspeed_copy"]
    ours = [row for row in rows if row["peer"] is None]
    assert {(row["from"], row["to"], row["model"]) for row in ours} == within | between
    assert len(ours) == len(within | between)
    for row in rows:
        assert list(row) == COPY_FIELDS
        assert (row["bytes"], row["short_bytes"], row["n"], row["ranks"]) == (131072, 8, 2, ranks)
        assert row["check"] == (row["peer"] is None)
        full, short = row["us"]["p50"], row["short_us"]["p50"]
        rate = 131072 / (full - short) / 1e3 if full > short else None
        assert row["gb_s"] == (pytest.approx(rate, rel=0.01) if rate else None)
        assert row["path"] in said and row["short_path"] in said
    for row in ours:
        device_at_an_end = "emulated" in (row["memory"], row["to_memory"])
        assert (row["path"] in ("memcpy", "shm", "ucx")) != device_at_an_end, row
    rivals = {(row["from"], row["to"]) for row in rows if row["peer"] == "ucx"}
    assert rivals == {(a, b) for a, b, _ in between if "emulated" not in a + b}
    assert ("# not measured here: device memory" in said) == (device == "none")


def test_the_cpu_reads_and_writes_what_it_can(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench("memspeed", "--device", "emulated", "--bytes", "64K", "--iterations", "2", "--ranks", "1",
                 "--json", str(file))  # fmt: skip
    rows = [row for row in rows_of(file) if row["bench"] == "memspeed_access"]
    ways = ["sequential write", "sequential read", "scattered write", "scattered read", "pointer chase"]
    assert [(row["memory"], row["model"]) for row in rows] == [
        (kind, way) for kind in ("host", "pinned") for way in ways
    ]
    for row in rows:
        accesses = 8192 if row["model"].startswith("sequential") else 32
        assert (row["accesses"], row["bytes"], row["path"]) == (accesses, 8 * accesses, None)
        assert row["ns_per_access"] == pytest.approx(row["us"]["p50"] * 1e3 / accesses, rel=0.01, abs=0.01)
    assert len(re.findall(r"^(?:host|pinned) +pointer chase", said, re.MULTILINE)) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--bytes", "8"], "use a multiple of that from 64K on"),
        (["--bytes", "65540"], "use a multiple of that from 64K on"),
        (["--bytes", "much"], "'much' is not a size"),
        (["--iterations", "0"], "--iterations"),
        (["--ranks", "3"], "--ranks"),
        (["--peer", "mpi"], "--peer"),
        (["--json", "/nowhere/rows"], "/nowhere/rows"),
    ],
)
def test_memories_that_cannot_be_measured_are_refused(arguments: list[str], text: str) -> None:
    done = brant("bench", "memspeed", *arguments)
    assert done.returncode != 0 and text in done.stderr


def test_memory_of_a_gpu_that_is_not_there_is_refused() -> None:
    without_a_device()
    for verb in ("rma", "memspeed"):
        done = brant("bench", verb, "--device", "cuda")
        assert done.returncode != 0 and "a GPU was asked for, but there is none" in done.stderr
