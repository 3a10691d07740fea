#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "brant/base/buffer.h"
#include "brant/core/path.h"

namespace brant {

/// Where the two ends of a transfer lie, as far as its cost depends on it.
struct EndPair {
  bool from_device = false;
  bool to_device = false;
  bool from_mapped = false;  ///< From host memory that the receiver maps, which it copies itself; to host memory.

  /// Of memory kinds; `to` may be detect: the same as `from`.
  static constexpr EndPair of(MemoryKind from, MemoryKind to) noexcept {
    const bool from_device = !host_accessible(from);
    return {from_device, to == MemoryKind::detect ? from_device : !host_accessible(to)};
  }
  [[nodiscard]] constexpr std::size_t index() const noexcept {
    return from_mapped ? 4u : (from_device ? 2u : 0u) + (to_device ? 1u : 0u);
  }
};

inline constexpr EndPair kFromMapped{false, false, true};
inline constexpr std::size_t kEndPairs = 5;
inline constexpr std::array<EndPair, kEndPairs> kAllEndPairs = {EndPair{false, false}, EndPair{false, true},
                                                                EndPair{true, false}, EndPair{true, true}, kFromMapped};

/// What a message of one size cost, one way.
struct CostPoint {
  std::size_t bytes = 0;
  double us = 0;
};

/// What a set of measurements holds for. An empty field was not told and fits anything.
struct CalibratedMachine {
  std::string brant;              ///< "0.1.0": of the one that measured.
  std::string ucx;                ///< "1.22.0"
  std::string cuda;               ///< "CUDA 13.0 (driver 580.159)"
  std::string host;               ///< Where it was measured; for people.
  std::vector<std::string> gpus;  ///< UUIDs of the GPUs of the machine.
};

/// What the paths of a machine cost between two processes of one host: for each path and pair of ends a small table of
/// sizes and microseconds. A value; for set-up and explanations, not for the message path: see PathOrder.
class Calibration {
 public:
  CalibratedMachine machine;

  /// The built-in numbers: two NVIDIA H200 of one host (docs/numbers).
  static const Calibration& defaults();

  /// A second point of one size replaces the first. `us` must be positive.
  void add(Path path, EndPair ends, CostPoint point);
  /// Ascending by size; empty if nothing is known.
  [[nodiscard]] std::span<const CostPoint> points(Path path, EndPair ends) const noexcept;
  [[nodiscard]] bool knows(EndPair ends) const noexcept;
  /// No path of any pair of ends is known.
  [[nodiscard]] bool empty() const noexcept;

  /// Microseconds of one message, one way: between two points along the line through them on logarithmic scales, below
  /// the first as the first, above the last by the bandwidth of the last two. Nothing if nothing is known.
  [[nodiscard]] std::optional<double> predict(Path path, EndPair ends, std::size_t bytes) const noexcept;

 private:
  using Table = std::vector<CostPoint>;
  static std::size_t slot(Path path, EndPair ends) noexcept {
    return static_cast<std::size_t>(path) * kEndPairs + ends.index();
  }
  std::array<Table, static_cast<std::size_t>(kPathCount) * kEndPairs> tables_;
};

}  // namespace brant
