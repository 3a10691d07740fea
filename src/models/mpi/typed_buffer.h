#pragma once

#include <cstddef>
#include <optional>

#include "brant/base/buffer.h"
#include "brant/mpi/mpi.h"
#include "core/memory_kinds.h"
#include "models/mpi/types/datatype.h"
#include "models/mpi/types/type_shape.h"

namespace brant::mpi {

/// The type of a handle. Throws MPI_ERR_TYPE.
[[nodiscard]] Datatype& datatype_of(MPI_Datatype handle);

/// Memory of the program as a call describes it: an address, a count and a datatype, which it keeps alive.
class TypedBuffer {
 public:
  TypedBuffer() noexcept = default;
  /// Throws MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER.
  TypedBuffer(const void* address, MPI_Count count, MPI_Datatype type);
  /// One of several that lie one behind the other, with `count` elements each. Throws the same.
  static TypedBuffer partition(const void* address, int number, MPI_Count count, MPI_Datatype type);
  /// The same data where `pack_any` has put it: in one run of host memory.
  [[nodiscard]] TypedBuffer packed_at(std::byte* copy) const noexcept;

  /// Of the data, without gaps.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] MPI_Count count() const noexcept { return count_; }
  [[nodiscard]] const Datatype& type() const noexcept { return *type_; }
  /// The data lies in one run, at `data`.
  [[nodiscard]] bool contiguous() const noexcept { return contiguous_; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] Buffer run() const noexcept { return {data_, bytes_, kind_}; }
  /// Of `run`.
  [[nodiscard]] const AskedMemory& memory() const noexcept { return memory_; }
  /// Some of these bytes lie between its first and its last one.
  [[nodiscard]] bool overlaps(const std::byte* base, std::size_t bytes) const noexcept;

  /// For memory that the CPU reaches.
  void pack(std::byte* to) const noexcept;
  /// The first `bytes` of the data, into memory that the CPU reaches.
  void unpack(const std::byte* from, std::size_t bytes) const noexcept;
  /// For memory of any kind; they wait for the copy. Throw what the device reports.
  void pack_any(std::byte* to) const;
  void unpack_any(const std::byte* from, std::size_t bytes) const;

  /// How the first `bytes` lie: for memory that the CPU does not reach. Throws MPI_ERR_UNSUPPORTED_OPERATION where they
  /// are more than a million runs that follow no pattern.
  [[nodiscard]] TypeShape shape(std::size_t bytes) const;
  /// What a shape is laid on.
  [[nodiscard]] Buffer ground(const TypeShape& shape) const noexcept {
    return {data_ + shape.first(), shape.shape().end(), kind_};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  MPI_Count count_ = 0;
  MemoryKind kind_ = MemoryKind::host;
  bool contiguous_ = true;
  AskedMemory memory_;
  DatatypeRef type_;
};

/// Two ranges of memory have bytes in common.
[[nodiscard]] inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                                  std::size_t b_bytes) noexcept {
  return a_bytes != 0 && b_bytes != 0 && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace brant::mpi
