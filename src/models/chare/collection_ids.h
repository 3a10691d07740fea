#pragma once

#include <cstdint>
#include <unordered_map>

namespace brant::detail {

/// The numbers of collections. Every rank gives out its own share, one after another, and from the start again when it
/// has given all; so a number has two parts, who gave it and when. What one rank makes comes to every other rank in its
/// order: the last that came says whether a collection that does not exist here has gone, or has not come yet. It says
/// so wrongly of a number that is half a share old: 2^30 collections, divided by the ranks.
class CollectionIds {
 public:
  CollectionIds(std::uint32_t end, std::int32_t ranks) noexcept : share_(end / static_cast<std::uint32_t>(ranks)) {}

  /// The next of this rank; it may be in use. None is 0.
  std::uint32_t next(std::int32_t rank) noexcept {
    given_ = given_ % (share_ - 1) + 1;
    return static_cast<std::uint32_t>(rank) * share_ + given_;
  }
  void note_made(std::uint32_t id) { last_made_[id / share_] = id % share_; }
  /// Of one that does not exist here.
  [[nodiscard]] bool has_gone(std::uint32_t id) const noexcept {
    const auto last = last_made_.find(id / share_);
    if (last == last_made_.end()) return false;
    const std::uint32_t age = (last->second + share_ - 1 - id % share_) % (share_ - 1);
    return age < share_ / 2;
  }

 private:
  std::uint32_t share_;
  std::uint32_t given_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> last_made_;  ///< By rank.
};

}  // namespace brant::detail
