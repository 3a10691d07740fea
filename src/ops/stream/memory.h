#pragma once

#include <chrono>

#include "brant/base/result.h"
#include "ops/stream/kernels.h"

namespace brant {

/// The memory of one end that its kernels, those of the other end and the CPU share.
class StreamMemory {
 public:
  explicit StreamMemory(port::Device& device) noexcept : device_(device) {}
  /// Kernels use it no more. May wait for the device.
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  /// Once. `kind`: of the mailbox. `patience` bounds each wait of a kernel. Also returns what the device says.
  Status make(MemoryKind kind, std::chrono::nanoseconds patience) noexcept;
  [[nodiscard]] bool made() const noexcept { return stream_ != nullptr; }
  [[nodiscard]] StreamMailbox* mailbox() const noexcept { return mailbox_; }
  [[nodiscard]] StreamControl* control() const noexcept { return control_; }
  /// What a mailbox takes of the device.
  [[nodiscard]] std::size_t mailbox_bytes() const noexcept;

  /// Kernels that wait give up, and say why.
  void abort(Status why) noexcept;
  /// Why a kernel gave up, or ok.
  [[nodiscard]] Status fault() const noexcept;
  /// Where this end has mapped an allocation of the other; the kernels see it soon.
  Status write_base(unsigned number, std::uint64_t base) noexcept;

 private:
  port::Device& device_;
  StreamMailbox* mailbox_ = nullptr;
  StreamControl* control_ = nullptr;
  port::Stream* stream_ = nullptr;  ///< For what the CPU writes into the mailbox.
};

}  // namespace brant
