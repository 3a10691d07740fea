// Runs as every rank of a job: puts, gets and accumulates of windows of all sorts. Each rank accesses its right
// neighbour, which is itself in a job of one.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <numeric>

#include "test_window.h"

namespace brant::mpi {
namespace {

using test::on_each_sort;
using test::pattern;
using test::TestWindow;
using test::WindowSort;

class WindowAccesses : public testing::Test {
 protected:
  const int self_ = test::rank(), size_ = test::size();
  const int right_ = (self_ + 1) % size_, left_ = (self_ + size_ - 1) % size_;
};

TEST_F(WindowAccesses, of_all_sizes_arrive_whole) {
  on_each_sort(1'200'000, [&](TestWindow& window) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{8}, std::size_t{1000}, std::size_t{70'001}, std::size_t{1'100'000}}) {
      const auto sent = pattern(bytes, self_);
      std::vector<std::uint8_t> got(bytes + 1, 0xee);
      const int count = static_cast<int>(bytes);
      ASSERT_EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win), 0);
      ASSERT_EQ(MPI_Put(sent.data(), count, MPI_BYTE, right_, window.at(right_, 3), count, MPI_BYTE, window.win), 0);
      ASSERT_EQ(MPI_Win_fence(0, window.win), 0);
      ASSERT_EQ(window.values<std::uint8_t>(bytes, 3), pattern(bytes, left_)) << bytes << " bytes";
      ASSERT_EQ(MPI_Get(got.data(), count, MPI_BYTE, right_, window.at(right_, 3), count, MPI_BYTE, window.win), 0);
      ASSERT_EQ(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win), 0);
      EXPECT_EQ(got[bytes], 0xee);
      got.resize(bytes);
      EXPECT_EQ(got, sent);
    }
  });
}

TEST_F(WindowAccesses, from_and_to_memory_of_devices_arrive_whole) {
  const MemoryKind kind = runtime().device_kind();
  if (kind == MemoryKind::host) GTEST_SKIP() << "there is no device";
  on_each_sort(300'000, [&](TestWindow& window) {
    const std::size_t bytes = 200'000;
    const Memory source = runtime().allocate(kind, bytes), landing = runtime().allocate(kind, bytes);
    const auto sent = pattern(bytes, self_);
    runtime().copy(source, ConstBuffer(sent.data(), bytes, MemoryKind::host));
    MPI_Win_fence(0, window.win);
    ASSERT_EQ(MPI_Put(source.data(), 200'000, MPI_BYTE, right_, window.at(right_, 0), 200'000, MPI_BYTE, window.win),
              0);
    MPI_Win_fence(0, window.win);
    ASSERT_EQ(MPI_Get(landing.data(), 200'000, MPI_BYTE, right_, window.at(right_, 0), 200'000, MPI_BYTE, window.win),
              0);
    MPI_Win_fence(0, window.win);
    std::vector<std::uint8_t> got(bytes);
    runtime().copy(Buffer(got.data(), bytes, MemoryKind::host), landing);
    EXPECT_EQ(got, sent);
    // Words of devices are combined as well.
    ASSERT_EQ(MPI_Accumulate(source.data(), 1000, MPI_UINT32_T, right_, window.at(right_, 0), 1000, MPI_UINT32_T,
                             MPI_BXOR, window.win),
              0);
    MPI_Win_fence(0, window.win);
    EXPECT_EQ(window.values<std::uint32_t>(1000), std::vector<std::uint32_t>(1000, 0));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  });
}

TEST_F(WindowAccesses, with_gaps_at_either_end_go_where_their_types_say) {
  constexpr int kCount = 40'000;
  MPI_Datatype every_third = MPI_DATATYPE_NULL, every_second = MPI_DATATYPE_NULL;
  MPI_Type_vector(kCount, 1, 3, MPI_INT, &every_third);
  MPI_Type_vector(kCount, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_third);
  MPI_Type_commit(&every_second);
  on_each_sort(std::size_t{3} * kCount * sizeof(int), [&](TestWindow& window) {
    std::vector<int> sent(std::size_t{2} * kCount), got(std::size_t{2} * kCount, -7);
    std::iota(sent.begin(), sent.end(), 1000 * self_);
    MPI_Win_fence(0, window.win);
    ASSERT_EQ(MPI_Put(sent.data(), 1, every_second, right_, window.at(right_, 0), 1, every_third, window.win), 0);
    MPI_Win_fence(0, window.win);
    const auto there = window.values<int>(std::size_t{3} * kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(there[3 * i], 1000 * left_ + static_cast<int>(2 * i)) << "element " << i;
      ASSERT_EQ(there[3 * i + 1], 0) << "a gap at element " << i;
    }
    ASSERT_EQ(MPI_Get(got.data(), 1, every_second, right_, window.at(right_, 0), 1, every_third, window.win), 0);
    MPI_Win_fence(0, window.win);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(got[2 * i], sent[2 * i]);
      ASSERT_EQ(got[2 * i + 1], -7);
    }
    // Accumulates leave the gaps alone too, and come in the order of their calls.
    for (MPI_Op op : {MPI_SUM, MPI_PROD}) {
      ASSERT_EQ(
          MPI_Accumulate(sent.data(), kCount, MPI_INT, right_, window.at(right_, 0), 1, every_third, op, window.win),
          0);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    const auto combined = window.values<int>(std::size_t{3} * kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto first = static_cast<std::uint32_t>(1000 * left_ + static_cast<int>(2 * i));
      const auto added = static_cast<std::uint32_t>(1000 * left_ + static_cast<int>(i));
      ASSERT_EQ(static_cast<std::uint32_t>(combined[3 * i]), (first + added) * added) << "element " << i;
      ASSERT_EQ(combined[3 * i + 2], 0);
    }
  });
  MPI_Type_free(&every_third);
  MPI_Type_free(&every_second);
}

/// Combines with the neighbour's values by several operations, each of which has a place of its own.
template <typename T>
struct Combinations {
  TestWindow& window;
  MPI_Datatype type;
  std::vector<MPI_Op> ops;
  std::vector<T> before, in;
  int right;
  std::size_t first_byte = 0;

  [[nodiscard]] int count() const { return static_cast<int>(in.size()); }
  [[nodiscard]] std::size_t byte_of(std::size_t op) const { return first_byte + op * in.size() * sizeof(T); }
  [[nodiscard]] MPI_Aint place_of(std::size_t op) const { return window.at(right, byte_of(op)); }
  void fence() const { ASSERT_EQ(MPI_Win_fence(0, window.win), 0); }
  /// The neighbour changes what is here when all have looked.
  void expect_here(const std::vector<std::vector<T>>& values) const {
    for (std::size_t op = 0; op < ops.size(); ++op) EXPECT_EQ(window.values<T>(in.size(), byte_of(op)), values[op]);
    fence();
  }
  void reduce(std::vector<std::vector<T>>& values) const {
    for (std::size_t op = 0; op < ops.size(); ++op)
      MPI_Reduce_local(in.data(), values[op].data(), count(), type, ops[op]);
  }
  void fetch(std::vector<std::vector<T>>& got, bool changes) const {
    for (std::size_t op = 0; op < ops.size(); ++op) {
      const void* const given = changes ? in.data() : nullptr;
      ASSERT_EQ(MPI_Get_accumulate(given, changes ? count() : 0, type, got[op].data(), count(), type, right,
                                   place_of(op), count(), type, changes ? ops[op] : MPI_NO_OP, window.win),
                0);
    }
  }
  void accumulate(const std::vector<T>& values, bool replaces) const {
    for (std::size_t op = 0; op < ops.size(); ++op)
      ASSERT_EQ(MPI_Accumulate(values.data(), count(), type, right, place_of(op), count(), type,
                               replaces ? MPI_REPLACE : ops[op], window.win),
                0);
  }

  void expect_right() const {
    std::vector<std::vector<T>> expected(ops.size(), before), got(ops.size(), in);
    accumulate(before, true);
    fetch(got, true);
    fence();
    for (const auto& each : got) EXPECT_EQ(each, before);
    reduce(expected);
    expect_here(expected);
    accumulate(in, false);
    fetch(got, false);
    fence();
    reduce(expected);
    EXPECT_EQ(got, expected) << "accumulates come in their order";
    expect_here(expected);
  }
};

template <typename T>
void expect_numbers_combined(TestWindow& window, MPI_Datatype type, const std::vector<MPI_Op>& ops, int right) {
  std::vector<T> before(300), in(300);
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] = static_cast<T>(static_cast<std::uint8_t>(i % 11 + 1));
    in[i] = static_cast<T>(static_cast<std::uint8_t>(i % 7));
  }
  for (const std::size_t first_byte : {std::size_t{0}, std::size_t{1}})  // aligned, and not
    Combinations<T>{window, type, ops, before, in, right, first_byte}.expect_right();
}

TEST_F(WindowAccesses, combine_all_types_by_all_operations) {
  const std::vector<MPI_Op> ordered{MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
  std::vector<MPI_Op> whole = ordered;
  whole.insert(whole.end(), {MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR});
  on_each_sort(30'000, [&](TestWindow& window) {
    MPI_Win_fence(0, window.win);
    expect_numbers_combined<std::int8_t>(window, MPI_INT8_T, whole, right_);
    expect_numbers_combined<std::uint16_t>(window, MPI_UINT16_T, whole, right_);
    expect_numbers_combined<std::int32_t>(window, MPI_INT32_T, whole, right_);
    expect_numbers_combined<std::uint64_t>(window, MPI_UINT64_T, whole, right_);
    expect_numbers_combined<float>(window, MPI_FLOAT, ordered, right_);
    expect_numbers_combined<double>(window, MPI_DOUBLE, ordered, right_);
    expect_numbers_combined<long double>(window, MPI_LONG_DOUBLE, ordered, right_);
    expect_numbers_combined<std::complex<float>>(window, MPI_C_FLOAT_COMPLEX, {MPI_SUM, MPI_PROD}, right_);
    expect_numbers_combined<std::complex<double>>(window, MPI_C_DOUBLE_COMPLEX, {MPI_SUM, MPI_PROD}, right_);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  });
}

template <typename V>
struct Placed {
  V value;
  int place;
  friend bool operator==(const Placed&, const Placed&) = default;
};

TEST_F(WindowAccesses, combine_pairs_whatever_gaps_they_have) {
  const auto expect_pairs = [&]<typename V>(TestWindow& window, MPI_Datatype type, V) {
    // Zeros in the gaps, since those are not MPI's to move.
    std::vector<Placed<V>> before(100), in(100);
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i].value = static_cast<V>(i % 3);
      before[i].place = static_cast<int>(i);
      in[i].value = static_cast<V>(i % 4);
      in[i].place = static_cast<int>(i) - 1;
    }
    Combinations<Placed<V>>{window, type, {MPI_MINLOC, MPI_MAXLOC}, before, in, right_}.expect_right();
  };
  on_each_sort(30'000, [&](TestWindow& window) {
    MPI_Win_fence(0, window.win);
    expect_pairs(window, MPI_SHORT_INT, short{});
    expect_pairs(window, MPI_2INT, int{});
    expect_pairs(window, MPI_FLOAT_INT, float{});
    expect_pairs(window, MPI_DOUBLE_INT, double{});
    expect_pairs(window, MPI_LONG_INT, long{});
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  });
}

TEST_F(WindowAccesses, accumulates_of_many_are_atomic_whatever_their_size) {
  constexpr int kRounds = 100;
  on_each_sort(4096, [&](TestWindow& window) {
    const std::uint64_t one = 1;
    const std::uint16_t one_short = 1;
    std::vector<std::uint64_t> seen(kRounds);
    ASSERT_EQ(MPI_Win_lock_all(0, window.win), 0);
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_EQ(MPI_Fetch_and_op(&one, &seen[static_cast<std::size_t>(i)], MPI_UINT64_T, 0, window.at(0, 8), MPI_SUM,
                                 window.win),
                0);
      ASSERT_EQ(MPI_Accumulate(&one_short, 1, MPI_UINT16_T, 0, window.at(0, 2), 1, MPI_UINT16_T, MPI_SUM, window.win),
                0);
    }
    ASSERT_EQ(MPI_Win_flush_all(window.win), 0);
    EXPECT_TRUE(std::ranges::is_sorted(seen)) << "a rank's own come in their order";
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size_ * kRounds));
    MPI_Allgather(seen.data(), kRounds, MPI_UINT64_T, all.data(), kRounds, MPI_UINT64_T, MPI_COMM_WORLD);
    std::ranges::sort(all);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i) << "no value is seen twice";
    std::uint16_t shorts = 0;
    ASSERT_EQ(MPI_Get(&shorts, 1, MPI_UINT16_T, 0, window.at(0, 2), 1, MPI_UINT16_T, window.win), 0);
    ASSERT_EQ(MPI_Win_flush_local_all(window.win), 0);
    EXPECT_EQ(shorts, size_ * kRounds);
    ASSERT_EQ(MPI_Win_unlock_all(window.win), 0);
  });
}

TEST_F(WindowAccesses, compare_and_swap_makes_a_lock) {
  constexpr int kRounds = 20;
  on_each_sort(4096, [&](TestWindow& window) {
    MPI_Win_lock_all(0, window.win);
    const std::int32_t free = 0, taken = self_ + 1;
    for (int i = 0; i < kRounds; ++i) {
      std::int32_t was = -1;
      while (was != free) {
        ASSERT_EQ(MPI_Compare_and_swap(&taken, &free, &was, MPI_INT32_T, 0, window.at(0, 4), window.win), 0);
        ASSERT_EQ(MPI_Win_flush(0, window.win), 0);
      }
      int counted = 0;
      MPI_Get(&counted, 1, MPI_INT, 0, window.at(0, 16), 1, MPI_INT, window.win);
      MPI_Win_flush(0, window.win);
      ++counted;
      MPI_Put(&counted, 1, MPI_INT, 0, window.at(0, 16), 1, MPI_INT, window.win);
      MPI_Win_flush(0, window.win);
      MPI_Fetch_and_op(&free, &was, MPI_INT32_T, 0, window.at(0, 4), MPI_REPLACE, window.win);
      MPI_Win_flush(0, window.win);
      ASSERT_EQ(was, taken);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (self_ == 0) {
      EXPECT_EQ(window.values<int>(1, 16)[0], size_ * kRounds);
    }
  });
}

TEST_F(WindowAccesses, with_requests_end_with_them) {
  on_each_sort(400'000, [&](TestWindow& window) {
    const auto sent = pattern(300'000, self_);
    std::vector<std::uint8_t> got(300'000), old(4);
    const int ones[] = {1};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_SHARED, right_, 0, window.win);
    ASSERT_EQ(
        MPI_Rput(sent.data(), 300'000, MPI_BYTE, right_, window.at(right_, 0), 300'000, MPI_BYTE, window.win, &request),
        0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    MPI_Win_flush(right_, window.win);
    ASSERT_EQ(
        MPI_Rget(got.data(), 300'000, MPI_BYTE, right_, window.at(right_, 0), 300'000, MPI_BYTE, window.win, &request),
        0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(got, sent);
    ASSERT_EQ(MPI_Raccumulate(ones, 1, MPI_INT, right_, window.at(right_, 300'000), 1, MPI_INT, MPI_SUM, window.win,
                              &request),
              0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    int was = -1;
    ASSERT_EQ(MPI_Rget_accumulate(ones, 1, MPI_INT, &was, 1, MPI_INT, right_, window.at(right_, 300'000), 1, MPI_INT,
                                  MPI_SUM, window.win, &request),
              0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(was, 1) << "accumulates of one rank come in their order";
    ASSERT_EQ(MPI_Rput(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, 0, MPI_BYTE, window.win, &request), 0);
    ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
    MPI_Win_unlock(right_, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(window.values<int>(1, 300'000)[0], 2);
  });
}

TEST_F(WindowAccesses, to_nobody_do_nothing) {
  on_each_sort(64, [&](TestWindow& window) {
    MPI_Win_fence(0, window.win);
    EXPECT_EQ(MPI_Put(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, 0, MPI_BYTE, window.win), 0);
    EXPECT_EQ(MPI_Get(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, 0, MPI_BYTE, window.win), 0);
    EXPECT_EQ(MPI_Accumulate(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, MPI_SUM, window.win), 0);
    EXPECT_EQ(MPI_Put(nullptr, 0, MPI_BYTE, right_, window.at(right_, 0), 0, MPI_BYTE, window.win), 0) << "no bytes";
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
  });
}

TEST_F(WindowAccesses, that_are_wrong_are_told_so) {
  on_each_sort(64, [&](TestWindow& window) {
    const std::array<int, 32> sent{};
    MPI_Win win = window.win;
    EXPECT_EQ(MPI_Put(sent.data(), 1, MPI_INT, right_, window.at(right_, 0), 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock_all(0, win);
    EXPECT_EQ(MPI_Put(sent.data(), 1, MPI_INT, size_, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Put(sent.data(), -1, MPI_INT, right_, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Put(sent.data(), 1, MPI_INT, right_, window.at(right_, 0), 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    EXPECT_EQ(MPI_Put(sent.data(), 1, MPI_DATATYPE_NULL, right_, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Accumulate(sent.data(), 1, MPI_FLOAT, right_, window.at(right_, 0), 1, MPI_FLOAT, MPI_BAND, win),
              MPI_ERR_OP);
    EXPECT_EQ(MPI_Accumulate(sent.data(), 1, MPI_INT, right_, window.at(right_, 0), 1, MPI_INT, MPI_OP_NULL, win),
              MPI_ERR_OP);
    // A dynamic window's target finds out itself.
    int outcome = MPI_Put(sent.data(), 17, MPI_INT, right_, window.at(right_, 0), 17, MPI_INT, win);
    if (outcome == MPI_SUCCESS) outcome = MPI_Win_flush(right_, win);
    EXPECT_EQ(outcome, MPI_ERR_RMA_RANGE);
    EXPECT_EQ(MPI_Win_unlock_all(win), 0);
  });
  const test::ErrorsReturned returned(MPI_COMM_SELF);
  EXPECT_EQ(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
}

}  // namespace
}  // namespace brant::mpi
