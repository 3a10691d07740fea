"""tools/gpu_check.py with programs that fail, hang and are missing: it goes on, and says so."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "gpu_check.py"

spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
gpu_check = importlib.util.module_from_spec(spec)
sys.modules["gpu_check"] = gpu_check
spec.loader.exec_module(gpu_check)

ROW = {"bytes": 8, "peer": None, "us": {"p50": 2.0}, "gb_s": 1.0, "path": "ucx", "bench": "latency", "memory": "cuda"}


def write_program(folder: pathlib.Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bundle(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "bundle" / "bin"
    folder.mkdir(parents=True)
    write_program(folder, "brant", """case "$*" in
        "info --json") echo '{"cuda": {"gpus": [1]}}' ;;
        info) echo "UCX 1.22.0 from /x" ;;
        doctor) echo "1 ok, 0 warnings, 1 problems"; exit 1 ;;
        *) echo "broken"; exit 3 ;;
    esac""")  # fmt: skip
    return folder


def test_failures_are_told_and_the_rest_goes_on(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    options = ["--bundle", str(bundle.parent), "--out", str(out), "--only", "info,doctor,latency,memory,host"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1
    verdicts = {each["name"]: each for each in json.loads((out / "summary.json").read_text())}
    assert verdicts["info"]["result"] == "ok"
    assert verdicts["doctor"]["result"] == "failed (1)"
    assert verdicts["latency cuda ucx"]["result"] == "skipped"
    assert verdicts["latency cuda ucx"]["figure"] == "needs 2 GPUs, found 1"
    host = verdicts["latency host auto"]
    assert host["result"] == "failed (3)" and host["figure"] == "broken"
    log = (out / "log.txt").read_text()
    assert "=== latency host auto\n$ " in log and "\nbroken\n" in log
    assert "1 ok, 7 failed" in done.stdout.splitlines()[-1]


def test_an_unknown_group_is_refused(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    options = ["--bundle", str(bundle.parent), "--out", str(tmp_path / "out"), "--only", "latency,nonsense"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode != 0 and "nonsense" in done.stderr


def test_a_folder_without_programs_is_refused(tmp_path: pathlib.Path) -> None:
    options = ["--bundle", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], text=True, capture_output=True, timeout=60)
    assert done.returncode != 0 and "no program 'brant'" in done.stderr


def test_what_hangs_is_ended(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = gpu_check.Check(bundle, tmp_path / "out", tmp_path, quick=True)
    hanging = write_program(bundle, "hanging", "echo $$ > $1; sleep 60 & wait")
    check.run(gpu_check.Step("hang", "test", [hanging, str(tmp_path / "pid")], timeout_s=1))
    assert check.verdicts[-1].result == "timed out"
    assert check.verdicts[-1].seconds < 20
    assert not pathlib.Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_rows_are_collected(bundle: pathlib.Path, tmp_path: pathlib.Path) -> None:
    check = gpu_check.Check(bundle, tmp_path / "out", tmp_path, quick=True)
    program = write_program(bundle, "rows", f"""echo '{json.dumps(ROW)}' > "$2"; echo 'cut of' >> "$2" """)
    check.run(gpu_check.Step("rows", "test", [program], rows=True, figure=gpu_check.latency_figure))
    assert check.verdicts[-1].result == "ok" and check.verdicts[-1].figure == "8 2 us"
    assert check.rows == [ROW]


def test_promised_ratios_come_from_the_rows() -> None:
    staged = {**ROW, "path": "staged", "us": {"p50": 5.0}}
    perftest = {**ROW, "peer": "ucx_perftest", "us": {"p50": 1.6}}
    lines = gpu_check.ratio_lines([ROW, staged, perftest])
    assert "latency 8: staged / ucx = 2.50 (wanted 1.3)" in lines
    assert "latency 8: ours / ucx_perftest = 1.25 (wanted at most 1.15)" in lines
    assert gpu_check.ratio_lines([]) == []
