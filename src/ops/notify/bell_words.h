#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "brant/device/notify.cuh"
#include "port/memory.h"

namespace brant {

/// The memory of one Notifier: words that the host sees, in host memory that peers can map and the device reaches, and
/// words of the device's memory. All of it is allocated at once, since an allocation would wait for kernels.
class BellWords {
 public:
  static constexpr std::size_t kLineBytes = 128;
  static constexpr std::size_t kUnitBytes = 256;  ///< Of device memory, for each bell or kernel.
  static_assert(sizeof(notify::Told) == kLineBytes && sizeof(notify::Asked) == kLineBytes);
  static_assert(sizeof(notify::ItemSlot) * notify::kSlotsOfLine == kLineBytes &&
                sizeof(notify::Together) <= kUnitBytes && notify::kBellParts * sizeof(notify::Word) <= kUnitBytes);

  explicit BellWords(port::Device& device) noexcept : device_(device) {}
  BellWords(const BellWords&) = delete;
  BellWords& operator=(const BellWords&) = delete;
  /// Waits for the device.
  ~BellWords();

  /// `why`: in words, where it fails.
  Status make(std::size_t lines, std::size_t units, const char*& why) noexcept;

  [[nodiscard]] std::uint64_t* line(std::size_t number) const noexcept {
    return host_ + number * kLineBytes / sizeof(std::uint64_t);
  }
  /// Of the device: not for the CPU.
  [[nodiscard]] std::uint64_t* unit(std::size_t number) const noexcept {
    return reinterpret_cast<std::uint64_t*>(device_memory_ + number * kUnitBytes);
  }
  /// The same for the CPU, which writes it through the bus: opened when it is first asked for. not_supported.
  Result<std::uint64_t*> window(std::size_t number) noexcept;
  /// Makes a unit 0, and waits for that.
  Status clear_unit(std::size_t number) noexcept;

 private:
  port::Device& device_;
  std::uint64_t* host_ = nullptr;
  bool registered_ = false;
  std::byte* device_memory_ = nullptr;
  std::size_t device_bytes_ = 0;
  std::byte* window_ = nullptr;  ///< Of all the device memory.
  port::Stream* stream_ = nullptr;
};

}  // namespace brant
