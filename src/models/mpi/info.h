#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/mpi/object.h"

namespace brant::mpi {

/// Keys and their values, in the order in which the keys were first set.
struct Info final : Object {
  static constexpr ObjectKind kKind = ObjectKind::info;
  using Entry = std::pair<std::string, std::string>;
  Info() noexcept : Object(kKind) {}

  /// Null: there is no such key.
  [[nodiscard]] Entry* find(std::string_view key) noexcept {
    const auto found = std::ranges::find(entries, key, &Entry::first);
    return found != entries.end() ? &*found : nullptr;
  }
  void set(std::string_view key, std::string_view value) {
    if (Entry* known = find(key); known != nullptr) {
      known->second = value;
    } else {
      entries.emplace_back(key, value);
    }
  }

  std::vector<Entry> entries;
};

}  // namespace brant::mpi
