#include "ops/courier/courier_options.h"

#include <cstdint>
#include <string_view>

#include "base/env.h"
#include "base/log.h"

namespace brant {
namespace {

double number(const char* name, double fallback, std::int64_t least, std::int64_t most) noexcept {
  if (env(name).empty()) return fallback;
  const auto value = env_int(name);
  if (value && *value >= least && *value <= most) return static_cast<double>(*value);
  log::warn("{}={} is ignored: it takes a whole number from {} to {}", name, env(name), least, most);
  return fallback;
}

CourierFences wanted_fences() noexcept {
  const std::string_view value = env("BRANT_COURIER_FENCES");
  if (value == "model") return CourierFences::by_model;
  if (value == "measured") return CourierFences::measured;
  if (!value.empty() && value != "auto") {
    log::warn("BRANT_COURIER_FENCES={} is ignored: it takes auto, model or measured", value);
  }
  return CourierFences::automatic;
}

}  // namespace

bool CourierOptions::fences_by_model(int architecture) const noexcept {
  constexpr int kMeasured = 90;  // H200 (docs/decisions/0010)
  return fences == CourierFences::automatic ? architecture != kMeasured : fences == CourierFences::by_model;
}

CourierOptions CourierOptions::from_environment(MemoryKind device) noexcept {
  CourierOptions options;
  options.enabled = env_bool_or_warn("BRANT_COURIER", device == MemoryKind::cuda);
  if (device != MemoryKind::cuda) {  // each is a thread, on the program's own cores
    options.dispatchers = 1;
    options.blocks = 2;
  }
  options.blocks = static_cast<unsigned>(number("BRANT_COURIER_BLOCKS", options.blocks, 1, 32));
  options.idle_us = number("BRANT_COURIER_IDLE_US", options.idle_us, 1, 1'000'000);
  options.lease_us = number("BRANT_COURIER_LEASE_US", options.lease_us, 1, 1'000'000);
  options.fences = wanted_fences();
  return options;
}

}  // namespace brant
