"""Programs with sessions, and how they end: in processes of their own, and as virtual ranks."""

import re

import pytest
from brant_command import brant, needs_brant
from test_virtual_ranks import LIBRARIES, RANKS, compiled

pytestmark = needs_brant

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const char* end = argv[1];
  int rank, none = 99, value = 7;
  MPI_Session session;
  MPI_Group group, part;
  MPI_Comm comm;
  MPI_Info info;
  MPI_Datatype type;
  if (!strcmp(end, "info")) MPI_Info_set(MPI_INFO_NULL, "key", "value");
  if (!strcmp(end, "before")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  if (!strcmp(end, "level")) MPI_Info_set(info, "thread_level", "some");
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_rank(comm, &rank);
  if (!strcmp(end, "group")) MPI_Group_incl(group, 1, &none, &part);
  if (!strcmp(end, "type")) MPI_Type_contiguous(-1, MPI_INT, &type);
  if (!strcmp(end, "world")) MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(end, "finalize")) MPI_Finalize();
  if (!strcmp(end, "return") && rank == 1) return 0;
  MPI_Group_free(&group);
  if (!strcmp(end, "late")) {
    char data[16000] = {0};
    for (int i = 0; i < 50 && rank == 0; ++i) MPI_Send(data, sizeof data, MPI_CHAR, 1, i, comm);
    if (rank == 1) sleep(2);
    for (int i = 0; i < 50 && rank == 1; ++i) MPI_Recv(data, sizeof data, MPI_CHAR, 0, i, comm, MPI_STATUS_IGNORE);
    if (rank == 1) puts("it has all");
  } else {
    MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (!strcmp(end, "after")) MPI_Session_get_num_psets(session, MPI_INFO_NULL, &value);
  if (!strcmp(end, "again") && rank == 0) {
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
  }
  return 0;
}
"""

ENDS = [
    ("none", 0, ""),
    ("late", 0, ""),
    ("again", 0, ""),
    ("info", 1, r"MPI_Info_set failed: the info object is MPI_INFO_NULL.*handler of MPI_COMM_SELF"),
    ("before", 1, r"MPI_Comm_rank was called before MPI_Init or after MPI_Finalize, and without a session"),
    ("level", 1, r"MPI_Session_init failed: the value of thread_level is 'some'.*MPI_ERR_INFO_VALUE"),
    ("group", 1, r"MPI_Group_incl failed on rank \d in a session: rank 99 is outside the group.*MPI_ERRORS_RETURN"),
    ("type", 1, r"MPI_Type_contiguous failed on rank \d: .*handler of MPI_COMM_SELF"),
    ("world", 1, r"MPI_Barrier failed on rank \d: MPI_COMM_WORLD is there between MPI_Init and MPI_Finalize alone"),
    ("finalize", 1, r"MPI_Finalize was called before MPI_Init or after MPI_Finalize"),
    ("return", 1, r"rank 1 has ended its program without MPI_Session_finalize"),
    ("after", 1, r"MPI_Session_get_num_psets was called before MPI_Init or after MPI_Finalize, and without a session"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("sessions"), PROGRAM)


def expect_end(done, code, text):
    assert done.returncode == code, done.stderr
    assert re.search(text, done.stderr), done.stderr
    if code == 0:
        assert done.stderr == ""


@pytest.mark.parametrize(("end", "code", "text"), ENDS)
def test_programs_end_with_a_line_or_without(program, end, code, text):
    arguments = ["run", "-n", "2", "--no-prefix", "--timeout", "60", "--", program, end]
    expect_end(brant(*arguments, LD_LIBRARY_PATH=str(LIBRARIES)), code, text)


@pytest.mark.skipif(not RANKS.exists(), reason=f"{RANKS} is not built: run 'make build' where Boost.Context is")
@pytest.mark.parametrize(("end", "code", "text"), ENDS)
@pytest.mark.parametrize("processes", [1, 2])
def test_virtual_ranks_end_alike(program, processes, end, code, text):
    arguments = ["run", "-n", str(processes), "--ranks", "3", "--no-prefix", "--timeout", "60", "--", program, end]
    expect_end(brant(*arguments), code, text)
