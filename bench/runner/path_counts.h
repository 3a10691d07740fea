#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "brant/core/runtime.h"
#include "core/engine.h"

namespace brant::bench {

/// Which path most messages of a batch took: the counters of the runtime before and after it. Sends (and puts), unless
/// told otherwise.
class PathCounts {
 public:
  explicit PathCounts(Runtime& runtime, Tally PathTally::* counted = &PathTally::sends) noexcept
      : counters_(&runtime.worker().engine().counters()), counted_(counted) {}

  using Sends = std::array<std::uint64_t, kPathCount>;
  [[nodiscard]] Sends now() const noexcept {
    Sends sends{};
    for (std::size_t path = 0; path < sends.size(); ++path) sends[path] = (counters_->paths[path].*counted_).read();
    return sends;
  }
  [[nodiscard]] std::string since(const Sends& before) const {
    const Sends after = now();
    std::size_t most = 0;
    for (std::size_t path = 1; path < before.size(); ++path) {
      if (after[path] - before[path] > after[most] - before[most]) most = path;
    }
    return std::string(path_name(static_cast<Path>(most)));
  }

 private:
  const Counters* counters_;
  Tally PathTally::* counted_;
};

}  // namespace brant::bench
