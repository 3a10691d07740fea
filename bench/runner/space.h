#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "bench/runner/options.h"
#include "brant/brant.h"

namespace brant::bench {

/// What `elsewhere(bytes)` gives, or of torch-like a slice of a larger block of it, of `bytes`.
std::shared_ptr<void> foreign_memory(Alloc alloc, std::size_t bytes,
                                     const std::function<std::shared_ptr<void>(std::size_t)>& elsewhere);
/// By malloc. Throws Error no_memory.
std::shared_ptr<void> heap_memory(std::size_t bytes);

/// Memory to exchange: brant's own, or made elsewhere as programs and frameworks make theirs. It must go before the
/// runtime.
class Space {
 public:
  Space() = default;
  /// Filled with zeros, so that no page is made during a measurement. Throws Error: this process has no such memory.
  static Space make(Runtime& runtime, MemoryKind kind, std::size_t bytes, Alloc alloc);

  [[nodiscard]] std::size_t bytes() const noexcept { return whole_.bytes; }
  [[nodiscard]] Buffer part(std::size_t offset, std::size_t bytes) const noexcept {
    return {static_cast<std::byte*>(whole_.data) + offset, bytes, whole_.kind};
  }

 private:
  Memory own_;                     ///< Alloc::library.
  std::shared_ptr<void> foreign_;  ///< The other ones.
  Buffer whole_;
};

}  // namespace brant::bench
