#pragma once

#include <cstddef>
#include <span>

#include "models/mpi/typed_buffer.h"

namespace brant::mpi {

/// The data of a buffer, of any kind of memory, as a stream of bytes that is copied piece by piece. A position is a
/// number of bytes of the data without gaps.
class MemoryPieces {
 public:
  explicit MemoryPieces(const TypedBuffer& buffer) noexcept : buffer_(buffer) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return buffer_.bytes(); }
  /// Where the CPU finds all of it in one run; null: it must be copied.
  [[nodiscard]] std::byte* direct() const noexcept {
    return buffer_.contiguous() && host_accessible(buffer_.kind()) ? buffer_.data() : nullptr;
  }
  /// They wait for the copy. Throw what the device reports.
  void load(std::size_t position, std::span<std::byte> to) const;
  void store(std::size_t position, std::span<const std::byte> from) const;

 private:
  /// Of memory that the CPU does not reach, with gaps: `copy(image, position, bytes)` gets a copy of the memory.
  template <typename Copy>
  void with_images(std::size_t position, std::size_t bytes, bool changes, const Copy& copy) const;

  const TypedBuffer& buffer_;
};

}  // namespace brant::mpi
