#pragma once

#include <cstddef>

namespace brant::test {

/// GPU memory as libraries beside brant make it with the driver (or its stand-in), freed at the end of the scope. A
/// context of the GPU must be current on this thread.
class DriverMemory {
 public:
  enum class Sort {
    created,          ///< cuMemCreate, shareable as a file.
    segments,         ///< Two of cuMemCreate, side by side, half of the bytes each: as PyTorch's expandable segments.
    created_private,  ///< cuMemCreate without a handle type.
    pooled,           ///< Of a pool whose memory is shareable as a file.
    default_pool      ///< cudaMallocAsync.
  };
  /// Null pointer where the driver refuses it.
  DriverMemory(Sort sort, std::size_t bytes, int gpu = 0);
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;
  ~DriverMemory() { free_now(); }

  [[nodiscard]] std::byte* at(std::size_t offset = 0) const { return pointer_ + offset; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void free_now();
  /// Of `created` and `segments`: other memory is mapped where the first piece was.
  bool map_anew();

 private:
  bool create(bool shareable);
  bool map_piece(std::size_t piece, bool shareable);
  bool allocate(bool shareable);

  const int gpu_;
  std::size_t bytes_;
  std::size_t pieces_ = 0;  ///< Of cuMemCreate.
  std::byte* pointer_ = nullptr;
  void* pool_ = nullptr;
};

}  // namespace brant::test
