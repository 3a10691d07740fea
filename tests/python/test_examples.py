"""The README's program is the example, and the example runs."""

import re
import subprocess

import pytest
from brant_command import BIN, BRANT, ROOT


def test_the_program_of_the_readme_is_the_example():
    program = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    example = (ROOT / "examples/01_swap/swap.cc").read_text()
    assert example.split("\n", 1)[1] == program


@pytest.mark.parametrize("device", ["none", "emulated"])
def test_the_example_runs(device):
    command = [BRANT, "run", "-n", "2", "--timeout", "30", "--env", f"BRANT_GPU={device}", "--", BIN / "swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {"[0] rank 0 has 1048576 bytes", "[1] rank 1 has 1048576 bytes"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_ring_of_chares_runs(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "ring", "8", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = {line.split("] ")[-1] for line in done.stdout.splitlines()}  # one process has no rank in front
    assert f"the token made 40 hops over 8 members on {ranks} ranks" in lines
    assert {f"member {i} on rank {i % ranks}: hello from the main task" for i in range(8)} <= lines


@pytest.mark.parametrize("device", ["none", "emulated"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_stencil_with_post_entries_runs(ranks, device):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "50", "--env", f"BRANT_GPU={device}"]
    done = subprocess.run(
        [*command, "--", BIN / "stencil", "4", "3", "500"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    degrees = "15.38 38.46 61.54 84.62 degrees along the rod after 500 steps"  # a straight line: 100 * cell / 13
    assert degrees in done.stdout, done.stdout


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_blackboard_has_everybodys_line(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "blackboard"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split("] ")[-1] for line in done.stdout.splitlines())
    assert lines == sorted(f"rank {i} was at rank {j}" for i in range(ranks) for j in range(ranks))


def test_ranks_of_different_programs_are_refused():
    script = f'if [ "$BRANT_RANK" = 1 ]; then exec {BIN}/chare_cost; else exec {BIN}/ring; fi'
    command = [BRANT, "run", "-n", "2", "--timeout", "30", "--", "/bin/sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "runs another program than rank" in done.stderr, done.stderr
