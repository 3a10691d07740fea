"""python3 -m brant.bench: what it measures, and what it says to wrong arguments."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import BRANT, run_command


def bench(*options: str, ranks: int = 2, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(BRANT), "run", "-n", str(ranks), "--no-prefix", "--timeout", "60", "--"]
    return run_command([*command, sys.executable, "-m", "brant.bench", *options], BRANT_BIN=str(BRANT), **more)


@pytest.mark.parametrize(
    ("what", "loop", "memory", "gpu"),
    [
        ("channel", "brant", "numpy,host,pinned,bytes", "none"),
        ("channel", "asyncio", "numpy", "none"),
        ("channel", "brant", "emulated", "emulated"),
        ("raw", "brant", "numpy,host", "none"),
        ("raw", "brant", "emulated", "emulated"),
        ("chare", "brant", "numpy,bytes,host", "none"),
        ("chare", "asyncio", "numpy", "none"),
    ],
)
def test_a_line_for_each_memory_and_size(tmp_path: pathlib.Path, what: str, loop: str, memory: str, gpu: str) -> None:
    file = tmp_path / "rows.jsonl"
    options = ["--what", what, "--loop", loop, "--memory", memory, "--sizes", "8,4097,64K"]
    done = bench(*options, "--check", "--iterations", "5", "--json", str(file), BRANT_GPU=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["memory"], row["bytes"]) for row in rows] == [
        (kind, size) for kind in memory.split(",") for size in (8, 4097, 65536)
    ]
    for row in rows:
        assert row["model"] == {"raw": "python raw channel"}.get(what, f"python {what}")
        assert row["loop"] == loop and row["n"] == 5
        assert row["path"] in {"chare": (None,)}.get(what, ("shm", "ucx", "staged", "copy_engine", "courier"))
        if what != "chare" and (row["bytes"] == 8 or row["memory"] == "host") and gpu == "none":
            assert row["path"] == "shm"
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"] < 10_000_000
        assert row["brant"].startswith("0.") and row["ucx"] and row["cpu"]
        assert f"{row['us']['p50']:.3f}" in done.stdout


def test_rivals_are_measured_where_they_are_installed(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    options = ["--memory", "numpy", "--sizes", "8,70000", "--iterations", "5", "--peer", "all", "--json", str(file)]
    done = bench(*options)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = [json.loads(line) for line in file.read_text().splitlines()]
    rows = {peer: [row for row in seen if row["peer"] == peer] for peer in ("connection", "streams", None)}
    for of_peer in rows.values():
        assert [row["bytes"] for row in of_peer] == [8, 70000], done.stdout
        assert all(row["model"] == "python channel" and row["n"] == 5 for row in of_peer)
    for row in rows["streams"]:
        assert row["peer_version"].startswith("Python 3.") and row["loop"] == "asyncio"
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
    for name in ("mpi4py", "charm4py", "ucxx", "ucx-py"):
        measured = any(row["peer"] == name for row in seen)
        assert measured or re.search(f"^{name}, numpy: .+", done.stdout, re.MULTILINE), name


def test_a_rival_without_entry_methods_says_so() -> None:
    done = bench("--what", "chare", "--memory", "numpy", "--sizes", "8", "--iterations", "5", "--peer", "streams")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "streams, numpy: not measured, it has no entry methods: measure it with --what channel" in done.stdout


@pytest.mark.parametrize(
    ("options", "ranks", "says"),
    [
        (["--memory", "wood"], 2, "there is no memory 'wood': use numpy"),
        (["--sizes", "8,large"], 2, "'large' is no size"),
        (["--peer", "pigeons"], 2, "there is no peer 'pigeons': use connection"),
        (["--iterations", "0"], 2, "--iterations is 1 or more"),
        (["--what", "raw", "--memory", "bytes"], 2, "needs --what channel"),
        ([], 1, "between 2 processes, not 1: brant run -n 2"),
        (["--memory", "emulated", "--sizes", "8"], 2, "emulated"),
    ],
)
def test_wrong_arguments_end_it_with_a_word(options: list[str], ranks: int, says: str) -> None:
    done = bench(*options, ranks=ranks)
    assert done.returncode != 0
    assert says in done.stdout + done.stderr
