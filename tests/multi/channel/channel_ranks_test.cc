// Runs as every rank of a job (`brant run -n N`): the channel between real processes over the real network. The same
// program serves host memory, the emulated device and CUDA: BRANT_GPU decides.
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "multi/channel/block.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::Block;
using test::job;

/// The channel to the other rank of a pair (0-1, 2-3, ...).
Channel pair_channel(std::uint32_t number) {
  const int self = job().rank().value;
  const int partner = self ^ 1;
  return Channel::open(job(), Rank{partner}, ChannelId{number * 100 + static_cast<std::uint32_t>(self / 2)});
}

std::vector<MemoryKind> kinds() {
  std::vector<MemoryKind> all = {MemoryKind::host, MemoryKind::pinned};
  if (job().device_kind() != MemoryKind::host) all.push_back(job().device_kind());
  return all;
}

TEST(ChannelRanks, every_size_and_kind_arrives_whole_in_both_directions) {
  Channel channel = pair_channel(1);
  const auto self = static_cast<unsigned>(job().rank().value);
  unsigned seed = 0;
  for (const MemoryKind from : kinds()) {
    for (const MemoryKind to : kinds()) {
      for (const std::size_t bytes :
           {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{4095}, std::size_t{8192}, std::size_t{65'536},
            std::size_t{1'000'003}, std::size_t{9'000'000}}) {
        ++seed;
        Block source(from, bytes);
        Block landing(to, bytes + 5);
        source.fill(seed * 2 + self);
        const auto exchange = [&]() -> Task<void> {
          Operation receive = channel.recv(landing.view());
          Operation send = channel.send(source.view());
          const OpResult got = co_await receive;
          EXPECT_TRUE(got.ok()) << status_name(got.status);
          EXPECT_EQ(got.bytes, bytes);
          EXPECT_TRUE((co_await send).ok());
        };
        job().run(exchange());
        EXPECT_TRUE(landing.holds(seed * 2 + (self ^ 1u), bytes))
            << memory_kind_name(from) << " to " << memory_kind_name(to) << " " << bytes;
      }
    }
  }
}

/// A matrix of doubles that lies by rows: its middle columns go to where the other rank has rows.
TEST(ChannelRanks, every_size_and_kind_arrives_from_one_shape_in_another) {
  Channel channel = pair_channel(20);
  const auto self = static_cast<unsigned>(job().rank().value);
  unsigned seed = 0;
  for (const MemoryKind from : kinds()) {
    for (const MemoryKind to : kinds()) {
      for (const std::size_t rows : {std::size_t{10}, std::size_t{100}, std::size_t{1000}, std::size_t{50'000}}) {
        constexpr std::size_t kPitch = 56, kRun = 24, kPitchThere = 32;
        const ShapeDim columns{.count = rows, .stride = kPitch}, there{.count = rows, .stride = kPitchThere};
        const Shape sent = *Shape::strided(16, kRun, {&columns, 1}), landed = *Shape::strided(3, kRun, {&there, 1});
        ++seed;
        Block source(from, rows * kPitch), landing(to, rows * kPitchThere);
        source.fill(seed * 2 + self);
        const auto exchange = [&]() -> Task<void> {
          Operation receive = channel.recv(landing.view(), landed);
          Operation send = channel.send(source.view(), sent);
          const OpResult got = co_await receive;
          EXPECT_TRUE(got.ok()) << status_name(got.status);
          EXPECT_EQ(got.bytes, rows * kRun);
          EXPECT_TRUE((co_await send).ok());
        };
        job().run(exchange());
        std::vector<std::byte> image(rows * kPitchThere);
        job().copy(std::span(image), landing.view());
        bool whole = true;
        for (std::size_t i = 0; i < rows * kRun; ++i) {
          const std::size_t row = i / kRun, byte = i % kRun;
          whole = whole && image[3 + row * kPitchThere + byte] ==
                               test::expected(16 + row * kPitch + byte, seed * 2 + (self ^ 1u));
        }
        EXPECT_TRUE(whole) << memory_kind_name(from) << " to " << memory_kind_name(to) << " " << rows;
      }
    }
  }
}

TEST(ChannelRanks, a_window_of_messages_keeps_its_order) {
  Channel channel = pair_channel(2);
  constexpr std::size_t kMessages = 2000;
  std::vector<std::uint64_t> sent(kMessages), landed(kMessages);
  std::vector<Op> ops(2 * kMessages);
  Counter all;
  const auto exchange = [&]() -> Task<void> {
    for (std::size_t i = 0; i < kMessages; ++i) {
      sent[i] = i * 3 + static_cast<std::uint64_t>(job().rank().value % 2);
      ops[i].delivered = all.sink();
      all.track(channel.post_recv(Buffer(&landed[i], 8), ops[i]), ops[i]);
      ops[kMessages + i].source_free = all.sink();
      all.track(channel.post_send(ConstBuffer(&sent[i], 8), ops[kMessages + i]), ops[kMessages + i]);
    }
    EXPECT_TRUE((co_await all).ok());
  };
  job().run(exchange());
  for (std::size_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(landed[i], i * 3 + static_cast<std::uint64_t>(1 - job().rank().value % 2));
}

/// More messages than the numbers of the courier's orders go before their laps repeat.
TEST(ChannelRanks, each_of_very_many_device_messages_arrives) {
  Channel channel = pair_channel(7);
  constexpr std::size_t kWindow = 64, kWindows = 1200;
  const MemoryKind kind = job().device_kind();
  Memory sources = job().allocate(kind, kWindow * 8);
  Memory landings = job().allocate(kind, kWindow * 8);
  std::vector<std::uint64_t> sent(kWindow), landed(kWindow);
  std::vector<Op> ops(2 * kWindow);
  const Buffer sent_bytes(sent.data(), kWindow * 8, MemoryKind::host);
  const Buffer landed_bytes(landed.data(), kWindow * 8, MemoryKind::host);
  const auto exchange = [&]() -> Task<void> {
    Counter all;
    for (std::size_t i = 0; i < kWindow; ++i) {
      ops[i].delivered = all.sink();
      all.track(channel.post_recv(landings.part(i * 8, 8), ops[i]), ops[i]);
      ops[kWindow + i].source_free = all.sink();
      all.track(channel.post_send(sources.part(i * 8, 8), ops[kWindow + i]), ops[kWindow + i]);
    }
    EXPECT_TRUE((co_await all).ok());
  };
  for (std::size_t window = 0; window < kWindows; ++window) {
    for (std::size_t i = 0; i < kWindow; ++i) sent[i] = window * kWindow + i + 1;
    job().copy(sources.part(0, kWindow * 8), sent_bytes);
    job().run(exchange());
    job().copy(landed_bytes, landings.part(0, kWindow * 8));
    ASSERT_EQ(landed, sent) << "window " << window;
  }
}

TEST(ChannelRanks, truncation_is_told_to_both_sides) {
  Channel channel = pair_channel(3);
  const bool sends = job().rank().value % 2 == 0;
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{500'000}}) {
    std::vector<std::byte> source(bytes), landing(60);
    const auto exchange = [&]() -> Task<void> {
      if (sends) {
        const OpResult result = co_await channel.send(std::span(source), Moment::delivered);
        EXPECT_EQ(result.status, Status::truncated) << bytes;
      } else {
        const OpResult result = co_await channel.recv(std::span(landing));
        EXPECT_EQ(result.status, Status::truncated) << bytes;
      }
    };
    job().run(exchange());
  }
}

TEST(ChannelRanks, delivered_waits_for_the_receiver) {
  Channel channel = pair_channel(4);
  const bool sends = job().rank().value % 2 == 0;
  int value = 41, got = 0;
  bool receiver_started = false;
  const auto exchange = [&]() -> Task<void> {
    if (sends) {
      Operation send = channel.send(ConstBuffer(&value, sizeof(int)), Moment::delivered);
      Operation started = channel.recv(Buffer(&receiver_started, sizeof(bool)));
      EXPECT_TRUE((co_await started).ok());
      EXPECT_TRUE(receiver_started);
      EXPECT_TRUE((co_await send).ok());
    } else {
      receiver_started = true;
      EXPECT_TRUE((co_await channel.send(ConstBuffer(&receiver_started, sizeof(bool)))).ok());
      EXPECT_TRUE((co_await channel.recv(Buffer(&got, sizeof(int)))).ok());
      EXPECT_EQ(got, 41);
    }
  };
  job().run(exchange());
}

TEST(ChannelRanks, a_ring_of_all_ranks_and_a_sleeping_receiver) {
  const int self = job().rank().value;
  const int size = job().size();
  const auto id = [&](int from) { return ChannelId{5000 + static_cast<std::uint32_t>(from)}; };
  Channel next = Channel::open(job(), Rank{(self + 1) % size}, id(self));
  Channel previous = Channel::open(job(), Rank{(self + size - 1) % size}, id((self + size - 1) % size));
  int token = 0;
  const auto pass = [&]() -> Task<void> {
    for (int round = 0; round < 20; ++round) {
      if (self == 0) {
        // Long enough for the others to fall asleep.
        if (round % 10 == 0) {
          const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
          static_cast<void>(job().worker().wait_until([] { return false; }, until - std::chrono::steady_clock::now()));
        }
        ++token;
        EXPECT_TRUE((co_await next.send(ConstBuffer(&token, sizeof(int)))).ok());
      }
      EXPECT_TRUE((co_await previous.recv(Buffer(&token, sizeof(int)))).ok());
      if (self != 0) {
        ++token;
        EXPECT_TRUE((co_await next.send(ConstBuffer(&token, sizeof(int)))).ok());
      }
    }
  };
  if (size > 2) {
    job().run(pass());
    EXPECT_EQ(token, self == 0 ? 20 * size : 19 * size + self + 1);
  }
}

}  // namespace
}  // namespace brant
