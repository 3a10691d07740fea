#include <algorithm>
#include <cstring>
#include <deque>

#include "conformance/wire/fixture.h"
#include "support/atomic_cases.h"

namespace brant::port::test {
namespace {

/// `right` owns the memory, `left` reads and writes it.
class OneSided : public WireTest {
 protected:
  void SetUp() override {
    WireTest::SetUp();
    if (IsSkipped()) return;
    if (!caps().remote_memory) GTEST_SKIP() << "no remote memory";
    owner = pair.right->remote_memory();
    remote = pair.left->remote_memory();
    ASSERT_NE(owner, nullptr);
    ASSERT_NE(remote, nullptr);
  }

  WireKey* import(WireSegment* segment) {
    const auto packed = owner->pack_key(segment);
    if (!packed) return nullptr;
    const Result<WireKey*> key = remote->import_key(pair.to_right, *packed);
    return key ? *key : nullptr;
  }
  Status wait(Tracked& op) {
    return pump(pair, [&] { return op.done(); }) ? op.outcome() : Status::timed_out;
  }
  Status put(WireKey* key, std::uint64_t address, ConstBuffer source) {
    Tracked op;
    op.posted = remote->put(pair.to_right, key, address, source, op);
    return wait(op);
  }
  Status get(WireKey* key, std::uint64_t address, Buffer landing) {
    Tracked op;
    op.posted = remote->get(pair.to_right, key, address, landing, op);
    return wait(op);
  }
  Status flush() {
    Tracked op;
    op.posted = remote->flush(pair.to_right, op);
    return wait(op);
  }
  Status atomic(WireKey* key, std::uint64_t address, const Atomic& what, std::uint64_t& before) {
    Tracked op;
    op.posted = remote->atomic(pair.to_right, key, address, what, &before, op);
    return wait(op);
  }
  static constexpr Atomic kSwap = Atomic::of<std::uint64_t>(AtomicOp::swap, 1);
  static constexpr Atomic counting(std::uint64_t steps) { return Atomic::of<std::uint64_t>(AtomicOp::add, steps); }
  static std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

  RemoteMemory* owner = nullptr;
  RemoteMemory* remote = nullptr;
};

TEST_P(OneSided, put_and_get_move_every_size) {
  constexpr std::size_t kMost = 4u << 20;
  std::vector<std::byte> memory(kMost + 64);
  Result<WireSegment*> existing = owner->register_memory(host(memory));
  Result<WireSegment*> shared = owner->allocate_shared(kMost + 64);
  ASSERT_TRUE(existing && shared);
  for (WireSegment* segment : {*existing, *shared}) {
    const Buffer target = owner->memory_of(segment);
    ASSERT_EQ(target.bytes, kMost + 64);
    WireKey* key = import(segment);
    ASSERT_NE(key, nullptr);
    auto* base = static_cast<std::byte*>(target.data);
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{8}, std::size_t{2000}, std::size_t{8192}, std::size_t{100000}, kMost}) {
      const auto out = pattern(bytes, bytes);
      std::vector<std::byte> in(bytes);
      base[16 + bytes] = std::byte{0x44};
      ASSERT_EQ(put(key, address_of(base + 16), host(out)), Status::ok) << bytes;
      ASSERT_EQ(flush(), Status::ok);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), base + 16)) << bytes;
      EXPECT_EQ(base[16 + bytes], std::byte{0x44}) << bytes;
      ASSERT_EQ(get(key, address_of(base + 16), host(in)), Status::ok) << bytes;
      EXPECT_EQ(in, out) << bytes;
    }
    remote->release_key(key);
    owner->release_segment(segment);
  }
}

TEST_P(OneSided, zero_bytes_are_allowed) {
  std::vector<std::byte> memory(64);
  Result<WireSegment*> segment = owner->register_memory(host(memory));
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  EXPECT_EQ(put(key, address_of(memory.data()), ConstBuffer{}), Status::ok);
  EXPECT_EQ(get(key, address_of(memory.data()), Buffer{}), Status::ok);
}

TEST_P(OneSided, flush_completes_after_many_puts) {
  std::vector<std::uint64_t> memory(4000), values(4000);
  Result<WireSegment*> segment = owner->register_memory(Buffer{memory.data(), memory.size() * 8, MemoryKind::host});
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  std::deque<Tracked> puts(4000);
  for (std::size_t i = 0; i < puts.size(); ++i) {
    values[i] = i * 3 + 1;
    puts[i].posted =
        remote->put(pair.to_right, key, address_of(&memory[i]), ConstBuffer{&values[i], 8, MemoryKind::host}, puts[i]);
    ASSERT_TRUE(puts[i].posted == Status::ok || puts[i].posted == Status::in_progress) << status_name(puts[i].posted);
  }
  ASSERT_EQ(flush(), Status::ok);
  EXPECT_EQ(memory, values);
  EXPECT_TRUE(
      pump(pair, [&] { return std::all_of(puts.begin(), puts.end(), [](const Tracked& op) { return op.done(); }); }));
}

TEST_P(OneSided, flush_without_anything_to_flush_completes) { EXPECT_EQ(flush(), Status::ok); }

TEST_P(OneSided, atomics_return_the_previous_value) {
  Result<WireSegment*> shared = owner->allocate_shared(64);
  std::vector<std::uint64_t> memory(8);
  Result<WireSegment*> existing = owner->register_memory(Buffer{memory.data(), 64, MemoryKind::host});
  ASSERT_TRUE(shared && existing);
  for (WireSegment* segment : {*shared, *existing}) {
    WireKey* key = import(segment);
    ASSERT_NE(key, nullptr);
    auto* word = static_cast<std::uint64_t*>(owner->memory_of(segment).data);
    *word = 10;
    std::uint64_t before = 0;
    ASSERT_EQ(atomic(key, address_of(word), counting(5), before), Status::ok);
    EXPECT_EQ(before, 10u);
    ASSERT_EQ(flush(), Status::ok);
    EXPECT_EQ(*word, 15u);
    ASSERT_EQ(atomic(key, address_of(word), kSwap, before), Status::ok);
    EXPECT_EQ(before, 15u);
    ASSERT_EQ(atomic(key, address_of(word), Atomic::of<std::uint64_t>(AtomicOp::compare_swap, 7, 99), before),
              Status::ok);
    EXPECT_EQ(before, 1u) << "no match: unchanged";
    ASSERT_EQ(atomic(key, address_of(word), Atomic::of<std::uint64_t>(AtomicOp::compare_swap, 7, 1), before),
              Status::ok);
    EXPECT_EQ(before, 1u);
    ASSERT_EQ(flush(), Status::ok);
    EXPECT_EQ(*word, 7u);
  }
}

TEST_P(OneSided, every_atomic_does_what_the_model_says) {
  Result<WireSegment*> shared = owner->allocate_shared(64);
  std::vector<std::uint64_t> memory(8);
  Result<WireSegment*> existing = owner->register_memory(Buffer{memory.data(), 64, MemoryKind::host});
  ASSERT_TRUE(shared && existing);
  for (WireSegment* segment : {*shared, *existing}) {
    WireKey* key = import(segment);
    ASSERT_NE(key, nullptr);
    auto* const base = static_cast<std::byte*>(owner->memory_of(segment).data);
    for (const brant::test::AtomicCase& each : brant::test::atomic_cases()) {
      const std::size_t bytes = each.what.bytes();
      std::byte* const word = base + 5 * bytes;  // of 4 bytes, at an odd one of them
      std::fill_n(base, 64, std::byte{0x5a});
      std::memcpy(word, &each.before, bytes);
      std::uint64_t before = 99, after = 0;
      ASSERT_EQ(atomic(key, address_of(word), each.what, before), Status::ok) << each.name;
      std::memcpy(&after, word, bytes);  // without a flush: its end says that it is done
      ASSERT_EQ(before, brant::test::told_by(each)) << each.name;
      ASSERT_EQ(after, each.after) << each.name;
      ASSERT_TRUE(word[-1] == std::byte{0x5a} && word[bytes] == std::byte{0x5a}) << each.name;
    }
  }
}

TEST_P(OneSided, many_fetch_adds_lose_none) {
  Result<WireSegment*> segment = owner->allocate_shared(8);
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  auto* word = static_cast<std::uint64_t*>(owner->memory_of(*segment).data);
  *word = 0;
  constexpr std::size_t kCount = 500;
  std::deque<Tracked> ops(kCount);
  std::vector<std::uint64_t> results(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    ops[i].posted = remote->atomic(pair.to_right, key, address_of(word), counting(1), &results[i], ops[i]);
  }
  ASSERT_TRUE(
      pump(pair, [&] { return std::all_of(ops.begin(), ops.end(), [](const Tracked& op) { return op.done(); }); }));
  ASSERT_EQ(flush(), Status::ok);
  EXPECT_EQ(*word, kCount);
  std::sort(results.begin(), results.end());
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(results[i], i);
}

TEST_P(OneSided, allocated_memory_can_be_mapped) {
  Result<WireSegment*> segment = owner->allocate_shared(4096);
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  ASSERT_NE(key, nullptr);
  auto* there = static_cast<std::uint64_t*>(owner->memory_of(*segment).data);
  EXPECT_EQ(address_of(there) % 64, 0u) << "cache line";
  const Result<void*> here = remote->map_remote(key, address_of(there + 5));
  if (!here) GTEST_SKIP() << "not mappable here: " << status_name(here.status());
  *static_cast<volatile std::uint64_t*>(*here) = 77;
  EXPECT_EQ(there[5], 77u);
  there[5] = 78;
  EXPECT_EQ(*static_cast<volatile std::uint64_t*>(*here), 78u);
}

TEST_P(OneSided, ordinary_memory_cannot_be_mapped) {
  std::vector<std::byte> memory(4096);
  Result<WireSegment*> segment = owner->register_memory(host(memory));
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  EXPECT_EQ(remote->map_remote(key, address_of(memory.data())).status(), Status::not_supported);
}

TEST_P(OneSided, accesses_outside_the_segment_are_refused) {
  std::vector<std::byte> memory(64), bytes(65);
  Result<WireSegment*> segment = owner->register_memory(host(memory));
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  ASSERT_NE(key, nullptr);
  const std::uint64_t base = address_of(memory.data());
  std::uint64_t word = 0;
  Tracked op;
  EXPECT_EQ(remote->put(pair.to_right, key, base - 1, ConstBuffer{bytes.data(), 1, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->put(pair.to_right, key, base, host(bytes), op), Status::invalid_argument);
  EXPECT_EQ(remote->put(pair.to_right, key, base + 60, ConstBuffer{bytes.data(), 8, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->put(pair.to_right, key, ~std::uint64_t{0}, ConstBuffer{bytes.data(), 8, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->get(pair.to_right, key, base + 64, Buffer{bytes.data(), 1, MemoryKind::host}, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->atomic(pair.to_right, key, base + 4, kSwap, &word, op), Status::invalid_argument) << "not aligned";
  EXPECT_EQ(remote->atomic(pair.to_right, key, base + 2, Atomic::of<float>(AtomicOp::swap), &word, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->atomic(pair.to_right, key, base + 64, kSwap, &word, op), Status::invalid_argument);
  EXPECT_EQ(remote->atomic(pair.to_right, key, base + 64, Atomic::of<int>(AtomicOp::add), &word, op),
            Status::invalid_argument);
  EXPECT_EQ(remote->atomic(pair.to_right, key, base, kSwap, nullptr, op), Status::invalid_argument);
  for (const Atomic& none : brant::test::atomics_that_do_not_exist())
    EXPECT_EQ(remote->atomic(pair.to_right, key, base, none, &word, op), Status::invalid_argument);
  EXPECT_EQ(remote->map_remote(key, base + 64).status(), Status::invalid_argument);
  EXPECT_EQ(op.request, nullptr);
}

TEST_P(OneSided, bad_keys_and_endpoints_are_refused) {
  std::vector<std::byte> memory(64), bytes(8);
  Result<WireSegment*> segment = owner->register_memory(host(memory));
  ASSERT_TRUE(segment);
  WireKey* key = import(*segment);
  const std::uint64_t base = address_of(memory.data());
  Tracked op;
  EXPECT_EQ(remote->put(pair.to_right, nullptr, base, host(bytes), op), Status::invalid_argument);
  EXPECT_EQ(remote->put(nullptr, key, base, host(bytes), op), Status::invalid_argument);
  EXPECT_EQ(remote->put(pair.to_self, key, base, host(bytes), op), Status::invalid_argument)
      << "the key of another peer";
  EXPECT_EQ(remote->flush(nullptr, op), Status::invalid_argument);
  EXPECT_EQ(remote->map_remote(nullptr, base).status(), Status::invalid_argument);
  EXPECT_EQ(owner->pack_key(nullptr).status(), Status::invalid_argument);
  EXPECT_EQ(owner->memory_of(nullptr).data, nullptr);
  remote->release_key(nullptr);
  owner->release_segment(nullptr);
}

TEST_P(OneSided, damaged_keys_are_refused) {
  std::vector<std::byte> memory(64);
  Result<WireSegment*> segment = owner->register_memory(host(memory));
  ASSERT_TRUE(segment);
  const auto packed = owner->pack_key(*segment);
  ASSERT_TRUE(packed);
  for (std::size_t i = 0; i < packed->size(); ++i) {
    auto damaged = *packed;
    damaged[i] ^= std::byte{0x10};
    EXPECT_EQ(remote->import_key(pair.to_right, damaged).status(), Status::invalid_argument) << "byte " << i;
  }
  for (std::size_t bytes = 0; bytes < packed->size(); ++bytes) {
    EXPECT_EQ(remote->import_key(pair.to_right, std::span(*packed).first(bytes)).status(), Status::invalid_argument)
        << bytes;
  }
  EXPECT_EQ(remote->import_key(pair.to_self, *packed).status(), Status::invalid_argument) << "the key of another peer";
  EXPECT_EQ(remote->import_key(pair.to_right, pair.right->address()).status(), Status::invalid_argument)
      << "an address";
}

TEST_P(OneSided, memory_that_cannot_be_registered_is_refused) {
  std::vector<std::byte> memory(64);
  EXPECT_EQ(owner->register_memory(Buffer{nullptr, 64, MemoryKind::host}).status(), Status::invalid_argument);
  EXPECT_EQ(owner->register_memory(Buffer{memory.data(), 0, MemoryKind::host}).status(), Status::invalid_argument);
  EXPECT_EQ(owner->register_memory(Buffer{memory.data(), 64, MemoryKind::detect}).status(), Status::wrong_kind);
  EXPECT_EQ(owner->allocate_shared(0).status(), Status::invalid_argument);
  EXPECT_FALSE(owner->allocate_shared(SIZE_MAX / 2).ok());
}

INSTANTIATE_TEST_SUITE_P(Wire, OneSided, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace brant::port::test
