#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "brant/brant.h"
#include "support/job_runtime.h"

/// What ranks that use each other's segments need: to meet, and to look at their memory.
namespace brant::test {

inline void wait_for(const Operation& operation) {
  ASSERT_EQ(job().worker().wait_until([&] { return operation.done(); }, std::chrono::seconds(60)), Status::ok);
  ASSERT_TRUE(operation.result().ok()) << status_name(operation.result().status);
}

/// Channels to all others, for tickets and barriers.
class Ring {
 public:
  Ring() {
    static std::uint32_t rounds = 0;
    ++rounds;
    const int self = job().rank().value;
    for (int rank = 0; rank < job().size(); ++rank) {
      const auto low = static_cast<std::uint32_t>(std::min(rank, self)),
                 high = static_cast<std::uint32_t>(std::max(rank, self));
      channels_.push_back(rank == self ? Channel{}
                                       : Channel::open(job(), Rank{rank}, ChannelId{rounds * 1000 + low * 30 + high}));
    }
  }
  /// Everybody's ticket, by rank.
  std::vector<SegmentTicket> exchange(const SegmentTicket& own) {
    std::vector<SegmentTicket> tickets(channels_.size());
    tickets[static_cast<std::size_t>(job().rank().value)] = own;
    std::vector<std::unique_ptr<Operation>> operations;
    for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
      if (!channels_[rank].is_open()) continue;
      operations.emplace_back(
          new Operation(channels_[rank].recv(Buffer(&tickets[rank], sizeof(SegmentTicket), MemoryKind::host))));
      operations.emplace_back(new Operation(channels_[rank].send(ConstBuffer(&own, sizeof(own), MemoryKind::host))));
    }
    for (const auto& operation : operations) wait_for(*operation);
    return tickets;
  }
  void barrier() { static_cast<void>(exchange({})); }

 private:
  std::vector<Channel> channels_;
};

inline int partner() { return (job().rank().value + 1) % job().size(); }

inline std::vector<MemoryKind> kinds() {
  std::vector<MemoryKind> all = {MemoryKind::host, MemoryKind::pinned};
  if (job().device_kind() != MemoryKind::host) all.push_back(job().device_kind());
  return all;
}

inline void fill(Buffer memory, const std::vector<std::byte>& bytes) {
  job().copy(memory, ConstBuffer(bytes.data(), bytes.size(), MemoryKind::host));
}
inline std::vector<std::byte> image_of(Buffer memory) {
  std::vector<std::byte> bytes(memory.bytes);
  job().copy(Buffer(bytes.data(), bytes.size(), MemoryKind::host), memory);
  return bytes;
}

}  // namespace brant::test
