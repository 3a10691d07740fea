#pragma once

/// Marks functions of kernels that also run without a GPU: nvcc compiles them for the GPU, the C++ compiler for CPU
/// threads (emulated device, thread sanitizer, model checker). What differs is the Machine they are given.
#ifdef __CUDACC__
#define BRANT_DEVICE_CODE __device__ __forceinline__
#else
#define BRANT_DEVICE_CODE inline
#endif
