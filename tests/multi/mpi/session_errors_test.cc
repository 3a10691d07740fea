// Runs as every rank of a job: where errors of sessions, and of what derives from them, go to; and the buffers
// of sessions, which bound what is sent.
#include <array>
#include <vector>

#include "test_session.h"

namespace brant::mpi {
namespace {

using test::close_session;
using test::communicator_of;
using test::expect_works;
using test::group_of;
using test::open_session;
using test::rank_in;
using test::size_of;

// What a handler of the program was told; those of tests run one after the other at a rank.
struct Told {
  MPI_Session session = MPI_SESSION_NULL;
  int code = MPI_SUCCESS;
  int times = 0;
};
Told g_told;

void tell(MPI_Session* session, int* code, ...) { g_told = {*session, *code, g_told.times + 1}; }

class TellingHandler {
 public:
  TellingHandler() {
    g_told = {};
    EXPECT_EQ(MPI_Session_create_errhandler(&tell, &handle), MPI_SUCCESS);
  }
  ~TellingHandler() {
    if (handle != MPI_ERRHANDLER_NULL) free();
  }
  TellingHandler(const TellingHandler&) = delete;
  TellingHandler& operator=(const TellingHandler&) = delete;
  void free() { EXPECT_EQ(MPI_Errhandler_free(&handle), MPI_SUCCESS); }

  MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
};

void expect_told(MPI_Session session, int code, int times) {
  EXPECT_EQ(g_told.session, session);
  EXPECT_EQ(g_told.code, code);
  EXPECT_EQ(g_told.times, times);
}

TEST(SessionErrors, are_handed_over_before_there_is_a_session) {
  MPI_Info wishes = MPI_INFO_NULL;
  MPI_Info_create(&wishes);
  MPI_Info_set(wishes, "thread_level", "MPI_THREAD_PLENTY");
  MPI_Session session = MPI_SESSION_NULL;
  const TellingHandler handler;
  EXPECT_EQ(MPI_Session_init(wishes, handler.handle, &session), MPI_ERR_INFO_VALUE);
  EXPECT_EQ(session, MPI_SESSION_NULL);
  expect_told(MPI_SESSION_NULL, MPI_ERR_INFO_VALUE, 1);
  MPI_Info_free(&wishes);
}

TEST(SessionErrors, of_a_session_go_to_its_handler) {
  TellingHandler handler;
  MPI_Session session = open_session(handler.handle);
  handler.free();  // the session keeps it
  int length = 0;
  EXPECT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 7, &length, nullptr), MPI_ERR_ARG);
  expect_told(session, MPI_ERR_ARG, 1);
  EXPECT_EQ(MPI_Session_call_errhandler(session, MPI_ERR_OTHER), MPI_SUCCESS);
  expect_told(session, MPI_ERR_OTHER, 2);
  MPI_Errhandler used = MPI_ERRHANDLER_NULL;
  EXPECT_EQ(MPI_Session_get_errhandler(session, &used), MPI_SUCCESS);
  EXPECT_EQ(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN), MPI_SUCCESS);
  EXPECT_EQ(MPI_Session_get_pset_info(session, nullptr, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(g_told.times, 2);
  EXPECT_EQ(MPI_Session_set_errhandler(session, used), MPI_SUCCESS);
  EXPECT_EQ(MPI_Session_set_errhandler(session, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
  expect_told(session, MPI_ERR_ERRHANDLER, 3);
  EXPECT_EQ(MPI_Errhandler_free(&used), MPI_SUCCESS);
  close_session(session);
}

TEST(SessionErrors, of_a_group_go_to_the_handler_of_its_session) {
  const TellingHandler handler;
  MPI_Session session = open_session(handler.handle);
  MPI_Session other = open_session(MPI_ERRORS_RETURN);
  MPI_Group group = group_of(session, "mpi://WORLD");
  MPI_Group part = MPI_GROUP_NULL;
  const int none = 4711;
  EXPECT_EQ(MPI_Group_incl(group, 1, &none, &part), MPI_ERR_RANK);
  expect_told(session, MPI_ERR_RANK, 1);
  const int zero = 0;
  ASSERT_EQ(MPI_Group_incl(group, 1, &zero, &part), MPI_SUCCESS);
  EXPECT_EQ(MPI_Group_incl(part, 1, &none, &part), MPI_ERR_RANK);
  expect_told(session, MPI_ERR_RANK, 2);
  MPI_Group of_other = group_of(other, "mpi://SELF");
  EXPECT_EQ(MPI_Group_excl(of_other, 1, &none, &part), MPI_ERR_RANK);
  EXPECT_EQ(g_told.times, 2);
  MPI_Comm comm = communicator_of(session, "mpi://SELF");
  MPI_Group of_comm = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &of_comm);
  EXPECT_EQ(MPI_Group_excl(of_comm, 1, &none, &part), MPI_ERR_RANK);
  expect_told(session, MPI_ERR_RANK, 3);
  for (MPI_Group* one : {&group, &part, &of_other, &of_comm}) EXPECT_EQ(MPI_Group_free(one), MPI_SUCCESS);
  MPI_Comm_free(&comm);
  close_session(other);
  close_session(session);
}

int g_comm_errors = 0;
void count_error(MPI_Comm*, int*, ...) { ++g_comm_errors; }

TEST(SessionErrors, of_a_communicator_go_to_its_own_handler) {
  const TellingHandler handler;
  MPI_Errhandler counting = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_Comm_create_errhandler(&count_error, &counting), MPI_SUCCESS);
  MPI_Session session = open_session(handler.handle);
  MPI_Comm comm = communicator_of(session, "mpi://SELF", counting);
  const int before = g_comm_errors;
  EXPECT_EQ(MPI_Send(nullptr, 0, MPI_INT, 5, 0, comm), MPI_ERR_RANK);
  EXPECT_EQ(g_comm_errors, before + 1);
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_create_from_group(MPI_GROUP_NULL, "test", MPI_INFO_NULL, counting, &made), MPI_ERR_GROUP);
  EXPECT_EQ(g_comm_errors, before + 2);
  EXPECT_EQ(g_told.times, 0);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&counting);
  close_session(session);
}

TEST(SessionBuffers, are_of_all_communicators_of_a_session) {
  MPI_Session session = open_session();
  MPI_Comm comm = communicator_of(session, "mpi://WORLD");
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  EXPECT_EQ(MPI_Bsend(&rank, 1, MPI_INT, next, 0, comm), MPI_ERR_BUFFER);
  std::vector<char> buffer(4 * (sizeof(int) + MPI_BSEND_OVERHEAD));
  ASSERT_EQ(MPI_Session_attach_buffer(session, buffer.data(), static_cast<int>(buffer.size())), MPI_SUCCESS);
  EXPECT_EQ(MPI_Session_attach_buffer(session, buffer.data(), 8), MPI_ERR_BUFFER);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(MPI_Bsend(&rank, 1, MPI_INT, next, i, comm), MPI_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    int got = -1;
    EXPECT_EQ(MPI_Recv(&got, 1, MPI_INT, before, i, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, before);
  }
  EXPECT_EQ(MPI_Session_flush_buffer(session), MPI_SUCCESS);
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_Session_iflush_buffer(session, &request), MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  // That of a communicator goes before, however small it is.
  char small = 0;
  ASSERT_EQ(MPI_Comm_attach_buffer(comm, &small, 1), MPI_SUCCESS);
  EXPECT_EQ(MPI_Bsend(&rank, 1, MPI_INT, next, 0, comm), MPI_ERR_BUFFER);
  void* detached = nullptr;
  int bytes = 0;
  EXPECT_EQ(MPI_Comm_detach_buffer(comm, static_cast<void*>(&detached), &bytes), MPI_SUCCESS);
  EXPECT_EQ(MPI_Session_detach_buffer(session, static_cast<void*>(&detached), &bytes), MPI_SUCCESS);
  EXPECT_EQ(detached, buffer.data());
  EXPECT_EQ(bytes, static_cast<int>(buffer.size()));
  MPI_Comm_free(&comm);
  close_session(session);
}

TEST(SessionBuffers, are_empty_when_a_session_has_ended) {
  MPI_Session control = open_session();
  MPI_Comm steps = communicator_of(control, "mpi://WORLD");
  MPI_Session session = open_session();
  MPI_Comm comm = communicator_of(session, "mpi://WORLD");
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  constexpr int kCount = 100'000;  // too many to leave before somebody wants them
  const std::vector<int> given(kCount, rank);
  std::vector<int> got(kCount, -1);
  std::array<MPI_Request, 2> receives = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const int before = (rank + size - 1) % size;
  MPI_Irecv(got.data(), kCount, MPI_INT, before, 1, comm, &receives[0]);
  std::vector<int> freed(kCount, -1);
  MPI_Irecv(freed.data(), kCount, MPI_INT, before, 2, comm, &receives[1]);
  ASSERT_EQ(MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0), MPI_SUCCESS);
  EXPECT_EQ(MPI_Bsend(given.data(), kCount, MPI_INT, (rank + 1) % size, 1, comm), MPI_SUCCESS);
  MPI_Request sent = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_Isend(given.data(), kCount, MPI_INT, (rank + 1) % size, 2, comm, &sent), MPI_SUCCESS);
  EXPECT_EQ(MPI_Request_free(&sent), MPI_SUCCESS);
  EXPECT_EQ(MPI_Waitall(2, receives.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
  MPI_Comm_free(&comm);
  close_session(session);
  EXPECT_EQ(got, std::vector<int>(kCount, before));
  EXPECT_EQ(freed, std::vector<int>(kCount, before));
  expect_works(steps);
  MPI_Comm_free(&steps);
  close_session(control);
}

TEST(SessionBuffers, keep_a_session_until_its_messages_are_received) {
  MPI_Session control = open_session();
  MPI_Comm comm = communicator_of(control, "mpi://WORLD");
  const int rank = rank_in(comm);
  if (size_of(comm) > 1 && rank < 2) {
    MPI_Session session = open_session();
    MPI_Group all = group_of(session, "mpi://WORLD");
    MPI_Group two = MPI_GROUP_NULL;
    const std::array<int, 2> first = {0, 1};
    MPI_Group_incl(all, 2, first.data(), &two);
    MPI_Comm pair = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Comm_create_from_group(two, "pair", MPI_INFO_NULL, MPI_ERRORS_RETURN, &pair), MPI_SUCCESS);
    constexpr int kCount = 100'000;
    std::vector<int> values(kCount, rank);
    if (rank == 0) {
      MPI_Comm_attach_buffer(pair, MPI_BUFFER_AUTOMATIC, 0);
      EXPECT_EQ(MPI_Bsend(values.data(), kCount, MPI_INT, 1, 0, pair), MPI_SUCCESS);
      EXPECT_EQ(MPI_Send(nullptr, 0, MPI_INT, 1, 0, comm), MPI_SUCCESS);
      MPI_Comm_free(&pair);
    } else {
      EXPECT_EQ(MPI_Recv(nullptr, 0, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(MPI_Recv(values.data(), kCount, MPI_INT, 0, 0, pair, MPI_STATUS_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(values, std::vector<int>(kCount, 0));
      MPI_Comm_free(&pair);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&two);
    close_session(session);
  }
  expect_works(comm);
  MPI_Comm_free(&comm);
  close_session(control);
}

}  // namespace
}  // namespace brant::mpi
