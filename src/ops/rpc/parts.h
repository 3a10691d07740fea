#pragma once

#include <cstdint>
#include <exception>
#include <unordered_map>

#include "brant/ops/rpc/distributed.h"
#include "ops/am/messenger.h"

namespace brant::remote {

/// Thrown where a call names a part that is yet to be made: the call waits for it.
struct PartNotMade final : std::exception {
  explicit PartNotMade(std::uint64_t id_in) noexcept : id(id_in) {}
  std::uint64_t id;
};

/// This process's parts of distributed objects, and the calls that wait for those which are yet to be made.
class Parts {
 public:
  /// Numbers it. Gives the calls that waited for it, in order.
  am::MessageList add(DistributedPart& part) {
    parts_.emplace(made_ + 1, &part);
    part.id = ++made_;
    const auto waiting = waiting_.find(part.id);
    if (waiting == waiting_.end()) return {};
    const am::MessageList calls = waiting->second;
    waiting_.erase(waiting);
    return calls;
  }
  void remove(const DistributedPart& part) noexcept { parts_.erase(part.id); }

  /// See `arrived_part`. Throws PartNotMade.
  [[nodiscard]] void* find(std::uint64_t id, std::uint64_t type) const;

  /// False: no memory.
  bool keep(am::Message& call, std::uint64_t id) noexcept;
  /// All calls that wait.
  am::MessageList take_all() noexcept;

 private:
  std::unordered_map<std::uint64_t, DistributedPart*> parts_;
  std::unordered_map<std::uint64_t, am::MessageList> waiting_;
  std::uint64_t made_ = 0;
};

}  // namespace brant::remote
