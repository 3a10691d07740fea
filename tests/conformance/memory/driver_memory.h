#pragma once

#include <cstddef>

namespace brant::test {

/// GPU memory as libraries beside brant make it with the driver (or its stand-in), freed at the end of the scope. A
/// context of the GPU must be current on this thread.
class DriverMemory {
 public:
  enum class Sort {
    created,          ///< cuMemCreate, shareable as a file.
    created_private,  ///< cuMemCreate without a handle type.
    pooled,           ///< Of a pool whose memory is shareable as a file.
    default_pool      ///< cudaMallocAsync.
  };
  /// Null pointer where the driver refuses it.
  DriverMemory(Sort sort, std::size_t bytes);
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;
  ~DriverMemory() { free_now(); }

  [[nodiscard]] std::byte* at(std::size_t offset = 0) const { return pointer_ + offset; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void free_now();

 private:
  bool create(bool shareable);
  bool allocate(bool shareable);

  const Sort sort_;
  std::size_t bytes_;
  std::byte* pointer_ = nullptr;
  void* pool_ = nullptr;
};

}  // namespace brant::test
