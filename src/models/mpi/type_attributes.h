#pragma once

#include "models/mpi/attributes.h"
#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// The attributes of a datatype, which go with it.
class TypeAttributes final : public TypeAttachment {
 public:
  explicit TypeAttributes(Datatype& type) noexcept : type_(type) {}
  ~TypeAttributes() override;

  /// Of a type; made on first use.
  static Attributes& of(Datatype& type);

 private:
  Datatype& type_;
  Attributes attributes_;
};

/// Functions of keys get the handle of their object in this place, whatever class it is of.
[[nodiscard]] inline MPI_Comm as_owner(MPI_Datatype handle) noexcept { return reinterpret_cast<MPI_Comm>(handle); }

}  // namespace brant::mpi
