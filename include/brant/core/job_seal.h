#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "brant/base/api.h"
#include "brant/core/runtime.h"

namespace brant {

/// Bytes that only the processes of this job know, for messages that must not be taken from anybody else: the sender
/// puts them beside its message, and the receiver looks at nothing of one that comes without. They keep out who can
/// reach this process by the network; not who can read the network's traffic, since they are always the same.
class BRANT_API JobSeal {
 public:
  /// For one purpose: the seals of others do not fit. All processes must name the same. To be made right after the
  /// Runtime, whose bootstrap it asks for the key of the job, and not to outlive it. Throws Error if that has none.
  JobSeal(Runtime& runtime, std::string_view purpose);

  /// To be sent.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Whether this came beside a message of this job. If not, that is counted with the bad records of the statistics,
  /// and said once on standard error.
  [[nodiscard]] bool fits(std::span<const std::byte> came) noexcept;

 private:
  Runtime& runtime_;
  const std::string_view purpose_;
  std::array<std::byte, 16> bytes_{};
  bool told_ = false;
};

}  // namespace brant
