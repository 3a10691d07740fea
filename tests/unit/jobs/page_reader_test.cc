#include "cli/jobs/page_reader.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/observe/statistics.h"
#include "support/statistics_page_bytes.h"
#include "support/temporary_folder.h"

namespace brant::cli::jobs {
namespace {

using test::TemporaryFolder;

/// The bytes of a page as a process wrote it, changed by `spoil`.
std::vector<std::byte> page_bytes(const std::function<void(StatisticsPage&)>& spoil = [](StatisticsPage&) {}) {
  return test::statistics_page_bytes([&](StatisticsPage& page) {
    PathTally& shm = page.counters.path(Path::shm);
    shm.sends.add(1);
    shm.bytes_sent.add(2);
    shm.receives.add(3);
    shm.bytes_received.add(std::uint64_t{1} << 40);
    page.counters.path(Path::kernel).sends.add(4);
    page.counters.peers_lost.add(6);
    page.counters.progress_calls.add(7);
    page.counters.sleeps.add(8);
    page.counters.bad_records.add(9);
    spoil(page);
  });
}

void expect_problem(const std::vector<std::byte>& bytes, const char* part) {
  const ProcessPage page = parse_page(bytes);
  EXPECT_NE(page.problem.find(part), std::string::npos) << page.problem;
  EXPECT_EQ(page.counts.failures, 0u) << "nothing is believed of a page that is not understood";
}

TEST(PageReader, reads_every_number_where_it_belongs) {
  const ProcessPage page = parse_page(page_bytes());
  EXPECT_EQ(page.problem, "");
  EXPECT_EQ(page.rank, 1);
  EXPECT_EQ(page.size, 2);
  EXPECT_EQ(page.job_id, "a job");
  EXPECT_EQ(page.owner.pid, 7);
  const PathCount shm{1, 2, 3, std::uint64_t{1} << 40};
  EXPECT_EQ(page.counts.paths[static_cast<std::size_t>(Path::shm)], shm);
  EXPECT_EQ(page.counts.paths[static_cast<std::size_t>(Path::kernel)].sends, 4u);
  EXPECT_EQ(page.counts.paths[static_cast<std::size_t>(Path::ucx)], PathCount{});
  EXPECT_EQ(page.counts.failures, 5u);
  EXPECT_EQ(page.counts.peers_lost, 6u);
  EXPECT_EQ(page.counts.progress_calls, 7u);
  EXPECT_EQ(page.counts.sleeps, 8u);
  EXPECT_EQ(page.counts.bad_records, 9u);
}

TEST(PageReader, names_what_is_wrong_with_a_page) {
  expect_problem(page_bytes([](StatisticsPage& page) { page.header.magic ^= 1; }), "no statistics page");
  expect_problem(page_bytes([](StatisticsPage& page) { ++page.header.version; }), "another version");
  expect_problem(page_bytes([](StatisticsPage& page) { ++page.header.path_count; }), "another version");
  expect_problem(page_bytes([](StatisticsPage& page) { --page.header.page_bytes; }), "another version");
  expect_problem(page_bytes([](StatisticsPage& page) { page.header.rank = 2; }), "rank 2 of 2");
  expect_problem(page_bytes([](StatisticsPage& page) { page.header.rank = -1; }), "damaged");
  expect_problem(page_bytes([](StatisticsPage& page) { page.header.owner.pid = 0; }), "damaged");
  expect_problem(page_bytes([](StatisticsPage& page) { std::memset(page.header.job_id, 'x', 256); }), "does not end");
  expect_problem(page_bytes([](StatisticsPage& page) { std::memset(page.header.program, 'x', 64); }), "does not end");
}

TEST(PageReader, understands_no_page_that_is_cut_short_anywhere) {
  const std::vector<std::byte> whole = page_bytes();
  for (std::size_t length = 0; length < sizeof(StatisticsPage); ++length) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_NE(parse_page(part).problem, "") << length;
  }
  expect_problem({whole.begin(), whole.begin() + sizeof(StatisticsPage) - 1}, "cut short");
  EXPECT_EQ(parse_page(std::span(whole).first(sizeof(StatisticsPage))).problem, "");
}

TEST(PageReader, reads_what_another_part_of_the_program_writes) {
  const TemporaryFolder folder;
  port::JobInfo job;
  job.job_id = "j";
  Statistics statistics(job, folder.path());
  EXPECT_EQ(read_page(statistics.file()).counts.sleeps, 0u);
  statistics.counters().sleeps.add(9);
  const ProcessPage page = read_page(statistics.file());
  EXPECT_EQ(page.problem, "");
  EXPECT_EQ(page.counts.sleeps, 9u);
  EXPECT_EQ(page.owner, *own_process_mark());
  EXPECT_GT(page.started_ns, 0);
}

TEST(PageReader, does_not_wait_for_or_follow_what_is_no_file) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_page(folder.path() + "/nothing").vanished);
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(read_page(pipe).problem.find("no regular file"), std::string::npos);
  EXPECT_NE(read_page(folder.path()).problem.find("no regular file"), std::string::npos);
  std::filesystem::create_symlink("/etc/hostname", folder.path() + "/link");
  const ProcessPage link = read_page(folder.path() + "/link");
  EXPECT_NE(link.problem, "");
  EXPECT_FALSE(link.vanished);
  std::ofstream(folder.path() + "/empty").flush();
  EXPECT_NE(read_page(folder.path() + "/empty").problem, "");
}

TEST(Counts, change_and_add_up) {
  Counts first, second;
  first.paths[1] = {1, 10, 2, 20};
  first.failures = 1;
  second.paths[1] = {4, 50, 2, 25};
  second.failures = 3;
  const Counts change = second.since(first);
  const PathCount grown{3, 40, 0, 5};
  EXPECT_EQ(change.paths[1], grown);
  EXPECT_EQ(change.failures, 2u);
  EXPECT_EQ(first.since(second).paths[1], PathCount{}) << "never below nothing";
  first += second;
  const PathCount sum{5, 60, 4, 45};
  EXPECT_EQ(first.paths[1], sum);
  EXPECT_EQ(first.failures, 4u);
  first.paths[2] = {1, 2, 3, 4};
  const PathCount all{6, 62, 7, 49};
  EXPECT_EQ(first.all_paths(), all);
}

}  // namespace
}  // namespace brant::cli::jobs
