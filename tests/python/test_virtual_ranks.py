"""Several ranks of MPI in one process: programs compiled as everybody compiles them, with another MPI's compiler where
there is one, give the same answers wherever their ranks live; those that end badly, or cannot run so, say why."""

import pathlib
import re
import signal
import subprocess
import sys

import pytest
from brant_command import BIN, ROOT, brant, needs_brant

RANKS = BIN / "brant-ranks"
WHEEL = pathlib.Path(sys.prefix) / "bin"
LIBRARIES = ROOT / "build" / "release" / "lib"

pytestmark = [
    needs_brant,
    pytest.mark.skipif(not RANKS.exists(), reason=f"{RANKS} is not built: run 'make build' where Boost.Context is"),
]

HEAT = r"""
#include <mpi.h>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {
struct Log {
  Log() { text << "log:"; }
  std::ostringstream text;
};
Log g_log;                       // made before main, in each rank
int g_calls = 0;
thread_local double t_sum = 0;
template <typename T>
T& shared() {
  static T value{};
  return value;
}
int count() {
  static int calls = 0;
  return ++calls;
}
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<double> cells(66);
  for (int i = 1; i <= 64; ++i) cells[i] = std::sin(0.1 * (rank * 64 + i));
  const int left = rank == 0 ? MPI_PROC_NULL : rank - 1, right = rank == size - 1 ? MPI_PROC_NULL : rank + 1;
  double change = 1;
  while (g_calls < 50) {
    MPI_Request requests[4];
    MPI_Irecv(&cells[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&cells[65], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&cells[64], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&cells[1], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    std::vector<double> next(cells);
    double own = 0;
    for (int i = 1; i <= 64; ++i) {
      next[i] = cells[i] + 0.25 * (cells[i - 1] - 2 * cells[i] + cells[i + 1]);
      own += std::fabs(next[i] - cells[i]);
    }
    cells = next;
    MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    t_sum += own;
    shared<double>() += own;
    ++g_calls;
    if (count() != g_calls) throw std::string("a static of another rank");
  }
  g_log.text << rank;
  try {
    if (g_log.text.str() != "log:" + std::to_string(rank)) throw 1;
    if (t_sum != shared<double>()) throw 2;
  } catch (int what) {
    std::cerr << "rank " << rank << " sees what is another's: " << what << "\n";
    return 1;
  }
  const double own = t_sum;
  double total = 0;
  MPI_Reduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  std::cout.precision(17);
  if (rank == 0) std::cout << size << " ranks: " << change << " " << total << std::endl;
  MPI_Finalize();
}
"""

ENDS = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank, value = 0;
  if (!strcmp(argv[1], "none")) return 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1 && !strcmp(argv[1], "return")) return 0;
  if (rank == 1 && !strcmp(argv[1], "exit")) exit(3);
  if (rank == 1 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
  if (rank == 1 && !strcmp(argv[1], "other")) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


def compiled(folder, text, suffix=".c", *flags):
    """By the compiler of MPICH's wheel, for the standard ABI, where it is installed; else by brant's."""
    source = folder / f"program{suffix}"
    source.write_text(text)
    name = "mpicc" if suffix == ".c" else "mpicxx"
    theirs = WHEEL / f"{name}_abi"
    program = folder / "program"
    subprocess.run([theirs if theirs.exists() else BIN / name, "-O2", source, *flags, "-o", program], check=True)
    return program


GRIDS = {1: (1, 1, 1), 2: (2, 1, 1), 12: (3, 2, 2), 27: (3, 3, 3)}


def run(processes, ranks, *command, **environment):
    arguments = ["run", "-n", str(processes), "--ranks", str(ranks), "--no-prefix", "--timeout", "60"]
    return brant(*arguments, "--", *command, **environment)


@pytest.mark.parametrize("flags", [(), ("-fPIC",), ("-s",)])
def test_the_answer_does_not_depend_on_where_ranks_live(tmp_path, flags):
    program = compiled(tmp_path, HEAT, ".cc", *flags)
    answers = set()
    for processes in (1, 2, 3):
        done = run(processes, 27, program)
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1, answers
    assert re.fullmatch(r"27 ranks: \S+ \S+\n", answers.pop())


def test_ranks_in_processes_of_their_own_agree_with_those_that_share_one(tmp_path):
    program = compiled(tmp_path, HEAT, ".cc")
    apart = brant("run", "-n", "4", "--no-prefix", "--", program, LD_LIBRARY_PATH=str(LIBRARIES))
    assert apart.returncode == 0, apart.stderr
    assert {run(processes, 4, program).stdout for processes in (1, 2, 4)} == {apart.stdout}


def test_the_jacobi_example_gives_the_same_bits_wherever_its_ranks_live(tmp_path):
    program = compiled(tmp_path, (ROOT / "examples" / "mpi" / "jacobi3d.c").read_text())
    answers = set()
    for processes, ranks in ((1, 1), (2, 2), (1, 27), (3, 12)):
        done = run(processes, ranks, program, "31", "20", "15", "20")
        assert done.returncode == 0, done.stderr
        assert f"on {' x '.join(map(str, GRIDS[ranks]))} ranks" in done.stdout
        answers.add(done.stdout.splitlines()[-1])
    assert len(answers) == 1, answers
    assert re.fullmatch(r"after 20 steps the largest change is 0\.\d+, the sum of bits [0-9a-f]{16}", answers.pop())


def test_a_thousand_ranks_live_in_one_process(tmp_path):
    program = compiled(tmp_path, HEAT, ".cc")
    done = run(1, 1000, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1000 ranks: ")


@pytest.mark.parametrize(
    ("end", "code", "text"),
    [
        ("none", 0, ""),
        ("return", 1, "rank 1 has ended its program without MPI_Finalize"),
        ("exit", 3, ""),
        ("abort", 7, "rank 1 called MPI_Abort with code 7"),
        ("other", 1, "broadcast of 4 bytes"),
    ],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_an_early_end_ends_the_job(tmp_path, processes, end, code, text):
    done = run(processes, 5, compiled(tmp_path, ENDS), end)
    assert done.returncode == code, done.stderr
    assert text in done.stderr


STATE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank;
  long sum = 0;
  double numbers = 0;
  char text[] = "one,two,three", *token, words[40] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  srand(5);
  srand48(rank);
  token = strtok(text, ",");
  for (int i = 0; i < 3; ++i) {
    sum = sum * 7 + rand() % 1000;
    numbers += drand48();
    strcat(strcat(words, token), " ");
    MPI_Barrier(MPI_COMM_WORLD);
    token = strtok(NULL, ",");
  }
  printf("rank %d: %ld %.6f %s\n", rank, sum, numbers, words);
  MPI_Finalize();
}
"""


def test_ranks_have_numbers_and_tokens_of_their_own(tmp_path):
    program = compiled(tmp_path, STATE)
    alone, shared = (sorted(run(n, 3, program).stdout.splitlines()) for n in (3, 1))
    assert len(alone) == 3 and all(line.endswith("one two three ") for line in alone), alone
    assert shared == alone


def test_threads_of_ranks_that_share_a_process_may_not_call_mpi(tmp_path):
    source = r"""
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
void* call(void* unused) { int size; MPI_Comm_size(MPI_COMM_WORLD, &size); return unused; }
int main(int argc, char** argv) {
  int level;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  printf("level %d\n", level == MPI_THREAD_FUNNELED);
  fflush(stdout);
  pthread_create(&thread, NULL, call, NULL);
  pthread_join(thread, NULL);
  MPI_Finalize();
}
"""
    done = run(1, 2, compiled(tmp_path, source, ".c", "-pthread"))
    assert done.returncode == 1
    assert "level 1" in done.stdout
    assert "a thread that a rank has started calls MPI" in done.stderr


FAULTS = r"""
#include <mpi.h>
#include <string.h>
int deep(int depth) {
  volatile char frame[1000];
  memset((char*)frame, depth, sizeof frame);
  return deep(depth + 1) + frame[7];
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 4 && !strcmp(argv[1], "stack")) return deep(0);
  if (rank == 4) *(volatile int*)16 = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("stack", "rank 4 has used up its stack of 131072 bytes: set BRANT_MPI_STACK to more"),
        ("memory", "rank 4 has touched memory that is not there, at 0x10"),
    ],
)
def test_a_fault_of_memory_names_the_rank(tmp_path, what, text):
    done = run(2, 6, compiled(tmp_path, FAULTS), what, BRANT_MPI_STACK="131072")
    assert done.returncode == 128 + signal.SIGSEGV
    assert text in done.stderr


def test_a_thread_local_variable_is_no_buffer(tmp_path):
    source = """
#include <mpi.h>
static _Thread_local int value;
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
}
"""
    program = compiled(tmp_path, source)
    assert brant("run", "-n", "2", "--", program, LD_LIBRARY_PATH=str(LIBRARIES)).returncode == 0
    done = run(1, 2, program)
    assert done.returncode == 1
    assert "is a thread-local variable" in done.stderr


def test_who_waits_for_a_rank_of_the_process_says_for_whom(tmp_path):
    source = """
#include <mpi.h>
int main(int argc, char** argv) {
  int rank, value;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 2) MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
"""
    arguments = ["run", "-n", "1", "--ranks", "3", "--timeout", "6", "--", compiled(tmp_path, source)]
    done = brant(*arguments, BRANT_STALL_REPORT_MS="1000")
    assert done.returncode == 124
    assert "barrier, waits for members of this process: 2" in done.stderr
    assert "rank 2 waits for MPI: nothing has moved for" in done.stderr


@pytest.mark.parametrize(
    ("flags", "why"), [(("-static",), "static"), (("-no-pie",), "link it with -pie")], ids=["static", "no-pie"]
)
def test_programs_that_cannot_be_loaded_twice_are_refused(tmp_path, flags, why):
    source = tmp_path / "plain.c"
    source.write_text("int main(void) { return 0; }\n")
    made = subprocess.run(["cc", source, *flags, "-o", tmp_path / "plain"], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("the compiler makes no such program here")
    done = run(1, 2, tmp_path / "plain")
    assert done.returncode == 126
    assert why in done.stderr


def test_scripts_and_missing_programs_are_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    refused = run(1, 2, script)
    assert refused.returncode == 126
    assert "script" in refused.stderr
    assert run(1, 2, tmp_path / "missing").returncode == 127


def test_fewer_ranks_than_processes_are_refused(tmp_path):
    done = run(3, 2, tmp_path / "program")
    assert done.returncode != 0
    assert "2 ranks cannot live in 3 processes" in done.stderr
