// What a peer may have written into a ring, by mistake: whatever it is, the consumer stays inside the ring's memory.
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "port/link/shared_memory/ring.h"
#include "support/mutation.h"

namespace brant::port::peer {
namespace {

/// Sums what a handler would read, so that the sanitizer sees every byte of it touched.
unsigned touch(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 61) sum += static_cast<unsigned>(bytes[i]);
  if (!bytes.empty()) sum += static_cast<unsigned>(bytes.back());
  return sum;
}

TEST(RingFuzz, a_mutated_record_is_read_inside_the_ring_or_refused) {
  auto memory = std::make_unique<RingMemory>();
  RingProducer producer(*memory);
  RingConsumer consumer(*memory);
  std::mt19937_64 random(20260116);
  const std::vector<std::byte> payload(kLinkPayloadMax, std::byte{7});
  const std::byte header[kLinkHeaderBytes] = {};
  const auto inside = [&](std::span<const std::byte> bytes) {
    const auto* begin = reinterpret_cast<const std::byte*>(memory.get());
    return bytes.empty() || (bytes.data() >= begin && bytes.data() + bytes.size() <= begin + sizeof(RingMemory));
  };
  unsigned refused = 0, sum = 0;
  const unsigned records = brant::test::fuzz_records(4'000'000);
  for (unsigned number = 0; number < records; ++number) {
    const std::size_t bytes = random() % (number % 16 == 0 ? kLinkPayloadMax + 1 : 200);
    ASSERT_TRUE(
        producer.push(static_cast<unsigned>(random() % Links::kServices), header, std::span(payload).first(bytes)));
    const Slot* slot = consumer.front();
    ASSERT_NE(slot, nullptr);
    const RingRecord whole = consumer.read(*slot);
    ASSERT_TRUE(whole.sound);
    ASSERT_EQ(whole.payload.size(), bytes);
    Slot& written = memory->slots[number % kSlots];
    const auto service = written.service;
    switch (random() % 4) {
      case 0: written.payload_bytes = static_cast<std::uint32_t>(random()); break;
      case 1: written.payload_bytes ^= 1u << random() % 32; break;
      case 2: written.service = static_cast<std::uint16_t>(random()); break;
      default: written.payload_bytes = static_cast<std::uint32_t>(random() % (2 * kLinkPayloadMax));
    }
    const RingRecord mutated = consumer.read(*slot);
    if (mutated.sound) {
      ASSERT_TRUE(inside(mutated.payload)) << mutated.payload.size();
      ASSERT_LT(mutated.service, Links::kServices);
      if (number % 16 == 0) sum += touch(mutated.payload);
    }
    refused += mutated.sound ? 0 : 1;
    written.payload_bytes = static_cast<std::uint32_t>(bytes);
    written.service = service;
    consumer.pop(whole);
    consumer.publish();
  }
  EXPECT_GT(refused, records / 4);
  EXPECT_LT(refused, records);
  EXPECT_NE(sum, 0u);
}

}  // namespace
}  // namespace brant::port::peer
