"""docs/guide/python.md and examples/python: the programs run, and print what the page says, in any order."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy
import pytest
from conftest import BRANT, ROOT, environment

PAGE = ROOT / "docs" / "guide" / "python.md"
START = r"^```python\n# brant run -n (\d) -- python (\w+)\.py\n"
PROGRAM = re.compile(START + r"(.*?)^```\n.*?^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS = PROGRAM.findall(PAGE.read_text())


def run(ranks: int, program) -> str:
    command = [BRANT, "run", "-n", str(ranks), "--no-prefix", "--timeout", "30", "--", sys.executable, program]
    done = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_program_of_the_page_says_how_it_is_started_and_what_it_prints() -> None:
    assert len(PROGRAMS) == PAGE.read_text().count("```python\n") > 2


@pytest.mark.parametrize(("ranks", "name", "text", "printed"), PROGRAMS, ids=[name for _, name, *_ in PROGRAMS])
def test_a_program_prints_what_the_page_says(ranks, name, text, printed, tmp_path) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    assert sorted(run(int(ranks), tmp_path / f"{name}.py").splitlines()) == sorted(printed.splitlines())


@pytest.mark.parametrize("ranks", [1, 3])
def test_jacobi_by_chares_is_right(ranks: int) -> None:
    plate = numpy.zeros((26, 38))
    plate[:, 0] = 1.0
    for _ in range(200):
        before = plate.copy()
        plate[1:-1, 1:-1] = 0.25 * (before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:])
    change, inner = abs(plate - before).max(), plate[1:-1, 1:-1]
    assert run(ranks, ROOT / "examples" / "python" / "jacobi.py").splitlines() == [
        f"after 200 steps a cell changes by {change:.6f} at most",
        f"the plate is {inner.mean():.6f} warm on average, and {inner[12, 0]:.6f} beside the edge",
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_ring_comes_round(ranks: int) -> None:
    said = run(ranks, ROOT / "examples" / "python" / "ring.py").splitlines()
    assert sorted(said) == [f"rank {rank} has its array back, with {ranks} in it" for rank in range(ranks)]
