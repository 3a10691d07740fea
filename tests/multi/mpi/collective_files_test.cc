// Runs as every rank of a job: collective accesses to small runs of many ranks that lie among each other, which ranks
// exchange before one of them writes what lies together.
#include <algorithm>
#include <numeric>
#include <random>

#include "brant/core/runtime.h"
#include "support/effort.h"
#include "test_file.h"

namespace brant::mpi {
namespace {

using test::count_of;
using test::TestFile;
using test::TestType;

/// The ranks of one host read by themselves, unless the program says that it wants them to exchange.
class Exchanging {
 public:
  Exchanging() {
    MPI_Info_create(&info);
    MPI_Info_set(info, "collective_buffering", "true");
  }
  ~Exchanging() { MPI_Info_free(&info); }
  Exchanging(const Exchanging&) = delete;
  Exchanging& operator=(const Exchanging&) = delete;

  MPI_Info info = MPI_INFO_NULL;
};

class CollectiveFiles : public testing::Test {
 protected:
  /// Blocks of `block` numbers that go round the ranks, of which `slots` make a row; there may be more than ranks.
  void set_view(const TestFile& file, int block, int slots) const {
    const TestType row(TestType::resized(TestType::vector(1, block, block, MPI_INT), MPI_Aint{4} * block * slots));
    ASSERT_EQ(MPI_File_set_view(file.fh, MPI_Offset{4} * block * self_, MPI_INT, row.type, "native", exchanging_.info),
              0);
  }
  /// What a rank writes at a place of its view.
  static int value(int rank, std::size_t place) { return rank * 100'000'000 + static_cast<int>(place); }
  [[nodiscard]] std::vector<int> values(int rank, std::size_t count) const {
    std::vector<int> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = value(rank, i);
    return made;
  }
  static int write_all(const TestFile& file, const std::vector<int>& sent) {
    return MPI_File_write_at_all(file.fh, 0, sent.data(), static_cast<int>(sent.size()), MPI_INT, MPI_STATUS_IGNORE);
  }
  const int self_ = test::rank(), size_ = test::size();
  const Exchanging exchanging_;
};

TEST_F(CollectiveFiles, have_the_blocks_of_all_ranks_where_their_views_are) {
  for (const int block : {1, 3, 100}) {
    const TestFile file;
    set_view(file, block, size_);
    constexpr std::size_t kCount = 3000;
    EXPECT_EQ(write_all(file, values(self_, kCount)), 0);
    file.meet();
    const std::vector<int> all = file.numbers();
    ASSERT_EQ(all.size(), kCount * static_cast<std::size_t>(size_));
    const auto row = static_cast<std::size_t>(block) * static_cast<std::size_t>(size_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t within = i % row, width = static_cast<std::size_t>(block);
      ASSERT_EQ(all[i], value(static_cast<int>(within / width), i / row * width + within % width)) << i;
    }
    std::vector<int> found(kCount);
    MPI_Status status;
    EXPECT_EQ(MPI_File_read_all(file.fh, found.data(), kCount, MPI_INT, &status), 0);
    EXPECT_EQ(count_of(status, MPI_INT), static_cast<int>(kCount));
    EXPECT_EQ(found, values(self_, kCount));
  }
}

/// Of several rounds, from a place that is no multiple of anything.
TEST_F(CollectiveFiles, go_by_in_rounds) {
  const std::size_t count = brant::test::effort(2'300'001u, 1'200'001u);
  const TestFile file;
  set_view(file, 5, size_);
  const std::vector<int> sent = values(self_, count);
  EXPECT_EQ(MPI_File_write_at_all(file.fh, 13, sent.data(), static_cast<int>(count), MPI_INT, MPI_STATUS_IGNORE), 0);
  file.meet();
  std::vector<int> found(count);
  MPI_Status status;
  EXPECT_EQ(MPI_File_read_at(file.fh, 13, found.data(), static_cast<int>(count), MPI_INT, &status), 0);
  EXPECT_TRUE(found == sent) << "read by each rank alone";
  std::ranges::fill(found, -1);
  EXPECT_EQ(MPI_File_read_at_all(file.fh, 13, found.data(), static_cast<int>(count), MPI_INT, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), static_cast<int>(count));
  EXPECT_TRUE(found == sent) << "read together";
}

TEST_F(CollectiveFiles, leave_what_lies_between_as_it_is) {
  const TestFile file;
  const std::vector<int> before(static_cast<std::size_t>(4000 * (size_ + 1)), -7);
  if (self_ == 0) {
    EXPECT_EQ(MPI_File_write_at(file.fh, 0, before.data(), 4000 * (size_ + 1), MPI_INT, MPI_STATUS_IGNORE), 0);
  }
  file.meet();
  set_view(file, 2, size_ + 1);  // a slot that nobody has
  EXPECT_EQ(write_all(file, values(self_, 2000)), 0);
  file.meet();
  const std::vector<int> all = file.numbers();
  const auto row = 2 * (static_cast<std::size_t>(size_) + 1);
  for (std::size_t i = 0; i < std::min(1000 * row - 2, all.size()); ++i) {
    const std::size_t slot = i % row / 2;
    const int expected = slot == row / 2 - 1 ? -7 : value(static_cast<int>(slot), i / row * 2 + i % 2);
    ASSERT_EQ(all[i], expected) << i;
  }
}

TEST_F(CollectiveFiles, end_where_the_file_does) {
  const TestFile file;
  set_view(file, 1, size_);
  EXPECT_EQ(write_all(file, values(self_, 1000)), 0);
  file.meet();
  EXPECT_EQ(MPI_File_set_size(file.fh, MPI_Offset{4} * (500 * size_ + 1) + 2), 0);
  std::vector<int> found(1000, -1);
  MPI_Status status;
  EXPECT_EQ(MPI_File_read_at_all(file.fh, 0, found.data(), 1000, MPI_INT, &status), 0);
  int bytes = -1;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  EXPECT_EQ(bytes, 2000 + (self_ == 0 ? 4 : 0) + (self_ == 1 ? 2 : 0));
  EXPECT_EQ(found[499], value(self_, 499));
  EXPECT_EQ(found[501], -1) << "what was not read is as it was";
}

TEST_F(CollectiveFiles, need_not_have_data_of_all) {
  const TestFile file;
  set_view(file, 1, size_);
  const std::size_t own = self_ == 1 ? 0 : 500 + 100 * static_cast<std::size_t>(self_);
  EXPECT_EQ(write_all(file, values(self_, own)), 0);
  file.meet();
  std::vector<int> found(own, -1);
  EXPECT_EQ(MPI_File_read_all(file.fh, found.data(), static_cast<int>(own), MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(found, values(self_, own));
}

TEST_F(CollectiveFiles, go_on_where_the_call_of_one_rank_is_wrong) {
  const TestFile file;
  set_view(file, 1, size_);
  const std::vector<int> sent = values(self_, 1000);
  MPI_Datatype type = self_ == 1 ? MPI_DATATYPE_NULL : MPI_INT;
  const int error = MPI_File_write_all(file.fh, sent.data(), 1000, type, MPI_STATUS_IGNORE);
  EXPECT_EQ(error, self_ == 1 ? int{MPI_ERR_TYPE} : int{MPI_SUCCESS});
  std::vector<int> found(1000);
  MPI_Status status;
  EXPECT_EQ(MPI_File_read_at(file.fh, 0, found.data(), 1000, MPI_INT, &status), 0);
  if (self_ != 1) {
    EXPECT_EQ(found, sent);
  }
}

TEST_F(CollectiveFiles, that_are_full_say_so_to_all) {
  MPI_File full = MPI_FILE_NULL;
  ASSERT_EQ(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &full), 0);
  const TestType row(TestType::resized(MPI_INT, MPI_Aint{4} * size_));
  ASSERT_EQ(MPI_File_set_view(full, MPI_Offset{4} * self_, MPI_INT, row.type, "native", exchanging_.info), 0);
  const std::vector<int> sent(1000);
  EXPECT_EQ(MPI_File_write_all(full, sent.data(), 1000, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
  EXPECT_EQ(MPI_File_close(&full), 0);
}

TEST_F(CollectiveFiles, are_not_exchanged_where_a_hint_says_so) {
  const TestFile file;
  set_view(file, 1, size_);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "collective_buffering", "false");
  EXPECT_EQ(MPI_File_set_info(file.fh, info), 0);
  MPI_Info_free(&info);
  EXPECT_EQ(write_all(file, values(self_, 1000)), 0);
  std::vector<int> found(1000);
  EXPECT_EQ(MPI_File_read_all(file.fh, found.data(), 1000, MPI_INT, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(found, values(self_, 1000));
}

/// Rows that ranks share by chance, against what each reads by itself.
TEST_F(CollectiveFiles, are_the_same_with_and_without_others) {
  std::mt19937 random(7);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int turn = 0; turn < 30; ++turn) {
    const TestFile file;
    // The same for all, so that each knows what the others do.
    std::vector<int> owner(static_cast<std::size_t>(number(size_, 60)));
    for (int& who : owner) who = number(0, size_);  // the last one is nobody
    std::vector<int> places;
    for (std::size_t i = 0; i < owner.size(); ++i) {
      if (owner[i] == self_) places.push_back(static_cast<int>(i));
    }
    MPI_Datatype own = MPI_DATATYPE_NULL;
    MPI_Type_create_indexed_block(static_cast<int>(places.size()), 1, places.data(), MPI_SHORT, &own);
    const TestType row(TestType::resized(own, static_cast<MPI_Aint>(2 * owner.size())));
    ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_SHORT, row.type, "native", exchanging_.info), 0);
    const std::size_t count = places.size() * 200;
    const std::vector<std::uint8_t> sent = test::pattern(2 * count, turn * size_ + self_);
    std::vector<std::uint8_t> found(2 * count);
    const int shorts = static_cast<int>(count);
    ASSERT_EQ(MPI_File_write_all_begin(file.fh, sent.data(), shorts, MPI_SHORT), 0);
    ASSERT_EQ(MPI_File_write_all_end(file.fh, sent.data(), MPI_STATUS_IGNORE), 0);
    file.meet();
    ASSERT_EQ(MPI_File_read_at(file.fh, 0, found.data(), shorts, MPI_SHORT, MPI_STATUS_IGNORE), 0);
    ASSERT_EQ(found, sent) << turn;
    std::ranges::fill(found, std::uint8_t{0});
    ASSERT_EQ(MPI_File_read_at_all(file.fh, 0, found.data(), shorts, MPI_SHORT, MPI_STATUS_IGNORE), 0);
    ASSERT_EQ(found, sent) << turn;
  }
}

TEST_F(CollectiveFiles, take_and_give_memory_of_a_device) {
  const MemoryKind kind = runtime().device_kind();
  if (kind == MemoryKind::host) GTEST_SKIP() << "there is no device";
  const TestFile file;
  set_view(file, 1, size_);
  constexpr std::size_t kCount = 50'000, kBytes = kCount * 4;
  const Memory source = runtime().allocate(kind, kBytes), landing = runtime().allocate(kind, kBytes);
  const std::vector<int> sent = values(self_, kCount);
  std::vector<int> found(kCount);
  runtime().copy({source.data(), kBytes, kind}, {sent.data(), kBytes, MemoryKind::host});
  EXPECT_EQ(MPI_File_write_all(file.fh, source.data(), kCount, MPI_INT, MPI_STATUS_IGNORE), 0);
  file.meet();
  EXPECT_EQ(MPI_File_read_at_all(file.fh, 0, landing.data(), kCount, MPI_INT, MPI_STATUS_IGNORE), 0);
  runtime().copy({found.data(), kBytes, MemoryKind::host}, {landing.data(), kBytes, kind});
  EXPECT_EQ(found, sent);
}

}  // namespace
}  // namespace brant::mpi
