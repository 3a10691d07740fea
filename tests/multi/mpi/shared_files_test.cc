// Runs as every rank of a job: file pointers that ranks share, accesses in the order of ranks, and atomic files.
#include <glob.h>
#include <sys/mount.h>

#include <algorithm>
#include <numeric>

#include "test_file.h"

namespace brant::mpi {
namespace {

using test::count_of;
using test::TestFile;
using test::TestType;

/// A host of its own also has memory of files of its own. Nothing that is mounted here is seen outside.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): before main, or not at all
const bool kOwnFileMemory = test::kOwnHost && ::unshare(CLONE_NEWNS) == 0 &&
                            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            ::mount("none", "/dev/shm", "tmpfs", 0, nullptr) == 0;

/// How many small files with shared pointers lie beside a file.
std::size_t pointers_beside(const std::string& path) {
  const std::size_t base = path.rfind('/') + 1;
  const std::string pattern = path.substr(0, base) + "." + path.substr(base) + ".brant-pointer-*";
  glob_t found{};
  static_cast<void>(::glob(pattern.c_str(), GLOB_PERIOD, nullptr, &found));
  const std::size_t count = found.gl_pathc;
  ::globfree(&found);
  return count;
}

class SharedFiles : public testing::Test {
 protected:
  static MPI_Offset shared_position(MPI_File fh) {
    MPI_Offset position = -1;
    EXPECT_EQ(MPI_File_get_position_shared(fh, &position), 0);
    return position;
  }
  const int self_ = test::rank(), size_ = test::size();
};

TEST_F(SharedFiles, give_each_access_a_place_of_its_own) {
  const TestFile file;
  ASSERT_EQ(MPI_File_set_view(file.fh, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  constexpr int kTurns = 50;
  for (int i = 0; i < kTurns; ++i) {
    const int record[2] = {self_, i};
    MPI_Status status;
    ASSERT_EQ(MPI_File_write_shared(file.fh, record, 2, MPI_INT, &status), 0);
    EXPECT_EQ(count_of(status, MPI_INT), 2);
  }
  file.meet();
  EXPECT_EQ(shared_position(file.fh), 2 * kTurns * size_);
  const std::vector<int> all = file.numbers();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(2 + 2 * kTurns * size_));
  std::vector<int> next(static_cast<std::size_t>(size_));
  for (std::size_t i = 2; i < all.size(); i += 2) {
    ASSERT_TRUE(all[i] >= 0 && all[i] < size_);
    EXPECT_EQ(all[i + 1], next[static_cast<std::size_t>(all[i])]++) << "those of a rank come in their order";
  }
  file.meet();
  // Each record is read by one rank.
  EXPECT_EQ(MPI_File_seek_shared(file.fh, 0, MPI_SEEK_SET), 0);
  int mine = 0, sum = 0;
  for (MPI_Status status;; ++mine) {
    int record[2] = {-1, -1};
    ASSERT_EQ(MPI_File_read_shared(file.fh, record, 2, MPI_INT, &status), 0);
    if (count_of(status, MPI_INT) == 0) break;
  }
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(sum, kTurns * size_);
}

TEST_F(SharedFiles, are_accessed_in_the_order_of_ranks) {
  const TestFile file;
  ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  const std::vector<int> sent(static_cast<std::size_t>(self_ + 1), self_);
  const int all = size_ * (size_ + 1) / 2;
  MPI_Status status;
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_EQ(MPI_File_write_ordered(file.fh, sent.data(), self_ + 1, MPI_INT, &status), 0);
  EXPECT_EQ(MPI_File_write_ordered_begin(file.fh, sent.data(), self_ + 1, MPI_INT), 0);
  EXPECT_EQ(MPI_File_write_ordered_end(file.fh, sent.data(), &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), self_ + 1);
  file.meet();
  std::vector<int> row;
  for (int i = 0; i < size_; ++i) row.insert(row.end(), static_cast<std::size_t>(i) + 1, i);
  const std::vector<int> found = file.numbers();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(4 * all));
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], row[i % row.size()]) << i;
  file.meet();
  EXPECT_EQ(MPI_File_seek_shared(file.fh, MPI_Offset{-2} * all, MPI_SEEK_END), 0);
  std::vector<int> taken(sent.size(), -1);
  EXPECT_EQ(MPI_File_read_ordered(file.fh, taken.data(), self_ + 1, MPI_INT, &status), 0);
  EXPECT_EQ(taken, sent);
  std::fill(taken.begin(), taken.end(), -1);
  EXPECT_EQ(MPI_File_read_ordered_begin(file.fh, taken.data(), self_ + 1, MPI_INT), 0);
  EXPECT_EQ(MPI_File_read_ordered_end(file.fh, taken.data(), &status), 0);
  EXPECT_EQ(taken, sent);
  EXPECT_EQ(shared_position(file.fh), 4 * all);
}

TEST_F(SharedFiles, have_a_pointer_that_all_move_together) {
  const TestFile file;
  MPI_File_set_size(file.fh, 400);
  EXPECT_EQ(shared_position(file.fh), 0);
  file.meet();
  EXPECT_EQ(MPI_File_seek_shared(file.fh, 100, MPI_SEEK_SET), 0);
  EXPECT_EQ(shared_position(file.fh), 100);
  file.meet();
  EXPECT_EQ(MPI_File_seek_shared(file.fh, -10, MPI_SEEK_CUR), 0);
  EXPECT_EQ(shared_position(file.fh), 90);
  file.meet();
  EXPECT_EQ(MPI_File_seek_shared(file.fh, 0, MPI_SEEK_END), 0);
  EXPECT_EQ(shared_position(file.fh), 400);
  EXPECT_EQ(MPI_File_seek_shared(file.fh, -401, MPI_SEEK_END), MPI_ERR_ARG);
  if (size_ > 1) {
    EXPECT_EQ(MPI_File_seek_shared(file.fh, self_, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
  }
  EXPECT_EQ(shared_position(file.fh), 400);
  MPI_Offset own = -1;
  EXPECT_EQ(MPI_File_get_position(file.fh, &own), 0);
  EXPECT_EQ(own, 0) << "the rank's own is another one";
  ASSERT_EQ(MPI_File_set_view(file.fh, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  EXPECT_EQ(shared_position(file.fh), 0) << "of the new view";
}

TEST_F(SharedFiles, keep_their_pointer_where_all_ranks_see_it) {
  std::string path;
  {
    const TestFile file;
    path = file.path();
    EXPECT_EQ(pointers_beside(path), 0u) << "nobody has used it";
    file.meet();
    EXPECT_EQ(MPI_File_seek_shared(file.fh, 5, MPI_SEEK_SET), 0);
    EXPECT_EQ(shared_position(file.fh), 5);
    EXPECT_EQ(pointers_beside(path), kOwnFileMemory && size_ > 1 ? 1u : 0u);
    file.meet();
  }
  EXPECT_EQ(pointers_beside(path), 0u) << "it goes with the file";
}

TEST_F(SharedFiles, that_were_opened_twice_have_two_pointers) {
  const TestFile file;
  MPI_File again = MPI_FILE_NULL;
  ASSERT_EQ(MPI_File_open(MPI_COMM_WORLD, file.path().c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &again), 0);
  EXPECT_EQ(MPI_File_seek_shared(again, 7, MPI_SEEK_SET), 0);
  EXPECT_EQ(shared_position(file.fh), 0);
  EXPECT_EQ(shared_position(again), 7);
  EXPECT_EQ(MPI_File_close(&again), 0);
}

TEST_F(SharedFiles, that_are_sequential_have_their_shared_pointer_alone) {
  const TestFile file(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
  EXPECT_EQ(MPI_File_write(file.fh, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(MPI_File_seek(file.fh, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(MPI_File_seek_shared(file.fh, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(MPI_File_set_size(file.fh, 0), MPI_ERR_UNSUPPORTED_OPERATION);
  const char letter = static_cast<char>('a' + self_);
  EXPECT_EQ(MPI_File_write_ordered(file.fh, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  ASSERT_EQ(MPI_File_set_view(file.fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
  EXPECT_EQ(MPI_File_write_ordered(file.fh, &self_, 1, MPI_INT, MPI_STATUS_IGNORE), 0);
  file.meet();
  EXPECT_EQ(file.size(), 5 * size_);
  EXPECT_EQ(file.contents()[0], 'a');
  EXPECT_EQ(file.contents()[static_cast<std::size_t>(5 * size_ - 4)], size_ - 1);
}

TEST_F(SharedFiles, are_written_and_read_without_blocking) {
  const TestFile file;
  const std::vector<int> sent(100, self_);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  EXPECT_EQ(MPI_File_iwrite_shared(file.fh, sent.data(), 100, MPI_INT, &request), 0);
  EXPECT_EQ(MPI_Wait(&request, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 100);
  file.meet();
  EXPECT_EQ(MPI_File_seek_shared(file.fh, 0, MPI_SEEK_SET), 0);
  std::vector<int> found(100, -1);
  EXPECT_EQ(MPI_File_iread_shared(file.fh, found.data(), 100, MPI_INT, &request), 0);
  EXPECT_EQ(MPI_Wait(&request, &status), 0);
  EXPECT_EQ(count_of(status, MPI_INT), 100);
  EXPECT_TRUE(std::ranges::all_of(found, [&](int value) { return value == found[0]; }));
}

/// Ranks write whole rows over each other, with gaps: a reader never sees two in one.
TEST_F(SharedFiles, that_are_atomic_are_changed_as_a_whole) {
  const TestFile file;
  constexpr int kNumbers = 5000;
  const TestType every_other(TestType::resized(MPI_INT, 8));
  ASSERT_EQ(MPI_File_set_view(file.fh, 0, MPI_INT, every_other.type, "native", MPI_INFO_NULL), 0);
  EXPECT_EQ(MPI_File_set_atomicity(file.fh, 1), 0);
  int atomic = 0;
  EXPECT_EQ(MPI_File_get_atomicity(file.fh, &atomic), 0);
  EXPECT_EQ(atomic, 1);
  std::vector<int> row(kNumbers, self_), found(kNumbers);
  EXPECT_EQ(MPI_File_write_at(file.fh, 0, row.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE), 0);
  int torn = 0;
  for (int turn = 0; turn < 50; ++turn) {
    std::fill(row.begin(), row.end(), size_ * turn + self_);
    EXPECT_EQ(MPI_File_write_at(file.fh, 0, row.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(MPI_File_read_at(file.fh, 0, found.data(), kNumbers, MPI_INT, MPI_STATUS_IGNORE), 0);
    if (std::ranges::any_of(found, [&](int value) { return value != found[0]; })) ++torn;
  }
  EXPECT_EQ(torn, 0);
  file.meet();
  if (size_ > 1) {
    EXPECT_EQ(MPI_File_set_atomicity(file.fh, self_ == 0 ? 1 : 0), MPI_ERR_NOT_SAME);
  }
}

}  // namespace
}  // namespace brant::mpi
