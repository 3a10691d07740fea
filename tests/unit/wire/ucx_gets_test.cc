// Gets over transports that do not read the memory of a peer by themselves: the owner's CPU serves them, and lives when
// the memory goes meanwhile.
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/wire/subject.h"
#include "port/wire/ucx/open.h"

namespace brant::port::test {
namespace {

constexpr std::size_t kPages = 16 << 20;

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

class UcxGets : public testing::Test {
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
  Status outcome(Tracked& op) {
    return pump(pair, [&] { return op.done(); }) ? op.outcome() : Status::timed_out;
  }

  WirePair pair;
};

TEST_F(UcxGets, bring_every_size_several_at_a_time) {
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

TEST_F(UcxGets, of_memory_of_this_process_come_too) {
  std::vector<std::byte> memory(1'000'000, std::byte{3}), landing(memory.size());
  WireSegment* const segment = reader().register_memory(host(memory)).value();
  WireKey* const key = reader().import_key(pair.to_self, reader().pack_key(segment).value()).value();
  Tracked op;
  op.posted = reader().get(pair.to_self, key, address_of(memory.data()), host(landing), op);
  EXPECT_EQ(outcome(op), Status::ok);
  EXPECT_EQ(landing, memory);
}

TEST_F(UcxGets, end_with_an_error_when_the_memory_goes_and_its_owner_lives) {
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

TEST_F(UcxGets, that_are_given_up_write_nothing_any_more) {
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

}  // namespace
}  // namespace brant::port::test
