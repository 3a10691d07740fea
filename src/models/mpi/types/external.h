#pragma once

#include <cstddef>
#include <span>

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

// The representation external32 of the standard: big-endian, IEEE, of the same sizes on every machine. `long` has 4
// bytes there, `wchar_t` 2, and `long double` is a quad of 16.

/// Bytes of `count` items; -1: 63 bits do not hold them.
[[nodiscard]] Count external_bytes(const Datatype& type, Count count) noexcept;

/// Packs `count` items at `user` to `to`, which holds `external_bytes` at least. False: a number was too large for its
/// size there; its lower bytes were written.
[[nodiscard]] bool pack_external(const void* user, Count count, const Datatype& type, std::span<std::byte> to) noexcept;

/// The other way round; numbers always fit.
void unpack_external(std::span<const std::byte> from, void* user, Count count, const Datatype& type) noexcept;

}  // namespace brant::mpi
