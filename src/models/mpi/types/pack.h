#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// Copies the bytes from `position` on of what `count` items of `type` at `user` pack to, as many as `to` holds; not
/// more than there are. `user` is memory of the host, or null for types of absolute addresses (MPI_BOTTOM). May be
/// called in any order, for pieces of any size: each call finds its place, at a cost that the number of runs does not
/// matter for.
void pack(const void* user, Count count, const Datatype& type, Count position, std::span<std::byte> to) noexcept;

/// The other way round: `from` are the bytes from `position` on. Where items overlap, later ones win within a call.
void unpack(std::span<const std::byte> from, Count position, void* user, Count count, const Datatype& type) noexcept;

}  // namespace brant::mpi
