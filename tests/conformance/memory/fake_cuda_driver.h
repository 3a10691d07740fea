#pragma once

#include <cstdint>

/// The handles by which tests steer the stand-in for NVIDIA's driver (fake_cuda_driver.cc). They are found with dlsym
/// in the library that is loaded as libcuda.so.1; with the real driver they are not there.
namespace brant::test::fake_cuda {

/// What one call of the driver shall answer until it is told otherwise; 0 lets it work again.
using SetFailure = void (*)(const char* function, int code);
/// How often a driver function was called so far.
using Calls = std::uint64_t (*)(const char* function);
/// Begins or ends a capture of mode "global" in another thread; says whether a call has broken the one before.
using Capture = bool (*)(bool captures);
/// How many times the primary context of a device is retained now.
using Retained = int (*)(int device);
/// Allocates as a program beside brant would; `pool` memory cannot be exported by legacy handles.
using ForeignAlloc = void* (*)(std::uint64_t bytes, bool pool);
using ForeignFree = void (*)(void* pointer);
/// Makes a context of the program's own current on this thread (null: none), and says which is.
using SetCurrent = void (*)(void* context);
using GetCurrent = void* (*)();

inline constexpr const char* kSetFailure = "fake_cuda_set_failure";
inline constexpr const char* kCalls = "fake_cuda_calls";
inline constexpr const char* kCapture = "fake_cuda_capture";
inline constexpr const char* kRetained = "fake_cuda_retained";
inline constexpr const char* kForeignAlloc = "fake_cuda_foreign_alloc";
inline constexpr const char* kForeignFree = "fake_cuda_foreign_free";
inline constexpr const char* kSetCurrent = "fake_cuda_set_current";
inline constexpr const char* kGetCurrent = "fake_cuda_get_current";

}  // namespace brant::test::fake_cuda
