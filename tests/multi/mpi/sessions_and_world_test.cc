// Runs as every rank of a job: sessions before MPI_Init, beside the world, and after MPI_Finalize. The tests run
// in their order.
#include <utility>

#include "test_session.h"

namespace brant::mpi {
namespace {

using test::close_session;
using test::communicator_of;
using test::expect_works;
using test::expect_works_at_any_time;
using test::initialised_and_finalised;
using test::open_session;

TEST(SessionsBesideTheWorld, work_with_it_and_go_on_after_its_end) {
  MPI_Session before = open_session();
  MPI_Comm early = communicator_of(before, "mpi://WORLD");
  int provided = -1;
  ASSERT_EQ(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), MPI_SUCCESS);
  EXPECT_EQ(provided, MPI_THREAD_FUNNELED);
  EXPECT_EQ(initialised_and_finalised(), std::pair(1, 0));
  MPI_Session during = open_session();
  MPI_Comm late = communicator_of(during, "mpi://WORLD");
  int level = -1;
  EXPECT_EQ(MPI_Query_thread(&level), MPI_SUCCESS);
  EXPECT_EQ(level, MPI_THREAD_FUNNELED);
  int result = -1;
  EXPECT_EQ(MPI_Comm_compare(MPI_COMM_WORLD, late, &result), MPI_SUCCESS);
  EXPECT_EQ(result, MPI_CONGRUENT);
  for (MPI_Comm comm : {early, MPI_COMM_WORLD, MPI_COMM_SELF, late}) expect_works(comm);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  expect_works(copy);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&late);
  close_session(during);
  expect_works(MPI_COMM_WORLD);
  // What belongs to no session goes to the handler of MPI_COMM_SELF now.
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  EXPECT_EQ(MPI_Session_get_info(MPI_SESSION_NULL, nullptr), MPI_ERR_SESSION);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  EXPECT_NE(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_SUCCESS);
  ASSERT_EQ(MPI_Finalize(), MPI_SUCCESS);
  EXPECT_EQ(initialised_and_finalised(), std::pair(1, 1));
  expect_works(early);
  MPI_Comm_free(&early);
  close_session(before);
}

TEST(SessionsAfterTheWorld, are_opened_and_closed_again_and_again) {
  EXPECT_EQ(initialised_and_finalised(), std::pair(1, 1));
  expect_works_at_any_time();
  for (int round = 0; round < 20; ++round) {
    MPI_Session session = open_session();
    MPI_Comm comm = communicator_of(session, "mpi://WORLD");
    expect_works(comm);
    MPI_Comm_free(&comm);
    close_session(session);
  }
  EXPECT_EQ(initialised_and_finalised(), std::pair(1, 1));
}

}  // namespace
}  // namespace brant::mpi
