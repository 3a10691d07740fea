#include "cli/jobs/job_report.h"

#include <string>

#include <gtest/gtest.h>

namespace brant::cli::jobs {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kSecond;
constexpr auto kShm = static_cast<std::size_t>(Path::shm);
constexpr auto kUcx = static_cast<std::size_t>(Path::ucx);

ProcessPage process(int rank) {
  ProcessPage page;
  page.file = "/folder/" + std::to_string(rank);
  page.owner.pid = 1000 + rank;
  page.rank = rank;
  page.size = 2;
  page.job_id = "the-job";
  page.program = "program";
  page.launcher = "brant run";
  page.started_ns = kNow - (10 + rank) * kSecond;
  return page;
}

Job two_ranks() {
  Job job{
      .id = "the-job", .launcher = "brant run", .program = "program", .size = 2, .processes = {process(0), process(1)}};
  job.processes[0].counts.paths[kShm] = {10, 2000, 1, 8};
  job.processes[0].counts.paths[kUcx] = {1, 1'500'000'000, 0, 0};
  job.processes[0].counts.failures = 2;
  return job;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(JobReport, has_a_line_per_rank_and_path_and_the_sum) {
  Job job = two_ranks();
  job.processes[1].counts.paths[kShm] = {5, 500, 10, 2000};
  job.processes[1].counts.peers_lost = 1;
  job.processes[1].counts.bad_records = 2;
  const std::string text = job_text(job, kNow);
  EXPECT_TRUE(contains(text, "job the-job: program, 2 processes (2 here), up 11.0 s, started by brant run\n")) << text;
  EXPECT_TRUE(contains(text, "    0     1000  ucx                     1   1.50 GB             0       0 B         2\n"))
      << text;
  EXPECT_TRUE(contains(text, "                shm                    10   2.00 KB             1       8 B\n")) << text;
  EXPECT_TRUE(contains(text, "    1     1001  shm                     5     500 B            10   2.00 KB         0\n"))
      << text;
  EXPECT_TRUE(contains(text, "  all           ucx")) << text;
  EXPECT_TRUE(contains(text, "shm                    15   2.50 KB            11   2.01 KB")) << text;
  EXPECT_TRUE(contains(text, "rank 1 lost 1 of its peers")) << text;
  EXPECT_TRUE(contains(text, "rank 1 was sent 2 bad records")) << text;
}

TEST(JobReport, pids_of_other_namespaces_are_marked) {
  Job job = two_ranks();
  EXPECT_FALSE(contains(job_text(job, kNow), "*"));
  job.processes[1].other_namespace = true;
  EXPECT_TRUE(contains(job_text(job, kNow), "    1    1001*  -")) << job_text(job, kNow);
  EXPECT_TRUE(contains(job_text(job, kNow), "\n* of another pid namespace"));
  JobList list;
  list.jobs = {job};
  EXPECT_TRUE(contains(list_text(list, kNow), "   1001*  1/2")) << list_text(list, kNow);
  EXPECT_TRUE(contains(list_text(list, kNow), "\n* of another pid namespace"));
  EXPECT_EQ(job_json(job, kNow)["processes"][1]["other_pid_namespace"], true);
}

TEST(JobReport, a_rank_that_has_done_nothing_is_there_too) {
  const std::string text = job_text(two_ranks(), kNow);
  EXPECT_TRUE(contains(text, "    1     1001  -                       0       0 B")) << text;
}

TEST(JobReport, json_has_the_exact_numbers) {
  const nlohmann::ordered_json json = job_json(two_ranks(), kNow);
  EXPECT_EQ(json["job"], "the-job");
  EXPECT_EQ(json["size"], 2);
  ASSERT_EQ(json["processes"].size(), 2u);
  EXPECT_EQ(json["processes"][0]["paths"]["ucx"]["bytes_sent"], 1'500'000'000);
  EXPECT_EQ(json["processes"][0]["paths"]["shm"]["received"], 1);
  EXPECT_DOUBLE_EQ(json["processes"][1]["uptime_s"], 11.0);
  EXPECT_TRUE(json["processes"][1]["paths"].empty());
  EXPECT_EQ(json["total"]["paths"]["shm"]["sent"], 10);
  EXPECT_EQ(json["total"]["failures"], 2);
}

TEST(JobReport, rates_are_what_came_since_by_the_time_it_took) {
  const Job before = two_ranks();
  Job after = two_ranks();
  after.processes[0].counts.paths[kShm] = {30, 6000, 1, 8};
  after.processes.push_back(process(2));  // was not there before: its past is not of this interval
  after.processes[2].counts.paths[kShm] = {1000, 1000, 0, 0};
  const JobChange change = change_of(before, after, 2.0);
  const nlohmann::ordered_json json = rates_json(change);
  EXPECT_DOUBLE_EQ(json["processes"][0]["paths"]["shm"]["sent"], 10.0);
  EXPECT_DOUBLE_EQ(json["per_second"]["paths"]["shm"]["bytes_sent"], 2000.0);
  EXPECT_FALSE(json["per_second"]["paths"].contains("ucx"));
  EXPECT_DOUBLE_EQ(json["seconds"], 2.0);
  const std::string text = rates_text(change);
  EXPECT_TRUE(contains(text, "sent/s")) << text;
  EXPECT_TRUE(contains(text, "shm                    10   2.00 KB")) << text;
  EXPECT_GT(change_of(before, after, 0.0).seconds, 0.0) << "no division by nothing";
}

TEST(JobReport, the_list_names_every_process_and_what_was_not_read) {
  JobList list;
  list.jobs = {two_ranks()};
  list.jobs[0].processes[1].started_ns = kNow - 3725 * kSecond;
  list.problems = {"/folder/x: it is no page"};
  list.removed = 2;
  const std::string text = list_text(list, kNow);
  EXPECT_TRUE(
      contains(text, "    1000  0/2           10.0 s            11   1.50 GB         2  program         the-job\n"))
      << text;
  EXPECT_TRUE(contains(text, "1 h 02 min")) << text;
  EXPECT_TRUE(contains(text, "not read: /folder/x: it is no page\n")) << text;
  EXPECT_TRUE(contains(text, "removed what 2 killed processes left\n")) << text;
  const nlohmann::ordered_json json = list_json(list, kNow);
  EXPECT_EQ(json["jobs"].size(), 1u);
  EXPECT_EQ(json["removed"], 2);
  EXPECT_EQ(json["problems"][0], "/folder/x: it is no page");
}

TEST(JobReport, an_empty_list_says_so) {
  EXPECT_TRUE(contains(list_text({}, kNow), "no process of brant runs"));
  EXPECT_EQ(list_json({}, kNow).dump(), R"({"jobs":[],"problems":[],"removed":0})");
}

}  // namespace
}  // namespace brant::cli::jobs
