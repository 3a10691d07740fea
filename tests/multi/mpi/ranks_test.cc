#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/mpi/mpi.h"
#include "models/mpi/rank_placement.h"
#include "models/mpi/ranks/rank_scheduler.h"
#include "support/own_host.h"

/// Several ranks in each process. They run functions of this test, so what is tested is the library and the scheduler,
/// also with sanitizers; whole programs run by the loader.
namespace brant::mpi {
namespace {

/// Each process on a host of its own, as far as the machine allows it.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): before main, or not at all
[[maybe_unused]] const bool kOwnHost = std::getenv("BRANT_TEST_OWN_HOSTS") != nullptr && brant::test::become_own_host();

int rank_in(MPI_Comm comm) {
  int value = -1;
  EXPECT_EQ(MPI_Comm_rank(comm, &value), MPI_SUCCESS);
  return value;
}

int size_of(MPI_Comm comm) {
  int value = -1;
  EXPECT_EQ(MPI_Comm_size(comm, &value), MPI_SUCCESS);
  return value;
}

/// Around the ring, small and large, buffered and synchronous.
void send_around(int rank, int size) {
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  for (const int count : {0, 1, 1000, 400'000}) {
    std::vector<int> given(static_cast<std::size_t>(count), rank);
    std::vector<int> got(static_cast<std::size_t>(count), -1);
    MPI_Request requests[2];
    MPI_Irecv(got.data(), count, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(given.data(), count, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[1]);
    EXPECT_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, std::vector<int>(static_cast<std::size_t>(count), before));
  }
}

/// All to the first, which takes them as they come, and tests for them in a loop that never waits.
void gather_by_messages(int rank, int size) {
  if (rank != 0) {
    EXPECT_EQ(MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD), MPI_SUCCESS);
    return;
  }
  int sum = 0;
  for (int i = 1; i < size; ++i) {
    int value = -1;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
    MPI_Status status;
    for (int done = 0; done == 0;) MPI_Test(&request, &done, &status);
    EXPECT_EQ(status.MPI_SOURCE, value);
    sum += value;
  }
  EXPECT_EQ(sum, size * (size - 1) / 2);
}

void combine(MPI_Comm comm) {
  const int rank = rank_in(comm);
  const int size = size_of(comm);
  EXPECT_EQ(MPI_Barrier(comm), MPI_SUCCESS);
  int sum = 0;
  EXPECT_EQ(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
  EXPECT_EQ(sum, size * (size - 1) / 2);
  for (int root = 0; root < size; ++root) {
    std::vector<double> values(100, rank == root ? root + 0.5 : 0);
    EXPECT_EQ(MPI_Bcast(values.data(), 100, MPI_DOUBLE, root, comm), MPI_SUCCESS);
    EXPECT_EQ(values, std::vector<double>(100, root + 0.5));
  }
  std::vector<int> all(static_cast<std::size_t>(size), -1);
  MPI_Request request;
  EXPECT_EQ(MPI_Iallgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &request), MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  std::vector<int> expected(static_cast<std::size_t>(size));
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  std::vector<int> from(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) from[static_cast<std::size_t>(i)] = rank * 1000 + i;
  std::vector<int> to(static_cast<std::size_t>(size), -1);
  EXPECT_EQ(MPI_Alltoall(from.data(), 1, MPI_INT, to.data(), 1, MPI_INT, comm), MPI_SUCCESS);
  for (int i = 0; i < size; ++i) EXPECT_EQ(to[static_cast<std::size_t>(i)], i * 1000 + rank);
}

/// Halves by the parity of ranks, so that both live in the same processes and are made at once.
void split(int rank) {
  MPI_Comm half = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half), MPI_SUCCESS);
  combine(half);
  MPI_Comm copy = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_dup(half, &copy), MPI_SUCCESS);
  combine(copy);
  EXPECT_EQ(MPI_Comm_free(&copy), MPI_SUCCESS);
  EXPECT_EQ(MPI_Comm_free(&half), MPI_SUCCESS);
}

void put_to_the_next(int rank, int size) {
  int* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window),
            MPI_SUCCESS);
  memory[0] = -1;
  memory[1] = 0;
  EXPECT_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
  EXPECT_EQ(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window), MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
  EXPECT_EQ(memory[0], (rank + size - 1) % size);
  const int one = 1;
  int before = -1;
  EXPECT_EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window), MPI_SUCCESS);
  EXPECT_EQ(MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 1, MPI_SUM, window), MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_unlock(0, window), MPI_SUCCESS);
  EXPECT_TRUE(before >= 0 && before < size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    EXPECT_EQ(memory[1], size);
    MPI_Win_unlock(0, window);
  }
  EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);
}

class Program final : public RankProgram {
 public:
  int run(int slot) noexcept override {
    int flag = -1;
    MPI_Initialized(&flag);
    EXPECT_EQ(flag, 0);
    EXPECT_EQ(MPI_Init(nullptr, nullptr), MPI_SUCCESS);
    const int rank = rank_in(MPI_COMM_WORLD);
    const int size = size_of(MPI_COMM_WORLD);
    EXPECT_EQ(rank, first + slot);
    EXPECT_EQ(size, total);
    send_around(rank, size);
    gather_by_messages(rank, size);
    combine(MPI_COMM_WORLD);
    combine(MPI_COMM_SELF);
    split(rank);
    put_to_the_next(rank, size);
    EXPECT_EQ(MPI_Finalize(), MPI_SUCCESS);
    MPI_Finalized(&flag);
    EXPECT_EQ(flag, 1);
    ++ended;
    return 0;
  }
  void resume(int) noexcept override {}
  void suspend(int) noexcept override {}

  int first = 0;
  int total = 1;
  int ended = 0;
};

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::stoi(text) : otherwise;
}

TEST(RanksTest, ranks_of_one_process_are_ranks_like_all_others) {
  const RankPlacement placement{.ranks = number_of("BRANT_MPI_RANKS", 1), .processes = number_of("BRANT_SIZE", 1)};
  const int own = number_of("BRANT_RANK", 0);
  Program program;
  program.first = placement.first_in(own);
  program.total = placement.ranks;
  RankScheduler scheduler(program, placement.count_in(own), std::size_t{1} << 20);
  use_rank_threads(scheduler);
  EXPECT_EQ(scheduler.run(), 0);
  EXPECT_EQ(program.ended, placement.count_in(own));
}

}  // namespace
}  // namespace brant::mpi
