#include "bench/rma/kind_pattern.h"

#include <algorithm>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::bench {
namespace {

char letter(RmaMemory memory) noexcept {
  switch (memory) {
    case RmaMemory::device: return 'g';
    case RmaMemory::shared: return 's';
    case RmaMemory::private_: return 'p';
  }
  return '?';
}

}  // namespace

std::vector<RmaPattern> all_patterns() {
  constexpr RmaMemory g = RmaMemory::device, s = RmaMemory::shared, p = RmaMemory::private_;
  return {{g, g}, {s, g}, {p, g}, {g, s}, {s, s}, {p, s}};
}

std::string pattern_name(RmaPattern pattern) { return {letter(pattern.local), letter(pattern.remote)}; }

std::vector<RmaPattern> parse_patterns(const std::string& list) {
  std::vector<RmaPattern> known = all_patterns();
  std::vector<bool> asked(known.size());
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, comma - begin);
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const RmaPattern& each) { return pattern_name(each) == name; });
    if (found == known.end()) {
      throw Error(Status::invalid_argument,
                  fmt::format("'{}' is no pattern: use gg, sg, pg, gs, ss or ps (first the memory of who puts or gets, "
                              "then the other process's; g: device, s: shared host memory, p: private host memory, "
                              "which nobody else reaches), several with commas, or all",
                              name));
    }
    asked[static_cast<std::size_t>(found - known.begin())] = true;
    begin = comma + 1;
  }
  std::vector<RmaPattern> patterns;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (asked[i]) patterns.push_back(known[i]);
  }
  return patterns;
}

}  // namespace brant::bench
