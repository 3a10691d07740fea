#include "ops/channel/pools.h"

#include <utility>

#include "base/log.h"

namespace brant {

void ChannelPools::tell_limit() noexcept {
  if (std::exchange(limit_told, true)) return;
  log::warn(
      "{} sends and receives are under way in this process, and no more can be: "
      "a post returns limit_reached until some have ended. Call progress, and post receives before their messages",
      live());
}

}  // namespace brant
