// With the stand-in for NCCL (fake_nccl.cc) and an emulated device.
#include "bench/nccl/nccl_member.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "port/memory/devices.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace brant::bench::nccl {
namespace {

using brant::test::ScopedVariable;
using brant::test::TemporaryFolder;
using Lines = std::vector<std::string>;

class NcclMember : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("BRANT_NCCL") == nullptr) GTEST_SKIP() << "ctest names the stand-in for NCCL in BRANT_NCCL";
    device_ = port::open_device({.gpu = port::DeviceRequest::Gpu::emulated});
    stream_ = device_->streams()->create_stream(port::StreamPriority::normal).value();
    log_.emplace("FAKE_NCCL_LOG", file().c_str());
  }
  void TearDown() override {
    if (stream_ != nullptr) device_->streams()->destroy_stream(stream_);
  }
  [[nodiscard]] std::string file() const { return folder_.path() + "/calls"; }

  std::unique_ptr<Member> connect(int rank, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    return std::make_unique<Member>(
        *device_->streams(), stream_,
        Member::Place{.rank = rank, .size = 2, .id = make_unique_id(), .patience = patience});
  }
  /// What was called since the last question.
  Lines calls() {
    Lines lines;
    {
      std::ifstream log(file());
      for (std::string line; std::getline(log, line);) lines.push_back(line);
    }
    std::remove(file().c_str());
    return lines;
  }
  /// The text of the error that `action` throws.
  template <typename Action>
  static std::string refusal(Status status, Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  static void expect_words(const std::string& text, const Lines& words) {
    for (const std::string& each : words) EXPECT_NE(text.find(each), std::string::npos) << each << " in: " << text;
  }

  TemporaryFolder folder_;
  std::optional<ScopedVariable> log_;
  std::unique_ptr<port::Device> device_;
  port::Stream* stream_ = nullptr;
};

TEST_F(NcclMember, both_ranks_open_with_the_same_id_and_send_to_each_other) {
  for (const int rank : {0, 1}) {
    const int peer = 1 - rank;
    const std::string other = std::to_string(peer);
    std::byte data[64];
    {
      const auto member = connect(rank);
      member->send(data, 64, peer);
      member->recv(data, 0, peer);  // NCCL has no empty messages
      member->together([&] { member->send(data, 8, peer); });
      member->wait();
    }
    EXPECT_EQ(calls(),
              (Lines{"ncclGetUniqueId", "ncclCommInitRank " + std::to_string(rank) + " of 2 id 7 9",
                     "ncclSend 64 of type 1 peer " + other + " on a stream",
                     "ncclRecv 1 of type 1 peer " + other + " on a stream", "ncclGroupStart",
                     "ncclSend 8 of type 1 peer " + other + " on a stream", "ncclGroupEnd", "ncclCommDestroy"}));
  }
}

TEST_F(NcclMember, collectives_are_of_floats_and_count_one_block) {
  const auto member = connect(1);
  float in[6] = {}, out[6] = {};
  calls();
  member->allreduce(in, out, 6);
  member->broadcast(out, 6);
  member->allgather(in, out, 3);
  member->reduce_scatter(in, out, 3);
  member->alltoall(in, out, 3);
  member->wait();
  EXPECT_EQ(calls(), (Lines{"ncclAllReduce 6 of type 7 on a stream", "ncclBroadcast 6 of type 7 on a stream",
                            "ncclAllGather 3 of type 7 on a stream", "ncclReduceScatter 3 of type 7 on a stream",
                            "ncclAlltoAll 3 of type 7 on a stream"}));
}

TEST_F(NcclMember, an_older_nccl_sends_the_blocks_of_an_alltoall) {
  // In a process of its own, which loads that one.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const ScopedVariable old("BRANT_NCCL", (std::string(std::getenv("BRANT_NCCL")) + "/old").c_str());
        const std::vector<float> in(6);
        std::vector<float> out(6);
        connect(1)->alltoall(in.data(), out.data(), 3);
        for (const std::string& line : calls()) std::fprintf(stderr, "%s;", line.c_str());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "ncclGroupStart;ncclSend 12 of type 1 peer 0 on a stream;ncclRecv 12 of type 1 peer 0 on a stream;"
      "ncclSend 12 of type 1 peer 1 on a stream;ncclRecv 12 of type 1 peer 1 on a stream;ncclGroupEnd;");
}

TEST_F(NcclMember, a_collective_that_fails_names_itself_and_its_size) {
  const ScopedVariable fails("FAKE_NCCL", "ncclAllReduce");
  const auto member = connect(1);
  float data[4] = {};
  expect_words(refusal(Status::io_error, [&] { member->allreduce(data, data, 4); }),
               {"ncclAllReduce of 16 bytes on rank 1 of 2 failed", "unhandled cuda error"});
}

TEST_F(NcclMember, an_opening_that_fails_says_what_nccl_says) {
  const ScopedVariable fails("FAKE_NCCL", "ncclCommInitRank");
  expect_words(refusal(Status::io_error, [&] { connect(1); }), {"NCCL 2.28.3", "ncclCommInitRank of rank 1 of 2 failed",
                                                                "unhandled cuda error", "the fake was told to fail"});
  EXPECT_EQ(calls().size(), 2u) << "there is nothing to close";
}

TEST_F(NcclMember, an_id_that_cannot_be_made_says_why) {
  const ScopedVariable fails("FAKE_NCCL", "ncclGetUniqueId");
  expect_words(refusal(Status::io_error, [] { make_unique_id(); }), {"ncclGetUniqueId failed", "unhandled cuda error"});
}

TEST_F(NcclMember, a_rank_that_never_comes_is_waited_for_no_longer_than_patience) {
  // In a process of its own: the thread that waits for the other rank cannot be called back.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScopedVariable hangs("FAKE_NCCL", "hang");
  EXPECT_EXIT(
      {
        const std::string text = refusal(Status::timed_out, [&] { connect(0, std::chrono::milliseconds(50)); });
        std::fprintf(stderr, "%s\n", text.c_str());
        std::_Exit(text.empty() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "ncclCommInitRank of rank 0 of 2 did not end within 50 ms");
}

TEST_F(NcclMember, a_transfer_that_fails_names_itself_and_the_end_waits_for_nobody) {
  std::byte data[64];
  for (const std::string call : {"ncclSend", "ncclRecv", "ncclGroupStart", "ncclGroupEnd"}) {
    const ScopedVariable fails("FAKE_NCCL", call.c_str());
    {
      const auto member = connect(0);
      const std::string text = refusal(Status::io_error, [&] {
        member->together([&] {
          member->send(data, 64, 1);
          member->recv(data, 64, 1);
        });
      });
      expect_words(text, {call, "on rank 0 of 2 failed", "unhandled cuda error: the fake was told to fail"});
      if (call == "ncclSend" || call == "ncclRecv") expect_words(text, {"of 64 bytes"});
    }
    const Lines lines = calls();
    EXPECT_EQ(lines.back(), "ncclCommAbort") << call;
    if (call != "ncclGroupStart") {
      EXPECT_EQ(lines[lines.size() - 2], "ncclGroupEnd") << "no group stays open: " << call;
    }
  }
}

TEST_F(NcclMember, a_stream_that_does_not_move_is_given_up) {
  // The same patience is for the opening, which takes its time on a busy machine.
  const auto member = connect(0, std::chrono::milliseconds(1000));
  port::Streams& streams = *device_->streams();
  const Result<void*> memory = device_->allocate(MemoryKind::pinned, sizeof(std::uint64_t));
  ASSERT_TRUE(memory.ok());
  auto& word = *static_cast<std::uint64_t*>(*memory);
  word = 0;
  ASSERT_EQ(streams.wait_value(port::StreamWord::Act::wait_equal, &word, 1, stream_), Status::ok);
  expect_words(refusal(Status::timed_out, [&] { member->wait(); }),
               {"rank 0 of 2 has waited 1000 ms", "are the other processes alive?"});
  std::atomic_ref(word).store(1, std::memory_order_release);
  ASSERT_EQ(streams.synchronize(stream_), Status::ok);
  EXPECT_EQ(device_->free(*memory), Status::ok);
}

}  // namespace
}  // namespace brant::bench::nccl
