#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace brant {

/// Which bytes of a segment are in use: offsets, and no memory. What is aligned are their addresses. Best fit; what is
/// given back grows together with what is free beside it. Throws bad_alloc, and nothing has changed then.
class SegmentAllocator {
 public:
  /// `base`: the address of the first byte.
  explicit SegmentAllocator(std::uint64_t bytes, std::uint64_t base = 0);

  /// `alignment`: a power of two. Nothing: no piece is large enough.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment);
  /// False: that is not the beginning of something that was taken.
  bool give_back(std::uint64_t offset);

  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t largest_free() const noexcept { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void add_free(std::uint64_t offset, std::uint64_t bytes);
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator piece);

  const std::uint64_t base_;
  std::map<std::uint64_t, std::uint64_t> free_;                ///< Bytes by offset; no two of them touch.
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< The same as (bytes, offset).
  std::unordered_map<std::uint64_t, std::uint64_t> taken_;     ///< Bytes by offset.
  std::uint64_t used_ = 0;
};

}  // namespace brant
