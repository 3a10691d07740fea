#pragma once

#include <vector>

#include "models/mpi/typed_buffer.h"

namespace brant::mpi {

/// The blocks of a buffer as a collective describes them: one behind the other, or each at its displacement with its
/// count, and perhaps a type of its own. A block that nobody asks for may be described wrongly.
class Blocks {
 public:
  Blocks(const void* base, MPI_Count count, MPI_Datatype type) noexcept : base_(base), count_(count), type_(type) {}
  /// Displacements in elements.
  Blocks(const void* base, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype type) noexcept
      : base_(base), type_(type), counts_(counts), displs_(displs), uneven_(true) {}
  /// Displacements in bytes.
  Blocks(const void* base, const MPI_Count counts[], const MPI_Aint displs[], const MPI_Datatype types[]) noexcept
      : base_(base), counts_(counts), displs_(displs), types_(types), uneven_(true), typed_(true) {}

  /// Throws what TypedBuffer does, and MPI_ERR_ARG where a list is null.
  [[nodiscard]] TypedBuffer operator[](int index) const;
  /// Throws MPI_ERR_BUFFER for MPI_IN_PLACE.
  void require_apart() const;
  /// The first `count` of them.
  [[nodiscard]] std::vector<TypedBuffer> first(int count) const;

 private:
  const void* base_;
  MPI_Count count_ = 0;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  const MPI_Count* counts_ = nullptr;
  const MPI_Aint* displs_ = nullptr;
  const MPI_Datatype* types_ = nullptr;
  bool uneven_ = false;
  bool typed_ = false;
};

/// An address so many bytes behind another; of MPI_BOTTOM too.
[[nodiscard]] inline const void* moved(const void* base, MPI_Count bytes) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(bytes));
}

}  // namespace brant::mpi
