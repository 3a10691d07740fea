#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "brant/brant.h"

namespace brant::bench {

/// Patterns (bench/runner/pattern.h) in memory of any kind, by way of a copy in host memory. All throw Error.
class Images {
 public:
  explicit Images(Runtime& runtime) : runtime_(runtime) {}

  /// All bytes become the pattern of this message, or what no byte of it is.
  void fill(Buffer memory, std::uint64_t message);
  void poison(Buffer memory, std::uint64_t message);
  /// The first byte that is not the pattern's.
  std::optional<std::size_t> first_wrong(Buffer memory, std::uint64_t message);

 private:
  Runtime& runtime_;
  std::vector<std::byte> image_;
};

}  // namespace brant::bench
