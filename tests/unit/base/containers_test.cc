#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/mpsc_ring.h"
#include "base/object_pool.h"
#include "brant/base/intrusive_list.h"

namespace brant {
namespace {

struct Item {
  explicit Item(int value_in = 0) : value(value_in) {}
  int value;
  ListHook<Item> hook;
};
using ItemList = IntrusiveList<Item, &Item::hook>;

std::vector<int> values(const ItemList& list) {
  std::vector<int> result;
  for (const Item* item = list.front(); item != nullptr; item = ItemList::next(*item)) result.push_back(item->value);
  return result;
}

TEST(IntrusiveList, keeps_order_and_removes_from_anywhere) {
  Item a(1), b(2), c(3), d(4);
  ItemList list;
  for (Item* item : {&a, &b, &c, &d}) list.push_back(*item);
  list.remove(b);
  EXPECT_EQ(values(list), (std::vector<int>{1, 3, 4}));
  list.remove(d);
  list.remove(a);
  EXPECT_EQ(values(list), (std::vector<int>{3}));
  list.push_back(b);
  EXPECT_EQ(list.pop_front(), &c);
  EXPECT_EQ(list.pop_front(), &b);
  EXPECT_EQ(list.pop_front(), nullptr);
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(ItemList::linked(a));
}

TEST(ObjectPool, lends_fresh_records_reuses_them_and_stops_at_its_bound) {
  ObjectPool<Item, 4> pool(8);
  std::vector<Item*> lent;
  for (int i = 0; i < 8; ++i) {
    lent.push_back(pool.take(i));
    ASSERT_NE(lent.back(), nullptr);
    EXPECT_EQ(lent.back()->value, i);
  }
  EXPECT_EQ(pool.take(9), nullptr);
  EXPECT_EQ(pool.lent(), 8u);
  pool.give_back(lent[3]);
  Item* again = pool.take(42);
  EXPECT_EQ(again, lent[3]);
  EXPECT_EQ(again->value, 42);
  for (Item* item : lent) pool.give_back(item);
  EXPECT_EQ(pool.lent(), 0u);
}

#ifndef NDEBUG
TEST(ObjectPoolDeathTest, a_record_given_back_twice_ends_a_debug_build) {
  ObjectPool<Item, 4> pool(8);
  Item* item = pool.take(1);
  pool.give_back(item);
  EXPECT_DEATH(pool.give_back(item), "given back once");
}
#endif

TEST(MpscRing, is_bounded_and_first_in_first_out) {
  MpscRing<int> ring(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(i));
  EXPECT_FALSE(ring.push(4));
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring.pop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(ring.pop(value));
  EXPECT_TRUE(ring.push(7));
}

TEST(MpscRing, loses_and_doubles_nothing_with_three_producers) {
  constexpr int kProducers = 3;
  constexpr int kItems = 20'000;
  MpscRing<int> ring(64);
  std::vector<std::thread> producers;
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&ring, producer] {
      for (int i = 0; i < kItems; ++i) {
        while (!ring.push(producer * kItems + i)) std::this_thread::yield();
      }
    });
  }
  std::vector<int> next(kProducers, 0);
  for (int received = 0; received < kProducers * kItems;) {
    int value = -1;
    if (!ring.pop(value)) {
      std::this_thread::yield();
      continue;
    }
    ++received;
    const int producer = value / kItems;
    EXPECT_EQ(value % kItems, next[static_cast<std::size_t>(producer)]++) << "of producer " << producer;
  }
  for (std::thread& producer : producers) producer.join();
}

TEST(Bytes, round_trip) {
  ByteWriter writer;
  writer.number(std::uint32_t{7});
  writer.text("rank");
  writer.run(std::as_bytes(std::span("xyz", 3)));
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.number<std::uint32_t>(), 7u);
  EXPECT_EQ(reader.text(), "rank");
  EXPECT_EQ(reader.run().size(), 3u);
  EXPECT_FALSE(reader.failed());
}

TEST(Bytes, a_short_record_is_noticed_and_never_read_past) {
  ByteWriter writer;
  writer.text("a long enough text");
  for (std::size_t length = 0; length < writer.bytes().size(); ++length) {
    ByteReader reader(std::span(writer.bytes()).first(length));
    EXPECT_EQ(reader.text(), "");
    EXPECT_TRUE(reader.failed()) << length;
  }
}

}  // namespace
}  // namespace brant
