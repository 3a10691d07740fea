"""What ARCHITECTURE.md says an operation costs is what it costs: its table against a fresh count."""

from __future__ import annotations

import os
import re

import pytest
from brant_command import BIN, ROOT, brant, needs_brant

PROGRAM = BIN / "operation_cost_test"
HEADING = "## What an operation costs\n"
ABOUT = ("instructions", "calls")  # compilers differ, in what they inline too
TOLERANCE = 0.25

Table = list[dict[str, str]]


def rows_of(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def documented() -> Table:
    section = (ROOT / "ARCHITECTURE.md").read_text().split(HEADING)[1].split("\n## ")[0]
    head, _, *rows = rows_of([line for line in section.splitlines() if line.startswith("|")])
    return [dict(zip(head, row, strict=True)) for row in rows]


def counted(output: str, head: list[str]) -> Table:
    lines = re.findall(r"^(?:\[0\] )?(\|.*\|)$", output, re.MULTILINE)
    return [dict(zip(head, row, strict=True)) for row in rows_of(lines)]


def differences(said: Table, found: Table) -> list[str]:
    wrong = []
    if [row["operation"] for row in said] != [row["operation"] for row in found]:
        wrong.append("the operations are others, or in another order")
    for old, new in zip(said, found, strict=False):
        for column, value in new.items():
            same = old[column] == value
            if column in ABOUT:
                same = abs(int(value) - int(old[column])) <= TOLERANCE * int(old[column])
            if not same:
                wrong.append(f"{new['operation']}: {column} {value}, the table says {old[column]}")
    return wrong


@needs_brant
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only the instructions of x86-64 are counted")
@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built (not with sanitizers)")
def test_the_table_of_the_architecture_is_what_is_counted() -> None:
    done = brant("run", "-n", "2", "--", PROGRAM, limit_s=180, BRANT_CALIBRATION="off")
    skipped = re.search(r"Skipped\n(?:\[0\] )?(.*)", done.stdout)
    if skipped:
        pytest.skip(skipped[1])
    assert done.returncode == 0, done.stdout + done.stderr
    said = documented()
    wrong = differences(said, counted(done.stdout, list(said[0])))
    assert not wrong, "\n".join([*wrong, "", "if that is meant, put this into ARCHITECTURE.md:", done.stdout])


def test_what_differs_is_found() -> None:
    said = documented()
    assert differences(said, said) == []
    for column, value in (("atomics", "1"), ("system calls", "1"), ("instructions", "100000"), ("operation", "other")):
        assert differences(said, [{**said[0], column: value}, *said[1:]]), column
    assert differences(said, said[1:])
