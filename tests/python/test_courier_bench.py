"""courier_bench on the emulated device: what it looks at on a GPU, it must be able to see."""

from __future__ import annotations

import json
import pathlib
import subprocess

BENCH = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "courier_bench"
# Busy machines stop threads for milliseconds: leases are long enough to meet the courier resident.
PATIENT = ["--idle-us", "20000", "--lease-us", "100000", "--blocks", "3", "--dispatchers", "1"]


def test_the_litmus_finds_what_comes_too_late_and_nothing_else(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows.jsonl"
    command = [BENCH, "--memory", "emulated", "--only", "litmus", "--litmus-rounds", "10", "--json", file, *PATIENT]
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 12 and {row["memory"] for row in rows} == {"emulated"}
    for row in rows:
        assert row["stale"] == (row["n"] if row["landing"].endswith("control") else 0), row
