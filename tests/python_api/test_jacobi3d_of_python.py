"""apps/jacobi3d_python: the field of the C++ program, to the last bit, with any cut; what it tells; wrong arguments."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
from conftest import BRANT, PROGRAMS, ROOT, brant, run_command, run_job

PROGRAM = ROOT / "apps" / "jacobi3d_python" / "jacobi3d.py"
JACOBI3D = PROGRAMS / "jacobi3d"


def jacobi(ranks: int, *options: object, fails: bool = False) -> str:
    job = [str(BRANT), "run", "-n", str(ranks), "--no-prefix", "--timeout", "60", "--"]
    done = run_command([*job, sys.executable, str(PROGRAM), *map(str, options)], BRANT_BIN=str(BRANT))
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr if fails else done.stdout


def of_cxx(size: tuple[int, int, int], iterations: int, file: pathlib.Path) -> numpy.ndarray:
    if not JACOBI3D.exists():
        pytest.skip("needs the release build: run 'make build'")
    what = [JACOBI3D, "--size", *size, "--iterations", iterations, "--warmup", 0, "--output", file]
    subprocess.run(list(map(str, what)), env={**os.environ, "BRANT_GPU": "none"}, check=True, stdout=subprocess.DEVNULL)
    return numpy.load(file)


@pytest.mark.parametrize(
    ("ranks", "blocks", "size"),
    [
        (1, 1, (17, 9, 5)),
        (1, 8, (16, 13, 12)),
        (2, 1, (33, 31, 29)),
        (2, 6, (14, 15, 16)),
        (4, 1, (25, 26, 27)),
        (4, 3, (40, 3, 2)),
    ],
)
def test_the_field_is_that_of_the_program_in_cxx(ranks: int, blocks: int, size, tmp_path: pathlib.Path) -> None:
    options = ["--size", *size, "--blocks", blocks, "--iterations", 7, "--warmup", 2]
    said = jacobi(ranks, *options, "--check", "--output", tmp_path / "python.npy")
    assert "to the last bit after 9 iterations" in said
    expected = of_cxx(size, 9, tmp_path / "cxx.npy")
    field = numpy.load(tmp_path / "python.npy")
    assert field.dtype == numpy.float64 and field.flags.f_contiguous
    numpy.testing.assert_array_equal(field.view("u8"), expected.view("u8"))
    assert (tmp_path / "python.npy").read_bytes() == (tmp_path / "cxx.npy").read_bytes()


@pytest.mark.parametrize("mode", ["fused", "direct", "resident", "stream", "stacked", "shapes"])
@pytest.mark.parametrize(
    ("ranks", "blocks", "size"), [(1, 8, (16, 13, 12)), (2, 6, (14, 15, 16)), (4, 1, (25, 26, 27))]
)
def test_a_halo_exchange_gives_the_same_field(mode: str, ranks: int, blocks: int, size, tmp_path: pathlib.Path) -> None:
    options = ["--halo", mode, "--size", *size, "--blocks", blocks, "--iterations", 7, "--warmup", 2]
    said = jacobi(ranks, *options, "--check", "--json", tmp_path / "rows")
    assert "to the last bit after 9 iterations" in said
    row = json.loads((tmp_path / "rows").read_text())
    assert row["halo"] == mode and row["chares"] == blocks and row["n"] == 7
    assert row["per_iteration_us"] == pytest.approx(row["compute_us"] + row["communication_us"], rel=0.01)


async def faces_that_are_shown_name_no_stream() -> None:
    """What is described as memory of a GPU lies in host memory here, and to wait for a stream would need a GPU."""
    sys.path.insert(0, str(PROGRAM.parent))
    from kernels import Shown

    class OnGpu:
        def __init__(self, array: numpy.ndarray):
            self.array, self.nbytes = array, array.nbytes
            self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, "stream": 1}

    field, ghosts = numpy.arange(60.0).reshape(3, 4, 5) + brant.rank(), numpy.zeros((3, 4, 5))
    channel = brant.channel(1 - brant.rank(), 1)
    with pytest.raises(brant.WrongKind, match="works without one"):
        channel.send(OnGpu(field[:, :, 1]))
    cells, landing = Shown(OnGpu(field[:, :, 1])), Shown(OnGpu(ghosts[:, :, 4]))
    assert cells.nbytes == 96
    for _ in range(3):
        outgoing = channel.send(cells)
        await channel.recv(out=landing)
        await outgoing
        numpy.testing.assert_array_equal(ghosts[:, :, 4], field[:, :, 1] - brant.rank() + 1 - brant.rank())
    assert not ghosts[:, :, :4].any()


def test_faces_that_are_shown_name_no_stream() -> None:
    run_job(faces_that_are_shown_name_no_stream)


@pytest.mark.parametrize(("ranks", "blocks"), [(1, 1), (2, 3)])
def test_it_ends_when_little_changes(ranks: int, blocks: int, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows"
    options = ["--size", 9, "--iterations", 2000, "--tolerance", 1e-4, "--every", 50]
    jacobi(ranks, *options, "--blocks", blocks, "--check", "--json", file)
    row = json.loads(file.read_text())
    assert row["n"] % 50 == 0 and 50 <= row["n"] < 2000
    assert 0 < row["change"] <= 1e-4


def test_rows_say_what_was_measured(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rows"
    for blocks in (1, 2):  # appended, not overwritten
        jacobi(2, "--size", 8, 8, 16, "--iterations", 5, "--blocks", blocks, "--json", file)
    alone, several = (json.loads(line) for line in file.read_text().splitlines())
    for row in (alone, several):
        assert (row["bench"], row["model"], row["memory"], row["peer"]) == ("jacobi3d", "python", "host", None)
        assert row["cells"] == [8, 8, 16] and row["n"] == 5 and row["ranks"] == 2
        assert 0 < row["us"]["min"] <= row["us"]["p50"] <= row["us"]["p99"]
        assert row["brant"].startswith("0.") and row["ucx"] and row["cpu"]
    assert alone["grid"] == [1, 1, 2] and alone["bytes"] == 8 * 8 * 8
    assert alone["per_iteration_us"] == pytest.approx(alone["compute_us"] + alone["communication_us"], rel=0.01)
    assert several["chares"] == 2 and several["compute_us"] is None
    assert several["grid"] == [1, 1, 4] and several["bytes"] == 3 * 8 * 8 * 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--size", 8, 8], "three: NX NY NZ"),
        (["--size", 0], "'0' is no whole number from 1"),
        (["--size", 1, 1, 1], "1 x 1 x 1 cells cannot be cut into 2 blocks"),
        (["--blocks", "many"], "'many' is no whole number"),
        (["--host-staging"], "--host-staging is for --memory cuda"),
        (["--tolerance", "nan"], "--tolerance is 0 or more"),
        (["--size", 2000, "--check"], "--check computes all on one core"),
        (["--size", 4, "--output", "/nonexistent/field.npy"], "/nonexistent/field.npy: could not write it"),
    ],
)
def test_wrong_arguments_end_it_with_a_word(options: list, says: str) -> None:
    assert says in jacobi(2, *options, fails=True)
