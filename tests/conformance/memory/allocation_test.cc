// What every device promises about its memory.
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "conformance/memory/memory_fixture.h"

namespace brant::test {
namespace {

using port::PointerInfo;

INSTANTIATE_TEST_SUITE_P(Device, MemoryConformance, testing::Values("host", "emulated", "cuda"), subject_name);

TEST_P(MemoryConformance, offers_host_and_pinned_memory) {
  EXPECT_TRUE(device().capabilities().offers(MemoryKind::host));
  EXPECT_TRUE(device().capabilities().offers(MemoryKind::pinned));
  EXPECT_FALSE(device().capabilities().offers(MemoryKind::detect));
}

TEST_P(MemoryConformance, says_what_it_is) {
  const port::DeviceCapabilities& capabilities = device().capabilities();
  EXPECT_FALSE(capabilities.name.empty());
  EXPECT_FALSE(capabilities.id.empty());
  EXPECT_GT(capabilities.memory_bytes, 0u);
  EXPECT_EQ(capabilities.streams, device().streams() != nullptr);
  EXPECT_EQ(capabilities.kernels, device().kernels() != nullptr);
}

TEST_P(MemoryConformance, allocates_each_kind_aligned_and_knows_it_again) {
  for (const MemoryKind kind : kinds()) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{255}, std::size_t{4096}, std::size_t{65537}, std::size_t{3} << 20}) {
      const Piece piece(device(), kind, bytes);
      ASSERT_NE(piece.at(), nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.at()) % 256, 0u) << memory_kind_name(kind);
      const Result<PointerInfo> info = device().query(piece.at());
      ASSERT_TRUE(info.ok()) << memory_kind_name(kind);
      EXPECT_EQ(info->kind, kind);
      EXPECT_EQ(info->base, piece.at());
      EXPECT_EQ(info->bytes, bytes);
      EXPECT_NE(info->buffer_id, 0u);
    }
  }
}

TEST_P(MemoryConformance, memory_holds_what_was_written) {
  for (const MemoryKind kind : kinds()) {
    const Piece piece(device(), kind, 70001);
    const Bytes sent = pattern(piece.bytes(), static_cast<unsigned>(kind));
    write(piece.at(), sent);
    EXPECT_EQ(read(piece.at(), piece.bytes()), sent) << memory_kind_name(kind);
    if (host_accessible(kind)) {
      EXPECT_EQ(std::memcmp(piece.at(), sent.data(), sent.size()), 0);
    }
  }
}

TEST_P(MemoryConformance, refuses_zero_bytes) {
  for (const MemoryKind kind : kinds()) EXPECT_EQ(device().allocate(kind, 0).status(), Status::invalid_argument);
}

TEST_P(MemoryConformance, refuses_kinds_it_does_not_offer) {
  EXPECT_EQ(device().allocate(MemoryKind::detect, 64).status(), Status::not_supported);
  for (int number = 1; number < kMemoryKindCount; ++number) {
    const auto kind = static_cast<MemoryKind>(number);
    if (device().capabilities().offers(kind)) continue;
    EXPECT_EQ(device().allocate(kind, 64).status(), Status::not_supported) << memory_kind_name(kind);
  }
  EXPECT_EQ(device().allocate(static_cast<MemoryKind>(77), 64).status(), Status::not_supported);
}

TEST_P(MemoryConformance, asking_for_too_much_is_no_memory_and_does_no_harm) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 55;
  EXPECT_EQ(device().allocate(device_kind(), kTooMuch).status(), Status::no_memory);
  EXPECT_EQ(device().allocate(MemoryKind::host, kTooMuch).status(), Status::no_memory);
  EXPECT_EQ(device().allocate(device_kind(), SIZE_MAX).status(), Status::no_memory);
  const Piece after(device(), device_kind(), 4096);
  EXPECT_NE(after.at(), nullptr);
}

TEST_P(MemoryConformance, refuses_to_free_twice) {
  for (const MemoryKind kind : kinds()) {
    const Result<void*> pointer = device().allocate(kind, 4096);
    ASSERT_TRUE(pointer.ok());
    EXPECT_EQ(device().free(*pointer), Status::ok);
    EXPECT_EQ(device().free(*pointer), Status::not_found) << memory_kind_name(kind);
  }
}

TEST_P(MemoryConformance, refuses_to_free_what_it_did_not_allocate) {
  int on_stack = 0;
  EXPECT_EQ(device().free(&on_stack), Status::not_found);
  EXPECT_EQ(device().free(nullptr), Status::not_found);
  for (const MemoryKind kind : kinds()) {
    const Piece piece(device(), kind, 8192);
    EXPECT_EQ(device().free(piece.at(4096)), Status::invalid_argument) << memory_kind_name(kind);
    EXPECT_TRUE(device().query(piece.at()).ok());
  }
}

TEST_P(MemoryConformance, knows_pointers_into_the_middle) {
  for (const MemoryKind kind : kinds()) {
    const Piece piece(device(), kind, 10007);
    const Result<PointerInfo> first = device().query(piece.at());
    ASSERT_TRUE(first.ok());
    for (const std::size_t offset : {std::size_t{1}, std::size_t{4095}, piece.bytes() - 1}) {
      const Result<PointerInfo> info = device().query(piece.at(offset));
      ASSERT_TRUE(info.ok()) << memory_kind_name(kind) << " +" << offset;
      EXPECT_EQ(info->base, piece.at());
      EXPECT_EQ(info->buffer_id, first->buffer_id);
    }
    const Result<PointerInfo> behind = device().query(piece.at(piece.bytes()));
    if (behind.ok()) {
      EXPECT_NE(behind->base, piece.at()) << memory_kind_name(kind);
    }
  }
}

TEST_P(MemoryConformance, does_not_know_memory_of_others) {
  static int in_image = 0;
  int on_stack = 0;
  const auto on_heap = std::make_unique<std::byte[]>(1 << 20);
  EXPECT_EQ(device().query(&in_image).status(), Status::not_found);
  EXPECT_EQ(device().query(&on_stack).status(), Status::not_found);
  EXPECT_EQ(device().query(on_heap.get()).status(), Status::not_found);
  EXPECT_EQ(device().query(nullptr).status(), Status::not_found);
}

TEST_P(MemoryConformance, forgets_freed_memory) {
  for (const MemoryKind kind : kinds()) {
    Piece piece(device(), kind, 4096);
    const std::byte* address = piece.at();
    piece.free_now();
    EXPECT_EQ(device().query(address).status(), Status::not_found) << memory_kind_name(kind);
  }
}

TEST_P(MemoryConformance, a_reallocated_address_has_a_new_id) {
  for (const MemoryKind kind : kinds()) {
    std::map<const void*, std::uint64_t> seen;
    unsigned reused = 0;
    for (int round = 0; round < 20; ++round) {
      const Piece piece(device(), kind, 1 << 20);
      const Result<PointerInfo> info = device().query(piece.at(17));
      ASSERT_TRUE(info.ok());
      const auto before = seen.find(piece.at());
      if (before != seen.end()) {
        ++reused;
        EXPECT_NE(before->second, info->buffer_id) << memory_kind_name(kind);
      }
      for (const auto& [address, id] : seen) EXPECT_NE(id, info->buffer_id);
      seen[piece.at()] = info->buffer_id;
    }
    if (kind == MemoryKind::emulated) {
      EXPECT_GT(reused, 0u) << "the emulated device gives addresses again at once";
    }
  }
}

TEST_P(MemoryConformance, many_allocations_are_all_found) {
  std::vector<std::unique_ptr<Piece>> pieces;
  for (unsigned i = 0; i < 300; ++i) pieces.push_back(std::make_unique<Piece>(device(), device_kind(), 1 + i * 37));
  for (unsigned i = 0; i < 300; i += 2) pieces[i].reset();
  for (unsigned i = 1; i < 300; i += 2) {
    const Result<PointerInfo> info = device().query(pieces[i]->at(i / 2));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->base, pieces[i]->at());
    EXPECT_EQ(info->bytes, pieces[i]->bytes());
  }
}

TEST_P(MemoryConformance, may_be_called_from_any_thread) {
  const std::vector<MemoryKind> all = kinds();
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (unsigned round = 0; round < 60; ++round) {
        const MemoryKind kind = all[(seed + round) % all.size()];
        const std::size_t bytes = 1 + (seed * 977 + round * 131) % 9000;
        const Result<void*> pointer = device().allocate(kind, bytes);
        const Result<PointerInfo> info = pointer.ok() ? device().query(static_cast<std::byte*>(*pointer) + bytes / 2)
                                                      : Result<PointerInfo>(Status::no_memory);
        const bool right = info.ok() && info->base == *pointer && info->bytes == bytes && info->kind == kind;
        if (!right || device().free(*pointer) != Status::ok) ++faults;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults.load(), 0);
}

TEST_P(MemoryConformance, closing_frees_what_was_left) {
  // The leak checker of the sanitizer build is the judge.
  for (const MemoryKind kind : kinds()) EXPECT_TRUE(device().allocate(kind, 5000).ok());
  device_.reset();
}

TEST_P(MemoryConformance, two_devices_of_one_process_do_not_mix) {
  std::string reason;
  const std::unique_ptr<port::Device> other = open_subject(GetParam(), reason);
  ASSERT_NE(other, nullptr) << reason;
  for (const MemoryKind kind : kinds()) {
    const Piece ours(device(), kind, 4096);
    const Piece theirs(*other, kind, 4096);
    EXPECT_NE(ours.at(), theirs.at());
    EXPECT_NE(other->free(ours.at()), Status::ok) << memory_kind_name(kind);
    EXPECT_TRUE(device().query(ours.at()).ok());
  }
}

}  // namespace
}  // namespace brant::test
