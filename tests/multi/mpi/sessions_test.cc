// Runs as every rank of a job: sessions of a program that never calls MPI_Init.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test_session.h"

namespace brant::mpi {
namespace {

using test::close_session;
using test::communicator_of;
using test::expect_works;
using test::expect_works_at_any_time;
using test::group_of;
using test::initialised_and_finalised;
using test::open_session;
using test::rank_in;
using test::size_of;
using test::value_of;

TEST(SessionsAlone, some_functions_need_no_session) {
  EXPECT_EQ(initialised_and_finalised(), std::pair(0, 0));
  expect_works_at_any_time();
}

TEST(SessionsAlone, do_not_initialise_the_world) {
  MPI_Session session = open_session();
  EXPECT_EQ(initialised_and_finalised(), std::pair(0, 0));
  expect_works_at_any_time();
  close_session(session);
  EXPECT_EQ(initialised_and_finalised(), std::pair(0, 0));
  expect_works_at_any_time();
}

TEST(SessionsAlone, name_their_process_sets) {
  MPI_Session session = open_session();
  int sets = 0;
  ASSERT_EQ(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets), MPI_SUCCESS);
  ASSERT_EQ(sets, 2);
  const std::array<std::string, 2> expected = {"mpi://WORLD", "mpi://SELF"};
  for (int i = 0; i < sets; ++i) {
    int length = 0;
    ASSERT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, nullptr), MPI_SUCCESS);
    const std::string& name = expected[static_cast<std::size_t>(i)];
    EXPECT_EQ(length, static_cast<int>(name.size()) + 1);
    std::vector<char> text(static_cast<std::size_t>(length));
    ASSERT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, text.data()), MPI_SUCCESS);
    EXPECT_EQ(text.data(), name);
    length = 6;  // of which one is the zero
    ASSERT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, text.data()), MPI_SUCCESS);
    EXPECT_STREQ(text.data(), "mpi:/");
    EXPECT_EQ(length, static_cast<int>(name.size()) + 1);
  }
  int length = 0;
  EXPECT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, sets, &length, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, nullptr), MPI_ERR_ARG);
  close_session(session);
}

TEST(SessionsAlone, know_the_members_of_process_sets) {
  MPI_Session session = open_session();
  MPI_Group world = group_of(session, "mpi://WORLD");
  MPI_Group self = group_of(session, "mpi://SELF");
  int size = 0;
  int rank = -1;
  MPI_Group_size(world, &size);
  MPI_Group_rank(world, &rank);
  EXPECT_TRUE(rank >= 0 && rank < size);
  int alone = 0;
  MPI_Group_size(self, &alone);
  EXPECT_EQ(alone, 1);
  const int zero = 0;
  int translated = -1;
  EXPECT_EQ(MPI_Group_translate_ranks(self, 1, &zero, world, &translated), MPI_SUCCESS);
  EXPECT_EQ(translated, rank);
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Session_get_pset_info(session, "mpi://WORLD", &info), MPI_SUCCESS);
  EXPECT_EQ(value_of(info, "mpi_size"), std::to_string(size));
  MPI_Info_free(&info);
  ASSERT_EQ(MPI_Session_get_pset_info(session, "mpi://SELF", &info), MPI_SUCCESS);
  EXPECT_EQ(value_of(info, "mpi_size"), "1");
  MPI_Info_free(&info);
  EXPECT_EQ(MPI_Session_get_pset_info(session, "mpi://OTHERS", &info), MPI_ERR_ARG);
  MPI_Group none = MPI_GROUP_EMPTY;
  EXPECT_EQ(MPI_Group_from_session_pset(session, "mpi://OTHERS", &none), MPI_ERR_ARG);
  EXPECT_EQ(none, MPI_GROUP_NULL);
  MPI_Group_free(&world);
  MPI_Group_free(&self);
  close_session(session);
}

TEST(SessionsAlone, get_the_thread_level_that_is_there) {
  const bool shares_process = std::getenv("BRANT_MPI_RANKS") != nullptr;
  const char* const most = shares_process ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SERIALIZED";
  const std::array<std::pair<const char*, const char*>, 4> levels = {{{"MPI_THREAD_SINGLE", "MPI_THREAD_SINGLE"},
                                                                      {"MPI_THREAD_FUNNELED", "MPI_THREAD_FUNNELED"},
                                                                      {"MPI_THREAD_SERIALIZED", most},
                                                                      {"MPI_THREAD_MULTIPLE", most}}};
  MPI_Info wishes = MPI_INFO_NULL;
  MPI_Info_create(&wishes);
  for (const auto& [wish, granted] : levels) {
    MPI_Info_set(wishes, "thread_level", wish);
    MPI_Session session = open_session(MPI_ERRORS_RETURN, wishes);
    MPI_Info used = MPI_INFO_NULL;
    ASSERT_EQ(MPI_Session_get_info(session, &used), MPI_SUCCESS);
    EXPECT_EQ(value_of(used, "thread_level"), granted);
    MPI_Info_free(&used);
    close_session(session);
  }
  MPI_Info_free(&wishes);
}

/// Sessions, communicators, windows and files tell them; MPI_INFO_ENV does for programs that begin with MPI_Init.
TEST(SessionsAlone, tell_which_memory_calls_take) {
  constexpr const char* kKey = "mpi_memory_alloc_kinds";
  MPI_Info wishes = MPI_INFO_NULL;
  MPI_Info_create(&wishes);
  MPI_Info_set(wishes, kKey, "cuda:device,of_the_moon");
  MPI_Session session = open_session(MPI_ERRORS_RETURN, wishes);
  MPI_Info_free(&wishes);
  MPI_Comm world = communicator_of(session, "mpi://WORLD");
  MPI_Info of_session = MPI_INFO_NULL, of_world = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Session_get_info(session, &of_session), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_get_info(world, &of_world), MPI_SUCCESS);
  const char* const gpu = std::getenv("BRANT_GPU");
  const bool on_cuda = gpu != nullptr && std::string_view(gpu) == "cuda";
  const std::string kinds = value_of(of_session, kKey);
  EXPECT_EQ(kinds.rfind("mpi,system", 0), 0u) << kinds;
  EXPECT_EQ(kinds.find("cuda:device") != std::string::npos, on_cuda) << kinds;
  EXPECT_EQ(kinds.find("moon"), std::string::npos) << "what is taken, not what was asked for";
  EXPECT_EQ(value_of(of_world, kKey), kinds);
  EXPECT_EQ(value_of(MPI_INFO_ENV, kKey), kinds);
  MPI_Info_free(&of_session);
  MPI_Info_free(&of_world);
  EXPECT_EQ(MPI_Comm_free(&world), MPI_SUCCESS);
  close_session(session);
}

TEST(SessionsAlone, make_communicators_of_groups) {
  MPI_Session session = open_session();
  MPI_Comm world = communicator_of(session, "mpi://WORLD");
  MPI_Comm self = communicator_of(session, "mpi://SELF");
  expect_works(world);
  expect_works(self);
  EXPECT_EQ(size_of(self), 1);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm half = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_dup(world, &copy), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_split(copy, rank_in(world) % 2, 0, &half), MPI_SUCCESS);
  expect_works(copy);
  expect_works(half);
  for (MPI_Comm* comm : {&half, &copy, &self, &world}) EXPECT_EQ(MPI_Comm_free(comm), MPI_SUCCESS);
  close_session(session);
}

TEST(SessionsAlone, make_communicators_between_groups) {
  MPI_Session session = open_session();
  MPI_Group all = group_of(session, "mpi://WORLD");
  MPI_Group first = MPI_GROUP_NULL;
  MPI_Group others = MPI_GROUP_NULL;
  const int zero = 0;
  int rank = -1;
  int size = 0;
  MPI_Group_rank(all, &rank);
  MPI_Group_size(all, &size);
  if (size > 1) {
    MPI_Group_incl(all, 1, &zero, &first);
    MPI_Group_excl(all, 1, &zero, &others);
    MPI_Comm both = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Intercomm_create_from_groups(rank == 0 ? first : others, 0, rank == 0 ? others : first, 0, "test",
                                               MPI_INFO_NULL, MPI_ERRORS_RETURN, &both),
              MPI_SUCCESS);
    int sum = -1;
    EXPECT_EQ(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both), MPI_SUCCESS);
    EXPECT_EQ(sum, rank == 0 ? size * (size - 1) / 2 : 0);
    MPI_Comm merged = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Intercomm_merge(both, rank == 0 ? 0 : 1, &merged), MPI_SUCCESS);
    expect_works(merged);
    for (MPI_Comm* comm : {&merged, &both}) EXPECT_EQ(MPI_Comm_free(comm), MPI_SUCCESS);
    for (MPI_Group* group : {&first, &others}) EXPECT_EQ(MPI_Group_free(group), MPI_SUCCESS);
  }
  MPI_Group_free(&all);
  close_session(session);
}

TEST(SessionsAlone, have_windows) {
  MPI_Session session = open_session();
  MPI_Comm comm = communicator_of(session, "mpi://WORLD");
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  int* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, static_cast<void*>(&memory), &window),
            MPI_SUCCESS);
  memory[0] = memory[1] = -1;
  MPI_Win_fence(0, window);
  EXPECT_EQ(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window), MPI_SUCCESS);
  MPI_Win_fence(0, window);
  EXPECT_EQ(memory[0], (rank + size - 1) % size);
  EXPECT_EQ(MPI_Accumulate(&rank, 1, MPI_INT, rank, 1, 1, MPI_INT, MPI_REPLACE, window), MPI_SUCCESS);
  MPI_Win_fence(0, window);
  EXPECT_EQ(memory[1], rank);
  EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);
  MPI_Comm_free(&comm);
  close_session(session);
}

int count_deletion(MPI_Comm, int, void* value, void*) {
  ++*static_cast<int*>(value);
  return MPI_SUCCESS;
}

TEST(SessionsAlone, have_types_attributes_and_requests) {
  MPI_Session session = open_session();
  MPI_Comm comm = communicator_of(session, "mpi://WORLD");
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  int deleted = 0;
  int key = MPI_KEYVAL_INVALID;
  ASSERT_EQ(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &count_deletion, &key, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_Comm_set_attr(comm, key, &deleted), MPI_SUCCESS);
  EXPECT_EQ(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  ASSERT_EQ(MPI_Type_vector(3, 1, 2, MPI_INT, &column), MPI_SUCCESS);
  MPI_Type_commit(&column);
  const std::array<int, 6> given = {rank, 0, rank + 1, 0, rank + 2, 0};
  std::array<int, 6> got{};
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(got.data(), 1, column, (rank + size - 1) % size, 1, comm, &requests[0]);
  MPI_Send_init(given.data(), 1, column, (rank + 1) % size, 1, comm, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    got = {};
    EXPECT_EQ(MPI_Startall(2, requests.data()), MPI_SUCCESS);
    EXPECT_EQ(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
    const int before = (rank + size - 1) % size;
    EXPECT_EQ(got, (std::array<int, 6>{before, 0, before + 1, 0, before + 2, 0}));
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  MPI_Type_free(&column);
  MPI_Comm_free(&comm);
  EXPECT_EQ(deleted, 1);
  close_session(session);
}

TEST(SessionsAlone, know_their_main_thread) {
  MPI_Session session = open_session();
  int flag = 0;
  EXPECT_EQ(MPI_Is_thread_main(&flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  int level = -1;
  EXPECT_EQ(MPI_Query_thread(&level), MPI_SUCCESS);
  EXPECT_EQ(level, MPI_THREAD_SINGLE);
  close_session(session);
}

TEST(SessionsAlone, may_be_many_at_once) {
  MPI_Session one = open_session();
  MPI_Session other = open_session();
  EXPECT_NE(one, other);
  MPI_Comm of_one = communicator_of(one, "mpi://WORLD");
  MPI_Comm of_other = communicator_of(other, "mpi://WORLD");
  // Messages of one are none of the other's.
  const int rank = rank_in(of_one);
  const int size = size_of(of_one);
  std::array<int, 2> got = {-1, -1};
  const std::array<int, 2> given = {rank, rank + 100};
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, of_other, &requests[1]);
  MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, of_one, &requests[0]);
  MPI_Send(&given[0], 1, MPI_INT, (rank + 1) % size, 0, of_one);
  MPI_Send(&given[1], 1, MPI_INT, (rank + 1) % size, 0, of_other);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  EXPECT_EQ(got[0], (rank + size - 1) % size);
  EXPECT_EQ(got[1], (rank + size - 1) % size + 100);
  MPI_Comm_free(&of_one);
  close_session(one);
  expect_works(of_other);
  MPI_Comm_free(&of_other);
  close_session(other);
}

TEST(SessionsAlone, are_opened_and_closed_again_and_again) {
  for (int round = 0; round < 100; ++round) {
    MPI_Session session = open_session();
    MPI_Comm comm = communicator_of(session, round % 3 == 0 ? "mpi://SELF" : "mpi://WORLD");
    int sum = 0;
    EXPECT_EQ(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EXPECT_EQ(sum, round * size_of(comm));
    MPI_Comm_free(&comm);
    close_session(session);
  }
}

TEST(SessionsAlone, may_be_of_some_ranks) {
  MPI_Session every = open_session();
  MPI_Comm comm = communicator_of(every, "mpi://WORLD");
  if (rank_in(comm) == 0) {
    for (int round = 0; round < 10; ++round) {
      MPI_Session own = open_session();
      MPI_Comm self = communicator_of(own, "mpi://SELF");
      expect_works(self);
      MPI_Comm_free(&self);
      close_session(own);
    }
  }
  expect_works(comm);
  MPI_Comm_free(&comm);
  close_session(every);
}

}  // namespace
}  // namespace brant::mpi
