#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace brant {
namespace {

constexpr std::size_t kBytes = 8192;

TEST(MemoryFile, opened_again_it_is_the_same_memory) {
  const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
  ASSERT_TRUE(file.ok());
  const Result<MemoryFileRecord> record = file->record();
  ASSERT_TRUE(record.ok());
  const Result<MemoryFile> again = MemoryFile::open(*record);
  ASSERT_TRUE(again.ok()) << status_name(again.status());
  EXPECT_NE(again->fd(), file->fd());
  EXPECT_EQ(again->bytes(), kBytes);
  ASSERT_EQ(::pwrite(file->fd(), "brant", 5, 100), 5);
  char got[5] = {};
  ASSERT_EQ(::pread(again->fd(), got, 5, 100), 5);
  EXPECT_EQ(std::string(got, 5), "brant");
}

TEST(MemoryFile, is_as_large_as_the_pages_it_takes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& [wanted, bytes] : {std::pair{std::size_t{1}, page}, {page, page}, {page + 1, 2 * page}}) {
    const Result<MemoryFile> file = MemoryFile::create("test", wanted);
    ASSERT_TRUE(file.ok()) << wanted;
    EXPECT_EQ(file->bytes(), bytes);
    EXPECT_EQ(file->record()->bytes, bytes);
    EXPECT_TRUE(MemoryFile::open(*file->record()).ok());
  }
}

TEST(MemoryFile, sizes_that_cannot_be_are_refused) {
  EXPECT_EQ(MemoryFile::create("test", 0).status(), Status::invalid_argument);
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(MemoryFile::create("test", most).status(), Status::no_memory) << "rounded up it would be nothing";
  EXPECT_EQ(MemoryFile::create("test", most / 2 + 1).status(), Status::no_memory) << "more than a file's offset says";
}

TEST(MemoryFile, two_mappings_show_the_same_bytes_and_outlive_the_file) {
  std::size_t bytes = 0;
  Result<void*> first(Status::not_found), second(Status::not_found);
  {
    const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
    ASSERT_TRUE(file.ok());
    first = file->map();
    const Result<MemoryFile> again = MemoryFile::open(*file->record());
    ASSERT_TRUE(again.ok());
    second = again->map();
    bytes = file->bytes();
  }
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  static_cast<char*>(*first)[bytes - 1] = 'b';
  EXPECT_EQ(static_cast<char*>(*second)[bytes - 1], 'b');
  ::munmap(*first, bytes);
  ::munmap(*second, bytes);
}

TEST(MemoryFile, nobody_can_cut_it_short) {
  const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(::ftruncate(file->fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(file->fd(), 2 * kBytes), -1);
}

TEST(MemoryFile, a_closed_file_is_not_found) {
  MemoryFileRecord record;
  {
    const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
    record = *file->record();
  }
  EXPECT_EQ(MemoryFile::open(record).status(), Status::not_found);
}

TEST(MemoryFile, a_file_number_used_again_is_not_mistaken) {
  MemoryFileRecord record;
  {
    const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
    record = *file->record();
  }
  const Result<MemoryFile> next = MemoryFile::create("test", kBytes);
  ASSERT_EQ(next->fd(), record.fd) << "the test needs the number to be used again";
  EXPECT_EQ(MemoryFile::open(record).status(), Status::not_found);
  // The same for something else than a memory file.
  record.fd = STDOUT_FILENO;
  EXPECT_FALSE(MemoryFile::open(record).ok());
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  record.fd = ends[1];
  EXPECT_EQ(MemoryFile::open(record).status(), Status::not_found);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(MemoryFile, refuses_records_that_are_none) {
  const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
  const MemoryFileRecord good = *file->record();
  MemoryFileRecord bad = good;
  bad.magic = 1;
  EXPECT_EQ(MemoryFile::open(bad).status(), Status::invalid_argument);
  bad = good;
  bad.fd = -1;
  EXPECT_EQ(MemoryFile::open(bad).status(), Status::invalid_argument);
  bad = good;
  bad.bytes = 2 * kBytes;
  EXPECT_EQ(MemoryFile::open(bad).status(), Status::not_found);
  bad = good;
  ++bad.owner.start_time;
  EXPECT_EQ(MemoryFile::open(bad).status(), Status::peer_lost);
  EXPECT_TRUE(MemoryFile::open(good).ok());
}

TEST(MemoryFile, a_file_that_may_shrink_is_refused) {
  const int fd = ::memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, kBytes), 0);
  const Result<MemoryFile> file = MemoryFile::create("test", kBytes);
  MemoryFileRecord record = *file->record();
  struct stat info = {};
  ASSERT_EQ(::fstat(fd, &info), 0);
  record.fd = fd;
  record.inode = static_cast<std::uint64_t>(info.st_ino);
  EXPECT_EQ(MemoryFile::open(record).status(), Status::invalid_argument);
  ::close(fd);
}

}  // namespace
}  // namespace brant
