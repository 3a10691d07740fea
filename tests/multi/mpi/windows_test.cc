// Runs as every rank of a job: how windows are made, what they have, and when they may be accessed.
#include <cstring>
#include <numeric>
#include <string>

#include "brant/ops/rma.h"
#include "test_window.h"

namespace brant::mpi {
namespace {

using test::on_each_sort;
using test::TestWindow;
using test::WindowSort;

class Windows : public testing::Test {
 protected:
  /// The group of one rank.
  static MPI_Group group_of(MPI_Win win, int rank) {
    MPI_Group all = MPI_GROUP_NULL, one = MPI_GROUP_NULL;
    EXPECT_EQ(MPI_Win_get_group(win, &all), 0);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_free(&all);
    return one;
  }
  void put_own_rank(TestWindow& window, int rank) const {
    ASSERT_EQ(MPI_Put(&self_, 1, MPI_INT, rank, window.at(rank, 8), 1, MPI_INT, window.win), 0);
  }
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
};

TEST_F(Windows, have_the_attributes_of_the_standard) {
  std::vector<double> memory(10 + static_cast<std::size_t>(self_));
  const auto bytes = static_cast<MPI_Aint>(memory.size() * sizeof(double));
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_create(memory.data(), bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0);
  void* base = nullptr;
  MPI_Aint* size = nullptr;
  int *unit = nullptr, *flavor = nullptr, *model = nullptr, flag = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&base), &flag);
  EXPECT_EQ(base, memory.data());
  MPI_Win_get_attr(win, MPI_WIN_SIZE, static_cast<void*>(&size), &flag);
  EXPECT_EQ(*size, bytes);
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, static_cast<void*>(&unit), &flag);
  EXPECT_EQ(*unit, 8);
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&flavor), &flag);
  EXPECT_EQ(*flavor, MPI_WIN_FLAVOR_CREATE);
  MPI_Win_get_attr(win, MPI_WIN_MODEL, static_cast<void*>(&model), &flag);
  EXPECT_EQ(*model, MPI_WIN_UNIFIED);
  EXPECT_EQ(flag, 1);
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Win_set_name(win, "goose");
  MPI_Win_get_name(win, name, &length);
  EXPECT_STREQ(name, "goose");
  EXPECT_EQ(MPI_Win_fromint(MPI_Win_toint(win)), win);
  // Displacements are in units of the target.
  const double sent = self_ + 0.5;
  MPI_Win_fence(0, win);
  EXPECT_EQ(MPI_Put(&sent, 1, MPI_DOUBLE, right_, 9, 1, MPI_DOUBLE, win), 0);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  EXPECT_EQ(memory[9], left_ + 0.5);
  EXPECT_EQ(MPI_Win_free(&win), 0);
  EXPECT_EQ(MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0) << "a member may have no memory";
  EXPECT_EQ(MPI_Win_free(&win), 0);
}

/// What kind of memory a window that is allocated with this hint has; MPI_SUCCESS, or why there is none.
int allocate_in(const std::string& memory, MemoryKind& kind) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win win = MPI_WIN_NULL;
  void* base = nullptr;
  MPI_Info_create(&info);
  MPI_Info_set(info, "brant_memory", memory.c_str());
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int error = MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Info_free(&info);
  if (error != MPI_SUCCESS) return error;
  kind = expose(runtime(), Buffer(base, 100, MemoryKind::detect)).memory().kind;
  EXPECT_EQ(MPI_Win_free(&win), 0);
  return error;
}

TEST_F(Windows, are_allocated_in_the_memory_that_a_hint_names) {
  MemoryKind kind = MemoryKind::detect;
  EXPECT_EQ(allocate_in("host", kind), MPI_SUCCESS);
  EXPECT_TRUE(host_accessible(kind));
  EXPECT_EQ(allocate_in("vram", kind), MPI_ERR_INFO_VALUE);
  const MemoryKind device = runtime().device_kind();
  if (device == MemoryKind::host) {
    EXPECT_NE(allocate_in("cuda", kind), MPI_SUCCESS) << "there is no device";
    return;
  }
  EXPECT_EQ(allocate_in(std::string(memory_kind_name(device)), kind), MPI_SUCCESS);
  EXPECT_EQ(kind, device);
}

int g_deleted = 0;
int count_deletion(MPI_Win, int, void*, void*) {
  ++g_deleted;
  return MPI_SUCCESS;
}
int g_reported = MPI_SUCCESS;
void report(MPI_Win*, int* code, ...) { g_reported = *code; }

TEST_F(Windows, have_attributes_and_error_handlers_of_the_program) {
  void* base = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "false");
  ASSERT_EQ(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, static_cast<void*>(&base), &win), 0);
  MPI_Info_free(&info);
  MPI_Win_get_info(win, &info);
  int count = 0;
  MPI_Info_get_nkeys(info, &count);
  EXPECT_EQ(count, 2) << "what was given, and mpi_memory_alloc_kinds";
  MPI_Info_free(&info);
  int key = MPI_KEYVAL_INVALID, flag = 0, value = 3;
  void* found = nullptr;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deletion, &key, nullptr);
  MPI_Win_set_attr(win, key, &value);
  MPI_Win_get_attr(win, key, static_cast<void*>(&found), &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(found, &value);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Win_create_errhandler(report, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Errhandler_free(&handler);
  EXPECT_EQ(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
  EXPECT_EQ(g_reported, MPI_ERR_RMA_SYNC);
  EXPECT_EQ(MPI_Win_set_attr(win, MPI_WIN_BASE, base), MPI_ERR_KEYVAL);
  MPI_Win_free_keyval(&key);
  MPI_Win_free(&win);
  EXPECT_EQ(g_deleted, 1);
}

TEST_F(Windows, that_are_shared_lie_one_part_behind_the_other) {
  const auto bytes = static_cast<MPI_Aint>(sizeof(int)) * (self_ + 1);
  int* own = nullptr;
  MPI_Win win = MPI_WIN_NULL;
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  const int outcome =
      MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&own), &win);
  if (test::kOwnHost && size_ > 1) {
    EXPECT_EQ(outcome, MPI_ERR_RMA_SHARED);
    EXPECT_EQ(win, MPI_WIN_NULL);
    return;
  }
  ASSERT_EQ(outcome, 0);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  for (int i = 0; i <= self_; ++i) own[i] = 100 * self_ + i;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  MPI_Aint size = 0;
  int unit = 0;
  int *first = nullptr, *next = nullptr;
  MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, static_cast<void*>(&first));
  for (int rank = 0; rank < size_; ++rank) {
    ASSERT_EQ(MPI_Win_shared_query(win, rank, &size, &unit, static_cast<void*>(&next)), 0);
    EXPECT_EQ(size, static_cast<MPI_Aint>(sizeof(int)) * (rank + 1));
    EXPECT_EQ(unit, static_cast<int>(sizeof(int)));
    EXPECT_EQ(next, first + rank * (rank + 1) / 2);
    EXPECT_EQ(next[rank], 101 * rank);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

TEST_F(Windows, that_are_dynamic_have_what_is_attached_now) {
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  std::vector<int> one(10), two(10);
  EXPECT_EQ(MPI_Win_attach(win, one.data(), 40), 0);
  EXPECT_EQ(MPI_Win_attach(win, one.data() + 5, 40), MPI_ERR_RMA_ATTACH) << "they overlap";
  EXPECT_EQ(MPI_Win_attach(win, two.data(), 40), 0);
  EXPECT_EQ(MPI_Win_detach(win, one.data()), 0);
  EXPECT_EQ(MPI_Win_detach(win, one.data()), MPI_ERR_RMA_ATTACH);
  MPI_Aint places[2], theirs[2];
  MPI_Get_address(one.data(), &places[0]);
  MPI_Get_address(two.data(), &places[1]);
  MPI_Sendrecv(places, 2, MPI_AINT, left_, 0, theirs, 2, MPI_AINT, right_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int got = -1;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right_, 0, win);
  EXPECT_EQ(MPI_Put(&self_, 1, MPI_INT, right_, MPI_Aint_add(theirs[1], 36), 1, MPI_INT, win), 0);
  EXPECT_EQ(MPI_Win_flush(right_, win), 0);
  EXPECT_EQ(MPI_Get(&got, 1, MPI_INT, right_, MPI_Aint_add(theirs[1], 36), 1, MPI_INT, win), 0);
  EXPECT_EQ(MPI_Win_flush(right_, win), 0);
  EXPECT_EQ(got, self_);
  EXPECT_EQ(MPI_Get(&got, 1, MPI_INT, right_, theirs[0], 1, MPI_INT, win), 0);
  EXPECT_EQ(MPI_Win_flush(right_, win), MPI_ERR_RMA_RANGE) << "it is detached";
  EXPECT_EQ(MPI_Put(&self_, 1, MPI_INT, right_, MPI_Aint_add(theirs[1], 38), 1, MPI_INT, win), 0);
  EXPECT_EQ(MPI_Win_unlock(right_, win), MPI_ERR_RMA_RANGE) << "two bytes too far";
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(two[9], left_);
  EXPECT_EQ(MPI_Win_free(&win), 0);
}

TEST_F(Windows, are_accessed_between_start_and_complete) {
  on_each_sort(64, [&](TestWindow& window) {
    MPI_Group to = group_of(window.win, right_), from = group_of(window.win, left_);
    for (const int assertion : {0, 0, int{MPI_MODE_NOCHECK}, 0}) {
      ASSERT_EQ(MPI_Win_post(from, assertion, window.win), 0);
      if (assertion == MPI_MODE_NOCHECK) MPI_Barrier(MPI_COMM_WORLD);
      ASSERT_EQ(MPI_Win_start(to, assertion, window.win), 0);
      put_own_rank(window, right_);
      ASSERT_EQ(MPI_Win_complete(window.win), 0);
      ASSERT_EQ(MPI_Win_wait(window.win), 0);
      EXPECT_EQ(window.values<int>(1, 8)[0], left_);
    }
    int flag = 1;
    MPI_Win_post(from, 0, window.win);
    ASSERT_EQ(MPI_Win_test(window.win, &flag), 0);
    EXPECT_EQ(flag, 0) << "the neighbour waits in the barrier before it completes";
    MPI_Win_start(to, 0, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_complete(window.win);
    while (flag == 0) ASSERT_EQ(MPI_Win_test(window.win, &flag), 0);
    EXPECT_EQ(MPI_Win_test(window.win, &flag), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win), 0);
    EXPECT_EQ(MPI_Win_complete(window.win), 0);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
  });
}

TEST_F(Windows, are_changed_by_one_at_a_time_under_an_exclusive_lock) {
  constexpr int kRounds = 25;
  on_each_sort(64, [&](TestWindow& window) {
    for (int i = 0; i < kRounds; ++i) {
      int value = -1;
      ASSERT_EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win), 0);
      MPI_Get(&value, 1, MPI_INT, 0, window.at(0, 0), 1, MPI_INT, window.win);
      MPI_Win_flush_local(0, window.win);
      ++value;
      MPI_Put(&value, 1, MPI_INT, 0, window.at(0, 0), 1, MPI_INT, window.win);
      ASSERT_EQ(MPI_Win_unlock(0, window.win), 0);
      ASSERT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, window.win), 0);
      ASSERT_EQ(MPI_Win_unlock(right_, window.win), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (self_ == 0) {
      EXPECT_EQ(window.values<int>(1)[0], size_ * kRounds);
    }
  });
}

/// The target is in calls of MPI that have nothing to do with the window.
TEST_F(Windows, are_served_by_a_rank_that_waits_for_something_else) {
  on_each_sort(64, [&](TestWindow& window) {
    if (self_ == 0) {
      int sum = 0;
      for (int rank = 1; rank < size_; ++rank)
        MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      const std::int16_t one = 1;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
      MPI_Accumulate(&one, 1, MPI_INT16_T, 0, window.at(0, 0), 1, MPI_INT16_T, MPI_SUM, window.win);
      ASSERT_EQ(MPI_Win_unlock(0, window.win), 0);
      MPI_Send(&self_, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (self_ == 0) {
      EXPECT_EQ(window.values<std::int16_t>(1)[0], size_ - 1);
    }
  });
}

TEST_F(Windows, tell_of_epochs_that_are_wrong) {
  on_each_sort(64, [&](TestWindow& window) {
    MPI_Win win = window.win;
    EXPECT_EQ(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_lock(7, 0, 0, win), MPI_ERR_LOCKTYPE);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, size_, 0, win), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win), 0);
    ASSERT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, win), 0);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_unlock(right_, win), 0);
    EXPECT_EQ(MPI_Win_fence(0x40000, win), MPI_ERR_ASSERT);
    ASSERT_EQ(MPI_Win_fence(0, win), 0);
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(MPI_Rput(&self_, 1, MPI_INT, right_, window.at(right_, 0), 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
    put_own_rank(window, right_);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, win), MPI_ERR_RMA_SYNC) << "the fence is not closed";
    ASSERT_EQ(MPI_Win_fence(0, win), 0);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, win), 0);
    EXPECT_EQ(MPI_Win_unlock(right_, win), 0);
  });
}

TEST_F(Windows, that_cannot_be_made_are_refused_everywhere) {
  const test::ErrorsReturned returned(MPI_COMM_WORLD);
  int memory = 0;
  MPI_Win win = MPI_WIN_NULL;
  EXPECT_EQ(MPI_Win_create(&memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
  EXPECT_EQ(MPI_Win_create(&memory, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
  void* const base = self_ == size_ - 1 ? nullptr : &memory;
  EXPECT_EQ(MPI_Win_create(base, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE)
      << "the last rank's memory is null";
  EXPECT_EQ(win, MPI_WIN_NULL);
  const test::ErrorsReturned returned_too(MPI_COMM_SELF);
  EXPECT_EQ(MPI_Win_create(&memory, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
}

}  // namespace
}  // namespace brant::mpi
