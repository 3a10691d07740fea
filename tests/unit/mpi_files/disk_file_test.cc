// What a file of the system says when it is wrong, and what its locks keep apart.
#include "models/mpi/files/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "models/mpi/call_error.h"
#include "models/mpi/files/shared_pointer.h"
#include "support/temporary_folder.h"

namespace brant::mpi::test {
namespace {

class DiskFiles : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const char* name) const { return folder_.path() + "/" + name; }
  static int error_of_opening(const std::string& name, int flags) {
    try {
      const DiskFile file(name, flags, 0600);
    } catch (const CallError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      return error.error_class();
    }
    return MPI_SUCCESS;
  }
  brant::test::TemporaryFolder folder_;
};

TEST_F(DiskFiles, that_cannot_be_opened_say_why) {
  EXPECT_EQ(error_of_opening(path("new"), O_RDONLY), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(error_of_opening(path("new"), O_RDWR | O_CREAT | O_EXCL), MPI_SUCCESS);
  EXPECT_EQ(error_of_opening(path("new"), O_RDWR | O_CREAT | O_EXCL), MPI_ERR_FILE_EXISTS);
  EXPECT_EQ(error_of_opening(path("new/in_a_file"), O_RDONLY), MPI_ERR_BAD_FILE);
  EXPECT_EQ(error_of_opening(folder_.path(), O_RDONLY), MPI_ERR_BAD_FILE);
  EXPECT_EQ(error_of_opening(std::string(300, 'x'), O_RDONLY), MPI_ERR_BAD_FILE);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of_opening(path("pipe"), O_RDONLY), MPI_ERR_UNSUPPORTED_OPERATION) << "and nobody waits for it";
}

TEST_F(DiskFiles, that_are_read_at_their_end_give_what_there_is) {
  const DiskFile file(path("file"), O_RDWR | O_CREAT, 0600);
  std::array<std::byte, 100> bytes{};
  EXPECT_EQ(file.read(0, bytes), 0u);
  file.write(50, std::span(bytes).first(10));
  EXPECT_EQ(file.size(), 60);
  EXPECT_EQ(file.read(0, bytes), 60u);
  EXPECT_EQ(file.read(55, bytes), 5u);
  file.preallocate(1000);
  EXPECT_EQ(file.size(), 1000);
  file.preallocate(10);
  EXPECT_EQ(file.size(), 1000) << "it never gets shorter so";
}

TEST_F(DiskFiles, that_refuse_an_access_name_the_bytes) {
  const DiskFile writer(path("file"), O_WRONLY | O_CREAT, 0600);
  std::array<std::byte, 100> bytes{};
  try {
    static_cast<void>(writer.read(4096, bytes));
    FAIL() << "it is open for writing";
  } catch (const CallError& error) {
    EXPECT_EQ(error.error_class(), MPI_ERR_IO);
    EXPECT_NE(std::string(error.what()).find("100 bytes at offset 4096"), std::string::npos) << error.what();
  }
}

/// Locks are of open files: two of one process exclude each other as those of two processes do.
TEST_F(DiskFiles, that_are_locked_keep_others_out) {
  SharedPointer first(path("pointer"), 7), second(path("pointer"), 7);
  EXPECT_EQ(first.value(), 7);
  constexpr MPI_Offset kTurns = 2000;
  const auto advance = [](SharedPointer& pointer) {
    for (MPI_Offset i = 0; i < kTurns; ++i) static_cast<void>(pointer.advance(3));
  };
  std::thread other([&] { advance(second); });
  advance(first);
  other.join();
  EXPECT_EQ(first.value(), 7 + kTurns * 6);
  second.set(1);
  EXPECT_EQ(first.advance(1), 1);
  EXPECT_THROW(static_cast<void>(first.advance(INT64_MAX)), CallError);
  EXPECT_EQ(first.value(), 2);
}

TEST_F(DiskFiles, leave_no_pointer_behind) {
  SharedPointer pointer(path("pointer"), 5);
  pointer.set(9);
  pointer.remove();
  pointer.start_over();
  EXPECT_EQ(pointer.value(), 0);
  pointer.remove();
  EXPECT_EQ(folder_.files(), 0u);
}

TEST_F(DiskFiles, have_no_pointer_where_nobody_may_write) {
  SharedPointer pointer("/proc/no/such/folder", 0);
  EXPECT_THROW(static_cast<void>(pointer.value()), CallError);
}

}  // namespace
}  // namespace brant::mpi::test
