"""heat3d as users run it: every bit of the field in both modes, the physics against NumPy, what it tells, bad input,
and the picture of its rows."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from brant_command import BIN, BRANT, ROOT, expect_a_killed_process_to_end_the_job

pytestmark = pytest.mark.skipif(
    not (BRANT.exists() and (BIN / "heat3d").exists()), reason="needs the release build: run 'make build'"
)
PLOT = ROOT / "tools" / "plot_heat3d.py"


def command(*arguments, ranks=1) -> list[str]:
    return [str(BRANT), "run", "-n", str(ranks), "--", str(BIN / "heat3d"), *map(str, arguments)]


def heat(*arguments, ranks=1, gpu="none") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BRANT_GPU": gpu}
    return subprocess.run(command(*arguments, ranks=ranks), env=environment, text=True, capture_output=True, timeout=60)


def errors_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in (done.stdout + done.stderr).splitlines() if re.match(r"(\[\d+\] )?error: ", line)]


def averages(done: subprocess.CompletedProcess[str]) -> list[tuple[int, float]]:
    found = re.findall(r"step +(\d+): average temperature ([0-9.]+)", done.stdout)
    return [(int(step), float(average)) for step, average in found]


def average_by_numpy(shape: tuple[int, int, int], steps: int) -> float:
    """Axes x, y, z; heat comes in at the lower end of z, in the first half of the steps."""
    field = np.zeros(shape)
    for step in range(steps):
        flow = np.zeros(shape)
        for axis in range(3):
            difference = np.diff(field, axis=axis)
            lower, upper = [slice(None)] * 3, [slice(None)] * 3
            lower[axis], upper[axis] = slice(None, -1), slice(1, None)
            flow[tuple(lower)] += difference
            flow[tuple(upper)] -= difference
            for end in (0, -1):
                side = [slice(None)] * 3
                side[axis] = end
                flow[tuple(side)] -= field[tuple(side)] ** 4
        if step < (steps + 1) // 2:
            flow[:, :, 0] += 1.0
        field += 0.1 * flow
    return field.mean()


# --- Right answers -----------------------------------------------------------------------------------------------

BOXES = [(1, (9, 9, 9)), (1, (1, 1, 1)), (2, (16, 15, 14)), (2, (1, 7, 2)), (3, (41, 5, 7)), (4, (13, 20, 21))]


@pytest.mark.parametrize("gpu", ["none", "emulated"])
@pytest.mark.parametrize(("ranks", "cells"), BOXES)
def test_agrees_with_a_serial_run_to_the_last_bit_in_both_modes(ranks, cells, gpu):
    box = ",".join(map(str, cells))
    done = heat("--cells", box, "--steps", 41, "--mode", "both", "--check", ranks=ranks, gpu=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    for mode in ("one-sided", "two-sided"):
        assert f"check, {mode}: all {np.prod(cells)} cells agree" in done.stdout
    assert ("emulated memory" in done.stdout) == (gpu == "emulated")
    first, second = averages(done)
    assert first == second


@pytest.mark.parametrize(("ranks", "mode"), [(4, "one-sided"), (3, "two-sided")])
@pytest.mark.parametrize("gpu", ["none", "emulated"])
def test_no_neighbour_is_ever_more_than_a_step_ahead(ranks, mode, gpu):
    """Long, without a sum in between that would hold them together."""
    done = heat("--size", 12, "--steps", 3000, "--print", 0, "--mode", mode, "--check", ranks=ranks, gpu=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agree with a serial run to the last bit after 3000 steps" in done.stdout


@pytest.mark.parametrize("gpu", ["none", "emulated"])
def test_average_temperature_is_what_numpy_computes(gpu):
    done = heat("--cells", "10,8,12", "--steps", 60, "--print", 20, "--mode", "both", ranks=3, gpu=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = averages(done)
    assert [step for step, _ in printed] == [20, 40, 60] * 2
    assert printed[:3] == printed[3:]
    assert printed[2][1] == pytest.approx(average_by_numpy((10, 8, 12), 60), abs=2e-9)


# --- What it tells -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("heat3d") / "rows.jsonl"
    done = heat("--size", 12, "--steps", 210, "--mode", "both", "--reduce-every", 1, "--json", file, ranks=2)
    assert done.returncode == 0, done.stdout + done.stderr
    return file


def test_rows_say_what_was_measured(rows_file):
    rows = [json.loads(line) for line in rows_file.read_text().splitlines()]
    assert [(row["mode"], row["model"]) for row in rows] == [("one-sided", "put"), ("two-sided", "channel")]
    for row in rows:
        assert (row["bench"], row["memory"], row["ranks"], row["peer"]) == ("heat3d", "host", 2, None)
        assert (row["cells"], row["grid"], row["steps"]) == ([12, 12, 12], [1, 1, 2], 210)
        assert row["path"] == "shm"
        assert row["bytes"] == 12 * 12 * 8
        assert row["reduce_every"] == 1
        assert row["n"] == 199, "200 steps behind the warm-up have so many windows of two"
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert row["p99_over_p50"] == pytest.approx(row["us"]["p99"] / row["us"]["p50"])
        histogram = row["histogram"]
        assert sum(histogram["counts"]) + histogram["beyond"] == row["n"]
        assert histogram["from_us"] == row["us"]["min"]
        assert histogram["beyond"] <= 0.01 * row["n"] + 1
    assert rows[0]["average"] == rows[1]["average"]


def test_bars_are_the_windows_with_the_median_marked():
    done = heat("--size", 8, "--steps", 110, "--histogram", ranks=2)
    assert done.returncode == 0, done.stdout + done.stderr
    bars = re.findall(r"^\[0\] +([0-9.]+) us \|(#*) *\| +(\d+)( +median)?$", done.stdout, re.MULTILINE)
    beyond = int(re.search(r"beyond \| *\| +(\d+)", done.stdout).group(1))
    median = float(re.search(r"99 windows: median ([0-9.]+) us", done.stdout).group(1))
    assert sum(int(count) for _, _, count, _ in bars) + beyond == 99
    assert max(len(marks) for _, marks, _, _ in bars) == 60
    (marked,) = [i for i, bar in enumerate(bars) if bar[3]]
    assert float(bars[marked][0]) - 0.1 <= median
    assert marked == len(bars) - 1 or median <= float(bars[marked + 1][0]) + 0.1


def plot(*arguments) -> subprocess.CompletedProcess[str]:
    done = [sys.executable, PLOT, *map(str, arguments)]
    return subprocess.run(done, text=True, capture_output=True, timeout=60)


def test_rows_become_a_table(rows_file):
    done = plot(rows_file, "--table")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| one-sided \| 199 \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$", done.stdout, re.MULTILINE)
    assert done.stdout.count("\n") == 4


def test_rows_become_a_picture(rows_file, tmp_path):
    pytest.importorskip("matplotlib")
    done = plot(rows_file, "--out", tmp_path / "heat3d.svg")
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "heat3d.svg").read_text()
    assert "one-sided: median" in picture and "two-sided: median" in picture


def test_a_file_without_rows_of_it_is_refused(tmp_path):
    (tmp_path / "rows").write_text('{"bench": "jacobi3d"}\n')
    done = plot(tmp_path / "rows", "--table")
    assert done.returncode == 1
    assert "no rows of heat3d" in done.stderr


# --- Bad input ---------------------------------------------------------------------------------------------------

BAD = [
    (["--sise", 8], "sise"),
    (["--size", 0], "size"),
    (["--size", "huge"], "size"),
    (["--cells", "8,8"], "cells"),
    (["--cells", "8,8,8", "--size", 8], "size"),
    (["--size", 8, "--steps", 1], "steps"),
    (["--size", 8, "--steps", 10, "--warmup", 9], "warmup"),
    (["--size", 8, "--mode", "pigeon"], "pigeon"),
    (["--size", 8, "--memory", "punched-cards"], "punched-cards"),
    (["--size", 8, "--memory", "device"], "--memory device"),
    (["--size", 8, "--reduce-every", 0], "reduce-every"),
    (["--size", 1], "1 x 1 x 1"),
    (["--size", 50000], "GB of host memory"),
    (["--size", 100, "--steps", 100000, "--check"], "--check"),
    (["--size", 8, "--steps", 4, "--json", "/nonexistent/rows.jsonl"], "/nonexistent/rows.jsonl"),
]


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_bad_input_gets_one_error_that_names_it(arguments, named):
    done = heat(*arguments, ranks=2)
    assert done.returncode != 0
    errors = errors_of(done)
    assert len(errors) == 1, done.stdout + done.stderr
    assert named in errors[0]


@pytest.mark.parametrize("mode", ["one-sided", "two-sided"])
@pytest.mark.parametrize("gpu", ["none", "emulated"])
def test_a_killed_process_ends_the_job(gpu, mode):
    killed = command("--size", 32, "--steps", 10_000_000, "--print", 0, "--mode", mode, ranks=3)
    expect_a_killed_process_to_end_the_job(killed, b"heat3d", gpu)
