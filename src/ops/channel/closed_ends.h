#pragma once

#include <unordered_map>

#include "core/engine.h"
#include "ops/channel/closing.h"

namespace brant {

/// What is left of the ends of this process that were closed, while their peers live.
class ClosedEnds {
 public:
  explicit ClosedEnds(Engine& engine) noexcept : engine_(engine) {}

  /// Throws bad_alloc.
  void remember(Peer& peer, std::uint64_t key, const ClosedEnd& end);
  [[nodiscard]] const ClosedEnd* find(std::int32_t rank, std::uint64_t key) const noexcept;
  void forget(std::int32_t rank, std::uint64_t key) noexcept;
  /// All of a peer that is lost.
  void forget(std::int32_t rank) noexcept { by_rank_.erase(rank); }
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  struct OfPeer : PeerOp {
    std::unordered_map<std::uint64_t, ClosedEnd> by_key;
  };

  Engine& engine_;
  std::unordered_map<std::int32_t, OfPeer> by_rank_;
};

}  // namespace brant
