"""Calls of MPI that streams carry out: one source, compiled for the ABI of the standard and for MPICH's."""

import pathlib
import re
import subprocess
import sys

import pytest
from brant_command import BIN, BRANT, ROOT, needs_brant, plain_environment

BUILD = ROOT / "build" / "release"
LIBRARY = next(BUILD.rglob("libbrant.so"), None)
SOURCE = ROOT / "tests" / "python" / "programs" / "streams_of_mpi.cc"
WHEEL = pathlib.Path(sys.prefix)

pytestmark = [
    needs_brant,
    pytest.mark.skipif(LIBRARY is None, reason="libbrant.so is not built: run 'make build'"),
]


def compiled(compiler, program, *flags):
    command = [compiler, "-std=c++20", f"-I{ROOT / 'include'}", SOURCE, "-o", program, *flags]
    command += [f"-L{LIBRARY.parent}", f"-Wl,-rpath,{LIBRARY.parent}", "-lbrant"]
    subprocess.run(command, check=True)
    return program


def expect_ok(program, **environment):
    env = plain_environment() | {"BRANT_GPU": "emulated"} | environment
    done = subprocess.run([BRANT, "run", "-n", "2", "--", program], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank (\d): ok", done.stdout)) == ["0", "1"], done.stdout + done.stderr


def test_a_program_of_the_standards_abi(tmp_path):
    expect_ok(compiled(BIN / "mpicxx", tmp_path / "program"))


@pytest.mark.skipif(not (WHEEL / "include" / "mpi.h").exists(), reason="MPICH's wheel is not installed")
def test_a_program_of_mpich(tmp_path):
    ours = BUILD / "lib" / "mpich"
    program = compiled("c++", tmp_path / "program", f"-I{WHEEL / 'include'}", f"-L{WHEEL / 'lib'}", "-lmpi")
    expect_ok(program, LD_LIBRARY_PATH=str(ours))


def test_there_is_no_stream_where_ranks_share_a_process(tmp_path):
    if not (BRANT.parent / "brant-ranks").exists():
        pytest.skip("brant-ranks is not built: run 'make build' where Boost.Context is")
    source = tmp_path / "program.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int main(int argc, char** argv) {\n"
        "  MPIX_Stream stream;\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPIX_Stream_create(MPI_INFO_NULL, &stream);\n"
        "  MPI_Finalize();\n"
        "  return 0;\n"
        "}\n"
    )
    program = tmp_path / "program"
    subprocess.run([BIN / "mpicc", "-fPIC", "-pie", source, "-o", program], check=True)
    command = [BRANT, "run", "-n", "1", "--ranks", "2", "--", program]
    done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "MPI_ERR_UNSUPPORTED_OPERATION" in done.stderr and "--ranks" in done.stderr
