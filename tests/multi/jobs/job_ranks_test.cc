// Runs as both ranks of a job, which look at each other from outside, as `brant info --job` does.
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/env.h"
#include "brant/brant.h"
#include "cli/jobs/job_list.h"
#include "core/observe/statistics_folder.h"

namespace brant {
namespace {

using cli::jobs::Job;
using cli::jobs::PathCount;

std::optional<Job> own_job() {
  const cli::jobs::JobList list = cli::jobs::list_jobs(statistics_folders());
  const Job* job = cli::jobs::find_job(list, std::to_string(::getpid()));
  return job == nullptr ? std::nullopt : std::optional(*job);
}

/// One message from one rank to the other.
OpResult pass(Runtime& runtime, Channel& channel, int from, std::vector<std::byte>& data) {
  const Buffer buffer(data.data(), data.size(), MemoryKind::host);
  Operation operation = runtime.rank().value == from ? channel.send(buffer) : channel.recv(buffer);
  EXPECT_EQ(runtime.worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(20)), Status::ok);
  return operation.result();
}

/// The job, once rank 0 has counted so much: it does so when it knows that a message has gone, which may be after that
/// has arrived. The last look if it took too long.
std::optional<Job> job_that_sent(std::uint64_t messages, std::uint64_t bytes) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    std::optional<Job> job = own_job();
    if (!job || job->processes.empty() || std::chrono::steady_clock::now() > limit) return job;
    const PathCount sent = job->processes[0].counts.all_paths();
    if (sent.sends >= messages && sent.bytes_sent >= bytes) return job;
  }
}

TEST(JobRanks, what_others_read_while_traffic_runs_agrees_with_what_was_sent) {
  Runtime runtime;
  ASSERT_EQ(runtime.size(), 2);
  Channel channel = Channel::open(runtime, Rank{1 - runtime.rank().value}, ChannelId{1});
  if (!env_bool("BRANT_STATISTICS", true)) {
    EXPECT_FALSE(own_job()) << "it was switched off";
    return;
  }
  const bool receiver = runtime.rank().value == 1;
  std::uint64_t messages = 0, bytes = 0, seen = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> data(std::size_t{1} << (round % 20));
    ASSERT_TRUE(pass(runtime, channel, 0, data).ok());
    ++messages;
    bytes += data.size();
    if (!receiver || round % 100 != 99) continue;
    // Rank 0 goes on while rank 1 looks.
    const std::optional<Job> job = job_that_sent(messages, bytes);
    ASSERT_TRUE(job);
    ASSERT_EQ(job->processes.size(), 2u);
    const PathCount sent = job->processes[0].counts.all_paths();
    const PathCount received = job->processes[1].counts.all_paths();
    EXPECT_EQ(received.receives, messages);
    EXPECT_EQ(received.bytes_received, bytes);
    EXPECT_GE(sent.sends, messages);
    EXPECT_GE(sent.bytes_sent, bytes);
    EXPECT_GT(sent.sends, seen);
    seen = sent.sends;
  }
  if (receiver) {
    const std::optional<Job> job = job_that_sent(messages, bytes);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->processes[0].counts.all_paths().sends, messages);
    EXPECT_EQ(job->processes[0].counts.all_paths().bytes_sent, bytes);
    EXPECT_EQ(job->total().all_paths().receives, messages);
    EXPECT_EQ(job->total().failures, 0u);
  }
  std::vector<std::byte> word(8);
  ASSERT_TRUE(pass(runtime, channel, 1, word).ok());
  // A message that does not fit is a failure of whoever is told.
  std::vector<std::byte> landing(receiver ? 10 : 1000);
  const OpResult outcome = pass(runtime, channel, 0, landing);
  if (receiver) {
    EXPECT_EQ(outcome.status, Status::truncated);
    const std::optional<Job> job = own_job();
    ASSERT_TRUE(job);
    EXPECT_EQ(job->processes[1].counts.failures, 1u);
  }
}

}  // namespace
}  // namespace brant
