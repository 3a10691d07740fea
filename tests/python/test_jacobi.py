"""Jacobi3D as users run it: under `brant run`, checked against a serial run and against NumPy, and given bad input."""

import json
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from brant_command import BIN, BRANT, expect_a_killed_process_to_end_the_job

pytestmark = pytest.mark.skipif(
    not (BRANT.exists() and (BIN / "jacobi3d").exists()), reason="needs the release build: run 'make build'"
)


def command(*arguments, ranks=1) -> list[str]:
    return [str(BRANT), "run", "-n", str(ranks), "--", str(BIN / "jacobi3d"), *map(str, arguments)]


def jacobi(*arguments, ranks=1, gpu="none") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BRANT_GPU": gpu}
    return subprocess.run(command(*arguments, ranks=ranks), env=environment, text=True, capture_output=True, timeout=60)


def initial_field(shape: tuple[int, int, int]) -> np.ndarray:
    """The noise of `initial_value` in cells.h."""
    x, y, z = (axis.astype(np.uint64) for axis in np.indices(shape))
    with np.errstate(over="ignore"):
        mixed = x * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= y * np.uint64(0xC2B2AE3D27D4EB4F) + (mixed >> np.uint64(29))
        mixed ^= z * np.uint64(0x165667B19E3779F9) + (mixed >> np.uint64(31))
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return ((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(11)) * 2.0**-53


def sweep(field: np.ndarray) -> np.ndarray:
    """One iteration in NumPy, with the additions in the program's order."""
    padded = np.pad(field, 1)
    padded[:, :, 0] = 1.0  # below; the corners and edges are not looked at
    total = padded[1:-1, 1:-1, 1:-1].copy()
    for axis in range(3):
        for shift in (0, 2):
            window = [slice(1, -1)] * 3
            window[axis] = slice(shift, shift + field.shape[axis])
            total += padded[tuple(window)]
    return total * (1.0 / 7.0)


def errors_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that begin with `error:`, whether or not the launcher put the rank before them."""
    return [line for line in (done.stdout + done.stderr).splitlines() if re.match(r"(\[\d+\] )?error: ", line)]


# --- Right answers -----------------------------------------------------------------------------------------------

RUNS = [
    # ranks, size, gpu, more arguments
    (1, (17, 9, 5), "none", []),
    (1, (16, 16, 16), "emulated", []),
    (2, (32, 32, 32), "none", ["--path", "ucx"]),
    (2, (33, 31, 29), "none", ["--path", "staged", "--overlap"]),
    (2, (70, 3, 2), "none", ["--memory", "pinned"]),
    (2, (31, 18, 27), "emulated", ["--path", "staged"]),
    (3, (41, 30, 7), "none", ["--overlap"]),
    (3, (7, 41, 30), "emulated", ["--overlap"]),
    (4, (25, 26, 27), "none", ["--overlap"]),
    (4, (5, 4, 2), "emulated", ["--compare"]),
    (4, (40, 41, 6), "emulated", ["--path", "staged", "--overlap"]),
    # as chares: by messages with device arguments
    (1, (17, 9, 5), "none", ["--model", "message"]),
    (1, (17, 9, 12), "emulated", ["--model", "message", "--chares-per-process", "4", "--overlap"]),
    (2, (32, 31, 30), "none", ["--model", "message", "--chares-per-process", "4"]),
    (2, (33, 31, 29), "none", ["--model", "message", "--chares-per-process", "6", "--overlap"]),
    (2, (31, 18, 27), "emulated", ["--model", "message", "--chares-per-process", "2", "--path", "staged"]),
    (3, (41, 30, 7), "none", ["--model", "message", "--overlap", "--path", "ucx"]),
    (4, (25, 26, 27), "emulated", ["--model", "message", "--chares-per-process", "2", "--overlap"]),
    # by halo exchanges
    (1, (17, 9, 12), "emulated", ["--halo", "direct"]),
    (2, (33, 31, 29), "none", ["--model", "halo", "--overlap"]),
    (2, (33, 31, 29), "emulated", ["--halo", "fused", "--compare"]),
    (1, (17, 9, 12), "emulated", ["--halo", "stream"]),
    (2, (31, 18, 27), "emulated", ["--halo", "stream", "--path", "staged"]),
    (2, (31, 18, 27), "emulated", ["--halo", "stacked"]),
    (2, (2, 1100, 260), "emulated", ["--halo", "stream"]),  # more than 128 tiles: a launch for each sweep
    (3, (41, 30, 7), "emulated", ["--halo", "stacked", "--overlap"]),
    (4, (25, 26, 27), "emulated", ["--halo", "stream", "--overlap"]),
    (4, (25, 26, 27), "emulated", ["--halo", "stacked", "--compare"]),
    (2, (31, 18, 27), "emulated", ["--halo", "resident"]),
    (3, (41, 30, 7), "none", ["--halo", "direct"]),
    (4, (25, 26, 27), "emulated", ["--halo", "direct"]),
    (4, (25, 26, 27), "emulated", ["--halo", "direct", "--overlap"]),
    (4, (70, 52, 46), "none", ["--model", "message", "--chares-per-process", "16", "--overlap"]),
]


@pytest.mark.parametrize(("ranks", "size", "gpu", "more"), RUNS)
def test_agrees_with_a_serial_run_to_the_last_bit(ranks, size, gpu, more):
    done = jacobi("--size", *size, "--iterations", 9, "--warmup", 2, "--check", *more, ranks=ranks, gpu=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("to the last bit after 11 iterations") == (2 if "--compare" in more else 1)
    assert ("emulated memory" in done.stdout) == (gpu == "emulated")


@pytest.mark.parametrize(("ranks", "model"), [(1, "channel"), (2, "channel"), (3, "message"), (4, "channel")])
def test_output_is_what_numpy_computes(tmp_path, ranks, model):
    shape = (13, 11, 18)
    options = ["--iterations", 4, "--warmup", 1, "--model", model, "--output", tmp_path / "out.npy"]
    done = jacobi("--size", *shape, *options, ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    field = initial_field(shape)
    for _ in range(5):
        field = sweep(field)
    result = np.load(tmp_path / "out.npy")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, field)
    assert [path.name for path in tmp_path.iterdir()] == ["out.npy"]


def test_output_of_device_memory_is_the_same(tmp_path):
    results = []
    for gpu in ("none", "emulated"):
        done = jacobi("--size", 12, "--iterations", 3, "--output", tmp_path / gpu, ranks=2, gpu=gpu)
        assert done.returncode == 0, done.stdout + done.stderr
        results.append((tmp_path / gpu).read_bytes())
    assert results[0] == results[1]


def test_field_goes_to_the_solution_of_the_laplace_equation(tmp_path):
    """Far along, a box that is as high as wide holds 1/6 in its middle: the one warm side of six."""
    done = jacobi("--size", 9, "--iterations", 600, "--output", tmp_path / "out.npy", ranks=2)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npy")[4, 4, 4] == pytest.approx(1 / 6, abs=1e-9)


@pytest.mark.parametrize(
    ("ranks", "gpu", "more"),
    [
        (1, "none", []),
        (3, "none", ["--overlap"]),
        (2, "emulated", []),
        (2, "none", ["--model", "message", "--chares-per-process", "3"]),
        (2, "emulated", ["--halo", "stream"]),
        (3, "emulated", ["--halo", "direct"]),
    ],
)
def test_the_residual_is_the_largest_change_of_all_processes(tmp_path, ranks, gpu, more):
    shape = (13, 11, 18)
    options = ["--iterations", 9, "--warmup", 2, "--residual", 5, "--check", "--json", tmp_path / "rows"]
    done = jacobi("--size", *shape, *options, *more, ranks=ranks, gpu=gpu)
    assert done.returncode == 0, done.stdout + done.stderr
    fields = [initial_field(shape)]
    for _ in range(10):
        fields.append(sweep(fields[-1]))
    largest = float(np.abs(fields[10] - fields[9]).max())
    (row,) = map(json.loads, (tmp_path / "rows").read_text().splitlines())
    assert row["residual"] == {"iteration": 10, "largest_change": largest}
    assert f"Iteration 10 changed no cell by more than {largest:.6g}" in done.stdout


# --- What it tells -----------------------------------------------------------------------------------------------


def test_rows_say_what_was_measured(tmp_path):
    rows_file = tmp_path / "rows.jsonl"
    for _ in range(2):  # appended, not overwritten
        arguments = ["--size", 8, 8, 16, "--iterations", 5, "--compare", "--json", rows_file]
        done = jacobi(*arguments, ranks=2, gpu="emulated")
        assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in rows_file.read_text().splitlines()]
    assert [row["path"] for row in rows[1::2]] == ["staged", "staged"]
    brant = subprocess.run([BRANT, "--version"], capture_output=True, text=True, check=True).stdout
    for row in rows:
        assert f"brant {row['brant']}\n" == brant, "one build, one version"
        assert row["bench"] == "jacobi3d"
        assert row["model"] == "channel"
        assert row["memory"] == "emulated"
        assert row["cells"] == [8, 8, 16]
        assert row["grid"] == [1, 1, 2]
        assert row["n"] == 5
        assert row["bytes"] >= 8 * 8 * 8
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert row["per_iteration_us"] == pytest.approx(row["compute_us"] + row["communication_us"], rel=0.01)
        assert row["memory_bandwidth_fraction"] > 0
        assert row["speedup_vs_staged"]["communication"] > 0


@pytest.mark.parametrize("mode", ["direct", "stream"])
def test_exchanges_alone_are_measured_and_checked(tmp_path, mode):
    file = tmp_path / "rows"
    arguments = ["--size", 16, "--iterations", 50, "--halo", mode, "--compute", "none", "--check", "--json", file]
    done = jacobi(*arguments, ranks=2, gpu="emulated")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all ghosts are the cells" in done.stdout
    row = json.loads(file.read_text())
    assert (row["model"], row["halo"], row["compute"]) == ("halo", mode, "none")
    assert row["compute_us"] == 0
    assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
    assert row["per_iteration_us"] == pytest.approx(row["communication_us"])


@pytest.mark.parametrize(
    ("ranks", "arguments", "path"),
    [
        (2, ["--size", 64], "shm"),  # faces of 32 KB in memory of brant, which neighbours copy themselves
        (2, ["--size", 64, "--path", "ucx"], "ucx"),
        (2, ["--size", 64, "--path", "staged"], "shm"),  # host memory has nothing to stage
        (2, ["--size", 64, "--model", "message"], "shm"),
        (1, ["--size", 16], "none"),
    ],
)
def test_the_path_is_the_one_that_bytes_took(ranks, arguments, path, tmp_path):
    file = tmp_path / "rows"
    done = jacobi(*arguments, "--iterations", 5, "--json", file, ranks=ranks)
    assert done.returncode == 0, done.stderr
    row = json.loads(file.read_text())
    assert row["path"] == path
    assert max(row["path_bytes"], key=row["path_bytes"].get, default="none") == path
    lines = [line.split("] ")[-1] for line in done.stdout.splitlines()]  # one process has no rank in front
    assert any(line.startswith(f"{path} ") for line in lines), done.stdout


def test_host_memory_has_nothing_to_stage():
    done = jacobi("--size", 24, "--iterations", 5, "--compare", ranks=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to stage" in done.stdout


def test_help_names_every_option_once():
    done = jacobi("--help", ranks=2)
    assert done.returncode == 0
    assert len(re.findall(r"--chares-per-process", done.stdout)) == 1


# --- Bad input ---------------------------------------------------------------------------------------------------

BAD = [
    (["--sise", 8], "sise"),
    (["--size", 0], "size"),
    (["--size", -4], "size"),
    (["--size", 8, 8], "three"),
    (["--size", "huge"], "size"),
    (["--size", 8, "--chares-per-process", 2], "--model message"),
    (["--size", 8, "--model", "message", "--compare"], "--compare"),
    (["--size", 8, "--halo", "pigeon"], "pigeon"),
    (["--size", 8, "--halo", "direct", "--model", "channel"], "--model halo"),
    (["--size", 8, "--halo", "direct", "--path", "staged"], "--path"),
    (["--size", 8, "--halo", "stream"], "is for memory of a device"),
    (["--size", 8, "--compute", "none"], "--halo"),
    (["--size", 8, "--halo", "fused", "--compute", "none", "--overlap"], "--overlap"),
    (["--size", 8, "--halo", "fused", "--compute", "none", "--residual", 2], "--residual"),
    (["--size", 8, "--residual", 0], "--residual"),
    (["--size", 1, 1, 1, "--halo", "direct"], "1 x 1 x 1"),
    (["--size", 400000], "GB of host memory"),
    (["--size", 1, 1, 1], "1 x 1 x 1"),
    (["--size", 8, "--iterations", 0], "iterations"),
    (["--size", 8, "--path", "pigeon"], "pigeon"),
    (["--size", 8, "--memory", "punched-cards"], "punched-cards"),
    (["--size", 8, "--memory", "emulated", "--path", "shm"], "shm"),
    (["--size", 512, "--check", "--iterations", 100000], "--check"),
    (["--size", 8, "--output", "/nonexistent/out.npy"], "/nonexistent/out.npy"),
    (["--size", 8, "--json", "/nonexistent/rows.jsonl"], "/nonexistent/rows.jsonl"),
]


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_bad_input_gets_one_error_that_names_it(arguments, named):
    done = jacobi(*arguments, ranks=2)
    assert done.returncode != 0
    errors = errors_of(done)
    assert len(errors) == 1, done.stdout + done.stderr
    assert named in errors[0]


def test_a_failed_run_leaves_the_old_output_alone(tmp_path):
    (tmp_path / "out.npy").write_text("precious")
    done = jacobi("--size", 1, "--output", tmp_path / "out.npy", ranks=2)
    assert done.returncode != 0
    assert (tmp_path / "out.npy").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(any(pathlib.Path("/dev").glob("nvidia[0-9]")), reason="this machine has a GPU")
def test_device_memory_without_a_device_is_refused():
    done = jacobi("--size", 8, "--memory", "cuda", ranks=2)
    assert done.returncode != 0
    assert len(errors_of(done)) == 1, done.stdout + done.stderr
    assert "GPU" in errors_of(done)[0]


@pytest.mark.parametrize(
    ("gpu", "more"),
    [
        ("none", []),
        ("none", ["--halo", "direct"]),
        ("emulated", ["--halo", "direct"]),
        ("emulated", ["--halo", "stream"]),
        ("emulated", ["--halo", "stacked", "--overlap"]),
    ],
)
def test_a_killed_process_ends_the_job(gpu, more):
    """Whatever the others are at, they end within seconds."""
    killed = command("--size", 48, "--iterations", 1_000_000_000, *more, ranks=3)
    expect_a_killed_process_to_end_the_job(killed, b"Jacobi3D", gpu)


def test_a_path_that_cannot_carry_the_memory_is_refused():
    done = jacobi("--size", 8, "--path", "ucx", ranks=3, gpu="emulated")
    assert done.returncode != 0
    assert len(errors_of(done)) == 1, done.stdout + done.stderr
    assert "emulated memory" in errors_of(done)[0]
