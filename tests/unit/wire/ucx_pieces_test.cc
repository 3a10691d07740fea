// Puts and gets over transports that do not reach the memory of a peer by themselves: the owner's CPU serves them,
// lives when the memory goes meanwhile, and has a bounded part of them under way.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/wire/subject.h"
#include "port/wire/ucx/open.h"
#include "support/allocated_bytes.h"

namespace brant::port::test {
namespace {

using brant::test::allocated_bytes;

constexpr std::size_t kPages = 16 << 20;
constexpr std::size_t kPutMost = 16 << 10;  // larger ones are UCX's

/// Memory that is gone for good once it is given back.
struct Pages {
  Pages() : data(::mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memset(data, 7, kPages);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { give_back(); }
  void give_back() noexcept {
    if (data != nullptr) ::munmap(data, kPages);
    data = nullptr;
  }
  void* data;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

class UcxPieces : public testing::Test {
 protected:
  void SetUp() override {
    UcxOptions options;
    options.settings = {{"TLS", "tcp,self"}};
    pair.left = open_ucx_wire(options);
    pair.right = open_ucx_wire(options);
    pair.to_right = pair.left->connect(pair.right->address()).value();
    pair.to_left = pair.right->connect(pair.left->address()).value();
    pair.to_self = pair.left->connect(pair.left->address()).value();
  }
  RemoteMemory& owner() { return *pair.right->remote_memory(); }
  RemoteMemory& reader() { return *pair.left->remote_memory(); }
  WireKey* import(WireSegment* segment) {
    return reader().import_key(pair.to_right, owner().pack_key(segment).value()).value();
  }
  void get(Tracked& op, WireKey* key, std::uint64_t address, Buffer landing) {
    op.posted = reader().get(pair.to_right, key, address, landing, op);
  }
  void put(Tracked& op, WireKey* key, std::uint64_t address, ConstBuffer source) {
    op.posted = reader().put(pair.to_right, key, address, source, op);
  }
  Status outcome(Tracked& op) {
    return pump(pair, [&] { return op.done(); }) ? op.outcome() : Status::timed_out;
  }

  WirePair pair;
};

TEST_F(UcxPieces, of_gets_bring_every_size_several_at_a_time) {
  std::vector<std::byte> memory(3'000'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 131 + (i >> 9));
  WireSegment* const segment = owner().register_memory(host(memory)).value();
  WireKey* const key = import(segment);
  constexpr std::array<std::size_t, 7> kSizes = {1, 8, 32767, 32768, 32769, 100'000, 2'999'999};
  std::deque<Tracked> ops(kSizes.size());
  std::deque<std::vector<std::byte>> landings;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    landings.emplace_back(kSizes[i] + 1, std::byte{0x55});
    get(ops[i], key, address_of(memory.data()) + 1, Buffer(landings[i].data(), kSizes[i], MemoryKind::host));
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    ASSERT_EQ(outcome(ops[i]), Status::ok) << kSizes[i];
    EXPECT_EQ(ops[i].bytes, kSizes[i]);
    EXPECT_EQ(std::memcmp(landings[i].data(), memory.data() + 1, kSizes[i]), 0) << kSizes[i];
    EXPECT_EQ(landings[i].back(), std::byte{0x55}) << kSizes[i];
  }
}

TEST_F(UcxPieces, of_memory_of_this_process_come_too) {
  std::vector<std::byte> memory(1'000'000, std::byte{3}), landing(memory.size());
  WireSegment* const segment = reader().register_memory(host(memory)).value();
  WireKey* const key = reader().import_key(pair.to_self, reader().pack_key(segment).value()).value();
  Tracked op;
  op.posted = reader().get(pair.to_self, key, address_of(memory.data()), host(landing), op);
  EXPECT_EQ(outcome(op), Status::ok);
  EXPECT_EQ(landing, memory);
}

TEST_F(UcxPieces, of_gets_end_with_an_error_when_the_memory_goes_and_its_owner_lives) {
  for (int rounds = 0; rounds < 12; ++rounds) {
    Pages pages;
    WireSegment* const segment = owner().register_memory(Buffer(pages.data, kPages, MemoryKind::host)).value();
    WireKey* const key = import(segment);
    std::vector<std::byte> landing(kPages);
    Tracked op;
    get(op, key, address_of(pages.data), host(landing));
    for (int i = 0; i < rounds * 5; ++i) {  // from before the first piece on
      pair.left->progress();
      pair.right->progress();
    }
    owner().release_segment(segment);
    const std::uint64_t before = address_of(pages.data);
    pages.give_back();
    const Status status = outcome(op);
    EXPECT_EQ(status, Status::peer_rejected) << status_name(status) << " after " << rounds;
    Tracked late;
    get(late, key, before, host(landing));
    EXPECT_EQ(outcome(late), Status::peer_rejected);
    reader().release_key(key);
  }
  std::vector<std::byte> memory(1000, std::byte{9}), landing(1000);  // the connection lives as well
  Tracked op;
  get(op, import(owner().register_memory(host(memory)).value()), address_of(memory.data()), host(landing));
  EXPECT_EQ(outcome(op), Status::ok);
  EXPECT_EQ(landing, memory);
}

TEST_F(UcxPieces, of_gets_that_are_given_up_write_nothing_any_more) {
  Pages pages;
  WireSegment* const segment = owner().register_memory(Buffer(pages.data, kPages, MemoryKind::host)).value();
  std::vector<std::byte> landing(kPages);
  Tracked op;
  get(op, import(segment), address_of(pages.data), host(landing));
  pair.left->disconnect(pair.to_right);
  const Status status = outcome(op);
  EXPECT_EQ(status, Status::canceled) << status_name(status);
  const std::vector<std::byte> then = landing;
  for (int i = 0; i < 200; ++i) {
    pair.left->progress();
    pair.right->progress();
  }
  EXPECT_EQ(landing, then);
}

TEST_F(UcxPieces, of_puts_bring_every_size_several_at_a_time_and_need_no_flush) {
  std::vector<std::byte> source(3'000'000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 131 + (i >> 9));
  constexpr std::array<std::size_t, 7> kSizes = {1, 8, 8191, 8192, 8193, kPutMost - 1, kPutMost};
  std::deque<Tracked> ops(kSizes.size());
  std::deque<std::vector<std::byte>> memories;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    memories.emplace_back(kSizes[i] + 2, std::byte{0x55});
    WireKey* const key = import(owner().register_memory(host(memories[i])).value());
    put(ops[i], key, address_of(memories[i].data()) + 1, ConstBuffer(source.data(), kSizes[i], MemoryKind::host));
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    ASSERT_EQ(outcome(ops[i]), Status::ok) << kSizes[i];
    EXPECT_EQ(ops[i].bytes, kSizes[i]);
    EXPECT_TRUE(ops[i].visible);
    EXPECT_EQ(std::memcmp(memories[i].data() + 1, source.data(), kSizes[i]), 0) << kSizes[i];
    EXPECT_EQ(memories[i].front(), std::byte{0x55}) << kSizes[i];
    EXPECT_EQ(memories[i].back(), std::byte{0x55}) << kSizes[i];
  }
}

TEST_F(UcxPieces, of_puts_are_waited_for_by_a_flush_that_comes_behind_them) {
  constexpr std::size_t kMany = 200;  // more than are under way at a time
  std::vector<std::byte> source(kMany * kPutMost, std::byte{4}), memory(source.size());
  WireKey* const key = import(owner().register_memory(host(memory)).value());
  std::deque<Tracked> sent(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    put(sent[i], key, address_of(memory.data()) + i * kPutMost,
        ConstBuffer(source.data() + i * kPutMost, kPutMost, MemoryKind::host));
  }
  Tracked flushed;
  flushed.posted = reader().flush(pair.to_right, flushed);
  EXPECT_EQ(outcome(flushed), Status::ok);
  EXPECT_EQ(memory, source);
  for (Tracked& put : sent) EXPECT_EQ(outcome(put), Status::ok);
}

TEST_F(UcxPieces, of_puts_end_with_an_error_when_the_memory_goes_and_its_owner_lives) {
  const std::vector<std::byte> source(kPutMost, std::byte{5});
  for (int rounds = 0; rounds < 12; ++rounds) {
    Pages pages;
    WireSegment* const segment = owner().register_memory(Buffer(pages.data, kPages, MemoryKind::host)).value();
    WireKey* const key = import(segment);
    const std::uint64_t before = address_of(pages.data);
    std::deque<Tracked> ops(300);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      put(ops[i], key, before + i * kPutMost, ConstBuffer(source.data(), kPutMost, MemoryKind::host));
    }
    for (int i = 0; i < rounds * 5; ++i) {  // from before the first one on
      pair.left->progress();
      pair.right->progress();
    }
    owner().release_segment(segment);
    pages.give_back();
    for (Tracked& op : ops) {
      const Status status = outcome(op);
      EXPECT_TRUE(status == Status::ok || status == Status::peer_rejected) << status_name(status);
      EXPECT_EQ(op.visible, status == Status::ok);
    }
    EXPECT_EQ(ops.back().outcome(), Status::peer_rejected) << "after " << rounds;
    for (const std::size_t bytes : {std::size_t{8}, kPutMost}) {
      Tracked late, flushed;
      put(late, key, before, ConstBuffer(source.data(), bytes, MemoryKind::host));
      flushed.posted = reader().flush(pair.to_right, flushed);
      EXPECT_EQ(outcome(late), Status::peer_rejected) << bytes;
      EXPECT_EQ(outcome(flushed), Status::ok) << "it has nothing to wait for any more";
    }
    reader().release_key(key);
  }
}

TEST_F(UcxPieces, of_puts_that_are_given_up_read_nothing_any_more) {
  Pages there;
  auto source = std::make_unique<Pages>();
  WireKey* const key = import(owner().register_memory(Buffer(there.data, kPages, MemoryKind::host)).value());
  std::deque<Tracked> ops(300);
  for (Tracked& op : ops) {
    put(op, key, address_of(there.data), ConstBuffer(source->data, kPutMost, MemoryKind::host));
  }
  pair.left->disconnect(pair.to_right);
  for (Tracked& op : ops) EXPECT_TRUE(outcome(op) == Status::ok || outcome(op) == Status::canceled);
  source.reset();
  for (int i = 0; i < 200; ++i) {
    pair.left->progress();
    pair.right->progress();
  }
}

/// A flood of gets, whose asker does not look for a while: what its owner has under way does not grow with them.
TEST_F(UcxPieces, of_a_flood_are_bounded_at_the_owner_and_take_turns) {
  constexpr std::size_t kLarge = 2 << 20, kMany = 100;
  constexpr std::size_t kBound = std::size_t{24} << 20;  // 4 MB of pieces, and what UCX makes of them
  std::vector<std::byte> memory(kLarge);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + (i >> 11));
  WireKey* const key = import(owner().register_memory(host(memory)).value());
  std::vector<std::byte> little(8);
  Tracked first;  // so that the two are connected, and what is asked for leaves at once
  get(first, key, address_of(memory.data()), host(little));
  ASSERT_EQ(outcome(first), Status::ok);
  std::deque<Tracked> ops(kMany + 1);
  std::vector<std::vector<std::byte>> landings(kMany + 1, std::vector<std::byte>(kLarge));
  for (std::size_t i = 0; i < kMany; ++i) get(ops[i], key, address_of(memory.data()), host(landings[i]));
  get(ops[kMany], key, address_of(memory.data()), host(little));
  const std::size_t before = allocated_bytes();
  std::size_t most = before;
  for (int i = 0; i < 20'000; ++i) {
    pair.right->progress();
    if (i % 100 == 0) most = std::max(most, allocated_bytes());
  }
  EXPECT_LT(most - before, kBound);
  EXPECT_EQ(outcome(ops[kMany]), Status::ok);
  const auto ended = std::count_if(ops.begin(), ops.end(), [](const Tracked& op) { return op.done(); });
  EXPECT_LT(ended, static_cast<std::ptrdiff_t>(kMany)) << "the little one was behind all the large ones";
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(outcome(ops[i]), Status::ok) << i;
    ASSERT_EQ(landings[i], memory) << i;
  }
}

}  // namespace
}  // namespace brant::port::test
