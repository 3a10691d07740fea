#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include "brant/base/api.h"

namespace brant {

/// Where bytes live.
enum class MemoryKind : std::uint8_t {
  detect = 0,  ///< Not declared: brant asks the drivers (tens of nanoseconds where there is a GPU, nothing elsewhere).
  host = 1,    ///< Ordinary pageable memory.
  pinned = 2,  ///< Page-locked host memory that devices can reach.
  cuda = 3,    ///< Memory of a CUDA device.
  cuda_managed = 4,  ///< CUDA managed memory.
  emulated = 5,  ///< Memory of the emulated device (threads of this process), for tests and for machines without a GPU.
};

inline constexpr int kMemoryKindCount = 6;

/// The name as it is used in options, JSON and prose: "host", "pinned", "cuda", "cuda-managed", "emulated", "detect".
BRANT_API std::string_view memory_kind_name(MemoryKind kind) noexcept;

/// True and `kind` set if `name` is one of the names above.
BRANT_API bool memory_kind_from_name(std::string_view name, MemoryKind& kind) noexcept;

/// True where the CPU may dereference pointers of this kind.
constexpr bool host_accessible(MemoryKind kind) noexcept {
  return kind == MemoryKind::host || kind == MemoryKind::pinned || kind == MemoryKind::cuda_managed;
}

/// Bytes to be read. A view: owns nothing.
///
/// Calls that take one refuse with invalid_argument a null pointer with bytes, a range that wraps, and one that reaches
/// past the end of its allocation where that is known: device memory, and what `Runtime::allocate` gave out, host
/// memory included. Of memory from malloc, a std::vector or the stack nobody can know the end: there a size that is too
/// large reads, or overwrites, what lies behind it. Do not count on the check for memory declared `pinned` that a GPU's
/// driver gave out.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::detect;

  constexpr ConstBuffer() noexcept = default;
  constexpr ConstBuffer(const void* data_in, std::size_t bytes_in, MemoryKind kind_in = MemoryKind::detect) noexcept
      : data(data_in), bytes(bytes_in), kind(kind_in) {}
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  constexpr ConstBuffer(std::span<T> items, MemoryKind kind_in = MemoryKind::detect) noexcept  // NOLINT
      : data(items.data()), bytes(items.size_bytes()), kind(kind_in) {}
};

/// Bytes to be written. A view: owns nothing.
struct Buffer {
  void* data = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::detect;

  constexpr Buffer() noexcept = default;
  constexpr Buffer(void* data_in, std::size_t bytes_in, MemoryKind kind_in = MemoryKind::detect) noexcept
      : data(data_in), bytes(bytes_in), kind(kind_in) {}
  template <typename T>
    requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
  constexpr Buffer(std::span<T> items, MemoryKind kind_in = MemoryKind::detect) noexcept  // NOLINT
      : data(items.data()), bytes(items.size_bytes()), kind(kind_in) {}
  constexpr operator ConstBuffer() const noexcept { return {data, bytes, kind}; }  // NOLINT
};

}  // namespace brant
