#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/base/result.h"
#include "ops/mapping/mapping.h"
#include "ops/stream/message.h"
#include "ops/stream/steps.h"

namespace brant {

class StreamEnd;

/// Where the allocations lie that messages land in. Each end numbers its own and tells of each once, on first use; the
/// other maps it, and writes where into the mailbox, for its kernels.
class StreamBases {
 public:
  explicit StreamBases(StreamEnd& end) noexcept : end_(end) {}
  StreamBases(const StreamBases&) = delete;
  StreamBases& operator=(const StreamBases&) = delete;

  /// A receive of this end, as its kernel tells of it. See StreamChannel::recv.
  Result<stream_steps::Receive> describe(Buffer landing) noexcept;
  /// The other end told of an allocation.
  void on_base(const StreamMessage& message) noexcept;
  /// The other end cannot map one. If that is still in use, large messages would be waited for in vain.
  void on_unmapped(unsigned number) noexcept;
  /// Looks for those that can be mapped by now.
  void poll() noexcept;
  /// None is to be looked for.
  [[nodiscard]] bool idle() const noexcept { return awaited_.empty(); }
  /// Nothing is mapped from now on.
  void give_up() noexcept { awaited_.clear(); }
  /// No kernel uses the other end's allocations any more.
  void let_go() noexcept;

 private:
  struct Own {
    std::uint64_t buffer_id = 0;
    const void* place = nullptr;
  };

  void map(const StreamMessage& message) noexcept;
  bool await(const StreamMessage& message) noexcept;
  Result<std::uint64_t> number_of(std::uint64_t buffer_id, const void* place) noexcept;

  StreamEnd& end_;
  std::vector<Own> own_;  ///< Those of this end that were told, by number.
  /// Of those of the other end, by number: kernels may write there as long as there are any.
  std::array<MappingLease, StreamMailbox::kBases> mapped_;
  std::vector<StreamMessage> awaited_;  ///< What tells of those whose files are on their way.
};

}  // namespace brant
