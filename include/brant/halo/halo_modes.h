#pragma once

#include <array>
#include <string_view>

#include "brant/halo/halo_exchange.h"

namespace brant {

/// All modes of a HaloExchange, by their names in options and rows of benchmarks.
struct NamedHaloMode {
  HaloMode mode;
  std::string_view name;
};
inline constexpr std::array kHaloModes = {
    NamedHaloMode{HaloMode::shapes, "shapes"},     NamedHaloMode{HaloMode::fused, "fused"},
    NamedHaloMode{HaloMode::direct, "direct"},     NamedHaloMode{HaloMode::graph, "graph"},
    NamedHaloMode{HaloMode::resident, "resident"}, NamedHaloMode{HaloMode::stream, "stream"},
    NamedHaloMode{HaloMode::stacked, "stacked"}};

constexpr std::string_view halo_mode_name(HaloMode mode) noexcept {
  for (const NamedHaloMode& named : kHaloModes) {
    if (named.mode == mode) return named.name;
  }
  return "unknown";
}

/// It writes into fields of other processes, is bound to them, and sends no messages.
constexpr bool is_bound(HaloMode mode) noexcept {
  return mode == HaloMode::direct || mode == HaloMode::graph || mode == HaloMode::resident;
}

}  // namespace brant
