#pragma once

#include <string>

#include "brant/core/runtime.h"

namespace brant::bench {

/// What a row says about where it was measured. Empty: there is none.
struct Machine {
  std::string brant;  ///< "0.1.0+g1234567"
  std::string ucx;    ///< "1.22.0"
  std::string cuda;   ///< "CUDA 13.0 (driver 580.159)"
  std::string gpu;    ///< "NVIDIA H200"
  std::string cpu;    ///< "AMD EPYC, 2 cores"
  std::string host;
};

/// Of this process alone.
Machine describe_machine();
/// The same, and its device.
Machine describe_machine(const port::Device& device);
/// Of this process, its device and its network.
Machine describe_machine(Runtime& runtime);

}  // namespace brant::bench
