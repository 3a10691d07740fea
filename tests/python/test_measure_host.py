"""tools/measure_host.py: what it refuses, and that each of its steps is a command that works. Figures are read, never
judged."""

from __future__ import annotations

import datetime
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
from brant_command import BIN, BRANT

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "measure_host.py"

spec = importlib.util.spec_from_file_location("measure_host", TOOL)
measure_host = importlib.util.module_from_spec(spec)
sys.modules["measure_host"] = measure_host
spec.loader.exec_module(measure_host)

HEAD = "abcdef0123456789abcdef0123456789abcdef01"


def test_a_tree_with_changes_is_refused_with_their_names() -> None:
    measure_host.require_committed("")
    with pytest.raises(measure_host.Refused, match=r"not committed(.|\n)*README\.md"):
        measure_host.require_committed(" M README.md")


@pytest.mark.parametrize("version", ["0.1.0", "0.1.0+g1234567", "0.1.0+gabcdef0.dirty"])
def test_a_build_of_anything_else_is_refused(version: str) -> None:
    measure_host.require_same_commit("0.1.0+gabcdef0", HEAD)
    with pytest.raises(measure_host.Refused, match="make build"):
        measure_host.require_same_commit(version, HEAD)


def test_a_busy_machine_is_refused() -> None:
    measure_host.require_quiet(0.5, 2)
    with pytest.raises(measure_host.Refused, match="load 1.5 on 2 cores"):
        measure_host.require_quiet(1.5, 2)


def test_rows_of_another_program_are_not_kept() -> None:
    row = {"bench": "latency", "brant": "0.1.0+gabcdef0"}
    assert measure_host.require_rows(json.dumps(row) + "\n", "0.1.0+gabcdef0") == 1
    with pytest.raises(measure_host.Refused, match="a row of latency is of brant 0.1.0"):
        measure_host.require_rows(json.dumps({**row, "brant": "0.1.0"}), "0.1.0+gabcdef0")
    with pytest.raises(measure_host.Refused, match="no step wrote a row"):
        measure_host.require_rows("", "0.1.0+gabcdef0")


def test_the_file_is_named_after_machine_and_day() -> None:
    day = datetime.date(2026, 11, 23)
    assert measure_host.file_name("AMD EPYC, 2 cores", day) == "amd-epyc-2-cores-2026-11-23.jsonl"


def test_quick_figures_do_not_go_into_the_docs() -> None:
    done = subprocess.run([sys.executable, TOOL, "--quick"], text=True, capture_output=True)
    assert done.returncode == 2 and "--out" in done.stderr


@pytest.mark.skipif(not (BRANT.exists() and (BIN / "jacobi3d").exists()), reason="needs the programs: run 'make build'")
def test_every_step_works(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_host, "CHANNEL_SIZES", "8,64K")
    monkeypatch.setattr(measure_host, "MESSAGE_SIZES", "8,64K")
    rows = tmp_path / "rows"
    for step in measure_host.steps(BIN, rows, ["--iterations", "2", "--warmup", "1"]):
        before = rows.stat().st_size if rows.exists() else 0
        measure_host.run(step)
        assert rows.stat().st_size > before, f"{step.name} writes rows"
    models = {json.loads(line)["model"] for line in rows.read_text().splitlines()}
    assert models == {"channel", "message", "put", "get"}
