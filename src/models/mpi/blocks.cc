#include "models/mpi/blocks.h"

#include "models/mpi/call_error.h"

namespace brant::mpi {

TypedBuffer Blocks::operator[](int index) const {
  if (!uneven_) {
    require(count_ >= 0, MPI_ERR_COUNT, "the count {} is negative", count_);
    MPI_Count place = 0;
    const bool fits = !__builtin_mul_overflow(count_, MPI_Count{index}, &place) &&
                      !__builtin_mul_overflow(place, MPI_Count{datatype_of(type_).extent()}, &place);
    require(fits, MPI_ERR_COUNT, "the count {} is too large", count_);
    return {moved(base_, place), count_, type_};
  }
  require(counts_ != nullptr && displs_ != nullptr, MPI_ERR_ARG, "the counts or displacements are null");
  if (!typed_) return {moved(base_, displs_[index] * datatype_of(type_).extent()), counts_[index], type_};
  require(types_ != nullptr, MPI_ERR_ARG, "the types are null");
  return {moved(base_, displs_[index]), counts_[index], types_[index]};
}

void Blocks::require_apart() const {
  require(base_ != MPI_IN_PLACE, MPI_ERR_BUFFER,
          "MPI_IN_PLACE stands for a buffer, which collectives between two groups and of neighbourhoods do not allow");
}

std::vector<TypedBuffer> Blocks::first(int count) const {
  std::vector<TypedBuffer> list;
  list.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list.push_back((*this)[i]);
  return list;
}

}  // namespace brant::mpi
