#pragma once

/// Marks functions that run in the resident kernel. The same source is compiled by nvcc for the GPU and by the C++
/// compiler for CPU threads (emulated device, thread sanitizer, model checker); only the Machine it is given differs.
#ifdef __CUDACC__
#define BRANT_COURIER_CODE __device__ __forceinline__
#else
#define BRANT_COURIER_CODE inline
#endif
