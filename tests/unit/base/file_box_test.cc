#include "base/file_box.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace brant {
namespace {

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/// Reads as `text`.
UniqueFd file_of(const std::string& text) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_of(const UniqueFd& file) {
  std::string text(64, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

/// Runs in a child process, which must succeed.
template <typename Act>
pid_t in_another_process(Act&& act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return child;
}

TEST(FileBox, gives_the_file_that_another_process_handed_over_and_has_closed) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  const pid_t owner = ::getpid();
  const pid_t from = in_another_process([&] {
    return FileBox::hand_over(box->name(), owner, 7, file_of("seven").get()) == Status::ok &&
           FileBox::hand_over(box->name(), owner, 8, file_of("eight").get()) == Status::ok;
  });
  EXPECT_EQ(box->take(from, 9).status(), Status::not_found);
  const Result<UniqueFd> eight = box->take(from, 8), seven = box->take(from, 7);
  ASSERT_TRUE(eight.ok() && seven.ok());
  EXPECT_EQ(text_of(*seven), "seven");
  EXPECT_EQ(text_of(*eight), "eight");
  EXPECT_NE(::fcntl(seven->get(), F_GETFD) & FD_CLOEXEC, 0) << "programs that are started do not inherit it";
  EXPECT_EQ(box->take(from, 7).status(), Status::not_found) << "it is taken once";
}

TEST(FileBox, what_one_process_sent_is_not_taken_for_the_file_of_another) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  ASSERT_EQ(FileBox::hand_over(box->name(), ::getpid(), 1, file_of("mine").get()), Status::ok);
  EXPECT_EQ(box->take(::getppid(), 1).status(), Status::not_found);
  EXPECT_TRUE(box->take(::getpid(), 1).ok());
}

TEST(FileBox, nothing_is_handed_to_a_box_of_another_process_or_to_none) {
  std::optional<Result<FileBox>> box(FileBox::open());
  ASSERT_TRUE(box->ok());
  const FileBox::Name name = (*box)->name();
  const UniqueFd file = file_of("secret");
  EXPECT_EQ(FileBox::hand_over(name, ::getppid(), 1, file.get()), Status::not_found);
  EXPECT_EQ((*box)->take(::getpid(), 1).status(), Status::not_found);
  box.reset();
  EXPECT_EQ(FileBox::hand_over(name, ::getpid(), 1, file.get()), Status::not_found);
}

TEST(FileBox, whoever_connects_and_sends_nothing_or_something_else_holds_nobody_up) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, box->name().data(), box->name().size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + ::strnlen(box->name().data(), box->name().size()));
  std::vector<UniqueFd> strangers;
  for (const char* text : {"", "hi", "a word of 8", "12345678"}) {
    UniqueFd stranger(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    if (*text != '\0') {
      EXPECT_GT(::send(stranger.get(), text, std::strlen(text), MSG_NOSIGNAL), 0);
    }
    strangers.push_back(std::move(stranger));
  }
  ASSERT_EQ(FileBox::hand_over(box->name(), ::getpid(), 5, file_of("five").get()), Status::ok);
  const Result<UniqueFd> file = box->take(::getpid(), 5);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(*file), "five");
}

TEST(FileBox, keeps_a_bounded_number_of_files_and_none_of_a_process_that_is_gone) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  const std::ptrdiff_t before = open_files();
  const UniqueFd file = file_of("many");
  for (std::uint64_t number = 0; number < 3 * FileBox::kKeptMax; ++number) {
    ASSERT_EQ(FileBox::hand_over(box->name(), ::getpid(), number, file.get()), Status::ok);
    EXPECT_EQ(box->take(::getpid(), ~number).status(), Status::not_found);
  }
  EXPECT_EQ(open_files() - before, static_cast<std::ptrdiff_t>(FileBox::kKeptMax) + 1);
  EXPECT_FALSE(box->take(::getpid(), 0).ok()) << "the oldest go first";
  EXPECT_TRUE(box->take(::getpid(), 3 * FileBox::kKeptMax - 1).ok());
  box->discard(::getppid());
  EXPECT_TRUE(box->take(::getpid(), 3 * FileBox::kKeptMax - 2).ok());
  box->discard(::getpid());
  EXPECT_EQ(open_files() - before, 1);
}

TEST(FileBox, one_that_nobody_empties_refuses_and_does_not_block) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  const UniqueFd file = file_of("full");
  Status status = Status::ok;
  std::uint64_t number = 0;
  for (; status == Status::ok && number < 1000; ++number) {
    status = FileBox::hand_over(box->name(), ::getpid(), number, file.get());
  }
  EXPECT_EQ(status, Status::limit_reached);
  EXPECT_TRUE(box->take(::getpid(), number - 2).ok());
  EXPECT_EQ(FileBox::hand_over(box->name(), ::getpid(), number, file.get()), Status::ok) << "there is room again";
}

TEST(FileBox, a_process_without_descriptors_is_told_so) {
  Result<FileBox> box = FileBox::open();
  ASSERT_TRUE(box.ok());
  const UniqueFd file = file_of("late");
  ASSERT_EQ(FileBox::hand_over(box->name(), ::getpid(), 1, file.get()), Status::ok);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status taken = box->take(::getpid(), 1).status();
  const Status handed = FileBox::hand_over(box->name(), ::getpid(), 2, file.get());
  const Status opened = FileBox::open().status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(taken, Status::limit_reached);
  EXPECT_EQ(handed, Status::limit_reached);
  EXPECT_EQ(opened, Status::limit_reached);
  EXPECT_TRUE(box->take(::getpid(), 1).ok()) << "it is still there";
}

}  // namespace
}  // namespace brant
