#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"
#include "support/own_host.h"

/// For tests that run as every rank of a job and open sessions themselves: nobody calls MPI_Init for them.
namespace brant::mpi::test {

/// Each rank on a host of its own, as far as the machine allows it: everything goes over the network.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): before main, or not at all
[[maybe_unused]] inline const bool kOwnHost =
    std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && brant::test::become_own_host();

inline MPI_Session open_session(MPI_Errhandler errhandler = MPI_ERRORS_RETURN, MPI_Info info = MPI_INFO_NULL) {
  MPI_Session session = MPI_SESSION_NULL;
  EXPECT_EQ(MPI_Session_init(info, errhandler, &session), MPI_SUCCESS);
  EXPECT_NE(session, MPI_SESSION_NULL);
  return session;
}

inline void close_session(MPI_Session session) {
  EXPECT_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
  EXPECT_EQ(session, MPI_SESSION_NULL);
}

inline MPI_Group group_of(MPI_Session session, const char* set) {
  MPI_Group group = MPI_GROUP_NULL;
  EXPECT_EQ(MPI_Group_from_session_pset(session, set, &group), MPI_SUCCESS);
  return group;
}

/// Waits for all members of the set.
inline MPI_Comm communicator_of(MPI_Session session, const char* set, MPI_Errhandler errhandler = MPI_ERRORS_RETURN) {
  MPI_Group group = group_of(session, set);
  MPI_Comm comm = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, errhandler, &comm), MPI_SUCCESS);
  EXPECT_NE(comm, MPI_COMM_NULL);
  MPI_Group_free(&group);
  return comm;
}

inline int rank_in(MPI_Comm comm) {
  int rank = -1;
  EXPECT_EQ(MPI_Comm_rank(comm, &rank), MPI_SUCCESS);
  return rank;
}

inline int size_of(MPI_Comm comm) {
  int size = -1;
  EXPECT_EQ(MPI_Comm_size(comm, &size), MPI_SUCCESS);
  return size;
}

inline std::string value_of(MPI_Info info, const char* key) {
  std::array<char, MPI_MAX_INFO_VAL> value{};
  int room = MPI_MAX_INFO_VAL;
  int flag = 0;
  EXPECT_EQ(MPI_Info_get_string(info, key, &room, value.data(), &flag), MPI_SUCCESS);
  return flag != 0 ? value.data() : "none";
}

inline std::pair<int, int> initialised_and_finalised() {
  int initialised = -1;
  int finalised = -1;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return {initialised, finalised};
}

/// Messages around the ring, small and large, and collectives.
inline void expect_works(MPI_Comm comm) {
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  for (const int count : {0, 1, 1000, 100'000}) {
    const std::vector<int> given(static_cast<std::size_t>(count), rank);
    std::vector<int> got(static_cast<std::size_t>(count), -1);
    MPI_Request request = MPI_REQUEST_NULL;
    ASSERT_EQ(MPI_Irecv(got.data(), count, MPI_INT, before, 3, comm, &request), MPI_SUCCESS);
    ASSERT_EQ(MPI_Send(given.data(), count, MPI_INT, next, 3, comm), MPI_SUCCESS);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, std::vector<int>(static_cast<std::size_t>(count), before));
  }
  int sum = 0;
  EXPECT_EQ(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQ(sum, size * (size - 1) / 2);
  int first = rank;
  EXPECT_EQ(MPI_Bcast(&first, 1, MPI_INT, 0, comm), MPI_SUCCESS);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(MPI_Barrier(comm), MPI_SUCCESS);
}

inline void ignore_error(MPI_Session*, int*, ...) {}

/// What the standard allows before MPI has started, while it is there, and after it has ended.
inline void expect_works_at_any_time() {
  int version = 0;
  int subversion = 0;
  EXPECT_EQ(MPI_Get_version(&version, &subversion), MPI_SUCCESS);
  EXPECT_EQ(version, 5);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info copy = MPI_INFO_NULL;
  EXPECT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_set(info, "key", "value"), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_dup(info, &copy), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_delete(info, "key"), MPI_SUCCESS);
  EXPECT_EQ(value_of(info, "key"), "none");
  EXPECT_EQ(value_of(copy, "key"), "value");
  int keys = -1;
  EXPECT_EQ(MPI_Info_get_nkeys(copy, &keys), MPI_SUCCESS);
  EXPECT_EQ(keys, 1);
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_free(&copy), MPI_SUCCESS);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  EXPECT_EQ(MPI_Session_create_errhandler(&ignore_error, &handler), MPI_SUCCESS);
  EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
  int error_class = -1;
  int code = -1;
  int length = 0;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  EXPECT_EQ(MPI_Add_error_class(&error_class), MPI_SUCCESS);
  EXPECT_EQ(MPI_Add_error_code(error_class, &code), MPI_SUCCESS);
  EXPECT_EQ(MPI_Add_error_string(code, "of the test"), MPI_SUCCESS);
  EXPECT_EQ(MPI_Error_string(code, text.data(), &length), MPI_SUCCESS);
  EXPECT_STREQ(text.data(), "of the test");
  EXPECT_EQ(MPI_Remove_error_string(code), MPI_SUCCESS);
  EXPECT_EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
  EXPECT_EQ(MPI_Remove_error_class(error_class), MPI_SUCCESS);
  MPI_Info fortran = MPI_INFO_NULL;
  EXPECT_EQ(MPI_Abi_get_fortran_info(&fortran), MPI_SUCCESS);
}

}  // namespace brant::mpi::test
