// Runs as every rank of a job (`brant run -n N`): what `brant info --job` reads of teams while their members call.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/coll/team.h"
#include "brant/device.h"
#include "cli/jobs/team_report.h"
#include "core/observe/statistics_folder.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

/// This job as another process finds it.
cli::jobs::Job seen() {
  const cli::jobs::JobList list = cli::jobs::list_jobs(statistics_folders());
  const cli::jobs::Job* found = cli::jobs::find_job(list, std::to_string(::getpid()));
  return found == nullptr ? cli::jobs::Job() : *found;
}
std::string text() { return cli::jobs::teams_text(seen(), coarse_now()); }

bool contains(const std::string& all, const std::string& part) { return all.find(part) != std::string::npos; }

TEST(PublishedJournal, shows_which_member_is_at_which_call_of_a_job_that_hangs) {
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60)});
  Team beside = Team::world(job(), {.patience = std::chrono::seconds(60)});
  double own = 1, sum = 0;
  const Collective call = allreduce(std::span<const double>(&own, 1), std::span(&sum, 1), ReduceOp::sum);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(team.run(call).ok());
  ASSERT_TRUE(beside.run(barrier()).ok());
  if (job().rank().value != 0) {
    ASSERT_TRUE(beside.run(barrier()).ok());  // here until the others have looked
    ASSERT_TRUE(team.run(barrier()).ok()) << team.fault();
    ASSERT_TRUE(beside.run(barrier()).ok());
    return;
  }
  Operation waits = team.start(barrier());
  for (int i = 0; i < 5; ++i) job().worker().progress();
  const std::string told = text();
  EXPECT_TRUE(contains(told, "team " + team.name() + " of " + std::to_string(team.size()))) << told;
  if (team.size() > 1) {
    EXPECT_TRUE(contains(told, "barrier by lines: under way for")) << told;
    EXPECT_TRUE(contains(told, "allreduce of 8 bytes (f64, sum) by lines: ended ")) << told;
    EXPECT_TRUE(contains(told, "member 1 (rank 1) has not come to call 101")) << told;
  }
  const nlohmann::ordered_json json = cli::jobs::teams_json(seen(), coarse_now());
  ASSERT_EQ(json.size(), 2u) << json.dump(2);
  const nlohmann::ordered_json& members = json[0]["team"] == team.name() ? json[0]["members"] : json[1]["members"];
  ASSERT_EQ(members.size(), static_cast<std::size_t>(team.size()));
  const nlohmann::ordered_json& calls = members[0]["calls"];
  ASSERT_EQ(calls.size(), 64u);
  EXPECT_EQ(calls.back()["call"], 101);
  EXPECT_EQ(calls.front()["call"], 38);
  EXPECT_EQ(calls.front()["status"], "ok");
  ASSERT_TRUE(beside.run(barrier()).ok());
  ASSERT_TRUE(job().wait_for(std::chrono::seconds(60), waits).ok()) << team.fault();
  ASSERT_TRUE(beside.run(barrier()).ok());
}

TEST(PublishedJournal, forgets_a_team_that_is_closed_and_uses_its_page_again) {
  for (int i = 0; i < 100; ++i) {
    Team team = Team::world(job());
    ASSERT_TRUE(team.run(barrier()).ok());
    if (i % 33 != 0) continue;
    const cli::jobs::Job found = seen();
    for (const cli::jobs::ProcessPage& process : found.processes) {
      if (process.rank == job().rank().value) {
        ASSERT_EQ(process.teams.size(), 1u) << i;
        EXPECT_EQ(process.teams[0].name, team.name());
        EXPECT_EQ(process.teams[0].calls.size(), 1u);
      }
    }
    ASSERT_TRUE(team.run(barrier()).ok());
  }
  std::vector<Team> many;
  for (int i = 0; i < 70; ++i) many.push_back(Team(job(), std::vector<Rank>{job().rank()}));
  for (const cli::jobs::ProcessPage& process : seen().processes) {
    if (process.rank == job().rank().value) {
      EXPECT_EQ(process.teams.size(), 64u) << "so many are published";
    }
  }
  for (Team& team : many) EXPECT_TRUE(team.run(barrier()).ok());
  EXPECT_EQ(many.back().journal().size(), 1u) << "of which nobody else knows";
}

TEST(PublishedJournal, has_the_calls_that_streams_were_given) {
  if (job().device_kind() == MemoryKind::host) GTEST_SKIP() << "no device";
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60)});
  if (!team.prepare_streams().ok()) GTEST_SKIP() << "no devices that map each other's memory";
  Stream stream = job().device().create_stream();
  Memory data = job().allocate(job().device_kind(), 4096);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(team.enqueue(allreduce(Buffer(data), DataType::i32, ReduceOp::max), stream), Status::ok);
  }
  ASSERT_EQ(stream.synchronize(), Status::ok);
  const std::vector<TeamCall> queued = team.stream_journal();
  ASSERT_EQ(queued.size(), 3u);
  EXPECT_EQ(queued.back().number, 3u);
  EXPECT_EQ(queued.back().bytes, 4096u);
  EXPECT_EQ(queued.back().kind, CollectiveKind::allreduce);
  EXPECT_TRUE(contains(text(), "has queued 3 calls on streams, the last one, allreduce of 4096 bytes (i32, max)"))
      << text();
  ASSERT_TRUE(team.run(barrier()).ok());
}

/// A kernel that waits for a member says so, which progress brings to the page.
TEST(PublishedJournal, shows_whom_a_kernel_waits_for) {
  if (job().device_kind() == MemoryKind::host || job().size() == 1) GTEST_SKIP() << "no device, or nobody to wait for";
  Team team = Team::world(job(), {.patience = std::chrono::seconds(60)});
  if (!team.prepare_streams().ok()) GTEST_SKIP() << "no devices that map each other's memory";
  Stream stream = job().device().create_stream();
  if (job().rank().value == 0) {
    ASSERT_EQ(team.enqueue(barrier(), stream), Status::ok);
    std::string told;
    for (int i = 0; i < 2000 && !contains(told = text(), "a kernel was last seen to wait in call 1"); ++i) {
      job().worker().progress();
      ::usleep(1000);
    }
    EXPECT_TRUE(contains(told, "a kernel was last seen to wait in call 1, for member ")) << told;
  }
  ASSERT_TRUE(team.run(barrier()).ok()) << team.fault();
  if (job().rank().value != 0) {
    ASSERT_EQ(team.enqueue(barrier(), stream), Status::ok);
  }
  ASSERT_EQ(stream.synchronize(), Status::ok);
  EXPECT_EQ(team.fault(), "");
}

}  // namespace
}  // namespace brant
