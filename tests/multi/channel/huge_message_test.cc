// Runs as both ranks of a job: messages whose size does not fit into 32 bits, from memory that the receiver maps and
// from memory that it cannot map.
#include <chrono>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/available_memory.h"
#include "support/job_runtime.h"

namespace brant {
namespace {

using test::job;

constexpr std::size_t kBytes = (std::size_t{4} << 30) + 4097;
constexpr std::size_t kMarkEvery = std::size_t{64} << 20;

/// A word every 64 MB and at the very end says where it lies.
template <typename Visit>
void for_each_mark(Visit&& visit) {
  for (std::size_t offset = 0; offset + sizeof(std::uint64_t) <= kBytes; offset += kMarkEvery) visit(offset);
  visit(kBytes - sizeof(std::uint64_t));
}

void exchange(Buffer memory) {
  const bool sends = job().rank().value == 0;
  const auto word = [&](std::size_t offset) {
    return Buffer(static_cast<std::byte*>(memory.data) + offset, sizeof(std::uint64_t), memory.kind);
  };
  for_each_mark([&](std::size_t offset) {
    const std::uint64_t mark = sends ? offset + 1 : 0;
    job().copy(word(offset), ConstBuffer(&mark, sizeof(mark), MemoryKind::host));
  });
  Channel channel = Channel::open(job(), Rank{1 - job().rank().value}, ChannelId{1});
  Operation operation = sends ? channel.send(memory) : channel.recv(memory);
  ASSERT_EQ(job().worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(100)), Status::ok);
  EXPECT_TRUE(operation.result().ok()) << status_text(operation.result().status);
  EXPECT_EQ(operation.result().bytes, kBytes);
  for_each_mark([&](std::size_t offset) {
    std::uint64_t mark = 0;
    job().copy(Buffer(&mark, sizeof(mark), MemoryKind::host), word(offset));
    EXPECT_EQ(mark, offset + 1);
  });
}

class HugeMessage : public testing::Test {
 protected:
  void SetUp() override {
    // Both ranks decide alike: each needs the memory of both, and asks before either has taken any.
    constexpr std::size_t kNeeded = 3 * kBytes;
    const bool enough = agree(test::available_memory() >= kNeeded);
    if (!enough) GTEST_SKIP() << "needs " << (kNeeded >> 30) << " GB of free memory";
  }

 private:
  static bool agree(bool mine) {
    Channel channel = Channel::open(job(), Rank{1 - job().rank().value}, ChannelId{2});
    bool theirs = false;
    Operation incoming = channel.recv(Buffer(&theirs, 1, MemoryKind::host));
    Operation outgoing = channel.send(ConstBuffer(&mine, 1, MemoryKind::host));
    EXPECT_EQ(job().worker().wait_until([&] { return incoming.done() && outgoing.done(); }, std::chrono::seconds(20)),
              Status::ok);
    return mine && theirs;
  }
};

TEST_F(HugeMessage, from_memory_that_the_receiver_maps) {
  Memory memory = job().allocate(job().device_kind(), kBytes);
  exchange(memory);
}

TEST_F(HugeMessage, from_the_heap) {
  const std::unique_ptr<std::byte[]> memory(new std::byte[kBytes]);  // no page is made before it is needed
  exchange(Buffer(memory.get(), kBytes, MemoryKind::host));
}

}  // namespace
}  // namespace brant
