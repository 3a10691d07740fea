#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace brant::mpi {

/// Memory that is used again and again. Its content is lost where it grows.
class Scratch {
 public:
  /// So many bytes, aligned to 64, never null. They are there until the next call. Throws bad_alloc.
  [[nodiscard]] std::byte* take(std::uint64_t bytes) {
    if (bytes > bytes_ || memory_ == nullptr) {
      memory_.reset();
      bytes_ = 0;
      const std::uint64_t grown = (bytes + kGrain) / kGrain * kGrain;
      memory_.reset(new (std::align_val_t{kAlignment}) std::byte[static_cast<std::size_t>(grown)]);
      bytes_ = grown;
    }
    return memory_.get();
  }
  /// What was taken last.
  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
  /// Nobody uses it any more: much memory is given back.
  void relax() noexcept {
    if (bytes_ <= kKept) return;
    memory_.reset();
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::uint64_t kGrain = 4096;
  static constexpr std::uint64_t kKept = std::uint64_t{16} << 20;

  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, std::align_val_t{kAlignment}); }
  };

  std::unique_ptr<std::byte[], Free> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace brant::mpi
