// Parts that kernels and streams release, between devices; and parts that nobody does.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/core/device.h"
#include "brant/core/runtime.h"
#include "brant/notify.h"
#include "brant/partitioned/partitioned.h"
#include "support/gpu_of_tests.h"
#include "support/in_process_job.h"
#include "support/kernels/kernels.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;

JobOptions with_devices(int ranks, bool links) {
  JobOptions options;
  options.ranks = ranks;
  options.links = links;
  options.gpu = gpu_of_tests();
  return options;
}

struct Case {
  int ranks;
  bool links;
};

class PartsOfKernels : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint32_t kParts = 4;
  static constexpr std::size_t kEach = 2000;  ///< Words.

  Runtime& here() { return job_.rank(0); }
  Runtime& there() { return job_.rank(GetParam().ranks - 1); }
  Rank other() { return Rank{GetParam().ranks - 1}; }
  void kernel_makes(std::uint32_t part, std::uint64_t epoch) {
    auto* const words = static_cast<std::uint64_t*>(source_.data()) + part * kEach;
    ASSERT_EQ(kernel_.launch({}, stream_, sender_->device(part), words, std::uint64_t{kEach}, epoch), Status::ok);
  }
  std::vector<std::uint64_t> landed(std::uint32_t part) {
    std::vector<std::uint64_t> all(kParts * kEach);
    there().copy(std::span(all), landing_);
    return {all.begin() + part * kEach, all.begin() + (part + 1) * kEach};
  }

  InProcessJob job_{with_devices(GetParam().ranks, GetParam().links)};
  Stream stream_ = here().device().create_stream();
  MakePartKernel kernel_ = make_part_kernel(here().device());
  Memory source_ = here().allocate(device_memory(), kParts * kEach * sizeof(std::uint64_t));
  Memory landing_ = there().allocate(device_memory(), kParts * kEach * sizeof(std::uint64_t));
  Notifier notifier_{here(), {.bells = 64, .others = 4, .waits = 64}};
  std::unique_ptr<PartitionedSend> sender_ = std::make_unique<PartitionedSend>(
      here(), Channel::open(here(), other(), ChannelId{1}), PartitionedOptions{kParts, 0}, &notifier_);
  PartitionedReceive receiver_{there(), Channel::open(there(), Rank{0}, ChannelId{1}), {kParts, 0}};
};
INSTANTIATE_TEST_SUITE_P(Ranks, PartsOfKernels, testing::Values(Case{1, false}, Case{2, false}, Case{2, true}),
                         [](const auto& each) {
                           return std::to_string(each.param.ranks) + (each.param.links ? "_mapped" : "_apart");
                         });

TEST_P(PartsOfKernels, leave_while_the_others_are_still_computed) {
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    Operation all = receiver_.receive(landing_, epoch);
    Operation sent = sender_->send(source_, epoch);
    for (const std::uint32_t part : {2u, 0u, 3u, 1u}) {
      EXPECT_FALSE(all.done());
      Operation comes = receiver_.when(part);
      kernel_makes(part, epoch);
      ASSERT_EQ(job_.outcome(comes).status, Status::ok);
      const std::vector<std::uint64_t> words = landed(part);
      EXPECT_EQ(words.front(), 1000 * epoch);
      EXPECT_EQ(words.back(), 1000 * epoch + kEach - 1);
    }
    EXPECT_EQ(job_.outcome(all).status, Status::ok);
    EXPECT_EQ(job_.outcome(sent).status, Status::ok);
  }
}

TEST_P(PartsOfKernels, a_stream_may_release_them_and_they_may_be_ready_before) {
  kernel_makes(1, 7);
  ASSERT_EQ(stream_.synchronize(), Status::ok);
  Operation all = receiver_.receive(landing_, 7);
  Operation sent = sender_->send(source_, 7, Moment::delivered);
  for (const std::uint32_t part : {0u, 2u, 3u}) ASSERT_EQ(sender_->enqueue_ready(stream_, part, 7), Status::ok);
  EXPECT_EQ(job_.outcome(all).status, Status::ok);
  EXPECT_EQ(job_.outcome(sent).status, Status::ok);
  EXPECT_EQ(landed(1).back(), 7000 + kEach - 1);
}

TEST_P(PartsOfKernels, a_part_that_nobody_rings_ends_both_ends_and_is_named) {
  testing::internal::CaptureStderr();
  Operation all = receiver_.receive(landing_, 1);
  Operation comes = receiver_.when(2);
  Operation sent(Moment::source_free,
                 [&](Op& op) noexcept { return sender_->post_send(source_, 1, op, std::chrono::milliseconds(30)); });
  for (const std::uint32_t part : {0u, 1u, 3u}) kernel_makes(part, 1);
  EXPECT_EQ(job_.outcome(sent).status, Status::timed_out);
  EXPECT_EQ(job_.outcome(all).status, Status::peer_rejected);
  EXPECT_EQ(job_.outcome(comes).status, Status::peer_rejected);
  EXPECT_TRUE(receiver_.arrived(3));
  EXPECT_FALSE(receiver_.arrived(2));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("part 2 of 4"), std::string::npos) << log;

  Operation next = receiver_.receive(landing_, 2);
  Operation next_sent = sender_->send(source_, 2);
  for (std::uint32_t part = 0; part < kParts; ++part) kernel_makes(part, 2);
  EXPECT_EQ(job_.outcome(next).status, Status::ok) << "the next message may follow";
  EXPECT_EQ(job_.outcome(next_sent).status, Status::ok);
}

TEST_P(PartsOfKernels, a_send_that_is_withdrawn_ends_the_receive) {
  Operation all = receiver_.receive(landing_, 1);
  {
    Operation sent = sender_->send(source_, 1);
    kernel_makes(0, 1);
    ASSERT_TRUE(job_.run_until([&] { return receiver_.arrived(0); }));
  }
  EXPECT_EQ(job_.outcome(all).status, Status::peer_rejected);
}

TEST_P(PartsOfKernels, closing_ends_what_waits) {
  Operation all = receiver_.receive(landing_, 1);
  Operation comes = receiver_.when(1);
  Operation sent = sender_->send(source_, 1);
  receiver_.close();
  sender_->close();
  EXPECT_EQ(job_.outcome(all).status, Status::canceled);
  EXPECT_EQ(job_.outcome(comes).status, Status::canceled);
  EXPECT_EQ(job_.outcome(sent).status, Status::canceled);
  EXPECT_EQ(sender_->ready(0), Status::invalid_argument);
  EXPECT_EQ(receiver_.when(0).result().status, Status::invalid_argument);
}

TEST_P(PartsOfKernels, a_sender_that_closes_ends_the_receive) {
  Operation all = receiver_.receive(landing_, 1);
  Operation sent = sender_->send(source_, 1);
  kernel_makes(3, 1);
  ASSERT_TRUE(job_.run_until([&] { return receiver_.arrived(3); }));
  sender_->close();
  EXPECT_EQ(job_.outcome(all).status, Status::peer_rejected);
  EXPECT_EQ(job_.outcome(sent).status, Status::canceled);
}

TEST_P(PartsOfKernels, a_receive_that_is_withdrawn_closes_its_end) {
  {
    Operation gone = receiver_.receive(landing_, 1);
  }
  EXPECT_EQ(receiver_.receive(landing_, 2).result().status, Status::invalid_argument);
}

TEST_P(PartsOfKernels, one_message_at_a_time_and_epochs_that_grow) {
  Operation sent = sender_->send(source_, 5);
  EXPECT_EQ(sender_->send(source_, 6).result().status, Status::invalid_argument);
  Operation all = receiver_.receive(landing_, 5);
  EXPECT_EQ(receiver_.receive(landing_, 6).result().status, Status::invalid_argument);
  for (std::uint32_t part = 0; part < kParts; ++part) ASSERT_EQ(sender_->ready(part), Status::ok);
  EXPECT_EQ(sender_->ready(kParts), Status::invalid_argument);
  EXPECT_EQ(job_.outcome(sent).status, Status::ok);
  EXPECT_EQ(job_.outcome(all).status, Status::ok);
  EXPECT_EQ(sender_->send(source_, 5).result().status, Status::invalid_argument);
  EXPECT_EQ(sender_->ready(0), Status::invalid_argument) << "no message is under way";
}

/// Without parts: the sink of a wait posts the send.
TEST(BellsThatReleaseSends, the_message_leaves_when_the_kernel_rings) {
  InProcessJob job(with_devices(2, false));
  Channel left = Channel::open(job.rank(0), Rank{1}, ChannelId{9});
  Channel right = Channel::open(job.rank(1), Rank{0}, ChannelId{9});
  Notifier notifier(job.rank(0), {.bells = 16, .others = 2, .waits = 16});
  Bell bell = notifier.make();
  struct Release {
    explicit Release(Channel& to) : channel(to) {}
    Channel& channel;
    int value = 0;
    Status posted = Status::internal;
    Op send;
  } release(left);
  Op wait;
  wait.delivered = {[](void* self, const OpResult& rung) noexcept {
                      auto& to = *static_cast<Release*>(self);
                      to.value = 77;
                      to.posted =
                          rung.ok() ? to.channel.post_send(ConstBuffer(&to.value, sizeof(int)), to.send) : rung.status;
                    },
                    &release};
  ASSERT_EQ(bell.post_when(wait, 1), Status::in_progress);
  int got = 0;
  Operation incoming = right.recv(Buffer(&got, sizeof(got)));
  job.run(20);
  EXPECT_FALSE(incoming.done());
  Stream stream = job.rank(0).device().create_stream();
  ASSERT_EQ(bell.enqueue_ring(stream, 1), Status::ok);
  EXPECT_EQ(job.outcome(incoming).status, Status::ok);
  EXPECT_EQ(got, 77);
  EXPECT_TRUE(release.posted == Status::ok || release.posted == Status::in_progress);
}

TEST(PartsOfNothing, are_refused) {
  InProcessJob job(with_devices(1, false));
  Channel open = Channel::open(job.rank(0), Rank{0}, ChannelId{1});
  EXPECT_THROW(PartitionedSend(job.rank(0), Channel(), {.parts = 2}), Error);
  EXPECT_THROW(PartitionedSend(job.rank(0), std::move(open), {.parts = 0}), Error);
  EXPECT_THROW(PartitionedReceive(job.rank(0), Channel(), {.parts = 2}), Error);
  PartitionedSend none;
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.ready(0), Status::invalid_argument);
  EXPECT_EQ(none.device(0).word, nullptr);
}

}  // namespace
}  // namespace brant::test
