"""examples/python: each program runs on any number of processes, and gives the right answer; wrong arguments end it."""

from __future__ import annotations

import importlib.util
import re
import sys

import numpy
import pytest
from conftest import BRANT, ROOT, run_command
from test_gpu_arrays import HAS_GPU

EXAMPLES = ROOT / "examples" / "python"


def run(ranks: int, program: str, *options: str, fails: bool = False) -> str:
    job = [str(BRANT), "run", "-n", str(ranks), "--no-prefix", "--timeout", "30", "--"]
    done = run_command([*job, sys.executable, str(EXAMPLES / f"{program}.py"), *options])
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.mark.parametrize("ranks", [1, 3])
def test_k_means_finds_the_clusters(ranks: int) -> None:
    points = numpy.random.default_rng(7).normal(scale=0.5, size=(3000, 2))
    points += 10.0 * (numpy.arange(3000) % 3)[:, None]
    expected = [points[cluster::3].mean(axis=0) for cluster in range(3)]  # they lie far apart
    assert run(ranks, "kmeans").splitlines() == [f"a cluster around ({x:.3f}, {y:.3f})" for x, y in expected]


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_parameter_server_fits_the_weights(ranks: int) -> None:
    assert run(ranks, "parameter_server") == "the weights are 3.000 -1.000 0.500 2.000\n"


@pytest.mark.parametrize(("ranks", "batches"), [(1, 8), (2, 1), (2, 9), (3, 2)])
def test_the_pipeline_computes_what_one_process_does(ranks: int, batches: int) -> None:
    said = run(ranks, "pipeline", "--of", "numpy", "--batches", str(batches))
    assert said == f"{batches} batches are what one process computes, to the last bit\n"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch")
@pytest.mark.parametrize(("ranks", "batches", "device"), [(1, 3, "cpu"), (2, 9, "cpu"), (3, 2, "cpu"), (2, 9, "cuda")])
def test_the_pipeline_of_modules_computes_what_one_process_does(ranks: int, batches: int, device: str) -> None:
    if device == "cuda" and not HAS_GPU:
        pytest.skip("there is no CUDA GPU")
    said = run(ranks, "pipeline", "--of", "torch", "--device", device, "--batches", str(batches))
    assert said.startswith(f"{batches} batches are what one process computes, as near as")


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_pool_throws_the_same_darts_anywhere(ranks: int) -> None:
    inside = 0
    for seed in range(10):
        darts = numpy.random.default_rng(seed).random((100_000, 2))
        inside += int(((darts**2).sum(axis=1) < 1.0).sum())
    assert run(ranks, "pool_map", "--throws", "10") == f"pi is about {4 * inside / 1_000_000:.4f}\n"


WRONG = [
    ("kmeans", "--clusters", "0", "1 to --points clusters"),
    ("parameter_server", "--steps", "0", "--steps is 1 or more"),
    ("pipeline", "--rows", "0", "1 or more"),
    ("pipeline", "--of", "wood", "invalid choice: 'wood'"),
    ("pool_map", "--throws", "few", "invalid int value: 'few'"),
]


@pytest.mark.parametrize(("program", "option", "value", "says"), WRONG)
def test_wrong_arguments_end_it_with_a_word(program: str, option: str, value: str, says: str) -> None:
    assert says in run(2, program, option, value, fails=True)


def test_the_page_names_every_example_and_how_it_is_started() -> None:
    started = r"^    (?:brant run -n \d -- python3|python3 -m torch\.distributed\.run --nproc-per-node \d) (\w+)\.py"
    named = re.findall(started, (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(file.stem for file in EXAMPLES.glob("*.py"))
