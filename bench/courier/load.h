#pragma once

#include <cstdint>

#include "port/memory.h"

namespace brant::bench {

using DeviceCall = int (*)();
/// What cudaDeviceSynchronize calls, 0 is success; null where no driver of a GPU is in the process.
DeviceCall device_synchronize() noexcept;

/// Stand-ins for a user's kernels.
class Load {
 public:
  /// Throws Error.
  Load(port::Device& device, MemoryKind kind);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Reads and writes 1 GiB each, `times` times; microseconds on the GPU.
  double stream_us(unsigned times);
  /// Holds every SM, so that no other block fits, for so long; returns at once.
  void hold(double us);
  void wait();

 private:
  port::Device& device_;
  port::Kernel* stream_kernel_ = nullptr;
  port::Kernel* hold_kernel_ = nullptr;
  port::Stream* stream_ = nullptr;
  port::Event* begin_ = nullptr;
  port::Event* end_ = nullptr;
  void* from_ = nullptr;
  void* to_ = nullptr;
};

}  // namespace brant::bench
