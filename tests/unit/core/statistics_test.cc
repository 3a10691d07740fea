#include "core/observe/statistics.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "core/observe/statistics_folder.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace brant {
namespace {

namespace fs = std::filesystem;
using test::ScopedVariable;
using test::TemporaryFolder;

port::JobInfo some_job() {
  port::JobInfo job;
  job.rank = 1;
  job.size = 3;
  job.job_id = "the job";
  job.launcher = "test";
  return job;
}

TEST(Tally, counts_up) {
  Tally tally;
  tally.add();
  tally.add(10);
  EXPECT_EQ(tally.read(), 11u);
}

TEST(Statistics, without_publishing_count_for_themselves) {
  Statistics statistics;
  EXPECT_TRUE(statistics.file().empty());
  statistics.counters().failures.add(3);
  EXPECT_EQ(statistics.counters().failures.read(), 3u);
}

TEST(Statistics, lie_in_a_file_of_one_page_that_goes_with_them) {
  const TemporaryFolder folder;
  std::string file;
  {
    Statistics statistics(some_job(), folder.path());
    file = statistics.file();
    ASSERT_EQ(fs::path(file).parent_path(), folder.path());
    EXPECT_EQ(fs::file_size(file), StatisticsPage::kFileBytes);
    struct stat info = {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
    EXPECT_EQ(folder.files(), 1u) << "no draft is left";
    EXPECT_EQ(owner_of_statistics_file(fs::path(file).filename().native()), *own_process_mark());
    // Seen through the file, as other processes see it.
    statistics.counters().path(Path::shm).bytes_sent.add(77);
    std::ifstream stream(file, std::ios::binary);
    StatisticsPage seen;
    stream.read(reinterpret_cast<char*>(&seen), sizeof(seen));
    EXPECT_EQ(seen.header.magic, StatisticsHeader::kMagic);
    EXPECT_EQ(seen.header.rank, 1);
    EXPECT_STREQ(seen.header.job_id, "the job");
    EXPECT_EQ(seen.counters.path(Path::shm).bytes_sent.read(), 77u);
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST(Statistics, are_locked_as_long_as_they_are_published) {
  const TemporaryFolder folder;
  std::optional<Statistics> statistics;
  statistics.emplace(some_job(), folder.path());
  const UniqueFd page(::open(statistics->file().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(page.get(), LOCK_SH | LOCK_NB), 0);
  EXPECT_EQ(errno, EWOULDBLOCK);
  statistics.reset();
  EXPECT_EQ(::flock(page.get(), LOCK_SH | LOCK_NB), 0);
}

TEST(Statistics, of_two_engines_in_one_process_are_two_files) {
  const TemporaryFolder folder;
  const Statistics first(some_job(), folder.path());
  const Statistics second(some_job(), folder.path());
  EXPECT_EQ(folder.files(), 2u);
}

TEST(Statistics, texts_that_are_too_long_are_cut) {
  const TemporaryFolder folder;
  port::JobInfo job = some_job();
  job.job_id = std::string(1000, 'x');
  const Statistics statistics(job, folder.path());
  std::ifstream stream(statistics.file(), std::ios::binary);
  StatisticsHeader header;
  stream.read(reinterpret_cast<char*>(&header), sizeof(header));
  EXPECT_EQ(std::string(header.job_id), std::string(sizeof(header.job_id) - 1, 'x'));
}

TEST(Statistics, that_cannot_be_published_still_count) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "x";
  for (const std::string& bad : {std::string("/proc/brant"), file, folder.path() + "/missing/deeper"}) {
    Statistics statistics(some_job(), bad);
    EXPECT_TRUE(statistics.file().empty()) << bad;
    statistics.counters().sleeps.add();
    EXPECT_EQ(statistics.counters().sleeps.read(), 1u);
  }
}

TEST(Statistics, of_the_parent_stay_when_a_forked_child_ends) {
  const TemporaryFolder folder;
  std::optional<Statistics> statistics;
  statistics.emplace(some_job(), folder.path());
  const pid_t child = ::fork();
  if (child == 0) {
    statistics.reset();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(statistics->file()));
}

TEST(StatisticsFolder, candidates_are_absolute_and_follow_the_environment) {
  {
    const ScopedVariable absolute("XDG_RUNTIME_DIR", "/somewhere");
    EXPECT_EQ(statistics_folders().front(), "/somewhere/brant");
  }
  const ScopedVariable relative("XDG_RUNTIME_DIR", "relative");
  const std::vector<std::string> folders = statistics_folders();
  const std::string user = std::to_string(::geteuid());
  EXPECT_NE(std::find(folders.begin(), folders.end(), "/dev/shm/brant-" + user), folders.end());
  for (const std::string& folder : folders) {
    EXPECT_EQ(folder.front(), '/') << folder;
    EXPECT_EQ(std::count(folders.begin(), folders.end(), folder), 1) << folder;
  }
}

TEST(StatisticsFolder, of_others_or_open_to_others_is_not_trusted) {
  const TemporaryFolder above;
  const std::string folder = above.path() + "/brant";
  EXPECT_EQ(make_statistics_folder(folder), "");
  EXPECT_EQ(make_statistics_folder(folder), "") << "a second process finds it";
  struct stat info = {};
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ::chmod(folder.c_str(), 0770);
  EXPECT_NE(make_statistics_folder(folder).find("open to other users (mode 770"), std::string::npos);
  fs::create_directory_symlink(above.path(), above.path() + "/link");
  EXPECT_NE(why_untrusted(above.path() + "/link").find("is no folder"), std::string::npos);
  EXPECT_NE(why_untrusted(above.path() + "/missing"), "");
  if (::geteuid() != 0) {
    EXPECT_NE(why_untrusted("/proc/1").find("belongs to user 0"), std::string::npos);
  }
}

TEST(StatisticsFolder, names_tell_their_process_and_other_names_none) {
  const ProcessMark mark{.start_time = 123456789012, .pid_namespace = 4026531836, .pid = 42};
  const std::string name = statistics_file_name(mark, 7);
  EXPECT_EQ(owner_of_statistics_file(name), mark);
  EXPECT_EQ(owner_of_statistics_file("." + name), mark) << "a draft";
  for (const char* bad : {"", ".", "..", "x", "1-2-3", "1-2-3-4-5", "1-2-3-x", "-1-2-3-4", "0-2-3-4", "1-2-3-4 ",
                          "1--2-3", "99999999999-1-1-1", "1-2-3-4x"}) {
    EXPECT_EQ(owner_of_statistics_file(bad), std::nullopt) << bad;
  }
}

/// A child that published and was killed.
std::string killed_child_page(const std::string& folder) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    const Statistics statistics(some_job(), folder);
    [[maybe_unused]] const ssize_t told = ::write(ends[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  const bool ready = ::read(ends[0], &byte, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto owner = owner_of_statistics_file(entry.path().filename().native());
    if (ready && owner && owner->pid == child) return entry.path();
  }
  return {};
}

TEST(StatisticsFolder, loses_only_what_processes_that_are_gone_left) {
  const TemporaryFolder folder;
  const Statistics alive(some_job(), folder.path());
  const std::string leftover = killed_child_page(folder.path());
  ASSERT_NE(leftover, "");
  ProcessMark dead = *own_process_mark();
  ++dead.start_time;  // this pid, but an earlier process
  ProcessMark elsewhere = dead;
  ++elsewhere.pid_namespace;
  const std::string draft = folder.path() + "/." + statistics_file_name(dead, 1);
  const std::string foreign = folder.path() + "/" + statistics_file_name(elsewhere, 1);
  const std::string foreign_draft = folder.path() + "/." + statistics_file_name(elsewhere, 2);
  const std::string foreign_alive = folder.path() + "/" + statistics_file_name(elsewhere, 3);
  const std::string other = folder.path() + "/notes.txt";
  for (const std::string& file : {draft, foreign, foreign_draft, foreign_alive, other}) std::ofstream(file) << "x";
  const UniqueFd held(::open(foreign_alive.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(remove_leftovers(folder.path()), 3u);
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_FALSE(fs::exists(draft));
  EXPECT_TRUE(fs::exists(alive.file()));
  EXPECT_FALSE(fs::exists(foreign)) << "nobody holds it";
  EXPECT_TRUE(fs::exists(foreign_draft)) << "it may not be locked yet";
  EXPECT_TRUE(fs::exists(foreign_alive));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_EQ(remove_leftovers(folder.path()), 0u);
  EXPECT_EQ(remove_leftovers(folder.path() + "/missing"), 0u);
}

TEST(StatisticsFolder, that_cannot_be_trusted_is_left_alone) {
  const TemporaryFolder folder;
  ProcessMark dead = *own_process_mark();
  ++dead.start_time;
  const std::string file = folder.path() + "/" + statistics_file_name(dead, 1);
  std::ofstream(file) << "x";
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(remove_leftovers(folder.path()), 0u);
  EXPECT_TRUE(fs::exists(file));
}

}  // namespace
}  // namespace brant
