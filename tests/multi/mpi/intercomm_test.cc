// Runs as every rank of a job: communicators between two groups, and communicators that are made of groups alone.
#include <array>
#include <numeric>
#include <optional>

#include "two_groups.h"

namespace brant::mpi {
namespace {

class Intercommunicators : public testing::Test {
 protected:
  void SetUp() override {
    if (size_ < 2) GTEST_SKIP() << "two groups need two ranks";
    groups_.emplace();
    ASSERT_NE(groups_->both, MPI_COMM_NULL);
  }
  [[nodiscard]] static int compare(MPI_Comm one, MPI_Comm other) {
    int result = -1;
    EXPECT_EQ(MPI_Comm_compare(one, other, &result), 0);
    return result;
  }
  /// Everybody sends its rank in the world to everybody in the other group.
  void expect_works(MPI_Comm comm) const {
    const auto count = static_cast<std::size_t>(test::remote_size_of(comm));
    std::vector<MPI_Request> requests(2 * count);
    std::vector<int> got(count, -1);
    for (std::size_t i = 0; i < count; ++i) {
      const int peer = static_cast<int>(i);
      MPI_Irecv(&got[i], 1, MPI_INT, peer, 3, comm, &requests[i]);
      MPI_Isend(&self_, 1, MPI_INT, peer, 3, comm, &requests[count + i]);
    }
    ASSERT_EQ(MPI_Waitall(static_cast<int>(2 * count), requests.data(), MPI_STATUSES_IGNORE), 0);
    MPI_Group remote = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    MPI_Comm_remote_group(comm, &remote);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      int expected = -1;
      MPI_Group_translate_ranks(remote, 1, &i, world, &expected);
      EXPECT_EQ(got[static_cast<std::size_t>(i)], expected);
    }
    MPI_Group_free(&remote);
    MPI_Group_free(&world);
  }

  const int self_ = test::rank(), size_ = test::size();
  std::optional<test::TwoGroups> groups_;
};

TEST_F(Intercommunicators, know_both_groups) {
  MPI_Comm both = groups_->both;
  int flag = -1;
  MPI_Comm_test_inter(both, &flag);
  EXPECT_EQ(flag, 1);
  MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(test::rank_in(both), groups_->alone ? 0 : size_ - 1 - self_);
  EXPECT_EQ(test::size_of(both), groups_->alone ? 1 : size_ - 1);
  EXPECT_EQ(test::remote_size_of(both), groups_->alone ? size_ - 1 : 1);
  MPI_Group local = MPI_GROUP_NULL, own = MPI_GROUP_NULL;
  MPI_Comm_group(both, &local);
  MPI_Comm_group(groups_->own, &own);
  int result = -1;
  MPI_Group_compare(local, own, &result);
  EXPECT_EQ(result, MPI_IDENT);
  MPI_Group_free(&local);
  MPI_Group_free(&own);
  expect_works(both);
}

TEST_F(Intercommunicators, match_by_the_rank_in_the_other_group) {
  MPI_Comm both = groups_->both;
  if (groups_->alone) {
    std::vector<bool> seen(static_cast<std::size_t>(size_ - 1));
    for (int i = 0; i < size_ - 1; ++i) {
      int value = -1;
      MPI_Status status;
      ASSERT_EQ(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, both, &status), 0);
      EXPECT_EQ(value, groups_->world_rank(status.MPI_SOURCE));
      EXPECT_EQ(status.MPI_TAG, status.MPI_SOURCE);
      seen[static_cast<std::size_t>(status.MPI_SOURCE)] = true;
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), size_ - 1);
  } else {
    ASSERT_EQ(MPI_Ssend(&self_, 1, MPI_INT, 0, test::rank_in(both), both), 0);
  }
  MPI_Barrier(both);  // no receive of those before gets what follows
  const std::vector<std::uint8_t> large = test::pattern(500'000, 4);
  if (groups_->alone) {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    ASSERT_EQ(MPI_Mprobe(MPI_ANY_SOURCE, 9, both, &message, &status), 0);
    EXPECT_EQ(status.MPI_SOURCE, size_ - 2);
    std::vector<std::uint8_t> got(large.size());
    ASSERT_EQ(MPI_Mrecv(got.data(), 500'000, MPI_BYTE, &message, &status), 0);
    EXPECT_EQ(got, large);
  } else if (self_ == 1) {
    ASSERT_EQ(MPI_Send(large.data(), 500'000, MPI_BYTE, 0, 9, both), 0);
  }
}

TEST_F(Intercommunicators, are_merged_in_the_order_that_is_asked_for) {
  for (const bool alone_is_high : {false, true}) {
    MPI_Comm merged = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Intercomm_merge(groups_->both, (groups_->alone == alone_is_high) ? 1 : 0, &merged), 0);
    EXPECT_EQ(test::size_of(merged), size_);
    const int behind = alone_is_high ? 0 : 1;  // of the others: one rank comes before them, or none
    EXPECT_EQ(test::rank_in(merged), groups_->alone ? (alone_is_high ? size_ - 1 : 0) : size_ - 1 - self_ + behind);
    int total = -1;
    ASSERT_EQ(MPI_Allreduce(&self_, &total, 1, MPI_INT, MPI_SUM, merged), 0);
    EXPECT_EQ(total, size_ * (size_ - 1) / 2);
    MPI_Comm_free(&merged);
  }
  MPI_Comm merged = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Intercomm_merge(groups_->both, 0, &merged), 0);
  MPI_Comm_free(&merged);
}

TEST_F(Intercommunicators, are_copied_with_their_attributes) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  int value = 7;
  MPI_Comm_set_attr(groups_->both, key, &value);
  MPI_Comm copy = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_dup(groups_->both, &copy), 0);
  EXPECT_EQ(compare(groups_->both, copy), MPI_CONGRUENT);
  EXPECT_EQ(compare(groups_->both, groups_->both), MPI_IDENT);
  EXPECT_EQ(compare(groups_->both, groups_->own), MPI_UNEQUAL);
  EXPECT_EQ(compare(MPI_COMM_WORLD, copy), MPI_UNEQUAL);
  void* found = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(copy, key, static_cast<void*>(&found), &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(found, &value);
  MPI_Comm_set_name(copy, "between");
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Comm_get_name(copy, name, &length);
  EXPECT_STREQ(name, "between");
  expect_works(copy);
  const int peer = 0;
  const int here = 1, there = 2;  // each communicator has messages of its own
  if (test::rank_in(copy) == 0) {
    std::array<MPI_Request, 2> requests{};
    MPI_Isend(&here, 1, MPI_INT, peer, 0, groups_->both, &requests[0]);
    MPI_Isend(&there, 1, MPI_INT, peer, 0, copy, &requests[1]);
    int got = -1;
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, there);
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, groups_->both, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, here);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_delete_attr(groups_->both, key);
  MPI_Comm_free_keyval(&key);
}

TEST_F(Intercommunicators, are_split_on_both_sides) {
  MPI_Comm part = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_split(groups_->both, 4, self_, &part), 0);
  EXPECT_EQ(test::rank_in(part), groups_->alone ? 0 : self_ - 1) << "the keys turn the order round";
  EXPECT_EQ(compare(part, groups_->both), size_ > 2 ? MPI_SIMILAR : MPI_CONGRUENT);
  expect_works(part);
  MPI_Comm_free(&part);
  // Ranks of the world with the same parity; the group of rank 0 has no odd ones.
  ASSERT_EQ(MPI_Comm_split(groups_->both, self_ % 2, 0, &part), 0);
  const bool has_other_side = groups_->alone ? size_ > 2 : self_ % 2 == 0;
  EXPECT_EQ(part != MPI_COMM_NULL, has_other_side);
  if (part != MPI_COMM_NULL) {
    expect_works(part);
    MPI_Comm_free(&part);
  }
  ASSERT_EQ(MPI_Comm_split(groups_->both, MPI_UNDEFINED, 0, &part), 0);
  EXPECT_EQ(part, MPI_COMM_NULL);
}

TEST_F(Intercommunicators, are_made_of_parts_of_both_groups) {
  MPI_Group own = MPI_GROUP_NULL, last = MPI_GROUP_NULL;
  MPI_Comm_group(groups_->both, &own);
  const int chosen = test::size_of(groups_->both) - 1;
  MPI_Group_incl(own, 1, &chosen, &last);
  MPI_Comm part = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_create(groups_->both, last, &part), 0);
  EXPECT_EQ(part != MPI_COMM_NULL, self_ <= 1);
  if (part != MPI_COMM_NULL) {
    EXPECT_EQ(test::remote_size_of(part), 1);
    expect_works(part);
    MPI_Comm_free(&part);
  }
  ASSERT_EQ(MPI_Comm_create(groups_->both, groups_->alone ? MPI_GROUP_EMPTY : last, &part), 0);
  EXPECT_EQ(part, MPI_COMM_NULL) << "one side has nobody";
  MPI_Group_free(&last);
  MPI_Group_free(&own);
}

TEST_F(Intercommunicators, are_made_of_groups_that_all_know) {
  MPI_Group own = MPI_GROUP_NULL, remote = MPI_GROUP_NULL;
  MPI_Comm_group(groups_->both, &own);
  MPI_Comm_remote_group(groups_->both, &remote);
  MPI_Comm made = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Intercomm_create_from_groups(own, 0, remote, 0, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), 0);
  EXPECT_EQ(compare(made, groups_->both), MPI_CONGRUENT);
  expect_works(made);
  MPI_Comm_free(&made);
  EXPECT_EQ(MPI_Intercomm_create_from_groups(own, 0, own, 0, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
            MPI_ERR_GROUP);
  EXPECT_EQ(MPI_Intercomm_create_from_groups(own, 9, remote, 0, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
            MPI_ERR_RANK);
  EXPECT_EQ(MPI_Intercomm_create_from_groups(remote, 0, own, 0, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
            MPI_ERR_GROUP);
  ASSERT_EQ(MPI_Comm_create_from_group(own, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), 0);
  EXPECT_EQ(compare(made, groups_->own), MPI_CONGRUENT);
  MPI_Comm_free(&made);
  MPI_Group_free(&remote);
  MPI_Group_free(&own);
}

TEST_F(Intercommunicators, with_bad_arguments_are_refused_by_the_class_of_the_fault) {
  MPI_Comm own = groups_->own;
  MPI_Comm both = groups_->both;
  const test::ErrorsReturned own_returned(own), both_returned(both), world_returned(MPI_COMM_WORLD);
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Intercomm_create(own, 77, MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_RANK);
  const auto as_leader = [&](int fault) { return test::rank_in(own) == 0 ? fault : int{MPI_ERR_OTHER}; };
  EXPECT_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, size_, 0, &made), as_leader(MPI_ERR_RANK));
  EXPECT_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 0, -1, &made), as_leader(MPI_ERR_TAG));
  EXPECT_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_NULL, 0, 0, &made), as_leader(MPI_ERR_COMM));
  EXPECT_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, self_, 0, &made), MPI_ERR_GROUP) << "it leads both groups";
  EXPECT_EQ(MPI_Intercomm_create(both, 0, MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Intercomm_merge(own, 0, &made), MPI_ERR_COMM);
  int count = -1;
  EXPECT_EQ(MPI_Comm_remote_size(own, &count), MPI_ERR_COMM);
  MPI_Group group = MPI_GROUP_NULL;
  EXPECT_EQ(MPI_Comm_remote_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Send(&count, 1, MPI_INT, test::remote_size_of(both), 0, both), MPI_ERR_RANK);
  EXPECT_EQ(MPI_Comm_create_group(both, MPI_GROUP_EMPTY, 0, &made), MPI_ERR_COMM);
  MPI_Comm_remote_group(both, &group);
  EXPECT_EQ(MPI_Comm_create(both, group, &made), MPI_ERR_GROUP);
  MPI_Group_free(&group);
  const int extent = 1, period = 0;
  EXPECT_EQ(MPI_Cart_create(both, 1, &extent, &period, 0, &made), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Scan(&self_, &count, 1, MPI_INT, MPI_SUM, both), MPI_ERR_COMM);
  MPI_Win window = MPI_WIN_NULL;
  EXPECT_EQ(MPI_Win_create_dynamic(MPI_INFO_NULL, both, &window), MPI_ERR_COMM);
  // In a group of several, members who do not agree.
  if (size_ > 2) {
    EXPECT_EQ(MPI_Intercomm_merge(both, self_ % 2, &made), MPI_ERR_ARG);
  }
}

}  // namespace
}  // namespace brant::mpi
