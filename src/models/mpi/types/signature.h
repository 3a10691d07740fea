#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// The sequence of basic elements that a message has, which must be that of the receive: two are equal if and only if
/// the sequences are (but for one chance in 2^60), however the types were made. Pairs count as their two parts.
struct Signature {
  std::uint64_t elements = 0;
  std::uint64_t hash = 0;

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Of `count` items. Costs a step for each node of the type's tree, not for each element.
Signature signature_of(const Datatype& type, Count count) noexcept;

/// Of the first `elements` of them, which it has at least.
Signature signature_of_first(const Datatype& type, Count count, std::uint64_t elements) noexcept;

/// The same in words, for messages of faults: "3 x (MPI_INT, 2 x MPI_DOUBLE)". Ends in "..." where it would be longer
/// than `most`.
std::string signature_text(const Datatype& type, Count count, std::size_t most = 120);

}  // namespace brant::mpi
