#include "cli/jobs/job_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "core/observe/statistics.h"
#include "core/observe/statistics_folder.h"
#include "support/temporary_folder.h"

namespace brant::cli::jobs {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

std::unique_ptr<Statistics> publish(const TemporaryFolder& folder, const char* id, int rank, int size,
                                    const char* launcher = "brant run") {
  port::JobInfo job;
  job.job_id = id;
  job.rank = rank;
  job.size = size;
  job.launcher = launcher;
  return std::make_unique<Statistics>(job, folder.path());
}

/// As its process holds it as long as it runs.
UniqueFd lock(const std::string& file) {
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::flock(fd.get(), LOCK_EX | LOCK_NB), 0);
  return fd;
}

TEST(JobList, groups_processes_by_job_and_rank_and_sums_them) {
  const TemporaryFolder folder;
  const auto b1 = publish(folder, "b", 1, 2);
  const auto a0 = publish(folder, "a", 0, 1);
  const auto b0 = publish(folder, "b", 0, 2);
  b0->counters().path(Path::ucx).sends.add(3);
  b1->counters().path(Path::ucx).sends.add(4);
  const JobList list = list_jobs({folder.path()});
  ASSERT_EQ(list.jobs.size(), 2u);
  EXPECT_EQ(list.jobs[0].id, "b") << "the one that started first";
  ASSERT_EQ(list.jobs[0].processes.size(), 2u);
  EXPECT_EQ(list.jobs[0].processes[0].rank, 0);
  EXPECT_EQ(list.jobs[0].processes[1].rank, 1);
  EXPECT_EQ(list.jobs[0].total().paths[static_cast<std::size_t>(Path::ucx)].sends, 7u);
  EXPECT_EQ(list.jobs[1].id, "a");
  EXPECT_TRUE(list.problems.empty());
  EXPECT_EQ(list.removed, 0u);
}

TEST(JobList, of_folders_that_are_missing_or_empty_is_empty) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_jobs({}).jobs.empty());
  const JobList list = list_jobs({folder.path(), folder.path() + "/missing"});
  EXPECT_TRUE(list.jobs.empty());
  EXPECT_TRUE(list.problems.empty());
}

TEST(JobList, reports_files_that_are_no_pages_and_reads_the_others) {
  const TemporaryFolder folder;
  const auto good = publish(folder, "good", 0, 1);
  const auto cut = publish(folder, "cut", 0, 1);
  fs::resize_file(cut->file(), 100);
  std::ofstream(folder.path() + "/notes.txt") << "not ours";
  // A page under the name of another process that lives.
  ProcessMark other = *own_process_mark();
  other.pid = ::getppid();
  other.pid_namespace += 1;
  const std::string misnamed = folder.path() + "/" + statistics_file_name(other, 0);
  fs::copy_file(good->file(), misnamed);
  const UniqueFd held = lock(misnamed);
  const JobList list = list_jobs({folder.path()});
  ASSERT_EQ(list.jobs.size(), 1u);
  EXPECT_EQ(list.jobs[0].id, "good");
  ASSERT_EQ(list.problems.size(), 3u);
  const auto said = [&](const char* part) {
    return std::any_of(list.problems.begin(), list.problems.end(),
                       [&](const std::string& problem) { return problem.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(said("cut short"));
  EXPECT_TRUE(said("notes.txt: it is no statistics page"));
  EXPECT_TRUE(said("another process than its name"));
  fs::resize_file(cut->file(), StatisticsPage::kFileBytes);  // its counters are still written to at the end
}

TEST(JobList, does_not_read_folders_of_or_open_to_others) {
  const TemporaryFolder folder;
  const auto page = publish(folder, "a", 0, 1);
  ::chmod(folder.path().c_str(), 0777);
  const JobList list = list_jobs({folder.path()});
  EXPECT_TRUE(list.jobs.empty());
  ASSERT_EQ(list.problems.size(), 1u);
  EXPECT_NE(list.problems[0].find("open to other users"), std::string::npos);
}

TEST(JobList, removes_what_processes_that_are_gone_left) {
  const TemporaryFolder folder;
  const auto alive = publish(folder, "a", 0, 1);
  ProcessMark dead = *own_process_mark();
  ++dead.start_time;
  fs::copy_file(alive->file(), folder.path() + "/" + statistics_file_name(dead, 0));
  const JobList list = list_jobs({folder.path()});
  EXPECT_EQ(list.removed, 1u);
  EXPECT_EQ(list.jobs.size(), 1u);
  EXPECT_TRUE(list.problems.empty());
  EXPECT_EQ(folder.files(), 1u);
}

TEST(JobList, marks_processes_of_other_pid_namespaces_and_forgets_them_when_they_are_gone) {
  const TemporaryFolder folder;
  std::string file;
  {
    const auto here = publish(folder, "a", 0, 1);
    StatisticsPage page;
    std::ifstream(here->file(), std::ios::binary).read(reinterpret_cast<char*>(&page), sizeof(page));
    page.header.owner.pid_namespace += 1;
    file = folder.path() + "/" + statistics_file_name(page.header.owner, 0);
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&page), sizeof(page));
    const UniqueFd held = lock(file);
    const JobList list = list_jobs({folder.path()});
    ASSERT_EQ(list.jobs.size(), 1u);
    ASSERT_EQ(list.jobs[0].processes.size(), 2u);
    EXPECT_NE(list.jobs[0].processes[0].other_namespace, list.jobs[0].processes[1].other_namespace);
  }
  const JobList list = list_jobs({folder.path()});
  EXPECT_TRUE(list.jobs.empty());
  EXPECT_EQ(list.removed, 1u);
  EXPECT_FALSE(fs::exists(file));
}

TEST(JobList, finds_a_job_by_id_by_pid_and_by_its_launcher) {
  const TemporaryFolder folder;
  const auto page = publish(folder, "the-id", 0, 2);
  const JobList list = list_jobs({folder.path()});
  ASSERT_NE(find_job(list, "the-id"), nullptr);
  EXPECT_EQ(find_job(list, std::to_string(::getpid())), &list.jobs[0]);
  EXPECT_EQ(find_job(list, std::to_string(::getppid())), &list.jobs[0]);
  for (const char* other : {"", "another", "0", "the-i", "1x"}) EXPECT_EQ(find_job(list, other), nullptr) << other;
}

TEST(JobList, a_process_that_nobody_launched_is_not_found_by_its_shell) {
  const TemporaryFolder folder;
  const auto page = publish(folder, "alone", 0, 1, "single");
  const JobList list = list_jobs({folder.path()});
  EXPECT_EQ(find_job(list, std::to_string(::getppid())), nullptr);
  EXPECT_NE(find_job(list, std::to_string(::getpid())), nullptr);
}

}  // namespace
}  // namespace brant::cli::jobs
