// The courier on the emulated device: the same kernel source, on threads.
#include "ops/courier/courier.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "port/memory/adapters.h"

namespace brant::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 20s;

/// Busy machines stop threads for milliseconds: leases are long enough to meet it resident.
CourierOptions options(unsigned blocks = 2) {
  CourierOptions made;
  made.blocks = blocks;
  made.dispatchers = 1;
  made.idle_us = 20'000;
  made.lease_us = 100'000;
  return made;
}

class CourierTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;

  void SetUp() override {
    device_ = port::memory::open_emulated_device();
    stream_ = device_->streams()->create_stream(port::StreamPriority::normal).value();
    from_ = allocate(MemoryKind::emulated);
    to_ = allocate(MemoryKind::emulated);
    flags_ = reinterpret_cast<std::uint64_t*>(allocate(MemoryKind::pinned));
    image_.resize(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) image_[i] = static_cast<std::byte>(i * 7 + i / 253);
    copy(from_, image_.data(), kBytes);
    clear();
  }
  void TearDown() override { device_->streams()->destroy_stream(stream_); }

  std::byte* allocate(MemoryKind kind) { return static_cast<std::byte*>(device_->allocate(kind, kBytes).value()); }
  void copy(void* to, const void* from, std::size_t bytes) {
    ASSERT_EQ(device_->streams()->copy(to, from, bytes, stream_), Status::ok);
    ASSERT_EQ(device_->streams()->synchronize(stream_), Status::ok);
  }
  void clear() {
    ASSERT_EQ(device_->streams()->fill(to_, std::byte{0xee}, kBytes, stream_), Status::ok);
    ASSERT_EQ(device_->streams()->synchronize(stream_), Status::ok);
    for (std::size_t i = 0; i < kBytes / sizeof(*flags_); ++i) flags_[i] = 0;
  }
  template <typename Done>
  static bool poll_until(Courier& courier, Done&& done) {
    for (const auto limit = Clock::now() + kPatience; !done(); std::this_thread::yield()) {
      courier.poll();
      if (Clock::now() > limit) return false;
    }
    return true;
  }
  static bool start(Courier& courier) {
    return poll_until(courier, [&] {
      courier.start(kBytes);
      return courier.resident() || !courier.usable();
    });
  }
  /// Posts, starting the courier as often as it takes.
  static bool post(Courier& courier, const CourierOrder& order, std::size_t started_for = kBytes) {
    return poll_until(courier, [&] {
      const Status status = courier.post(order);
      if (status == Status::limit_reached) courier.start(started_for);
      return status == Status::ok;
    });
  }
  std::uint64_t flag(std::size_t i) const { return std::atomic_ref(flags_[i]).load(std::memory_order_acquire); }
  CourierOrder order(std::size_t at, std::uint32_t bytes, std::size_t flag_index, std::uint32_t value = 1) const {
    return {.to = to_ + at, .from = from_ + at, .bytes = bytes, .value = value, .flag = flags_ + flag_index};
  }
  void expect_copied(std::size_t at, std::size_t bytes) {
    std::vector<std::byte> seen(kBytes);
    copy(seen.data(), to_, kBytes);
    EXPECT_TRUE(std::equal(seen.begin() + static_cast<long>(at), seen.begin() + static_cast<long>(at + bytes),
                           image_.begin() + static_cast<long>(at)));
  }

  std::unique_ptr<port::Device> device_;
  port::Stream* stream_ = nullptr;
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  std::uint64_t* flags_ = nullptr;
  std::vector<std::byte> image_;
};

TEST_F(CourierTest, takes_nothing_before_it_has_started) {
  Courier courier(*device_, options());
  ASSERT_TRUE(courier.usable());
  EXPECT_FALSE(courier.resident());
  EXPECT_EQ(courier.post(order(0, 8, 0)), Status::limit_reached);
  ASSERT_TRUE(start(courier));
  EXPECT_TRUE(post(courier, order(0, 8, 0)));
}

TEST_F(CourierTest, copies_every_size_and_writes_the_flag) {
  Courier courier(*device_, options(3));
  std::size_t at = 0;
  std::size_t index = 0;
  for (const std::uint32_t bytes : {0u, 1u, 8u, 17u, 1024u, 4096u, 4097u, 8193u, 65536u, 300'001u}) {
    ASSERT_TRUE(post(courier, order(at, bytes, index, 100 + bytes)));
    ASSERT_TRUE(poll_until(courier, [&] { return flag(index) != 0; })) << bytes;
    EXPECT_EQ(flag(index), 100 + bytes);
    expect_copied(at, bytes);
    at += bytes;
    ++index;
  }
  ASSERT_TRUE(poll_until(courier, [&] { return courier.done() == courier.posted(); }));
  EXPECT_EQ(courier.done(), index);
}

TEST_F(CourierTest, carries_many_orders_at_once) {
  Courier courier(*device_, options(3));
  constexpr std::uint32_t bytes = 1000;
  for (int round = 0; round < 3; ++round) {
    clear();
    for (std::size_t i = 0; i < kBytes / bytes; ++i) ASSERT_TRUE(post(courier, order(i * bytes, bytes, i)));
    ASSERT_TRUE(poll_until(courier, [&] { return courier.done() == courier.posted(); }));
    for (std::size_t i = 0; i < kBytes / bytes; ++i) ASSERT_EQ(flag(i), 1) << i;
    expect_copied(0, kBytes / bytes * bytes);
  }
}

struct Shape {
  unsigned blocks;
  unsigned dispatchers;
};
class CourierLeaving : public CourierTest, public testing::WithParamInterface<Shape> {};

TEST_P(CourierLeaving, loses_nothing_however_often_it_leaves) {
  CourierOptions made = options(GetParam().blocks);
  made.dispatchers = GetParam().dispatchers;
  made.alone_bytes = GetParam().blocks == 1 ? made.alone_bytes : 0;  // all through the groups
  made.idle_us = 1;
  made.lease_us = 5;
  Courier courier(*device_, made);
  constexpr std::uint32_t bytes = 64;
  constexpr std::size_t count = 2000;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t started_for = i % 3 == 0 ? 8 : i % 3 * made.part_bytes;  // one, two or four blocks
    ASSERT_TRUE(post(courier, order(i * bytes, bytes, i), started_for));
  }
  ASSERT_TRUE(poll_until(courier, [&] { return courier.done() == count; }));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(flag(i), 1) << i;
  expect_copied(0, count * bytes);
}

INSTANTIATE_TEST_SUITE_P(Blocks, CourierLeaving,
                         testing::Values(Shape{1, 1}, Shape{1, 2}, Shape{2, 1}, Shape{2, 2}, Shape{5, 1}));

/// As when two libraries of one process have resident kernels.
TEST_F(CourierTest, carries_beside_another_one) {
  Courier first(*device_, options()), second(*device_, options());
  constexpr std::uint32_t bytes = 500;
  constexpr std::size_t count = 2000;
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(post(i % 2 == 0 ? first : second, order(i * bytes, bytes, i)));
  for (Courier* courier : {&first, &second}) {
    ASSERT_TRUE(poll_until(*courier, [&] { return courier->done() == count / 2; }));
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(flag(i), 1) << i;
  expect_copied(0, count * bytes);
}

TEST_F(CourierTest, leaves_by_itself_so_that_the_stream_drains) {
  CourierOptions made = options();
  made.idle_us = 1000;
  Courier courier(*device_, made);
  ASSERT_TRUE(start(courier));
  EXPECT_TRUE(poll_until(courier, [&] { return !courier.resident(); }));
}

TEST_F(CourierTest, is_off_when_told_so) {
  CourierOptions made = options();
  made.enabled = false;
  Courier courier(*device_, made);
  EXPECT_FALSE(courier.usable());
  EXPECT_FALSE(courier.takes(8));
  courier.start(kBytes);
  EXPECT_EQ(courier.poll(), 0u);
  EXPECT_EQ(courier.post(order(0, 8, 0)), Status::not_supported);
}

TEST_F(CourierTest, is_off_on_a_device_without_kernels) {
  const auto host = port::memory::open_host_device();
  Courier courier(*host, options());
  EXPECT_FALSE(courier.usable());
}

TEST_F(CourierTest, refuses_what_it_cannot_do) {
  Courier courier(*device_, options());
  ASSERT_TRUE(start(courier));
  EXPECT_EQ(courier.post(order(0, static_cast<std::uint32_t>(options().bytes_max) + 1, 0)), Status::invalid_argument);
  CourierOrder crooked = order(0, 8, 0);
  crooked.flag = reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(flags_) + 4);
  EXPECT_EQ(courier.post(crooked), Status::invalid_argument);
  CourierOrder nowhere = order(0, 8, 0);
  nowhere.to = nullptr;
  EXPECT_EQ(courier.post(nowhere), Status::invalid_argument);
}

TEST_F(CourierTest, fails_when_an_order_names_memory_out_of_reach) {
  Courier courier(*device_, options());
  std::array<std::byte, 64> pageable{};
  CourierOrder bad = order(0, 64, 0);
  bad.to = pageable.data();
  ASSERT_TRUE(post(courier, bad));
  ASSERT_TRUE(poll_until(courier, [&] { return !courier.usable(); }));
  EXPECT_EQ(courier.post(order(0, 8, 0)), Status::device_failed);
  EXPECT_EQ(flag(0), 0u);
}

}  // namespace
}  // namespace brant::test
