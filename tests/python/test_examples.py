"""The README's program is the example, and the example runs."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BRANT_BIN", ROOT / "build/bin"))
if BIN.name == "brant" and BIN.is_file():
    BIN = BIN.parent


def test_the_program_of_the_readme_is_the_example():
    program = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    example = (ROOT / "examples/01_swap/swap.cc").read_text()
    assert example.split("\n", 1)[1] == program


@pytest.mark.parametrize("device", ["none", "emulated"])
def test_the_example_runs(device):
    command = [BIN / "brant", "run", "-n", "2", "--timeout", "30", "--env", f"BRANT_GPU={device}", "--", BIN / "swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {"[0] rank 0 has 1048576 bytes", "[1] rank 1 has 1048576 bytes"} <= set(done.stdout.splitlines())
