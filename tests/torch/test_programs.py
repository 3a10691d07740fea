"""docs/guide/pytorch.md and examples/python/ddp.py: the programs run under torchrun."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import LIMIT_S, ROOT, environment

PAGE = ROOT / "docs" / "guide" / "pytorch.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n.*?^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def under_torchrun(program, *arguments: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(program), *arguments], env=environment(), text=True, capture_output=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_program_of_the_page_prints_what_it_says(tmp_path) -> None:
    ((text, printed),) = PROGRAM.findall(PAGE.read_text())
    (tmp_path / "train.py").write_text(text)
    said = under_torchrun(tmp_path / "train.py")
    for line in printed.splitlines():
        assert said.count(line) == 1, said  # the ends of lines of two processes may stand together


def test_the_example_learns() -> None:
    said = under_torchrun(ROOT / "examples" / "python" / "ddp.py", "--steps", "200").strip()
    share = int(said.partition("%")[0])
    assert share > 85, said
    assert said.endswith("of 1024 points are told right after 200 steps")
