#pragma once

#include <string>

#include "brant/base/buffer.h"

namespace brant::cli::explain {

/// One end of a transfer: a kind of memory, and of which device.
struct Place {
  MemoryKind kind = MemoryKind::host;
  int ordinal = -1;      ///< -1: not told, any.
  bool is_heap = false;  ///< Host memory of malloc and the like, which other processes cannot map.
};

/// "host", "heap", "pinned", "cuda-managed", "cuda", "cuda:1", "emulated". Throws Error invalid_argument naming the
/// text.
Place parse_place(const std::string& text);
std::string place_name(const Place& place);

}  // namespace brant::cli::explain
