#pragma once

#include <string>

#include "brant/mpi/mpi.h"
#include "models/mpi/files/disk_file.h"

namespace brant::mpi {

/// The file pointer that the members of a file share, in etypes: a word in a small file of its own, which whoever wants
/// it locks. So it needs no member's help, and works wherever the file itself does. The small file is made when the
/// pointer is first moved; without it the pointer is where it was at the start.
class SharedPointer {
 public:
  SharedPointer() noexcept = default;
  /// `path`: of the small file, the same at all members. `start`: also the same.
  SharedPointer(std::string path, MPI_Offset start) noexcept : base_(std::move(path)), start_(start) {}

  /// Where it was before. Throws MPI_ERR_ARG where it would go further than files reach.
  MPI_Offset advance(MPI_Offset etypes);
  [[nodiscard]] MPI_Offset value();
  void set(MPI_Offset etype);
  /// At 0 again, in another small file: all members call it, when none of them uses this one any more.
  void start_over() noexcept;
  /// By one member, when none uses it any more.
  void remove() const noexcept;

 private:
  [[nodiscard]] std::string path() const;
  DiskFile& word();
  [[nodiscard]] MPI_Offset load();
  void store(MPI_Offset etype);

  std::string base_;
  unsigned uses_ = 0;  ///< How often it has started over.
  MPI_Offset start_ = 0;
  DiskFile word_;
};

}  // namespace brant::mpi
