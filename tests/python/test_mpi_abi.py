"""libmpi_abi.so.1 beside another implementation of the standard ABI, MPICH's wheel: the same names, the same numbers,
and programs compiled for the one that run on the other."""

import pathlib
import re
import subprocess
import sys

import pytest
from brant_command import BIN, BRANT, ROOT, needs_brant, plain_environment
from exported_names import STREAM_NAMES, exported

OURS = ROOT / "build" / "release" / "lib" / "libmpi_abi.so.1"
WHEEL = pathlib.Path(sys.prefix)
THEIRS = WHEEL / "lib" / "libmpi_abi.so.1"
GENERATED = ROOT / "build" / "release" / "src" / "models" / "mpi" / "generated" / "include"

pytestmark = [
    needs_brant,
    pytest.mark.skipif(not OURS.exists(), reason=f"{OURS} is not built: run 'make build'"),
    pytest.mark.skipif(not THEIRS.exists(), reason="MPICH's wheel is not installed beside this Python"),
]


def prepared(header, *flags):
    """The header as C sees it: its constants, by the compiler's own list of macros, and its text."""
    command = ["cc", "-E", "-dD", "-P", "-x", "c", *flags, "-"]
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, check=True)
    return done.stdout


OUR_FLAGS = (f"-I{ROOT / 'include' / 'brant' / 'mpi'}", f"-I{GENERATED}")
THEIR_FLAGS = ("-DMPI_ABI", f"-I{WHEEL / 'include'}")


def constants(text):
    names = set(re.findall(r"^#define (MPI_\w+)[ \t]+\S", text, re.M)) | set(re.findall(r"\b(MPI_\w+) *= *-?\w+", text))
    return {n for n in names if not re.fullmatch(r"MPI_(ABI_(Aint|Offset|Count)|H_ABI|ABI)", n)}


def test_exports_the_names_of_the_standard_and_those_of_streams():
    everything, theirs = exported(OURS), exported(THEIRS)
    ours = {name for name in everything if re.match(r"P?MPI_", name)}
    assert len(ours) == 2 * 664
    assert everything - ours == STREAM_NAMES
    # MPICH lacks two large forms, and has ten names that MPI-3 removed.
    assert ours - theirs == {f"{p}MPI_{n}_init_c" for p in ("", "P") for n in ("Psend", "Precv")}
    removed = {n for n in theirs - ours if re.match(r"P?MPI_", n)}
    assert len(removed) <= 20, sorted(removed)


def test_has_the_soname_of_the_standard():
    text = subprocess.run(["readelf", "-d", OURS], capture_output=True, text=True, check=True).stdout
    assert "Library soname: [libmpi_abi.so.1]" in text


def test_constants_and_structures_are_those_of_the_other_header(tmp_path):
    ours, theirs = prepared("mpi.h", *OUR_FLAGS), prepared("mpi.h", *THEIR_FLAGS)
    names = sorted(constants(theirs))
    assert constants(theirs) - constants(ours) == set()
    assert len(names) > 350
    source = tmp_path / "constants.c"
    lines = ["#include <mpi.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    lines += [f'  printf("{name} %lld\\n", (long long)({name}));' for name in names]
    for member in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR", "MPI_internal"):
        lines.append(f'  printf("{member} at %zu\\n", offsetof(MPI_Status, {member}));')
    for kind in ("MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Comm", "MPI_Datatype"):
        lines.append(f'  printf("{kind} has %zu\\n", sizeof({kind}));')
    source.write_text("\n".join([*lines, "  return 0;", "}", ""]))
    printed = []
    for flags in (OUR_FLAGS, THEIR_FLAGS):
        program = tmp_path / "constants"
        subprocess.run(["cc", *flags, source, "-o", program], check=True)
        printed.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())
    assert printed[0] == printed[1]


def run_ring(program, **environment):
    done = subprocess.run(
        [BRANT, "run", "-n", "3", "--", program],
        env=plain_environment() | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split("] ", 1)[1] for line in done.stdout.splitlines())
    assert lines == [f"rank {rank} of 3: {(rank + 1) % 3} came last, the sum is 3" for rank in range(3)]


def test_programs_of_our_compiler_run(tmp_path):
    program = tmp_path / "ring"
    shown = subprocess.run([BIN / "mpicc", "-show", "x.c"], capture_output=True, text=True, check=True).stdout
    assert "-fPIC" in shown and "-lmpi_abi" in shown
    subprocess.run([BIN / "mpicc", ROOT / "examples" / "mpi" / "ring.c", "-o", program], check=True)
    assert "RUNPATH" in subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    run_ring(program)


def test_programs_of_the_other_compiler_run_unchanged(tmp_path):
    program = tmp_path / "ring"
    command = ["cc", *THEIR_FLAGS, ROOT / "examples" / "mpi" / "ring.c", "-o", program]
    command += [f"-L{WHEEL / 'lib'}", f"-Wl,-rpath,{WHEEL / 'lib'}", "-Wl,--enable-new-dtags", "-lmpi_abi"]
    subprocess.run(command, check=True)
    run_ring(program, LD_LIBRARY_PATH=str(OURS.parent))


def test_an_error_ends_the_job_and_says_what_failed(tmp_path):
    source, program = tmp_path / "wrong.c", tmp_path / "wrong"
    source.write_text(
        "#include <mpi.h>\n"
        "int main(int argc, char** argv) {\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Send(0, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);\n"
        "  return 0;\n"
        "}\n"
    )
    subprocess.run([BIN / "mpicc", source, "-o", program], check=True)
    done = subprocess.run(
        [BRANT, "run", "-n", "2", "--", program], env=plain_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert re.search(r"MPI_Send failed on rank \d of MPI_COMM_WORLD: the destination 99 is outside", done.stderr)
    assert "MPI_ERR_RANK" in done.stderr and "MPI_ERRORS_RETURN" in done.stderr


def test_info_lists_what_is_implemented():
    done = subprocess.run([BRANT, "info", "--mpi"], env=plain_environment(), capture_output=True, text=True, check=True)
    assert re.search(r"Point-to-point communication +\d+ of +\d+", done.stdout)
    assert "MPI_Send" in done.stdout and "MPIX_Send_enqueue" in done.stdout
    assert re.search(r"MPI 5.0 +664 of 664", done.stdout)


def run_survivors(source, program, ranks):
    """Compiles a program of which a rank dies, and runs it to the end of the others."""
    subprocess.run([BIN / "mpicc", source, "-o", program], check=True)
    command = [BRANT, "run", "--keep-going", "-n", str(ranks), "--", program]
    return subprocess.run(command, env=plain_environment(), capture_output=True, text=True, timeout=60)


def test_a_rank_that_dies_is_an_error_of_what_waits_for_it(tmp_path):
    source, program = tmp_path / "death.c", tmp_path / "death"
    source.write_text(
        "#include <mpi.h>\n"
        "#include <signal.h>\n"
        "#include <stdio.h>\n"
        "int main(int argc, char** argv) {\n"
        "  int rank, word, any, sent = 1;\n"
        "  MPI_Request requests[2];\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n"
        "  if (rank == 1) {\n"
        "    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "    raise(SIGKILL);\n"
        "  }\n"
        "  MPI_Irecv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);\n"
        "  MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);\n"
        "  MPI_Send(&sent, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);\n"
        "  int first = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);\n"
        "  int second = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);\n"
        "  int third = MPI_Recv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        '  printf("%d %d %d\\n", first == MPI_ERR_PROC_ABORTED, second == first, third == first);\n'
        "  fflush(stdout);\n"
        "  return 0;\n"
        "}\n"
    )
    done = run_survivors(source, program, 2)
    assert "1 1 1" in done.stdout, done.stdout + done.stderr


def test_a_member_of_a_window_that_dies_ends_what_waits_for_it(tmp_path):
    source, program = tmp_path / "window_death.c", tmp_path / "window_death"
    source.write_text(
        "#include <mpi.h>\n"
        "#include <signal.h>\n"
        "#include <stdio.h>\n"
        "int main(int argc, char** argv) {\n"
        "  int rank, word = 1, *base;\n"
        "  MPI_Win win;\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n"
        "  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);\n"
        "  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);\n"
        "  if (rank == 1) {\n"
        "    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);\n"
        "    MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);\n"
        "    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "    raise(SIGKILL);\n"
        "  }\n"
        "  int locked = 0, aborted = 0;\n"
        "  if (rank == 0) {\n"
        "    MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);\n"
        "    aborted += MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED;\n"
        "    aborted += MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win) == MPI_ERR_PROC_ABORTED;\n"
        "    MPI_Recv(&word, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "  } else {\n"
        "    MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "    locked = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS;\n"
        "    MPI_Win_unlock(0, win);\n"
        "    MPI_Send(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);\n"
        "  }\n"
        "  aborted += MPI_Win_fence(0, win) == MPI_ERR_PROC_ABORTED;\n"
        "  aborted += MPI_Win_free(&win) == MPI_ERR_PROC_ABORTED && win == MPI_WIN_NULL;\n"
        '  printf("rank %d: locked %d, aborted %d\\n", rank, locked, aborted);\n'
        "  fflush(stdout);\n"
        "  return 0;\n"
        "}\n"
    )
    done = run_survivors(source, program, 3)
    assert "rank 0: locked 0, aborted 4" in done.stdout, done.stdout + done.stderr
    assert "rank 2: locked 1, aborted 2" in done.stdout, done.stdout + done.stderr
