// Runs as every rank of a job: collectives between two groups in their three forms, with types that have gaps, with
// functions of the program, and on memory of devices.
#include <array>
#include <numeric>
#include <optional>

#include "two_groups.h"

namespace brant::mpi {
namespace {

class InterCollectives : public testing::Test {
 protected:
  void SetUp() override {
    if (size_ < 2) GTEST_SKIP() << "two groups need two ranks";
    groups_.emplace();
    comm_ = groups_->both;
    rank_ = test::rank_in(comm_);
    members_ = test::size_of(comm_);
    peers_ = test::remote_size_of(comm_);
    count_ = static_cast<std::size_t>(peers_);
  }
  /// What a rank names as the root, which is a rank of one of the groups.
  [[nodiscard]] int root(bool of_alone, int rank) const {
    if (groups_->alone != of_alone) return rank;
    return rank_ == rank ? int{MPI_ROOT} : int{MPI_PROC_NULL};
  }
  /// Calls `body(root, is_root, gets)` with every rank of both groups as the root.
  template <typename Body>
  void with_every_root(const Body& body) const {
    for (const bool of_alone : {true, false}) {
      const int ranks = groups_->alone == of_alone ? members_ : peers_;
      for (int rank = 0; rank < ranks; ++rank) {
        const int name = root(of_alone, rank);
        body(name, name == MPI_ROOT, name != MPI_ROOT && name != MPI_PROC_NULL);
      }
    }
  }
  /// Sums over the ranks of the world in the other group, of `rank + 1`.
  [[nodiscard]] int sum_of_peers() const { return groups_->alone ? size_ * (size_ + 1) / 2 - 1 : 1; }

  const int self_ = test::rank(), size_ = test::size();
  std::optional<test::TwoGroups> groups_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = -1, members_ = 0, peers_ = 0;
  std::size_t count_ = 0;
};

TEST_F(InterCollectives, barriers_hold_both_groups) {
  ASSERT_EQ(MPI_Barrier(comm_), 0);
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Ibarrier(comm_, &request), 0);
  ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
}

TEST_F(InterCollectives, broadcasts_reach_the_other_group) {
  with_every_root([&](int root, bool is_root, bool gets) {
    for (const int bytes : {0, 5, 400'000}) {
      const std::vector<std::uint8_t> whole = test::pattern(static_cast<std::size_t>(bytes), bytes);
      std::vector<std::uint8_t> data(whole.size());
      if (is_root) data = whole;
      ASSERT_EQ(MPI_Bcast(data.data(), bytes, MPI_BYTE, root, comm_), 0);
      EXPECT_EQ(data, is_root || gets ? whole : std::vector<std::uint8_t>(whole.size()));
    }
  });
}

TEST_F(InterCollectives, blocks_are_gathered_and_scattered) {
  with_every_root([&](int root, bool is_root, bool gets) {
    std::vector<int> all(count_, -1);
    ASSERT_EQ(MPI_Gather(&self_, 1, MPI_INT, all.data(), 1, MPI_INT, root, comm_), 0);
    for (int i = 0; i < peers_; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], is_root ? groups_->world_rank(i) : -1);
    int own = -1;
    ASSERT_EQ(MPI_Scatter(all.data(), 1, MPI_INT, &own, 1, MPI_INT, root, comm_), 0);
    EXPECT_EQ(own, gets ? self_ : -1);
  });
}

/// Rank i of a group gives i + 1 numbers; they land two places apart, in reverse order.
TEST_F(InterCollectives, blocks_of_different_sizes_land_at_their_displacements) {
  std::vector<int> counts(count_), displs(count_), own(static_cast<std::size_t>(rank_ + 1), self_);
  int end = 0;
  for (int i = peers_ - 1; i >= 0; --i) {
    counts[static_cast<std::size_t>(i)] = i + 1;
    displs[static_cast<std::size_t>(i)] = end;
    end += i + 1 + 2;
  }
  std::vector<int> all(static_cast<std::size_t>(end), -5);
  const auto expect_all = [&] {
    for (int i = 0; i < peers_; ++i) {
      const int* block = all.data() + displs[static_cast<std::size_t>(i)];
      for (int j = 0; j <= i; ++j) EXPECT_EQ(block[j], groups_->world_rank(i));
      EXPECT_EQ(block[i + 1], -5) << "gaps stay";
    }
  };
  ASSERT_EQ(MPI_Allgatherv(own.data(), rank_ + 1, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, comm_),
            0);
  expect_all();
  with_every_root([&](int root, bool is_root, bool gets) {
    std::vector<int> again(own.size(), -1);
    ASSERT_EQ(
        MPI_Scatterv(all.data(), counts.data(), displs.data(), MPI_INT, again.data(), rank_ + 1, MPI_INT, root, comm_),
        0);
    EXPECT_EQ(again, gets ? own : std::vector<int>(own.size(), -1));
    if (is_root) std::ranges::fill(all, -5);
    ASSERT_EQ(
        MPI_Gatherv(own.data(), rank_ + 1, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, root, comm_), 0);
    expect_all();
  });
}

TEST_F(InterCollectives, everybody_exchanges_with_everybody_in_the_other_group) {
  std::vector<int> given(count_), got(count_, -1), counts(count_, 1), displs(count_);
  for (int i = 0; i < peers_; ++i) given[static_cast<std::size_t>(i)] = 100 * self_ + groups_->world_rank(i);
  std::iota(displs.begin(), displs.end(), 0);
  const auto expect = [&] {
    for (int i = 0; i < peers_; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 100 * groups_->world_rank(i) + self_);
    std::ranges::fill(got, -1);
  };
  ASSERT_EQ(MPI_Alltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, comm_), 0);
  expect();
  ASSERT_EQ(MPI_Alltoallv(given.data(), counts.data(), displs.data(), MPI_INT, got.data(), counts.data(), displs.data(),
                          MPI_INT, comm_),
            0);
  expect();
  std::vector<int> places(count_);
  for (int i = 0; i < peers_; ++i) places[static_cast<std::size_t>(i)] = 4 * i;
  const std::vector<MPI_Datatype> types(count_, MPI_INT);
  ASSERT_EQ(MPI_Alltoallw(given.data(), counts.data(), places.data(), types.data(), got.data(), counts.data(),
                          places.data(), types.data(), comm_),
            0);
  expect();
  std::vector<int> all(count_, -1);
  ASSERT_EQ(MPI_Allgather(&self_, 1, MPI_INT, all.data(), 1, MPI_INT, comm_), 0);
  for (int i = 0; i < peers_; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], groups_->world_rank(i));
}

TEST_F(InterCollectives, reductions_combine_what_the_other_group_gives) {
  const std::array<double, 2> given{1.0 + self_, -1.0 * self_};
  std::array<double, 2> got{};
  ASSERT_EQ(MPI_Allreduce(given.data(), got.data(), 2, MPI_DOUBLE, MPI_SUM, comm_), 0);
  EXPECT_EQ(got, (std::array<double, 2>{1.0 * sum_of_peers(), 1.0 * (peers_ - sum_of_peers())}));
  with_every_root([&](int root, bool is_root, bool) {
    int total = -1;
    const int value = self_ + 1;
    ASSERT_EQ(MPI_Reduce(&value, &total, 1, MPI_INT, MPI_SUM, root, comm_), 0);
    EXPECT_EQ(total, is_root ? sum_of_peers() : -1);
  });
}

/// Each group gives 6 elements a member, and divides what it gets by the number of its members.
TEST_F(InterCollectives, parts_of_reductions_go_where_they_belong) {
  const int all = 6 * (size_ - 1);
  std::vector<int> given(static_cast<std::size_t>(all));
  for (int i = 0; i < all; ++i) given[static_cast<std::size_t>(i)] = i * (self_ + 1);
  const int own = all / members_;
  std::vector<int> got(static_cast<std::size_t>(own), -1);
  const auto expect = [&](int first) {
    for (int i = 0; i < static_cast<int>(got.size()); ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(i)], (first + i) * sum_of_peers());
  };
  ASSERT_EQ(MPI_Reduce_scatter_block(given.data(), got.data(), own, MPI_INT, MPI_SUM, comm_), 0);
  expect(rank_ * own);
  std::vector<int> counts(static_cast<std::size_t>(members_), 0);  // all for the last one
  counts.back() = all;
  got.assign(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank_)]), -1);
  ASSERT_EQ(MPI_Reduce_scatter(given.data(), got.data(), counts.data(), MPI_INT, MPI_SUM, comm_), 0);
  expect(0);
}

/// Keeps the first operand's first number and the second one's last: the result shows the order.
void join(void* in, void* inout, int* count, MPI_Datatype*) {
  const int* left = static_cast<int*>(in);
  int* right = static_cast<int*>(inout);
  for (int i = 0; i < *count; ++i, left += 3, right += 3) *right = *left;
}

TEST_F(InterCollectives, functions_of_the_program_get_types_with_gaps_in_the_order_of_ranks) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);  // the first and the last of three
  MPI_Type_commit(&pair);
  MPI_Op_create(join, 0, &op);
  const std::array<int, 6> given{self_, -1, self_, self_ + 10, -1, self_ + 10};
  std::array<int, 6> got{7, 7, 7, 7, 7, 7};
  ASSERT_EQ(MPI_Allreduce(given.data(), got.data(), 2, pair, op, comm_), 0);
  const int first = groups_->world_rank(0), last = groups_->world_rank(peers_ - 1);
  EXPECT_EQ(got, (std::array<int, 6>{first, 7, last, first + 10, 7, last + 10}));
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

TEST_F(InterCollectives, that_were_begun_end_in_any_order) {
  const int mine = self_ + 1;
  int total = 0, word = groups_->alone ? 42 : 0;
  std::vector<int> all(count_, -1), given(count_, self_), got(count_, -1);
  std::array<MPI_Request, 5> requests{};
  MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm_, &requests[0]);
  MPI_Ibcast(&word, 1, MPI_INT, root(true, 0), comm_, &requests[1]);
  MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm_, &requests[2]);
  MPI_Ialltoall(given.data(), 1, MPI_INT, got.data(), 1, MPI_INT, comm_, &requests[3]);
  MPI_Ibarrier(comm_, &requests[4]);
  for (int i = 4; i >= 0; --i) ASSERT_EQ(MPI_Wait(&requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(total, sum_of_peers());
  EXPECT_EQ(word, 42);
  EXPECT_EQ(all.back(), groups_->world_rank(peers_ - 1) + 1);
  EXPECT_EQ(got.back(), groups_->world_rank(peers_ - 1));
}

/// A message that the program sends meanwhile, and one that it waits for with wildcards, do not meet a collective's.
TEST_F(InterCollectives, that_are_persistent_are_started_again) {
  int value = 0, total = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Allreduce_init(&value, &total, 1, MPI_INT, MPI_SUM, comm_, MPI_INFO_NULL, &request), 0);
  for (int round = 1; round < 4; ++round) {
    value = round * (self_ + 1);
    int got = -1;
    MPI_Request receive = MPI_REQUEST_NULL;
    if (rank_ == 0) MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &receive);
    ASSERT_EQ(MPI_Start(&request), 0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(total, round * sum_of_peers());
    if (rank_ == 0) {
      MPI_Send(&round, 1, MPI_INT, 0, 0, comm_);
      MPI_Wait(&receive, MPI_STATUS_IGNORE);
      EXPECT_EQ(got, round);
    }
  }
  MPI_Request_free(&request);
}

TEST_F(InterCollectives, work_on_memory_of_devices) {
  Runtime& owner = runtime();
  constexpr std::size_t kCount = 5000;
  Memory device = owner.allocate(owner.device_kind(), 2 * kCount * sizeof(double));
  std::vector<double> image(2 * kCount);
  std::iota(image.begin(), image.end(), self_);
  owner.copy(device, Buffer(std::span(image)));
  auto* values = device.as<double>();
  ASSERT_EQ(MPI_Allreduce(values, values + kCount, kCount, MPI_DOUBLE, MPI_SUM, comm_), 0);
  ASSERT_EQ(MPI_Bcast(values, kCount, MPI_DOUBLE, root(true, 0), comm_), 0);
  owner.copy(Buffer(std::span(image)), device);
  EXPECT_EQ(image[kCount + 10], 9.0 * peers_ + sum_of_peers());
  EXPECT_EQ(image[10], 10.0);
}

TEST_F(InterCollectives, with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  const test::ErrorsReturned returned(comm_);
  int value = 0, total = 0;
  EXPECT_EQ(MPI_Bcast(&value, 1, MPI_INT, peers_, comm_), MPI_ERR_ROOT);
  EXPECT_EQ(MPI_Reduce(&value, &total, 1, MPI_INT, MPI_SUM, -9, comm_), MPI_ERR_ROOT);
  EXPECT_EQ(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, comm_), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, &total, 1, MPI_INT, comm_), MPI_ERR_BUFFER);
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_OP_NULL, comm_), MPI_ERR_OP);
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_FLOAT, MPI_BAND, comm_), MPI_ERR_OP);
  EXPECT_EQ(MPI_Allgather(&value, -1, MPI_INT, &total, 1, MPI_INT, comm_), MPI_ERR_COUNT);
  EXPECT_EQ(MPI_Gatherv(&value, 1, MPI_INT, &total, nullptr, nullptr, MPI_INT, MPI_ROOT, comm_), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Exscan(&value, &total, 1, MPI_INT, MPI_SUM, comm_), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Ibcast(&value, 1, MPI_INT, 0, comm_, nullptr), MPI_ERR_ARG);
  // More than there is room for: the class goes to whom it concerns, and the communicator goes on.
  std::array<int, 2> two{1, 2};
  const int given = groups_->alone ? 2 : 1;
  EXPECT_EQ(MPI_Bcast(two.data(), given, MPI_INT, root(true, 0), comm_), groups_->alone ? 0 : int{MPI_ERR_TRUNCATE});
  value = self_ + 1;
  EXPECT_EQ(MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, comm_), 0);
  EXPECT_EQ(total, sum_of_peers());
}

}  // namespace
}  // namespace brant::mpi
