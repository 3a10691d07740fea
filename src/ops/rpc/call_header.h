#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/ops/lane/data_arguments.h"
#include "ops/am/message.h"

namespace brant::remote {

/// What a message of remote calls is.
enum class CallKind : std::uint8_t {
  call = 1,     ///< Payload: the arguments.
  result = 2,   ///< Payload: the result.
  failure = 3,  ///< Payload: what the function threw, in words.
  unknown = 4,  ///< There is no such function.
};

/// What stands in front of its payload.
struct CallHeader {
  std::uint64_t word = 0;    ///< call, unknown: the function's hash. failure: the status.
  std::uint32_t number = 0;  ///< Under which the caller waits; 0: it does not, which results and failures never say.
  CallKind kind{};
  std::uint8_t data = 0;  ///< Arguments of a call that travel beside the message.
  std::uint8_t reserved[2] = {};

  /// It is one that a process of this job writes.
  [[nodiscard]] bool is_sound() const noexcept {
    if (kind == CallKind::call) return data <= detail::kDataMax;
    if (data != 0) return false;
    return kind == CallKind::unknown || ((kind == CallKind::result || kind == CallKind::failure) && number != 0);
  }
};
static_assert(sizeof(CallHeader) <= am::kHeaderBytesMax);

}  // namespace brant::remote
