// Words of the global space: flags behind copies, atomics, and fences, where the bytes of both lie at odd places.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "brant/device.h"
#include "brant/pgas.h"
#include "brant/pgas/device_window.cuh"
#include "core/engine.h"
#include "support/in_process_job.h"

namespace brant::test {
namespace {

/// Two ranks with a space each; rank 1 uses what rank 0 owns.
class Words : public testing::Test {
 protected:
  explicit Words(JobOptions options = with_devices()) : job_(options) {}
  ~Words() override { job_.run(200); }

  static JobOptions with_devices() { return ranks(2, GpuChoice::emulated); }
  /// Memory of the host is mapped from another process, as it seems, and not simply its own.
  static JobOptions with_links() {
    JobOptions options = with_devices();
    options.links = true;
    return options;
  }

  InProcessJob job_;
  GlobalSpace owner_{job_.rank(0)};
  GlobalSpace other_{job_.rank(1)};
};

TEST_F(Words, objects_in_memory_that_was_adopted_are_aligned) {
  for (const MemoryKind kind : {MemoryKind::host, MemoryKind::emulated}) {
    Memory memory = job_.rank(0).allocate(kind, 1 << 16);
    GlobalSegment heap = owner_.adopt(Buffer(static_cast<std::byte*>(memory.data()) + 4, 32 << 10, kind));
    const auto address = [&](auto at) { return reinterpret_cast<std::uintptr_t>(heap.local(at)); };
    EXPECT_EQ(address(heap.allocate<double>()) % alignof(double), 0u);
    EXPECT_EQ(address(heap.allocate<std::byte>(64, 64)) % 64, 0u);
    const auto word = heap.allocate<std::uint64_t>();
    EXPECT_EQ(job_.outcome(other_.fetch_add(word, 1)).status, Status::ok);
    EXPECT_EQ(job_.outcome(other_.put_value(heap.begin(), std::byte{1}, {.at_target = AtTarget::set(word, 7)})).status,
              Status::ok);
    std::uint64_t seen = 0;
    job_.rank(0).copy(Buffer(&seen, 8, MemoryKind::host), ConstBuffer(heap.local(word), 8, kind));
    EXPECT_EQ(seen, 7u);
    if (kind != MemoryKind::host) {
      Stream stream = job_.rank(1).device().create_stream();
      EXPECT_EQ(other_.enqueue_set(stream, word, 8), Status::ok);
      EXPECT_EQ(stream.synchronize(), Status::ok);
    }
    heap = {};
    job_.run(200);
    job_.rank(0).tidy();
  }
}

TEST_F(Words, a_flag_or_a_window_at_an_odd_address_is_refused_before_anything_moves) {
  Memory memory = job_.rank(0).allocate(MemoryKind::pinned, 1 << 16);
  GlobalSegment heap = owner_.adopt(Buffer(static_cast<std::byte*>(memory.data()) + 4, 4096, MemoryKind::pinned));
  std::fill_n(static_cast<std::byte*>(memory.data()), 4096, std::byte{0});
  const GlobalPtr<std::uint64_t> odd = heap.begin().as<std::uint64_t>();
  for (const GlobalPtr<std::uint64_t> flag : {odd, odd + 512, GlobalPtr<std::uint64_t>{}}) {
    const Operation put = other_.put_value(heap.begin() + 64, std::byte{9}, {.at_target = AtTarget::set(flag, 7)});
    EXPECT_EQ(job_.outcome(put).status, Status::invalid_argument);
    EXPECT_EQ(*heap.local(heap.begin() + 64), std::byte{0});
  }
  const std::array unaligned = {heap.begin()};
  EXPECT_THROW(static_cast<void>(owner_.window(unaligned, 1024)), Error);
  const std::array aligned = {heap.allocate<std::byte>(1024, 16)};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(owner_.window(aligned, 1024).bases[0]) % 16, 0u);
}

class LinkedWords : public Words {
 protected:
  LinkedWords() : Words(with_links()) {}

  /// Rank 1's device reaches the memory of the host that it has mapped.
  [[nodiscard]] bool is_registered(GlobalPtr<std::uint64_t> flag) {
    return job_.rank(1).worker().engine().device().query(other_.local(flag)).ok();
  }
};

TEST_F(LinkedWords, a_flag_behind_what_a_cpu_copies_locks_no_pages) {
  GlobalSegment heap = owner_.create(MemoryKind::host, 8 << 20);
  const auto row = heap.allocate<int>(1000);
  const auto flag = heap.allocate<std::uint64_t>();
  ASSERT_TRUE(job_.outcome(other_.reach(row)).ok());
  ASSERT_NE(other_.local(flag), nullptr);
  const std::vector<int> items(1000, 1);
  EXPECT_TRUE(job_.outcome(other_.put(row, items, {.at_target = AtTarget::set(flag, 1)})).ok());
  EXPECT_FALSE(is_registered(flag)) << "the kind of the items was not declared, and is that of the host";
}

TEST_F(LinkedWords, a_flag_in_a_small_part_of_a_large_allocation_locks_no_pages) {
  GlobalSegment heap = owner_.create(MemoryKind::emulated, 1 << 16);
  Memory source = job_.rank(1).allocate(MemoryKind::emulated, 4096);
  for (const std::size_t bytes : {std::size_t{64} << 20, std::size_t{1} << 20}) {
    Memory memory = job_.rank(0).allocate(MemoryKind::host, bytes);
    GlobalSegment flags = owner_.adopt(Buffer(memory.data(), 4096, MemoryKind::host));
    const auto flag = flags.allocate<std::uint64_t>();
    ASSERT_TRUE(job_.outcome(other_.reach(flag)).ok());
    ASSERT_NE(other_.local(flag), nullptr);
    EXPECT_TRUE(
        job_.outcome(other_.put(heap.begin(), ConstBuffer(source), {.at_target = AtTarget::set(flag, 1)})).ok());
    EXPECT_EQ(is_registered(flag), bytes < (16u << 20)) << bytes;
    flags = {};
    job_.run(200);
    job_.rank(0).tidy();
  }
}

TEST(SpaceFences, come_behind_atomics) {
  for (const bool by_owner : {false, true}) {
    JobOptions options = ranks(2, GpuChoice::emulated);
    options.links = false;
    if (by_owner) options.exportable = [](const port::PointerInfo&) { return false; };  // nothing is mapped
    InProcessJob job(options);
    GlobalSpace owner(job.rank(0)), other(job.rank(1));
    const MemoryKind kind = by_owner ? MemoryKind::host : MemoryKind::emulated;
    GlobalSegment heap = owner.create(kind, 4096);
    const auto word = heap.allocate<std::uint64_t>();
    const std::uint64_t none = 0;
    job.rank(0).copy(Buffer(heap.local(word), 8, kind), ConstBuffer(&none, 8, MemoryKind::host));
    // The first atomic waits until the segment is reached.
    for (const std::uint64_t sum : {std::uint64_t{5}, std::uint64_t{10}}) {
      const Operation add = other.atomic(word, AtomicOp::add, 5);
      ASSERT_TRUE(job.outcome(other.fence(Rank{0})).ok());
      std::uint64_t seen = 0;
      job.rank(0).copy(Buffer(&seen, 8, MemoryKind::host), ConstBuffer(heap.local(word), 8, kind));
      EXPECT_EQ(seen, sum);
      EXPECT_TRUE(job.outcome(add).ok());
    }
    heap = {};
    job.run(200);
  }
}

}  // namespace
}  // namespace brant::test
