#pragma once

#include <optional>
#include <span>

#include "ops/channel/transfer.h"

namespace brant {

// What sends and receives have of shapes besides their records. See docs/decisions/0039.

/// The shape as one run, if it is that.
[[nodiscard]] std::optional<ByteRun> single_run(const Shape& shape) noexcept;

/// It lies within a buffer of so many bytes.
[[nodiscard]] bool lies_within(const Shape& shape, std::size_t buffer_bytes) noexcept;

// By the CPU, between memory of ours and that of a transfer's user, whatever shape it has: the bytes of the message
// from `position` on. Nothing but what lies there is read or written.

void copy_out(const Transfer& transfer, std::size_t position, std::span<std::byte> to) noexcept;
void copy_in(const Transfer& transfer, std::size_t position, std::span<const std::byte> from) noexcept;

}  // namespace brant
