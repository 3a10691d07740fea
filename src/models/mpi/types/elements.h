#pragma once

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// MPI_Get_count: whole items in so many bytes; kUndefined: they are no whole number of items. 0 bytes are 0 items.
Count items_in(const Datatype& type, Count bytes) noexcept;

/// MPI_Get_elements: basic elements in the first `bytes` bytes of items of `type`; kUndefined: the last element is not
/// whole. Pairs count as their two parts.
Count elements_in(const Datatype& type, Count bytes) noexcept;

}  // namespace brant::mpi
