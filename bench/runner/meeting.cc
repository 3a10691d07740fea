#include "bench/runner/meeting.h"

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::bench {

void require_pairs(const char* name, int ranks) {
  if (ranks < 2) {
    throw Error(Status::invalid_argument,
                fmt::format("{}: this is a job of {} process, but messages need two: brant run -n 2 -- brant {}", name,
                            ranks, name));
  }
  if (ranks % 2 != 0) {
    throw Error(Status::invalid_argument,
                fmt::format("{}: {} processes do not make pairs: use an even number", name, ranks));
  }
}

}  // namespace brant::bench
