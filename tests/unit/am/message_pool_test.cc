#include "ops/am/message_pool.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace brant::am {
namespace {

/// Around every size of block, and so behind and before the end of one.
std::vector<std::size_t> telling_sizes() {
  std::vector<std::size_t> sizes{0, 1, 100};
  for (std::size_t whole = 256; whole <= std::size_t{1} << 20; whole *= 2) {
    for (const std::size_t quarters : {4, 5, 6, 7}) {
      const std::size_t payload = whole / 4 * quarters - MessagePool::kRecordBytes;
      for (const std::size_t size : {payload - 1, payload, payload + 1}) sizes.push_back(size);
    }
  }
  return sizes;
}

std::byte mark(std::size_t index) { return static_cast<std::byte>(index * 37 + 1); }

/// Lends all sizes at once, and looks whether each payload is nobody else's.
void expect_apart(MessagePool& pool) {
  const std::vector<std::size_t> sizes = telling_sizes();
  std::vector<Message*> lent;
  for (const std::size_t bytes : sizes) {
    Message* message = pool.take(bytes);
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(message->bytes, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message->data) % 16, 0u);
    if (bytes != 0) std::memset(message->data, static_cast<int>(mark(lent.size())), bytes);
    lent.push_back(message);
  }
  EXPECT_EQ(pool.lent(), sizes.size());
  for (std::size_t i = 0; i < lent.size(); ++i) {
    EXPECT_EQ(std::ranges::count(lent[i]->payload(), mark(i)), static_cast<std::ptrdiff_t>(sizes[i])) << sizes[i];
    EXPECT_EQ(lent[i]->bytes, sizes[i]) << "its record was overwritten";
  }
  for (Message* message : lent) pool.give(*message);
  EXPECT_EQ(pool.lent(), 0u);
}

TEST(MessagePool, every_message_has_room_of_its_own) {
  MessagePool pool;
  expect_apart(pool);
  expect_apart(pool);  // the same blocks again
}

TEST(MessagePool, also_in_a_region_and_where_that_ends) {
  std::vector<std::byte> region(std::size_t{3} << 20);  // not for all of them
  MessagePool pool;
  pool.use_region(region);
  expect_apart(pool);
  expect_apart(pool);
}

TEST(MessagePool, large_blocks_of_a_region_are_named_by_their_place) {
  alignas(64) static std::byte region[100'000];
  MessagePool pool;
  pool.use_region(region);
  Message* small = pool.take(100);
  EXPECT_FALSE(pool.place_of(*small)) << "too small for it";
  std::vector<Message*> large;
  std::set<std::size_t> places;
  for (;;) {
    Message* message = pool.take(20'000);
    large.push_back(message);
    const auto place = pool.place_of(*message);
    if (!place) break;  // of the heap: the region is full
    EXPECT_LE(*place + MessagePool::kRecordBytes + 20'000, sizeof(region));
    EXPECT_EQ(pool.at(*place), message);
    EXPECT_TRUE(places.insert(*place).second);
  }
  EXPECT_EQ(places.size(), 4u) << "of 20480 bytes each";
  EXPECT_EQ(pool.at(*places.begin() + 1), nullptr) << "no block begins there";
  EXPECT_EQ(pool.at(sizeof(region)), nullptr);
  Message* first = large.front();
  pool.give(*first);
  EXPECT_EQ(pool.take(20'000), first) << "the region goes before the heap";
  for (Message* message : large) pool.give(*message);
  pool.give(*small);
}

}  // namespace
}  // namespace brant::am
