#include "brant/base/archive.h"

#include <fmt/format.h>

#include "brant/base/status.h"

namespace brant::detail {

void throw_short_message(std::size_t wanted, std::size_t left) {
  throw Error(Status::invalid_argument,
              fmt::format("a message ends too early: {} more bytes wanted, {} left. Does a serialize member read other "
                          "values than it writes?",
                          wanted, left));
}

void throw_damaged_message(const char* what) {
  throw Error(Status::invalid_argument, fmt::format("a message holds {}: it was written by another program", what));
}

}  // namespace brant::detail
