"""`brant bench` of MPI, brant's own and rivals, as its users see it. Figures are read, never judged."""

from __future__ import annotations

import functools
import pathlib
import sys

import brant_command
import pytest
from brant_command import BIN, BRANT, bench, rows_of

brant = functools.partial(brant_command.brant, BRANT_CALIBRATION="off")
OWN = [BIN.parent / folder / "libmpi_abi.so.1" for folder in ("lib", "release/lib")]
needs_mpi = pytest.mark.skipif(not any(file.exists() for file in OWN), reason="brant's MPI is not built beside brant")
pytestmark = brant_command.needs_brant

FEW = ["--iterations", "5", "--warmup", "1"]
KINDS = ["latency", "bandwidth", "bidirectional"]
SIZES = [0, 1, 4097, 307200]


def window_of(kind: str) -> list[str]:
    return [] if kind == "latency" else ["--window", "8"]


def wheel_of_mpich() -> str:
    mpiexec = pathlib.Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("the wheel of mpich is not installed")
    return str(mpiexec)


@needs_mpi
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "memory", "alloc"),
    [
        ([], "host", "malloc"),
        (["--alloc", "library"], "host", "library"),
        (["--alloc", "torch-like"], "host", "torch-like"),
        (["--memory", "pinned"], "pinned", "library"),
        (["--memory", "emulated"], "emulated", "library"),
    ],
)
def test_every_byte_is_right_and_told(kind: str, options: list[str], memory: str, alloc: str, tmp_path: pathlib.Path):
    file = tmp_path / "rows.jsonl"
    said = bench(kind, "--model", "mpi", "--sizes", "0,1,4097,300K", "--check", "--json", str(file), *options,
                 *window_of(kind), *FEW)  # fmt: skip
    rows = rows_of(file)
    assert [row["bytes"] for row in rows] == SIZES
    lines = [line for line in said.splitlines() if not line.startswith("#")]
    assert len(lines) == 5 and len({len(line) for line in lines}) == 1, "columns are aligned\n" + said
    for row in rows:
        assert (row["bench"], row["model"], row["memory"], row["alloc"]) == (kind, "mpi", memory, alloc)
        assert (row["peer"], row["path"], row["ranks"], row["n"], row["trigger"]) == (None, "mpi", 2, 5, "host")
        assert row["window"] == (1 if kind == "latency" else 8)
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        messages = {"latency": 1, "bandwidth": 8, "bidirectional": 16}[kind]
        rate = messages / row["us"]["p50"]
        assert row["gb_s"] == pytest.approx(rate * row["bytes"] / 1e3, rel=0.01, abs=1e-3)
        assert ("m_s" in row) == (kind != "latency")
        if kind != "latency":
            assert row["m_s"] == pytest.approx(rate, rel=0.01, abs=1e-3)


@needs_mpi
@pytest.mark.parametrize("kind", KINDS)
def test_a_rival_plays_first_and_is_checked_too(kind: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    said = bench(kind, "--model", "mpi", "--sizes", "8,64K", "--check", "--peer", wheel_of_mpich(), "--json", str(file),
                 *window_of(kind), *FEW)  # fmt: skip
    rows = rows_of(file)
    assert [(row["peer"], row["bytes"]) for row in rows] == [("mpi", 8), ("mpi", 65536), (None, 8), (None, 65536)]
    assert rows[0]["peer_version"].startswith("MPICH") and "peer_version" not in rows[2]
    assert "model mpi of MPICH" in said and "model mpi, trigger" in said
    assert {(row["model"], row["alloc"], row["ranks"]) for row in rows} == {("mpi", "malloc", 2)}


@needs_mpi
def test_four_processes_make_two_pairs(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    done = brant("run", "-n", "4", "--no-prefix", "--", str(BRANT), "bench", "bandwidth", "--model", "mpi", "--sizes",
                 "8,64K", "--window", "4", "--check", "--json", str(file), *FEW)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(row["ranks"], row["n"]) for row in rows_of(file)] == [(4, 10), (4, 10)]


@needs_mpi
@pytest.mark.parametrize(("ranks", "text"), [("1", "messages need two"), ("3", "do not make pairs")])
def test_odd_numbers_of_processes_are_refused(ranks: str, text: str) -> None:
    done = brant("run", "-n", ranks, "--no-prefix", "--", str(BRANT), "bench", "latency", "--model", "mpi")
    assert done.returncode != 0 and text in done.stderr


@needs_mpi
@pytest.mark.parametrize("kind", ["allreduce", "broadcast", "allgather", "reduce-scatter", "alltoall", "barrier"])
def test_collectives_are_those_of_mpi(kind: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    sizes = () if kind == "barrier" else ("--sizes", "8,64K")
    said = bench(kind, "--model", "mpi", *sizes, "--check", "--iterations", "5", "--json", str(file))
    rows = rows_of(file)
    assert [row["bytes"] for row in rows] == ([0] if kind == "barrier" else [8, 65536])
    for row in rows:
        assert (row["path"], row["peer"], row["wrong"], row["memory"], row["alloc"]) == (
            "mpi",
            None,
            0,
            "host",
            "malloc",
        )
    assert "by brant's MPI, 2 processes" in said


@needs_mpi
def test_collectives_of_mpi_have_rivals(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    bench("allreduce", "--model", "mpi", "--sizes", "64K", "--check", "--iterations", "5", "--peer", wheel_of_mpich(),
          "--json", str(file))  # fmt: skip
    theirs, ours = rows_of(file)
    assert (theirs["peer"], ours["peer"], ours["path"], theirs["wrong"]) == ("mpi", None, "mpi", 0)


@pytest.mark.skipif(any(file.exists() for file in OWN), reason="brant's MPI is beside brant")
@pytest.mark.parametrize("verb", ["latency", "allreduce"])
def test_where_brants_mpi_is_not_built_is_said(verb: str) -> None:
    done = brant("bench", verb, "--model", "mpi", "--sizes", "8")
    assert done.returncode == 1 and done.stderr.count("brant bench:") == 1
    assert "brant's own MPI is not beside this program" in done.stderr and "Cure:" in done.stderr


MPI = ["--model", "mpi"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["latency", "--peer", "mpi"], "--peer mpi is an MPI: add --model mpi"),
        (["latency", "--peer", "ucx", "--peer", "nccl"], "one rival at a time"),
        (["latency", *MPI, "--peer", "ucx"], "its rivals are MPIs; use --peer mpi"),
        (["latency", *MPI, "--peer", "nccl"], "its rivals are MPIs; use --peer mpi"),
        (["latency", *MPI, "--peer", "mpi", "--memory", "emulated"], "measures an MPI in host memory, not emulated"),
        (["latency", *MPI, "--path", "shm"], "set BRANT_PATH=shm instead"),
        (["latency", *MPI, "--trigger", "stream"], "use --model channel"),
        (["latency", *MPI, "--api", "await"], "drop --api"),
        (["latency", *MPI, "--spin"], "drop --spin"),
        (["latency", *MPI, "--alloc", "cuda", "--memory", "cuda"], "drop --alloc"),
        (["latency", *MPI, "--sizes", "2G"], "counts bytes up to 2147483647"),
        (["bidirectional", "--model", "channel"], "--model"),
        (["bidirectional", "--window", "0"], "--window"),
        (["allreduce", *MPI, "--memory", "device"], "leave --memory device out"),
        (["allreduce", *MPI, "--way", "messages"], "leave --alloc and --way out"),
        (["allreduce", *MPI, "--alloc", "library"], "leave --alloc and --way out"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_cure(arguments: list[str], text: str) -> None:
    done = brant("bench", *arguments)
    assert done.returncode != 0 and text in done.stderr
    assert done.stderr.count("brant bench:") <= 1, "one clear error"


@needs_mpi
def test_a_rival_that_is_not_there_is_named() -> None:
    done = brant("bench", "latency", *MPI, "--peer", "/nowhere")
    assert done.returncode == 1 and "--peer /nowhere: there is no mpiexec" in done.stderr and "Cure:" in done.stderr
