#pragma once

#include <string>
#include <vector>

namespace brant::bench {

/// Where one end of a one-sided transfer lies, by the letters of UPC++'s gpu_microbenchmark.
enum class RmaMemory {
  device,   ///< g: memory of the device.
  shared,   ///< s: host memory that other processes reach.
  private_  ///< p: host memory of malloc, which no other process reaches.
};

/// The end at who puts or gets, and the end at the other process, which is exposed and so never private.
struct RmaPattern {
  RmaMemory local = RmaMemory::shared;
  RmaMemory remote = RmaMemory::shared;

  [[nodiscard]] bool needs_device() const noexcept { return local == RmaMemory::device || remote == RmaMemory::device; }
  bool operator==(const RmaPattern&) const = default;
};

/// All six, those with one remote memory together: gg, sg, pg, gs, ss, ps.
std::vector<RmaPattern> all_patterns();
/// "sg": from or to shared host memory here, to or from the device over there.
std::string pattern_name(RmaPattern pattern);
/// "sg,ss": each once, in the order of all_patterns. Throws Error invalid_argument naming the text.
std::vector<RmaPattern> parse_patterns(const std::string& list);

}  // namespace brant::bench
