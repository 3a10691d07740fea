"""`brant bench`, `brant info` and `brant doctor` as their users see them. Figures are read, never judged."""

from __future__ import annotations

import collections
import functools
import json
import pathlib
import re
import subprocess
import sys

import brant_command
import pytest
from brant_command import BIN, BRANT, ROOT

FEW = ["--iterations", "5", "--warmup", "1"]
FIELDS = [
    "bench", "model", "memory", "alloc", "trigger", "path", "bytes", "window", "ranks", "n", "us", "gb_s", "peer",
    "brant", "ucx", "cuda", "gpu", "cpu", "host",
]  # fmt: skip

brant = functools.partial(brant_command.brant, BRANT_CALIBRATION="off")
pytestmark = brant_command.needs_brant


def bench(*arguments: str, **environment: str) -> str:
    done = brant("bench", *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("memory", ["host", "pinned", "emulated"])
def test_halo_exchanges_of_blocks_that_share_processes_are_checked(tmp_path: pathlib.Path, memory: str):
    file = tmp_path / "rows.jsonl"
    gpu = {"BRANT_GPU": "emulated"} if memory == "emulated" else {}
    bench("halo", "--size", "12_12_12", "--divide", "3_3_4", "--vars", "3", "--memory", memory, "--check", "--cycles",
          "5", "--warmup", "1", "--mode", "all", "--per", "all", "--json", str(file), **gpu)  # fmt: skip
    rows = {row["mode"]: row for row in map(json.loads, file.read_text().splitlines())}
    assert {"shapes", "fused"} <= rows.keys()
    for row in rows.values():
        assert (row["bench"], row["memory"], row["blocks"], row["n"]) == ("halo", memory, 18, 5)
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
    assert rows["shapes"]["messages"] == rows["fused"]["messages"] == 18 * 26
    assert (rows["fused"]["baseline"], rows["shapes"]["faster"]) == ("shapes", 1)
    assert rows["fused"]["phases_us"]["comm"] > 0


@pytest.mark.parametrize("kind", ["allreduce", "broadcast", "allgather", "reduce-scatter", "alltoall", "barrier"])
@pytest.mark.parametrize("way", ["auto", "messages"])
def test_bench_of_collectives_counts_as_nccl_tests(kind: str, way: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    sizes = () if kind == "barrier" else ("--sizes", "8,64K")
    said = bench(kind, *sizes, "--way", way, "--check", "--iterations", "5", "--json", str(file))
    rows = rows_of(file)
    assert [row["bytes"] for row in rows] == ([0] if kind == "barrier" else [8, 65536])
    for row in rows:
        assert (row["bench"], row["trigger"], row["memory"], row["ranks"]) == (
            kind.replace("-", "_"),
            "host",
            "host",
            2,
        )
        assert (row["wrong"], row["n"], row["peer"]) == (0, 5, None)
        assert row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert row["path"] in said
        factor = {"allreduce": 1, "broadcast": 1, "barrier": 1}.get(kind, 0.5)  # of two processes
        assert row["bus_gb_s"] == pytest.approx(factor * row["gb_s"], abs=1e-3)


@pytest.mark.parametrize("kind", ["allreduce", "alltoall", "barrier"])
def test_bench_of_collectives_plays_an_mpi_beside(kind: str, tmp_path: pathlib.Path) -> None:
    mpiexec = pathlib.Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("the wheel of mpich is not installed")
    file = tmp_path / "rows.jsonl"
    sizes = () if kind == "barrier" else ("--sizes", "64K")
    bench(kind, *sizes, "--peer", str(mpiexec), "--check", "--iterations", "5", "--json", str(file))
    theirs, ours = rows_of(file)
    assert (theirs["peer"], ours["peer"], theirs["bench"]) == ("mpi", None, ours["bench"])
    assert theirs["peer_version"].startswith("MPICH")
    assert (theirs["wrong"], ours["wrong"], theirs["ranks"]) == (0, 0, 2)


def stand_in_for_nccl() -> str:
    """A library that takes NCCL's calls on an emulated device, and moves nothing."""
    for tree in (BIN.parent, ROOT / "build" / "release"):
        if (tree / "fake_nccl" / "libnccl.so.2").exists():
            return str(tree / "fake_nccl")
    pytest.skip("the stand-in for NCCL is not built")


@pytest.mark.parametrize("trigger", ["host", "stream", "graph"])
@pytest.mark.parametrize("kind", ["allreduce", "broadcast", "allgather", "reduce-scatter", "alltoall"])
def test_bench_of_collectives_plays_nccl_beside(kind: str, trigger: str, tmp_path: pathlib.Path) -> None:
    file, log = tmp_path / "rows.jsonl", tmp_path / "calls"
    gpu = {"BRANT_GPU": "emulated", "BRANT_NCCL": stand_in_for_nccl(), "FAKE_NCCL_LOG": str(log)}
    said = bench(kind, "--sizes", "8,64K", "--memory", "device", "--trigger", trigger, "--peer", "nccl",
                 "--iterations", "5", "--json", str(file), **gpu)  # fmt: skip
    rows = rows_of(file)
    assert [(row["peer"], row["bytes"]) for row in rows] == [("nccl", 8), ("nccl", 65536), (None, 8), (None, 65536)]
    for row in rows:
        assert (row["trigger"], row["memory"], row["ranks"], row["n"]) == (trigger, "emulated", 2, 5)
        assert row["alloc"] == "library"
    assert (rows[0]["path"], rows[0]["peer_version"]) == ("nccl", "2.28.3")
    headline = r"by NCCL 2\.28\.3 \(\S+libnccl\.so\.2; NCCL_NVLS_ENABLE=0\), 2 processes, emulated memory"
    assert re.search(headline, said) and " by brant, 2 processes" in said
    calls = collections.Counter(line for line in log.read_text().lower().splitlines() if "on a stream" in line)
    floats = [2, 16384] if kind in ("allreduce", "broadcast") else [1, 8192]  # or of one block
    # Of two processes; 20 calls in each sample, of which one warms up. A graph has 20, and one call comes before it.
    each = {"host": (240, 12), "stream": (240, 240), "graph": (42, 42)}[trigger]
    name = f"nccl{kind.replace('-', '')}"
    assert calls == {f"{name} {n} of type 7 on a stream": k for n, k in zip(floats, each, strict=True)}


def test_bench_of_collectives_looks_at_what_nccl_brings(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    gpu = {"BRANT_GPU": "emulated", "BRANT_NCCL": stand_in_for_nccl()}
    done = brant("bench", "allreduce", "--sizes", "64", "--memory", "device", "--trigger", "stream", "--peer", "nccl",
                 "--check", "--iterations", "2", "--json", str(file), **gpu)  # fmt: skip
    assert done.returncode == 1 and "64 elements are wrong" in done.stderr
    assert [(row["peer"], row["wrong"]) for row in rows_of(file)] == [("nccl", 64)]  # 16 at both, before and behind


def test_bench_of_collectives_leaves_nvls_to_the_user() -> None:
    gpu = {"BRANT_GPU": "emulated", "BRANT_NCCL": stand_in_for_nccl(), "NCCL_NVLS_ENABLE": "1"}
    said = bench("allreduce", "--sizes", "8", "--memory", "device", "--peer", "nccl", "--iterations", "1", **gpu)
    assert "NCCL_NVLS_ENABLE=1)" in said


def test_bench_of_collectives_ends_when_nccl_fails() -> None:
    gpu = {"BRANT_GPU": "emulated", "BRANT_NCCL": stand_in_for_nccl(), "FAKE_NCCL": "ncclAllReduce"}
    done = brant("bench", "allreduce", "--sizes", "64K", "--memory", "device", "--trigger", "graph", "--peer", "nccl",
                 **gpu)  # fmt: skip
    assert done.returncode == 1
    assert "ncclAllReduce of 65536 bytes on rank 0 of 2 failed: unhandled cuda error" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["allreduce"], 2, "NCCL moves memory of GPUs only, not host memory; add --memory device"),
        (["barrier", "--memory", "device"], 2, "NCCL has no barrier; leave --peer out"),
        (["allgather", "--memory", "device", "--peer", "mpi"], 2, "--peer mpi measures an MPI in host memory"),
        (["allreduce", "--trigger", "graph"], 2, "add --memory device"),
    ],
)
def test_where_nccl_is_no_rival_of_collectives_is_said(arguments: list[str], status: int, text: str) -> None:
    done = brant("bench", *arguments, "--peer", "nccl")
    assert done.returncode == status and text in done.stderr
    assert done.stderr.count("brant bench:") == 1


def test_nccl_is_no_rival_of_collectives_without_a_gpu() -> None:
    gpu = {"BRANT_GPU": "none", "BRANT_NCCL": stand_in_for_nccl()}
    done = brant("bench", "allreduce", "--memory", "device", "--peer", "nccl", **gpu)
    assert done.returncode == 1
    assert "rank 0 has host memory. Cure: measure on a machine with a GPU for each process" in done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--divide", "3_1_1"], "3 blocks, which 2 processes cannot share equally"),
        (["--size", "8_9_9", "--divide", "4_1_1", "--ghost", "3_1_1"], "leave 2 for the narrowest block"),
    ],
)
def test_halo_options_that_do_not_fit_are_refused(options: list[str], text: str):
    done = brant("bench", "halo", *options)
    assert done.returncode == 2
    assert text in done.stderr


def test_bells_bring_what_was_written_before_them(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench("notify", "--memory", "emulated", "--check", "--iterations", "50", "--json", str(file))
    assert "50 rings each way brought what was written before them" in said
    rows = {row["bench"]: row for row in rows_of(file)}
    assert {"notify_round_trip", "notify_round_trip_op", "notify_device_to_device", "notify_scan_4096"} <= rows.keys()
    assert {"notify_round_trip_relaxed", "notify_device_ring_relaxed", "notify_device_release"} <= rows.keys()
    assert {"notify_host_function", "notify_launch_host_function", "notify_launch_stream_ring"} <= rows.keys()
    sizes = [(row["bench"], row["bytes"]) for row in rows_of(file) if row["bench"].startswith("notify_put_")]
    assert sizes == [
        *(("notify_put_and_ring", n) for n in (8, 1024, 65536)),
        *(("notify_put_lines", n) for n in (8, 1024)),
    ]
    for row in rows.values():
        assert (row["model"], row["memory"], row["path"]) == ("notify", "emulated", "bell")
        assert 0 <= row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
    assert rows["notify_round_trip"]["n"] == 50 and rows["notify_device_to_device"]["ranks"] == 2


@pytest.mark.parametrize("options", [["--memory", "host"], ["--iterations", "0"]])
def test_bells_of_no_device_are_refused(options: list[str]) -> None:
    done = brant("bench", "notify", *options)
    assert done.returncode != 0
    assert options[0] in done.stderr


@pytest.mark.parametrize("memory", ["emulated", "pinned"])
def test_interference_is_measured_in_all_cases_and_checked(tmp_path: pathlib.Path, memory: str) -> None:
    file = tmp_path / "rows.jsonl"
    few = ["--sizes", "64,4K", "--blocks", "2", "--iterations", "6", "--warmup", "1"]
    said = bench("interference", "--memory", memory, *few, "--check", "--json", str(file), BRANT_GPU="emulated")
    for case, rings in (("ssb", 0), ("psb", 18), ("pcb", 18), ("p2ab", 18)):
        for blocks in ("1 block", "2 blocks"):
            assert f"# {case}, {blocks}, 4K: {rings} rings were seen once each" in said
    rows = rows_of(file)
    sends = [row for row in rows if row["bench"] == "interference_send"]
    sweeps = [row for row in rows if row["bench"] == "interference_sweep"]
    assert len(rows) == len(sends) + len(sweeps)
    groups = [(size, grid, blocks) for size in (64, 4096) for grid, blocks in (("one", 1), ("all", 2))]
    of_group = [(row["bytes"], row["grid"], row["blocks"], row["case"], row["beside"]) for row in sends]
    cases = (("ssb", "nothing"), ("psb", "sweeps"), ("pcb", "sweeps"), ("p2ab", "sweeps"))
    assert of_group == [(*group, *case) for group in groups for case in cases]
    of_group = [(row["bytes"], row["grid"], row["blocks"], row["case"], row["beside"]) for row in sweeps]
    beside = [(case, other) for case in ("psb", "pcb", "p2ab") for other in ("nothing", "bells", "sends")]
    assert of_group == [(*group, *each) for group in groups for each in beside]
    for row in rows:
        assert (row["model"], row["memory"], row["n"], row["check"]) == ("notify", memory, 6, True)
        assert 0 <= row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert row["trigger"] == ("host" if row["beside"] == "nothing" else "device")
        assert (row["path"] is None) == (row["bench"] == "interference_sweep" and row["beside"] != "sends")
        if row["beside"] == "nothing":
            assert row["slowdown"] == 1 and row["baseline_us"] == row["us"]["p50"]
        else:
            assert row["slowdown"] == pytest.approx(row["us"]["p50"] / row["baseline_us"], rel=0.01)


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["--memory", "host"], 1, "--memory"),
        (["--sizes", "60"], 2, "60 is no multiple of that: use 64"),
        (["--sizes", "1G"], 2, "use smaller sizes"),
        (["--iterations", "0"], 1, "--iterations"),
        (["--blocks", "0"], 1, "--blocks"),
        (["--blocks", "60000", "--memory", "emulated", "--sizes", "64"], 1, "Launch fewer or smaller blocks"),
        (["--json", "/nowhere/rows.jsonl"], 1, "--json /nowhere/rows.jsonl"),
    ],
)
def test_interference_that_cannot_be_measured_is_refused(options: list[str], status: int, text: str) -> None:
    done = brant("bench", "interference", *options)
    assert (done.returncode != 0) if status == 1 else (done.returncode == status)
    assert text in done.stderr


def test_interference_without_a_device_says_what_to_do() -> None:
    done = brant("bench", "interference", "--sizes", "64", BRANT_GPU="none")
    assert done.returncode != 0
    assert "--memory emulated measures on threads of the CPU" in done.stderr


def rows_of(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["latency", "bandwidth"])
def test_rows_are_complete_and_in_order(kind: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    bench(kind, "--sizes", "1M,0,8,64K", "--peer", "ucx", "--json", str(file), *FEW)
    rows = rows_of(file)
    assert [row["bytes"] for row in rows] == [0, 0, 8, 8, 65536, 65536, 1048576, 1048576]
    assert [row["peer"] for row in rows] == [None, "ucx"] * 4
    for row in rows:
        assert [name for name in row if name != "m_s"] == FIELDS
        assert ("m_s" in row) == (kind == "bandwidth")
        assert (row["bench"], row["model"], row["memory"], row["trigger"]) == (kind, "channel", "host", "host")
        assert (row["ranks"], row["n"], row["window"]) == (2, 5, 1 if kind == "latency" else 64)
        assert row["path"] in ("ucx", "shm")
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert (row["gb_s"] > 0) == (row["bytes"] >= 65536) or row["bytes"] == 8
        assert re.fullmatch(r"\d+\.\d+\.\d+(\+\S+)?", row["brant"]) and re.fullmatch(r"\d+\.\d+\.\d+", row["ucx"])
        assert row["gpu"] is None and row["cpu"] and row["host"]
    again = len(rows)
    bench(kind, "--sizes", "8", "--json", str(file), *FEW)
    assert len(rows_of(file)) == again + 1, "rows are appended"


def test_the_table_has_a_line_per_size() -> None:
    lines = [line for line in bench("latency", "--min", "2", "--max", "9", *FEW).splitlines() if line[0] != "#"]
    assert [line.split()[0] for line in lines] == ["bytes", "2", "4", "8", "9"]
    assert len({len(line) for line in lines}) == 1, "columns are aligned"


@pytest.mark.parametrize(
    ("memory", "path", "taken"),
    [
        ("host", "auto", "ucx|shm"),
        ("host", "ucx", "ucx"),
        ("host", "staged", "ucx|shm"),  # there is nothing to stage
        ("pinned", "auto", "ucx|shm"),
        ("emulated", "auto", "copy_engine"),
        ("emulated", "copy_engine", "copy_engine"),
        ("emulated", "staged", "staged"),
    ],
)
def test_every_byte_is_right(memory: str, path: str, taken: str, tmp_path: pathlib.Path) -> None:
    for kind in ("latency", "bandwidth"):
        file = tmp_path / f"{kind}.jsonl"
        more = ["--window", "8"] if kind == "bandwidth" else []
        options = ["--memory", memory, "--path", path, "--sizes", "1,4097,300K", "--check", "--json", str(file)]
        bench(kind, *options, *more, "--iterations", "3", "--warmup", "0")
        for row in rows_of(file):
            assert re.fullmatch(taken, row["path"]) and row["memory"] == memory


@pytest.mark.parametrize("alloc", ["malloc", "torch-like"])
@pytest.mark.parametrize("model", ["channel", "put", "get"])
def test_every_byte_of_memory_made_elsewhere_is_right(alloc: str, model: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    for kind in ("latency", "bandwidth"):
        more = ["--window", "8"] if kind == "bandwidth" else []
        options = ["--alloc", alloc, "--model", model, "--sizes", "1,4097,300K", "--check", "--json", str(file)]
        bench(kind, *options, *more, "--peer", "ucx", "--iterations", "3", "--warmup", "0")
    assert {row["alloc"] for row in rows_of(file)} == {alloc}
    assert len(rows_of(file)) == 12


@pytest.mark.parametrize("model", ["put", "get"])
@pytest.mark.parametrize(
    ("memory", "path", "taken"),
    [
        ("host", "auto", "shm|ucx"),
        ("host", "ucx", "ucx"),
        ("pinned", "staged", "staged"),
        ("emulated", "auto", "copy_engine"),
        ("emulated", "staged", "staged"),
    ],
)
def test_every_byte_of_puts_and_gets_is_right(model: str, memory: str, path: str, taken: str, tmp_path: pathlib.Path):
    for kind in ("latency", "bandwidth"):
        file = tmp_path / f"{kind}.jsonl"
        more = ["--window", "8"] if kind == "bandwidth" else ["--api", "await"]
        options = ["--model", model, "--memory", memory, "--path", path, "--sizes", "0,1,4097,1M", "--check"]
        bench(kind, *options, *more, "--peer", "ucx", "--json", str(file), *FEW)
        ours = [row for row in rows_of(file) if row["peer"] is None]
        assert [row["bytes"] for row in ours] == [0, 1, 4097, 1048576]
        for row in ours:
            assert re.fullmatch(taken, row["path"]) and (row["model"], row["memory"]) == (model, memory)
        assert len(rows_of(file)) == (4 if memory == "emulated" else 8), "raw UCX does not take emulated memory"


@pytest.mark.parametrize(
    ("memory", "path", "taken"),
    [("host", "auto", "shm|ucx"), ("host", "ucx", "ucx"), ("emulated", "auto", "kernel")],
)
def test_counts_are_told_one_after_the_other(memory: str, path: str, taken: str, tmp_path: pathlib.Path) -> None:
    for kind in ("latency", "bandwidth"):
        file = tmp_path / f"{kind}.jsonl"
        more = ["--window", "8"] if kind == "bandwidth" else ["--api", "await"]
        options = ["--model", "fetch-add", "--memory", memory, "--path", path, "--sizes", "4,8", "--check"]
        bench(kind, *options, *more, "--peer", "ucx", "--json", str(file), *FEW)
        ours = [row for row in rows_of(file) if row["peer"] is None]
        assert [(row["bytes"], row["model"]) for row in ours] == [(4, "fetch-add"), (8, "fetch-add")]
        assert all(re.fullmatch(taken, row["path"]) for row in ours)
        assert len(rows_of(file)) == (2 if memory == "emulated" else 4), "raw UCX counts in host memory alone"


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_puts_tell_their_target(memory: str, tmp_path: pathlib.Path) -> None:
    for kind in ("latency", "bandwidth"):
        file = tmp_path / f"{kind}.jsonl"
        options = ["--model", "told-put", "--memory", memory, "--sizes", "8,64K", "--check", "--json", str(file)]
        bench(kind, *options, *(["--window", "8"] if kind == "bandwidth" else []), *FEW)
        assert [(row["bytes"], row["model"], row["peer"]) for row in rows_of(file)] == [
            (8, "told-put", None),
            (65536, "told-put", None),
        ]


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_functions_are_called_with_every_byte(memory: str, tmp_path: pathlib.Path) -> None:
    for kind in ("latency", "bandwidth"):
        file = tmp_path / f"{kind}.jsonl"
        options = ["--model", "rpc", "--memory", memory, "--sizes", "8,64K,4M", "--check", "--json", str(file)]
        bench(kind, *options, *(["--window", "8"] if kind == "bandwidth" else ["--api", "await"]), *FEW)
        assert [(row["bytes"], row["model"], row["peer"]) for row in rows_of(file)] == [
            (8, "rpc", None),
            (65536, "rpc", None),
            (4194304, "rpc", None),
        ]


def test_small_puts_alone_go_the_way_they_go_beside_large_ones(tmp_path: pathlib.Path) -> None:
    for name, sizes in (("alone", "8"), ("beside", "8,1M")):
        bench("latency", "--model", "put", "--sizes", sizes, "--json", str(tmp_path / name), *FEW)
    assert rows_of(tmp_path / "alone")[0]["path"] == rows_of(tmp_path / "beside")[0]["path"]


def test_four_processes_put_in_pairs(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    done = brant("run", "-n", "4", "--no-prefix", "--", str(BRANT), "bench", "latency", "--model", "put", "--sizes",
                 "8,64K", "--check", "--json", str(file), *FEW)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(row["ranks"], row["n"], row["model"]) for row in rows_of(file)] == [(4, 10, "put"), (4, 10, "put")]


def test_shared_memory_works_or_says_why_not(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    done = brant("bench", "latency", "--path", "shm", "--sizes", "8,64K", "--check", "--json", str(file), *FEW)
    if done.returncode == 0:
        assert {row["path"] for row in rows_of(file)} == {"shm"}
    else:
        assert "path shm cannot carry 8 bytes of host memory" in done.stderr
        assert rows_of(file) == [], "nothing half-measured"


def test_coroutines_and_spinning_give_the_same_rows(tmp_path: pathlib.Path) -> None:
    for option in (["--api", "await"], ["--spin"]):
        assert " 5\n" in bench("latency", "--sizes", "8,256K", "--check", *FEW, *option)


def test_four_processes_make_two_pairs(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    done = brant("run", "-n", "4", "--no-prefix", "--", str(BRANT), "bench", "latency", "--pairs", "--sizes", "8,64K",
                 "--check", "--json", str(file), *FEW)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(row["ranks"], row["n"]) for row in rows_of(file)] == [(4, 10), (4, 10)]


def test_a_path_from_the_environment_is_seen_in_the_rows(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    bench("latency", "--sizes", "8", "--json", str(file), *FEW, BRANT_PATH="ucx")
    assert rows_of(file)[0]["path"] == "ucx"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["latency", "--sizes", "12Q"], "'12Q' is not a size"),
        (["latency", "--sizes", ""], "'' is not a size"),
        (["latency", "--sizes", "8,,9"], "'' is not a size"),
        (["latency", "--min", "8", "--max", "4"], "smallest size 8 is above the largest 4"),
        (["latency", "--sizes", "8", "--max", "4"], "--sizes"),
        (["latency", "--window", "4"], "--window"),
        (["bandwidth", "--window", "0"], "--window"),
        (["bandwidth", "--window", "1025"], "--window"),
        (["latency", "--iterations", "0"], "--iterations"),
        (["latency", "--memory", "vram"], "--memory"),
        (["latency", "--path", "pigeon"], "--path"),
        (["latency", "--model", "put", "--trigger", "stream", "--memory", "emulated"], "use --model channel"),
        (["latency", "--model", "put", "--path", "copy_engine"], "--path copy_engine cannot carry host memory"),
        (["latency", "--trigger", "stream", "--path", "courier"], "drop --path courier"),
        (["latency", "--peer", "mpi"], "--peer"),
        (["latency", "--alloc", "numpy"], "--alloc"),
        (["latency", "--alloc", "malloc", "--memory", "cuda"], "malloc makes host memory"),
        (["latency", "--alloc", "cuda"], "--alloc cuda with --memory host"),
        (["latency", "--alloc", "malloc", "--model", "message"], "use --model channel, put or get"),
        (["latency", "--peer", "nccl"], "--peer nccl: NCCL moves memory of GPUs only, not host memory"),
        (["latency", "--json", "/nonexistent/rows"], "/nonexistent/rows"),
        (
            ["latency", "--path", "ucx", "--memory", "emulated", "--sizes", "8"],
            "--path ucx cannot carry emulated memory",
        ),
        (["throughput"], "throughput"),
        ([], "What to measure"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], text: str) -> None:
    done = brant("bench", *arguments)
    assert done.returncode != 0
    assert text in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("brant bench:")]) <= 1, "one clear error"


@pytest.mark.parametrize(("ranks", "text"), [("1", "messages need two"), ("3", "do not make pairs")])
def test_odd_numbers_of_processes_are_refused(ranks: str, text: str) -> None:
    done = brant("run", "-n", ranks, "--no-prefix", "--", str(BRANT), "bench", "latency", "--sizes", "8")
    assert done.returncode != 0 and text in done.stderr
    assert done.stderr.count("brant bench:") == 1


def test_memory_of_a_gpu_that_is_not_there_is_refused() -> None:
    if json.loads(brant("info", "--json").stdout)["cuda"]["gpus"]:
        pytest.skip("this machine has a GPU")
    done = brant("bench", "latency", "--memory", "cuda", "--sizes", "8")
    assert done.returncode != 0
    assert "a GPU was asked for, but there is none" in done.stderr


@pytest.mark.parametrize("what", [["latency", "--memory", "cuda"], ["allreduce", "--memory", "device"]])
def test_without_nccl_the_rival_is_refused_before_anything_starts(what: list[str]) -> None:
    done = brant("bench", *what, "--peer", "nccl", BRANT_NCCL="/nowhere/libnccl.so.2")
    assert done.returncode == 1
    assert "/nowhere/libnccl.so.2" in done.stderr and "Cure:" in done.stderr
    assert done.stderr.count("brant bench:") == 1


def test_an_unknown_command_is_named() -> None:
    done = brant("rum", "-n", "2", "./ring")
    assert done.returncode == 2
    assert done.stderr == "brant: there is no command 'rum': `brant --help` lists them\n"


def test_the_option_of_other_launchers_is_understood() -> None:
    done = brant("run", "-np", "2", "--", "/bin/echo", "-np", "3")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] -np 3", "[1] -np 3"]


def test_info_tells_versions_kinds_and_paths() -> None:
    info = json.loads(brant("info", "--json").stdout)
    assert list(info) == ["brant", "host", "cpu", "cores", "launcher", "ucx", "cuda", "device", "kinds", "paths"]
    assert info["cores"] >= 1 and {"host", "pinned", "emulated"} <= set(info["kinds"])
    assert {path["name"] for path in info["paths"]} == {"ucx", "shm", "copy_engine", "courier", "staged"}
    assert info["ucx"]["version"] and "host" in info["ucx"]["kinds"]
    assert any(name.startswith("tcp") for name in info["ucx"]["transports"]) or info["ucx"]["transports_reason"]
    assert info["cuda"]["gpus"] or info["cuda"]["reason"], "no GPU comes with the reason"
    text = brant("info").stdout
    assert info["ucx"]["version"] in text and "path staged" in text


@pytest.mark.parametrize(
    ("gpu", "text"),
    [("none", "host memory (BRANT_GPU=none)"), ("emulated", "emulated by threads"), ("vulkan", "BRANT_GPU=vulkan")],
)
def test_info_names_the_device_in_use(gpu: str, text: str) -> None:
    assert text in json.loads(brant("info", "--json", BRANT_GPU=gpu).stdout)["device"]


def test_info_names_the_device_of_a_process_that_says_nothing() -> None:
    info = json.loads(brant("info", "--json").stdout)
    gpus = info["cuda"]["gpus"]
    assert info["device"].startswith(f"GPU 0 ({gpus[0]['name']})" if gpus else "host memory: no GPU")


def test_info_works_without_ucx_and_says_so() -> None:
    done = brant("info", "--json", BRANT_UCX="/nonexistent")
    info = json.loads(done.stdout)
    assert done.returncode == 0
    assert info["ucx"]["version"] is None and "/nonexistent" in info["ucx"]["reason"]
    assert all(path["kinds"] == [] for path in info["paths"])


def test_info_names_the_launcher() -> None:
    done = brant("run", "-n", "1", "--", str(BRANT), "info", "--json")
    assert json.loads(done.stdout)["launcher"] == "brant run"


def test_doctor_finds_nothing_wrong_here_or_says_what() -> None:
    done = brant("doctor", "--json")
    findings = json.loads(done.stdout)
    assert {finding["level"] for finding in findings} <= {"ok", "warning", "problem"}
    assert done.returncode == (1 if any(finding["level"] == "problem" for finding in findings) else 0)
    assert all(finding["cure"] for finding in findings if finding["level"] == "problem")
    assert next(finding for finding in findings if finding["name"] == "exchange, host")["level"] == "ok"


def test_doctor_finds_a_missing_ucx_and_a_misspelt_variable() -> None:
    done = brant("doctor", "--quick", BRANT_UCX="/nonexistent", BRANT_PAHT="ucx")
    assert done.returncode == 1
    assert re.search(r"^problem +UCX ", done.stdout, re.MULTILINE)
    assert "BRANT_PATH instead of BRANT_PAHT" in done.stdout
    # Numbers agree with their nouns.
    counts = {level: f"\n{done.stdout}".count(f"\n{level:<8} ") for level in ("warning", "problem")}
    nouns = [f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items()]
    assert done.stdout.endswith(f" ok, {nouns[0]}, {nouns[1]}\n"), done.stdout


def test_a_program_warns_once_of_a_misspelt_variable() -> None:
    done = brant("bench", "latency", "--sizes", "8", *FEW, BRANT_PTH="ucx")
    assert done.stderr.count("nobody reads BRANT_PTH: BRANT_PATH was meant?") == 1, done.stderr


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [["info"], ["doctor", "--quick"], ["--version"], ["run", "-n", "2", "--", "echo", "hello"]]
)
def test_output_that_cannot_be_written_is_no_success(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BRANT, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
            env={**brant_command.plain_environment(), "BRANT_CALIBRATION": "off"},
        )
    assert done.returncode != 0
    assert "standard output could not be written" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BRANT_SLEEP", "maybe"),
        ("BRANT_SHARE_GPU", "2"),
        ("BRANT_STATISTICS", "none"),
        ("BRANT_BOOT_TIMEOUT_MS", "abc"),
        ("BRANT_STALL_REPORT_MS", "999999999999999999999"),
        ("BRANT_LEASE", "-1"),
        ("BRANT_TRACE_EVENTS", "many"),
    ],
)
def test_nonsense_in_a_variable_is_refused_by_name(variable: str, value: str, tmp_path: pathlib.Path) -> None:
    environment = {variable: value, "BRANT_TRACE": str(tmp_path / "trace.json")}
    done = brant("bench", "latency", "--sizes", "8", *FEW, **environment)
    assert done.returncode != 0
    assert f"{variable}={value}: use " in done.stderr


def test_doctor_knows_every_variable_that_is_read() -> None:
    listed = (ROOT / "src/base/variables.cc").read_text()
    known = set(re.findall(r'"(BRANT_[A-Z_]+)"', listed))
    read = set()
    for file in [*(ROOT / "src").rglob("*.cc"), *(ROOT / "apps").rglob("*.cc")]:
        if file.name != "variables.cc":
            read |= set(re.findall(r'\b(?:env\w*|getenv)\(\s*"(BRANT_[A-Z_]+)"', file.read_text()))
    assert read - known == set(), "add them to src/base/variables.cc"
