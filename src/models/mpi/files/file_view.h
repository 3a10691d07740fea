#pragma once

#include "models/mpi/files/data_representation.h"
#include "models/mpi/files/file_layout.h"

namespace brant::mpi {

/// What a rank sees of a file: the etypes of a filetype that is repeated from a displacement on. A place in it is a
/// number of etypes.
class FileView {
 public:
  /// All bytes of a file.
  FileView();
  /// Throws MPI_ERR_ARG and MPI_ERR_TYPE for types that make no view.
  FileView(MPI_Offset displacement, Datatype& etype, Datatype& filetype, DataRepresentationRef representation);

  [[nodiscard]] MPI_Offset displacement() const noexcept { return displacement_; }
  [[nodiscard]] Datatype& etype() const noexcept { return *etype_; }
  [[nodiscard]] Datatype& filetype() const noexcept { return *filetype_; }
  [[nodiscard]] const DataRepresentation& representation() const noexcept { return *representation_; }
  [[nodiscard]] const FileLayout& layout() const noexcept { return layout_; }

  /// How many etypes so many items of memory are. Throws MPI_ERR_TYPE where they are no whole number.
  [[nodiscard]] MPI_Offset etypes_in(Count count, const Datatype& type) const;
  /// Where an etype begins in the stream of the layout. Throws MPI_ERR_ARG where files do not reach.
  [[nodiscard]] std::uint64_t position_of(MPI_Offset etype) const;
  /// Where it lies in the file. Throws the same.
  [[nodiscard]] MPI_Offset byte_of(MPI_Offset etype) const;
  /// The first etype that begins at or behind a byte of the file.
  [[nodiscard]] MPI_Offset etype_at(MPI_Offset byte) const noexcept;

 private:
  MPI_Offset displacement_ = 0;
  DatatypeRef etype_;
  DatatypeRef filetype_;
  DataRepresentationRef representation_;
  Count etype_bytes_ = 1;  ///< In the file.
  FileLayout layout_;
};

}  // namespace brant::mpi
