#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "brant/mpi/mpi.h"
#include "models/mpi/types/datatype.h"

namespace brant::mpi {

/// How data looks in a file. This one: as in memory.
class DataRepresentation {
 public:
  explicit DataRepresentation(std::string name) noexcept : name_(std::move(name)) {}
  virtual ~DataRepresentation() = default;
  DataRepresentation(const DataRepresentation&) = delete;
  DataRepresentation& operator=(const DataRepresentation&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Whether data changes on its way. What follows is asked only then.
  [[nodiscard]] virtual bool converts() const noexcept { return false; }
  /// The type that has bytes where a file has the elements of `type`.
  [[nodiscard]] virtual DatatypeRef in_file(Datatype& type) const { return DatatypeRef(&type); }
  /// `count` items of memory that the CPU reaches, to as many of `in_file(type)` that lie together; and back. Throw
  /// MPI_ERR_CONVERSION.
  virtual void to_file(const void* /*user*/, Count /*count*/, Datatype& /*type*/, std::span<std::byte> /*to*/) const {}
  virtual void from_file(std::span<const std::byte> /*from*/, void* /*user*/, Count /*count*/,
                         Datatype& /*type*/) const {}

 private:
  const std::string name_;
};

using DataRepresentationRef = std::shared_ptr<const DataRepresentation>;

/// What the program says of a representation of its own (MPI_Register_datarep). A conversion that is null: none.
struct ProgramConversions {
  MPI_Datarep_conversion_function* read = nullptr;
  MPI_Datarep_conversion_function* write = nullptr;
  MPI_Datarep_conversion_function_c* read_large = nullptr;
  MPI_Datarep_conversion_function_c* write_large = nullptr;
  MPI_Datarep_extent_function* extent = nullptr;
  void* extra_state = nullptr;
};
[[nodiscard]] DataRepresentationRef make_program_representation(std::string name, const ProgramConversions& how);

/// One of the standard's: native, internal, external32. Null: there is no such one.
[[nodiscard]] DataRepresentationRef standard_representation(const std::string& name);

}  // namespace brant::mpi
