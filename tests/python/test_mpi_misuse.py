"""Programs that use MPI wrongly: each ends, and is told what it did in words of MPI."""

import os
import subprocess

import pytest
from brant_command import brant, needs_brant, plain_environment
from test_virtual_ranks import LIBRARIES, RANKS, compiled

pytestmark = needs_brant

PROGRAM = r"""
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* word, const char* other) { return !strcmp(word, other); }

static void report(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  printf("%s: %s\n", what, code == MPI_SUCCESS ? "success" : text);
  fflush(stdout);
}

static int rank, size;

static void* receive(void* unused) {
  int value;
  MPI_Recv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return unused;
}

static void handles(void) {
  char place[64] = "these bytes are no communicator, nor anything else of MPI";
  int value = 0;
  MPI_Comm freed, copy;
  report("odd", MPI_Barrier((MPI_Comm)0xdeadbeefcafe));
  report("far", MPI_Barrier((MPI_Comm)(long)-16));
  report("text", MPI_Barrier((MPI_Comm)place));
  report("small", MPI_Comm_rank((MPI_Comm)0x7, &value));
  report("type", MPI_Send(&value, 1, (MPI_Datatype)0xdeadbeefcaf0beef, 0, 1, MPI_COMM_WORLD));
  MPI_Comm_dup(MPI_COMM_WORLD, &freed);
  copy = freed;
  MPI_Comm_free(&freed);
  report("freed", MPI_Barrier(copy));
}

static void truncates(void) {
  const int count = 100000;
  int* data = calloc(count, sizeof *data);
  if (rank == 0) MPI_Send(data, count, MPI_INT, size - 1, 1, MPI_COMM_WORLD);
  if (rank == size - 1) report("receive", MPI_Recv(data, 10, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void dies(void) {
  int sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) raise(SIGKILL);
  report("allreduce", MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

/* The barrier is that of the other's MPI_Finalize. */
static void leaves_others(void) {
  int sum = 0, value = 0;
  if (rank == 1) return;
  MPI_Barrier(MPI_COMM_WORLD);
  report("receive", MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  report("send", MPI_Ssend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
  report("allreduce", MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  exit(4);
}

int main(int argc, char** argv) {
  int level;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, is(argv[1], "finalize") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!getenv("FATAL")) MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (is(argv[1], "return")) return 0;
  if (is(argv[1], "exit")) exit(3);
  if (is(argv[1], "one") && rank == 1) return 0;
  if (is(argv[1], "fork") && fork() == 0) return 0;
  if (is(argv[1], "handles")) handles();
  if (is(argv[1], "truncate")) truncates();
  if (is(argv[1], "die")) dies();
  if (is(argv[1], "leave")) leaves_others();
  if (is(argv[1], "pending") && rank == 0) {
    static int one = 1, sum;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  }
  if (is(argv[1], "finalize")) {
    pthread_create(&thread, NULL, receive, NULL);
    usleep(200000);
  }
  if (is(argv[1], "spawn")) {
    MPI_Comm children;
    int codes[2] = {-1, -1};
    report("spawn", MPI_Comm_spawn("no-such-goose", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                                   codes));
    printf("codes: %s\n", codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN ? "right" : "wrong");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("misuse"), PROGRAM, ".c", "-pthread", "-w")


def run(program, what, ranks=2, shared=0, **environment):
    words = ["run", "-n", str(ranks), "--timeout", "30"]
    words += ["--ranks", str(shared)] if shared else []
    return brant(*words, "--", program, what, LD_LIBRARY_PATH=str(LIBRARIES), **environment)


needs_ranks = pytest.mark.skipif(not RANKS.exists(), reason=f"{RANKS} is not built")


def test_a_program_that_ends_without_mpi_finalize_fails(program):
    done = run(program, "return")
    assert done.returncode == 1
    for rank in (0, 1):
        assert f"brant MPI: rank {rank} has ended its program without MPI_Finalize" in done.stderr


def test_so_does_a_program_without_a_launcher(program):
    environment = {**plain_environment(), "LD_LIBRARY_PATH": str(LIBRARIES)}
    done = subprocess.run([program, "return"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "rank 0 has ended its program without MPI_Finalize" in done.stderr


def test_an_exit_code_of_the_program_stays(program):
    assert run(program, "exit").returncode == 3


def test_a_child_that_a_rank_forks_may_end_as_it_likes(program):
    done = run(program, "fork")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


LATE = r"""
#include <mpi.h>
#include <cstdlib>
struct World {
  ~World() { MPI_Finalize(); }
};
World g_world;  // goes behind what MPI_Init has given to atexit
int main(int argc, char** argv) { return MPI_Init(&argc, &argv); }
"""


def test_a_destructor_may_end_mpi(tmp_path):
    done = run(compiled(tmp_path, LATE, ".cc"), "")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_mpi_finalize_while_another_thread_waits_is_refused(program):
    done = run(program, "finalize", ranks=1)
    assert done.returncode == 1
    assert "MPI_Finalize was called while another thread of this process is in a call of MPI" in done.stderr


def test_mpi_finalize_in_the_place_of_a_collective_is_an_error(program):
    done = run(program, "pending", FATAL="1")
    assert done.returncode == 1
    assert "MPI_Finalize failed" in done.stderr
    assert "rank 0 of MPI_COMM_WORLD called allreduce of 4 bytes" in done.stderr


def test_what_is_no_handle_is_an_error(program):
    done = run(program, "handles", ranks=1)
    assert done.returncode == 0, done.stderr
    for what in ("odd", "far", "text", "small", "freed"):
        assert f"{what}: MPI_ERR_COMM: the communicator is none" in done.stdout
    assert "type: MPI_ERR_TYPE" in done.stdout


@pytest.mark.parametrize("shared", [0, pytest.param(4, marks=needs_ranks)])
def test_a_message_that_is_too_long_is_told_in_words_of_mpi(program, shared):
    done = run(program, "truncate", shared=shared)
    assert done.returncode == 0, done.stderr
    assert "receive: MPI_ERR_TRUNCATE" in done.stdout
    assert f"from rank 0 with tag 1 is longer than the {10 * 4} bytes that the receive has room for" in done.stdout
    assert done.stderr == ""


def test_a_death_is_told_in_words_of_mpi(program):
    done = run(program, "die", ranks=3)
    assert "allreduce: MPI_ERR_PROC_ABORTED" in done.stdout
    assert "rank 1 of MPI_COMM_WORLD has died" in done.stdout
    assert "team" not in done.stdout + done.stderr


@needs_ranks
@pytest.mark.parametrize("processes", [1, 2])
def test_a_virtual_rank_that_has_ended_fails_what_waits_for_it(program, processes):
    done = run(program, "leave", processes, 4)
    assert done.returncode == 4, done.stderr
    for what in ("receive", "send", "allreduce"):
        assert f"{what}: MPI_ERR_PROC_ABORTED" in done.stdout


@needs_ranks
@pytest.mark.parametrize("processes", [1, 2])
def test_a_virtual_rank_that_ends_without_mpi_finalize_ends_the_job(program, processes):
    done = run(program, "one", processes, 4)
    assert done.returncode == 1
    assert "rank 1 has ended its program without MPI_Finalize" in done.stderr


def test_the_text_of_an_error_says_what_it_was_about(program):
    done = run(program, "spawn")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("codes: right") == 2
    assert (
        "spawn: MPI_ERR_SPAWN: the processes did not start. The last one: 'no-such-goose' was not spawned"
        in done.stdout
    )


def test_error_codes_of_spawn_are_those_of_mpich_in_its_abi(tmp_path):
    compiler = RANKS.parent.parent.parent / ".venv" / "bin" / "mpicc"
    if not compiler.exists():
        pytest.skip("MPICH's compiler is not installed")
    (tmp_path / "program.c").write_text(PROGRAM)
    program = tmp_path / "program"
    subprocess.run([compiler, "-w", "-pthread", tmp_path / "program.c", "-o", program], check=True)
    done = brant("run", "-n", "2", "--", program, "spawn", LD_LIBRARY_PATH=str(LIBRARIES / "mpich"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("codes: right") == 2


def test_the_number_of_ranks_is_told_where_it_changes_nothing(program):
    done = run(program, "", ranks=1, BRANT_MPI_RANKS="8")
    assert done.returncode == 0
    assert "BRANT_MPI_RANKS=8 changes nothing" in done.stderr
    assert "--ranks 8" in done.stderr
    assert os.environ.get("BRANT_MPI_RANKS") is None
