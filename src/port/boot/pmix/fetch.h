#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "port/boot/pmix/pmix_library.h"

namespace brant::port::pmix {

/// A value that another process put, or may have put.
struct Wanted {
  Rank rank = 0;
  std::string key;
  std::optional<std::vector<std::byte>> value;  ///< Empty while unknown, and if nobody put it.
};

/// Fills in the values: first what this host's server has, then, all at once, what the servers of other hosts have.
/// A server waits for a process that may still put the key, and PRRTE waits for ever for one that has left: fetching
/// ends when no answer came for `patience`. Requests that were given up are answered into nothing. Throws
/// std::bad_alloc only.
void fetch(const Library& library, const Proc& self, std::span<Wanted> wanted, std::chrono::milliseconds patience);

}  // namespace brant::port::pmix
