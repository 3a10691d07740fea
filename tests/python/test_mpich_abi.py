"""libmpi.so.12 beside MPICH's own, of its wheel: the same names and numbers, and programs that MPICH's compiler made
run unchanged."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from brant_command import BRANT, ROOT, needs_brant, plain_environment
from exported_names import OWN_STREAM_NAMES, STREAM_NAMES, exported

OURS = ROOT / "build" / "release" / "lib" / "mpich" / "libmpi.so.12"
WHEEL = pathlib.Path(sys.prefix)
THEIRS = WHEEL / "lib" / "libmpi.so.12"
TABLE = ROOT / "src" / "models" / "mpi" / "generate" / "mpich.txt"
PROGRAM = ROOT / "tests" / "python" / "programs" / "mpich_abi.c"
# Of their header and of no use to programs: numbers of functions for tools of MPICH, formats, and second names.
LEFT_OUT = re.compile(r"MPI_(\w+_T|AINT_FMT_\w+|\w*DUP_FN|C_COMPLEX|LONG_LONG_INT|UNWEIGHTED|WEIGHTS_EMPTY)")
TYPES_ENDING_LIKE_NUMBERS = re.compile(r"MPI_U?INT\d+_T")

pytestmark = [
    needs_brant,
    pytest.mark.skipif(not OURS.exists(), reason=f"{OURS} is not built: run 'make build'"),
    pytest.mark.skipif(not THEIRS.exists(), reason="MPICH's wheel is not installed beside this Python"),
]


def table():
    """Name of a constant -> its number, as the library is made from."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if line and line[0] not in "#["]
    return {words[0]: int(words[1], 0) for words in rows}


def compiled(source, program, *flags):
    """By MPICH's own compiler, for MPICH's own library."""
    subprocess.run([WHEEL / "bin" / "mpicc", *flags, source, "-o", program], check=True)
    assert "[libmpi.so.12]" in subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout
    return program


def run(*command, **environment):
    """With brant's library in front."""
    env = plain_environment() | {"LD_LIBRARY_PATH": str(OURS.parent)} | environment
    return subprocess.run([BRANT, "run", *command], env=env, capture_output=True, text=True, timeout=120)


QUERIES = ("Query_cuda", "Query_hip", "Query_ze")


def test_exports_every_name_of_mpi_that_mpich_does():
    ours, theirs = exported(OURS), exported(THEIRS)
    assert {name for name in theirs - ours if re.match(r"P?MPI_", name)} == set()
    added = {f"{p}MPI{n}" for p in ("", "P") for n in ("_Psend_init_c", "_Precv_init_c")}
    assert {name for name in ours - theirs if name != "MPIR_Dup_fn"} == added | OWN_STREAM_NAMES
    assert STREAM_NAMES - OWN_STREAM_NAMES - theirs == set()
    queries = {name for name in ours if "MPIX_" in name} - STREAM_NAMES
    assert queries == {f"{p}MPIX_{n}_support" for p in ("", "P") for n in ("GPU_query", *QUERIES)}


def test_has_the_soname_of_mpich():
    text = subprocess.run(["readelf", "-d", OURS], capture_output=True, text=True, check=True).stdout
    assert "Library soname: [libmpi.so.12]" in text


def test_has_what_the_wheel_of_mpi4py_links():
    import mpi4py

    module = next(pathlib.Path(mpi4py.__file__).parent.glob("MPI.mpich*.so"))
    text = subprocess.run(["nm", "-D", "--undefined-only", module], capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[-1] for line in text.splitlines() if re.match(r"P?MPI", line.split()[-1])}
    assert len(wanted) > 500 and wanted - exported(OURS) == set()


def test_constants_are_those_of_their_header(tmp_path):
    known = table()
    command = ["cc", "-E", "-dD", "-P", "-x", "c", f"-I{WHEEL / 'include'}", "-"]
    header = subprocess.run(command, input="#include <mpi.h>\n", capture_output=True, text=True, check=True).stdout
    theirs = set(re.findall(r"^#define (MPI_[A-Z0-9_]+)[ \t]+\S", header, re.M))
    theirs |= set(re.findall(r"\b(MPI_[A-Z0-9_]+)\s*[,=}]", header))
    named = {n for n in theirs if TYPES_ENDING_LIKE_NUMBERS.fullmatch(n) or not LEFT_OUT.fullmatch(n)}
    assert named - set(known) == set()
    assert len(known) > 350
    source = tmp_path / "constants.c"
    lines = ["#include <mpi.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    lines += [f'  printf("{name} %lld\\n", (long long)({name}));' for name in known]
    members = ("count_lo", "count_hi_and_cancelled", "MPI_SOURCE", "MPI_TAG", "MPI_ERROR")
    lines += [f'  printf("{member} at %zu\\n", offsetof(MPI_Status, {member}));' for member in members]
    lines += ['  printf("status %zu\\n", sizeof(MPI_Status));', "  return 0;", "}", ""]
    source.write_text("\n".join(lines))
    program = tmp_path / "constants"
    subprocess.run(["cc", f"-I{WHEEL / 'include'}", source, "-o", program], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    numbers = {name: int(number) for name, number in (line.rsplit(" ", 1) for line in printed)}
    # Handles are ints, and negative where their highest bit is set.
    signed = {name: number - (1 << 32) if number > 0x7FFFFFFF else number for name, number in known.items()}
    assert {name: numbers[name] for name in known} == signed
    assert [numbers[f"{member} at"] for member in members] == [0, 4, 8, 12, 16]
    assert numbers["status"] == 20


def expect_all_ok(done, ranks):
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "library: brant" in said
    assert sorted(re.findall(r"rank (\d+): ok", done.stdout), key=int) == [str(rank) for rank in range(ranks)], said


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_program_of_mpich_runs_unchanged(tmp_path, ranks):
    program = compiled(PROGRAM, tmp_path / "program")
    expect_all_ok(run("-n", str(ranks), "--", program, tmp_path / "file"), ranks)


def test_their_own_library_agrees_with_the_program(tmp_path):
    program = compiled(PROGRAM, tmp_path / "program")
    command = [WHEEL / "bin" / "mpiexec", "-n", "2", program, tmp_path / "file"]
    done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count(": ok") == 2, done.stdout + done.stderr


def test_it_is_installed_where_no_linker_and_no_other_program_looks(tmp_path):
    command = ["cmake", "--install", OURS.parents[2], "--prefix", tmp_path / "root", "--component", "mpi"]
    subprocess.run(command, capture_output=True, check=True)
    folder = tmp_path / "root" / "lib" / "mpich"
    assert [path.name for path in folder.iterdir()] == ["libmpi.so.12"]
    assert not list((tmp_path / "root" / "lib").glob("libmpi.*"))
    program = compiled(PROGRAM, tmp_path / "program")
    expect_all_ok(run("-n", "2", "--", program, tmp_path / "file", LD_LIBRARY_PATH=str(folder)), 2)


def test_the_mpiexec_of_mpich_starts_a_program_on_brant(tmp_path):
    program = compiled(PROGRAM, tmp_path / "program")
    env = plain_environment() | {"LD_LIBRARY_PATH": str(OURS.parent)}
    command = [WHEEL / "bin" / "mpiexec", "-n", "3", program, tmp_path / "file"]
    expect_all_ok(subprocess.run(command, env=env, capture_output=True, text=True, timeout=120), 3)


def test_a_program_of_mpich_has_virtual_ranks(tmp_path):
    if not (BRANT.parent / "brant-ranks").exists():
        pytest.skip("brant-ranks is not built: run 'make build' where Boost.Context is")
    program = compiled(PROGRAM, tmp_path / "program", "-fPIC", "-pie")
    # brant-ranks finds the library beside itself.
    expect_all_ok(run("-n", "2", "--ranks", "5", "--", program, tmp_path / "file", LD_LIBRARY_PATH=""), 5)


def test_a_rank_that_dies_is_an_error_with_the_code_of_mpich(tmp_path):
    source = tmp_path / "death.c"
    source.write_text(
        "#include <mpi.h>\n"
        "#include <signal.h>\n"
        "#include <stdio.h>\n"
        "int main(int argc, char** argv) {\n"
        "  int rank, word = 0, class = -1;\n"
        "  MPI_Request requests[2];\n"
        "  MPI_Status statuses[2];\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n"
        "  if (rank == 1) {\n"
        "    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "    raise(SIGKILL);\n"
        "  }\n"
        "  MPI_Irecv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);\n"
        "  MPI_Isend(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[1]);\n"
        "  int outcome = MPI_Waitall(2, requests, statuses);\n"
        '  printf("%d %d\\n", outcome == MPI_ERR_IN_STATUS, statuses[0].MPI_ERROR == MPI_ERR_PROC_ABORTED);\n'
        "  MPI_Error_class(MPI_Send(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD), &class);\n"
        '  printf("%d %d\\n", class == MPI_ERR_PROC_ABORTED, requests[0] == MPI_REQUEST_NULL);\n'
        "  fflush(stdout);\n"
        "  return 0;\n"
        "}\n"
    )
    done = run("--keep-going", "-n", "2", "--", compiled(source, tmp_path / "death"))
    assert done.stdout.count("1 1\n") == 2, done.stdout + done.stderr


def test_an_unknown_handle_is_an_error_and_no_crash(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <mpi.h>\n"
        "#include <stdio.h>\n"
        "int main(int argc, char** argv) {\n"
        "  int word = 0, size, class[4];\n"
        "  MPI_Request request = (MPI_Request)0xec000007;\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n"
        "  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);\n"
        "  MPI_Error_class(MPI_Comm_size((MPI_Comm)0xc4000123, &size), &class[0]);\n"
        "  MPI_Error_class(MPI_Bcast(&word, 1, MPI_LB, 0, MPI_COMM_WORLD), &class[1]);\n"
        "  MPI_Error_class(MPI_Allreduce(&word, &size, 1, MPI_INT, (MPI_Op)99, MPI_COMM_WORLD), &class[2]);\n"
        "  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class[3]);\n"
        '  printf("%d %d ", class[0] == MPI_ERR_COMM, class[1] == MPI_ERR_TYPE);\n'
        '  printf("%d %d\\n", class[2] == MPI_ERR_OP, class[3] == MPI_ERR_REQUEST);\n'
        "  MPI_Finalize();\n"
        "  return 0;\n"
        "}\n"
    )
    done = run("-n", "1", "--", compiled(source, tmp_path / "wrong"))
    assert "1 1 1 1" in done.stdout, done.stdout + done.stderr


def test_python_runs_with_the_wheel_of_mpi4py():
    text = (
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "assert MPI.Get_library_version().startswith('brant')\n"
        "print(comm.allreduce(comm.rank + 1), comm.bcast({'a': 7} if comm.rank == 0 else None, root=0)['a'])\n"
    )
    command = ["-n", "2", "--", sys.executable, "-c", text]
    done = run(*command, MPI4PY_LIBMPI=str(OURS), PATH=os.environ.get("PATH", ""))
    assert done.returncode == 0 and done.stdout.count("3 7") == 2, done.stdout + done.stderr
