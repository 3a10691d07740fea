#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/paths/calibration.h"

namespace brant {

/// Copying through shared memory beats a network library that lets the kernel copy (CMA) for messages that are small
/// (no system call) or large (two processes copy, page by page in cache); between the two the single copy wins on most
/// machines. Measured in docs/numbers; see docs/decisions/0005.
inline constexpr std::size_t kShmSmallBytes = std::size_t{8} << 10;
inline constexpr std::size_t kShmLargeBytes = std::size_t{4} << 20;

/// From here on a message in host memory that the receiver can map is offered to it, and copied from where it is: one
/// copy instead of two.
inline constexpr std::size_t kOfferedBytes = std::size_t{2} << 10;

constexpr bool shm_is_faster(std::size_t bytes) noexcept { return bytes <= kShmSmallBytes || bytes >= kShmLargeBytes; }

/// Paths whose times differ by no more than this share are as good as each other.
inline constexpr double kPathTie = 0.05;

/// Which path is tried first, second, ... at which size: what the choice looks up for each message, computed once. A
/// lookup is a search among a few sizes; no logarithm, no allocation. Immutable, so any thread may read it.
class PathOrder {
 public:
  /// All paths that the automatic choice knows, best first. Some of them cannot serve a given transfer.
  using Order = std::array<Path, 5>;
  /// Up to and with this size; from the band before it.
  struct Band {
    std::size_t up_to = std::numeric_limits<std::size_t>::max();
    Order order{};
  };

  /// What brant does where nothing was measured: thresholds that held on the machines of docs/numbers.
  static const PathOrder& defaults();
  /// For puts and gets: what is mapped is copied at any size, and only then the network is asked.
  static const PathOrder& one_sided();
  /// By least predicted time; within `kPathTie` of the least by the order of `defaults`, and after what was measured
  /// what was not. A pair of ends of which nothing was measured keeps the defaults, and so does host memory that the
  /// receiver maps: its copy is never slower.
  explicit PathOrder(const Calibration& calibration);
  /// One path first where it can serve, then the defaults: to measure what the automatic choice would pay for it.
  static PathOrder preferring(Path first);

  [[nodiscard]] const Order& at(EndPair ends, std::size_t bytes) const noexcept {
    const std::vector<Band>& bands = bands_[ends.index()];
    return std::lower_bound(bands.begin(), bands.end() - 1, bytes,
                            [](const Band& band, std::size_t wanted) { return band.up_to < wanted; })
        ->order;
  }
  /// Ascending; the last one reaches to the largest size there is.
  [[nodiscard]] std::span<const Band> bands(EndPair ends) const noexcept { return bands_[ends.index()]; }

 private:
  PathOrder() = default;
  std::array<std::vector<Band>, kEndPairs> bands_;
};

}  // namespace brant
