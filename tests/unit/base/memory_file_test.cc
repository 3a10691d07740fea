#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

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
