#include "port/link/shared_memory/ring.h"

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/effort.h"

namespace brant::port::peer {
namespace {

/// Ring memory as a fresh mapping: all zero.
std::unique_ptr<RingMemory> fresh_ring() { return std::make_unique<RingMemory>(); }

std::vector<std::byte> payload_of(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(number * 7 + i * 13);
  return payload;
}

/// Sizes that meet every case: none, inline, the first that is not, odd ones that make the bulk ring skip its end.
std::size_t size_of(std::uint64_t number) {
  constexpr std::size_t kSizes[] = {0, 1, kInlineBytes, kInlineBytes + 1, 1000, 8192, 30011, kLinkPayloadMax, 65};
  return kSizes[number % std::size(kSizes)];
}

bool push(RingProducer& producer, std::uint64_t number) {
  const auto payload = payload_of(number, size_of(number));
  return producer.push(static_cast<unsigned>(number % 5), std::as_bytes(std::span(&number, 1)), payload);
}

/// Takes the oldest record, which must be this one.
void expect_pop(RingConsumer& consumer, std::uint64_t number) {
  const Slot* slot = consumer.front();
  ASSERT_NE(slot, nullptr) << number;
  std::uint64_t got = 0;
  std::memcpy(&got, slot->header, sizeof(got));
  EXPECT_EQ(got, number);
  EXPECT_EQ(slot->service, number % 5);
  const auto wanted = payload_of(number, size_of(number));
  const RingRecord record = consumer.read(*slot);
  ASSERT_TRUE(record.sound);
  const auto payload = record.payload;
  ASSERT_EQ(payload.size(), wanted.size());
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), wanted.begin())) << number;
  consumer.pop(record);
}

TEST(Ring, fresh_memory_is_an_empty_ring) {
  const auto memory = fresh_ring();
  RingConsumer consumer(*memory);
  EXPECT_EQ(consumer.front(), nullptr);
  EXPECT_TRUE(consumer.empty_for_sure());
}

TEST(Ring, records_come_out_whole_and_in_order_over_many_laps) {
  const auto memory = fresh_ring();
  RingProducer producer(*memory);
  RingConsumer consumer(*memory);
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  while (popped < test::effort<std::uint64_t>(20, 6) * kSlots) {
    while (push(producer, pushed)) ++pushed;
    ASSERT_GT(pushed, popped) << "an empty ring must take a record";
    // Not all of them, so that the positions of the two ends drift.
    const std::uint64_t until = popped + (pushed - popped) / 2 + 1;
    for (; popped < until; ++popped) expect_pop(consumer, popped);
    consumer.publish();
  }
}

TEST(Ring, a_full_ring_refuses_until_room_is_published) {
  const auto memory = fresh_ring();
  RingProducer producer(*memory);
  RingConsumer consumer(*memory);
  const std::uint64_t word = 1;
  const auto header = std::as_bytes(std::span(&word, 1));
  for (std::uint32_t i = 0; i < kSlots; ++i) ASSERT_TRUE(producer.push(0, header, {})) << i;
  EXPECT_FALSE(producer.push(0, header, {}));
  consumer.pop(consumer.read(*consumer.front()));
  EXPECT_FALSE(producer.push(0, header, {})) << "popped, but not published";
  consumer.publish();
  EXPECT_TRUE(producer.push(0, header, {}));
  EXPECT_FALSE(producer.push(0, header, {}));
}

TEST(Ring, the_bytes_can_run_out_before_the_slots) {
  const auto memory = fresh_ring();
  RingProducer producer(*memory);
  RingConsumer consumer(*memory);
  const std::vector<std::byte> large(kLinkPayloadMax);
  const std::uint64_t word = 1;
  const auto header = std::as_bytes(std::span(&word, 1));
  std::size_t taken = 0;
  while (producer.push(0, header, large)) ++taken;
  EXPECT_EQ(taken, kBulkBytes / kLinkPayloadMax);
  EXPECT_TRUE(producer.push(0, header, std::span(large).first(8))) << "a small record needs no bulk";
  for (std::size_t i = 0; i <= taken; ++i) consumer.pop(consumer.read(*consumer.front()));
  EXPECT_EQ(consumer.owes(), kBulkBytes);
  consumer.publish();
  EXPECT_EQ(consumer.owes(), 0u);
  EXPECT_TRUE(producer.push(0, header, large));
}

TEST(Ring, what_an_earlier_lap_left_is_no_record) {
  const auto memory = fresh_ring();
  RingProducer producer(*memory);
  RingConsumer consumer(*memory);
  for (std::uint64_t number = 0; number < kSlots; ++number) {
    const std::uint64_t word = number;
    ASSERT_TRUE(producer.push(0, std::as_bytes(std::span(&word, 1)), {}));
    ASSERT_NE(consumer.front(), nullptr);
    consumer.pop(consumer.read(*consumer.front()));
    ASSERT_EQ(consumer.front(), nullptr) << number;
  }
}

TEST(Ring, two_threads_lose_nothing) {
  const auto memory = fresh_ring();
  constexpr std::uint64_t kRecords = test::effort(20'000u, 3'000u);  // ten laps and more
  std::thread producing([&] {
    RingProducer producer(*memory);
    for (std::uint64_t number = 0; number < kRecords;) {
      if (push(producer, number)) {
        ++number;
      } else {
        std::this_thread::yield();
      }
    }
  });
  RingConsumer consumer(*memory);
  for (std::uint64_t number = 0; number < kRecords;) {
    if (consumer.front() == nullptr) {
      std::this_thread::yield();
      continue;
    }
    expect_pop(consumer, number++);
    if (number % 3 == 0 || consumer.owes() > kBulkBytes / 4) consumer.publish();
    if (consumer.front() == nullptr) consumer.publish();
  }
  producing.join();
}

}  // namespace
}  // namespace brant::port::peer
