#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/mpi/typed_buffer.h"
#include "models/mpi/windows/window_words.h"

namespace brant::mpi {

class Window;

/// The data that a call names at a target: items of a datatype, some displacement into the memory of a member.
class TargetData {
 public:
  /// Throws MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_DISP, MPI_ERR_RMA_RANGE.
  TargetData(Window& window, int member, MPI_Aint displacement, MPI_Count count, MPI_Datatype type);

  [[nodiscard]] int member() const noexcept { return member_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] MPI_Count count() const noexcept { return count_; }
  [[nodiscard]] const Datatype& type() const noexcept { return *type_; }
  [[nodiscard]] bool contiguous() const noexcept { return type_->contiguous(); }
  /// What the first item is laid on: bytes from the start of the memory; in a dynamic window an address.
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }

  /// Where the bytes `begin` to `end` lie, of all that it packs to.
  [[nodiscard]] std::vector<WindowRun> runs(std::size_t begin, std::size_t end) const;
  /// The same with a run of its own for each element, for elements that have gaps.
  [[nodiscard]] std::vector<WindowRun> elements(std::size_t begin, std::size_t end, std::size_t element_bytes) const;

 private:
  const int member_;
  const MPI_Count count_;
  DatatypeRef type_;
  std::size_t bytes_ = 0;
  std::int64_t offset_ = 0;
};

}  // namespace brant::mpi
