"""What BRANT_MPI_CHECK finds in programs of MPI, and that they run as ever without it."""

import pytest
from brant_command import brant, needs_brant
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

static int rank, size;

static int is(const char* word, const char* other) { return !strcmp(word, other); }

static void report(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length, class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) {
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
  }
  const char* name = class == MPI_SUCCESS ? "success" : class == MPI_ERR_TYPE ? "TYPE" : class == MPI_ERR_ROOT ? "ROOT"
      : class == MPI_ERR_OP ? "OP" : class == MPI_ERR_OTHER ? "OTHER" : class == MPI_ERR_BASE ? "BASE"
      : class == MPI_ERR_PROC_ABORTED ? "PROC_ABORTED"
      : class == MPI_ERR_WIN ? "WIN" : class == MPI_ERR_TRUNCATE ? "TRUNCATE" : class == MPI_ERR_IN_STATUS ? "IN_STATUS"
      : "another class";
  printf("%s: %s %s\n", what, name, text);
  fflush(stdout);
}

/* Two integers have the bytes of a double. The large message waits for its receive, the small one need not. */
static void types(int count, int early) {
  int* ints = calloc(2 * count, sizeof *ints);
  double* doubles = calloc(count, sizeof *doubles);
  if (rank == 0) {
    if (!early) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Isend(ints, 2 * count, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
    if (early) MPI_Barrier(MPI_COMM_WORLD);
    report("send", MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  if (rank == 1) {
    MPI_Request request;
    if (early) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(doubles, count, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &request);
    if (!early) MPI_Barrier(MPI_COMM_WORLD);
    report("receive", MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

/* All that the standard allows. */
static void allowed(void) {
  struct { int head; double tail; } pair[8] = {{0, 0}};
  MPI_Datatype together, wider, ints;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, (char*)&pair[0].tail - (char*)&pair[0]};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  int values[8] = {0}, packed[16], position = 0, flag;
  MPI_Type_create_struct(2, lengths, places, types, &together);
  MPI_Type_create_resized(together, 0, sizeof pair[0], &wider);
  MPI_Type_vector(4, 1, 2, MPI_INT, &ints);
  MPI_Type_commit(&wider);
  MPI_Type_commit(&ints);
  MPI_Status status;
  MPI_Message message;
  const int other = 1 - rank;
  char* room = malloc(4096);
  MPI_Buffer_attach(room, 4096);
  if (rank == 0) {
    MPI_Send(pair, 3, wider, 1, 1, MPI_COMM_WORLD);                 /* received with more room */
    MPI_Send(values, 1, ints, 1, 2, MPI_COMM_WORLD);                /* received as integers */
    MPI_Pack(values, 8, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
    MPI_Send(packed, position, MPI_PACKED, 1, 3, MPI_COMM_WORLD);   /* received as integers */
    MPI_Send(values, 8, MPI_INT, 1, 4, MPI_COMM_WORLD);             /* received as MPI_PACKED */
    MPI_Bsend(values, 1, ints, 1, 5, MPI_COMM_WORLD);
    MPI_Send(NULL, 0, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD);            /* no data has no types */
    MPI_Ssend(values, 8, MPI_INT, 1, 7, MPI_COMM_WORLD);            /* of two messages with one tag */
    MPI_Send(pair, 1, wider, 1, 7, MPI_COMM_WORLD);
  } else {
    report("more room", MPI_Recv(pair, 8, wider, 0, 1, MPI_COMM_WORLD, &status));
    report("vector", MPI_Recv(values, 8, MPI_INT, 0, 2, MPI_COMM_WORLD, &status));
    report("packed", MPI_Recv(values, 8, MPI_INT, 0, 3, MPI_COMM_WORLD, &status));
    report("unpacked", MPI_Recv(packed, sizeof packed, MPI_PACKED, 0, 4, MPI_COMM_WORLD, &status));
    report("buffered", MPI_Recv(values, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    report("empty", MPI_Recv(values, 8, MPI_INT, 0, 6, MPI_COMM_WORLD, &status));
    MPI_Mprobe(0, 7, MPI_COMM_WORLD, &message, &status);
    MPI_Message second;
    MPI_Request request;
    report("matched", MPI_Mrecv(values, 8, MPI_INT, &message, &status));
    MPI_Mprobe(0, 7, MPI_COMM_WORLD, &second, &status);
    MPI_Imrecv(pair, 8, wider, &second, &request);
    report("matched second", MPI_Wait(&request, &status));
  }
  report("replaced", MPI_Sendrecv_replace(values, 8, MPI_INT, other, 8, other, 8, MPI_COMM_WORLD, &status));
  report("self", MPI_Sendrecv(values, 4, MPI_INT, rank, 9, values + 4, 4, MPI_INT, rank, 9, MPI_COMM_WORLD, &status));
  MPI_Comm copy, half;
  MPI_Request requests[2];
  int sum = 0, all[2] = {0};
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_Comm_split(copy, rank, 0, &half);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy, &requests[0]);
  MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, copy, &requests[1]);
  report("barrier", MPI_Barrier(copy));
  report("both", MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  printf("sum %d, all %d %d\n", sum, all[0], all[1]);
  report("gather", MPI_Gather(rank == 0 ? MPI_IN_PLACE : (void*)all, 1, MPI_INT, all, 1, MPI_INT, 0, copy));
  report("types", MPI_Bcast(rank == 0 ? (void*)values : (void*)values, rank == 0 ? 1 : 4, rank == 0 ? ints : MPI_INT, 0,
                            copy));
  MPI_Win window;
  int* base;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_fence(0, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Request start[2];
  MPI_Send_init(values, 1, MPI_INT, rank, 10, MPI_COMM_WORLD, &start[0]);
  MPI_Bcast_init(values, 1, MPI_INT, 0, copy, MPI_INFO_NULL, &start[1]);
  MPI_Startall(1, &start[1]);
  report("persistent", MPI_Wait(&start[1], &status));
  MPI_Request_free(&start[0]);
  MPI_Request_free(&start[1]);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  MPI_Type_free(&together);
  MPI_Type_free(&wider);
  MPI_Type_free(&ints);
  MPI_Buffer_detach(&room, &position);
}

/* Nothing of it is carried out, so the barrier behind it finds all together. */
static void collectives(const char* what) {
  int one = 1, sum = 0;
  double value = 0;
  MPI_Request request;
  int code = MPI_SUCCESS;
  if (is(what, "kind")) code = rank == 1 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (is(what, "root")) code = MPI_Bcast(&one, 1, MPI_INT, rank == 1, MPI_COMM_WORLD);
  if (is(what, "op"))
    code = MPI_Allreduce(&one, &sum, 1, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
  if (is(what, "type"))
    code = MPI_Bcast(rank == 1 ? (void*)&value : (void*)&one, 1, rank == 1 ? MPI_FLOAT : MPI_INT, 0, MPI_COMM_WORLD);
  if (is(what, "count")) {
    int two[2] = {0, 0};
    code = MPI_Bcast(two, rank == 1 ? 2 : 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (is(what, "making")) {
    MPI_Comm copy;
    code = rank == 1 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  }
  if (is(what, "window")) {
    MPI_Comm copy;
    MPI_Win window;
    code = rank == 1 ? MPI_Comm_dup(MPI_COMM_WORLD, &copy)
                     : MPI_Win_create(&one, sizeof one, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  if (is(what, "begun")) {
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD, &request);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  report(what, code);
  report("barrier", MPI_Barrier(MPI_COMM_WORLD));
}

static void memory(void) {
  int* block;
  int* base;
  MPI_Win window;
  MPI_Request request;
  MPI_Alloc_mem(64, MPI_INFO_NULL, &block);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Irecv(block + 2, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &request);
  report("block", MPI_Free_mem(block));
  MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  report("block again", MPI_Free_mem(block));
  MPI_Irecv(base, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &request);
  report("window", MPI_Win_free(&window));
  MPI_Send(&rank, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  report("window again", MPI_Win_free(&window));
}

static void leaks(void) {
  static int value, other;
  MPI_Comm copies[2];
  MPI_Datatype type;
  MPI_Win window;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &copies[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &copies[1]);
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Isend(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(&other, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void deadlock(void) {
  int value = 0;
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "geese");
  if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, 1 - rank, 5, copy, MPI_STATUS_IGNORE);
}

/* More than a window of messages takes, with the labels of them before the messages. */
static void many(void) {
  enum { count = 70000 };
  static MPI_Request requests[count];
  static int value = 5;
  int wrong = 0;
  if (rank == 0) {
    for (int i = 0; i < count; ++i) MPI_Isend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  } else {
    usleep(200000);
    for (int i = 0; i < count; ++i)
      wrong += MPI_Recv(&value, 1, i % 1000 == 7 ? MPI_FLOAT : MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != 0;
    printf("wrong: %d\n", wrong);
  }
}

static MPI_Comm thread_comm;

static void* reduces(void* failed) {
  int sum = 0;
  for (int i = 0; i < 500; ++i)
    *(int*)failed += MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, thread_comm) != MPI_SUCCESS || sum != 1;
  return NULL;
}

/* Each thread has collectives of its own, which are no finding of the other's. */
static void threads(void) {
  pthread_t other;
  int failed = 0, failed_there = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &thread_comm);
  pthread_create(&other, NULL, reduces, &failed_there);
  for (int i = 0; i < 500; ++i) failed += MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
  pthread_join(other, NULL);
  MPI_Comm_free(&thread_comm);
  printf("failed: %d and %d\n", failed, failed_there);
}

/* One is begun and one waits while a member is gone. */
static void dies(void) {
  int sum = 0, other = 0;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) raise(SIGKILL);
  MPI_Iallreduce(&rank, &other, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  report("allreduce", MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  report("begun", MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, is(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!getenv("FATAL")) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }
  const char* what = argv[1];
  if (is(what, "small")) types(8, 0);
  if (is(what, "early")) types(8, 1);
  if (is(what, "large")) types(100000, 0);
  if (is(what, "allowed")) allowed();
  if (is(what, "memory")) memory();
  if (is(what, "leaks")) leaks();
  if (is(what, "deadlock")) deadlock();
  if (is(what, "die")) dies();
  if (is(what, "many")) many();
  if (is(what, "threads")) threads();
  if (argc > 2) collectives(argv[2]);
  MPI_Finalize();
  return 0;
}
"""

needs_ranks = pytest.mark.skipif(not RANKS.exists(), reason=f"{RANKS} is not built")
SHARED = [0, pytest.param(4, marks=needs_ranks)]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("check"), PROGRAM, ".c", "-w", "-pthread")


def run(program, *what, ranks=2, shared=0, check=True, limit_s=40, **environment):
    words = ["run", "-n", str(ranks), "--no-prefix", "--timeout", str(limit_s)]
    words += ["--ranks", str(shared)] if shared else []
    environment |= {"BRANT_MPI_CHECK": "1"} if check else {}
    return brant(*words, "--", program, *what, LD_LIBRARY_PATH=str(LIBRARIES), **environment)


@pytest.mark.parametrize("what", ["small", "early", "large"])
def test_data_that_its_receive_does_not_describe_is_an_error_of_the_type(program, what):
    done = run(program, what)
    count = 100000 if what == "large" else 8
    assert done.returncode == 0, done.stdout + done.stderr
    assert "send: success" in done.stdout
    assert (
        f"The last one: a message from rank 0 to rank 1 of MPI_COMM_WORLD with tag 7 has other data than "
        f"its receive describes: it was sent as {2 * count} x MPI_INT, and is received as {count} x MPI_DOUBLE"
        in done.stdout
    )
    assert "receive: TYPE MPI_ERR_TYPE: " in done.stdout


@needs_ranks
@pytest.mark.parametrize("what", ["small", "early", "large"])
def test_so_it_is_between_ranks_of_one_process(program, what):
    done = run(program, what, ranks=1, shared=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "receive: TYPE" in done.stdout


@pytest.mark.parametrize("what", ["small", "early", "large"])
def test_without_the_checks_the_bytes_arrive(program, what):
    done = run(program, what, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "receive: success" in done.stdout
    assert "TYPE" not in done.stdout


def test_labels_wait_for_room_as_messages_do(program):
    done = run(program, "many")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong: 70" in done.stdout


def test_without_a_handler_the_job_ends_with_the_finding(program):
    done = run(program, "small", FATAL="1")
    assert done.returncode != 0
    assert "MPI_Wait failed on rank 1 of MPI_COMM_WORLD: a message from rank 0 to rank 1" in done.stderr


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("processes", [2, pytest.param(1, marks=needs_ranks)])
def test_what_the_standard_allows_is_no_finding(program, check, processes):
    done = run(program, "allowed", ranks=processes, shared=0 if processes == 2 else 2, check=check)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if ": " in line]
    assert len(lines) == 22
    assert all(line.endswith(": success ") for line in lines), done.stdout
    assert done.stdout.count("sum 1, all 0 1") == 2
    assert done.stderr == ""


FINDINGS = {
    "kind": ("OTHER", "called MPI_Bcast (root 0, MPI_INT); rank 1 called MPI_Barrier."),
    "root": ("ROOT", "called MPI_Bcast (root 0, MPI_INT); rank 1 called MPI_Bcast (root 1, MPI_INT)."),
    "op": ("OP", "called MPI_Allreduce (MPI_SUM, MPI_INT); rank 1 called MPI_Allreduce (MPI_MAX, MPI_INT)."),
    "type": ("TYPE", "called MPI_Bcast (root 0, MPI_INT); rank 1 called MPI_Bcast (root 0, MPI_FLOAT)."),
    "count": ("TYPE", "called MPI_Bcast (root 0, MPI_INT); rank 1 called MPI_Bcast (root 0, 2 x MPI_INT)."),
    "making": ("OTHER", "called MPI_Comm_dup; rank 1 called MPI_Barrier."),
    "window": ("OTHER", "called MPI_Win_create; rank 1 called MPI_Comm_dup."),
    "begun": ("OP", "called MPI_Iallreduce (MPI_SUM, MPI_INT); rank 1 called MPI_Iallreduce (MPI_MAX, MPI_INT)."),
}


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("what", FINDINGS)
def test_members_that_call_different_collectives_all_hear_who_called_what(program, what, shared):
    ranks = shared or 3
    done = run(program, "collectives", what, ranks=2 if shared else 3, shared=shared)
    error_class, text = FINDINGS[what]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{what}: {error_class} ") == ranks, done.stdout
    others = "0, 2, 3" if shared else "0, 2"
    assert done.stdout.count(f"ranks {others} {text}") == ranks, done.stdout
    assert done.stdout.count("barrier: success") == ranks


def test_without_the_checks_equal_bytes_of_other_types_pass(program):
    done = run(program, "collectives", "type", ranks=3, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("type: success") == 3


def test_a_process_without_the_variable_is_told_of_and_nobody_hangs(program, tmp_path):
    script = tmp_path / "one.sh"
    script.write_text(f'#!/bin/sh\n[ "$BRANT_RANK" = 1 ] && unset BRANT_MPI_CHECK\nexec {program} "$@"\n')
    script.chmod(0o755)
    done = run(script, "collectives", "root")
    assert done.returncode != 0
    assert "set it for all processes of the job" in done.stderr


def test_memory_that_a_request_uses_is_not_freed(program):
    done = run(program, "memory")
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1):
        what = f"a receive of 4 bytes from rank {rank} of MPI_COMM_WORLD with tag"
        assert f"still the buffer of {what} 1, begun by MPI_Irecv: wait for that first" in done.stdout
        assert f"still the buffer of {what} 2, begun by MPI_Irecv: wait for that first" in done.stdout
    assert done.stdout.count("block: BASE ") == done.stdout.count(": memory of MPI_Alloc_mem (64 bytes at ") == 2
    assert done.stdout.count("window: WIN ") == done.stdout.count(": the memory of the window (64 bytes at ") == 2
    assert done.stdout.count("block again: success") == 2
    assert done.stdout.count("window again: success") == 2


@pytest.mark.parametrize("shared", SHARED)
def test_what_is_not_freed_is_reported(program, shared):
    done = run(program, "leaks", shared=shared)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(shared or 2):
        assert (
            f"brant MPI: rank {rank} calls MPI_Finalize and has not freed what it made: 1 request (MPI_Isend: 1), "
            "2 communicators (MPI_Comm_dup: 1, MPI_Comm_split: 1), 1 datatype (MPI_Type_contiguous: 1), "
            "1 window (MPI_Win_create: 1)\n" in done.stderr
        )


def test_without_the_checks_nothing_is_reported(program):
    done = run(program, "leaks", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has not freed" not in done.stderr


def test_a_deadlock_tells_who_waits_for_whom(program):
    done = run(program, "deadlock", limit_s=4, BRANT_STALL_REPORT_MS="500", BRANT_LOG="warn")
    assert done.returncode != 0  # the time of the job is over
    assert "rank 0 is in MPI_Recv, and waits for a receive of 4 bytes from rank 1 of geese with tag 5" in done.stderr
    assert "rank 1 is in MPI_Barrier, and waits until all members of its communicator have called MPI_Barrier" in (
        done.stderr
    )


def test_threads_have_their_calls_apart(program):
    done = run(program, "threads")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("failed: 0 and 0") == 2
    assert done.stderr == ""


def test_a_death_ends_what_members_wait_for(program):
    done = run(program, "die", ranks=3)
    assert "allreduce: PROC_ABORTED" in done.stdout
    assert "begun: PROC_ABORTED" in done.stdout
