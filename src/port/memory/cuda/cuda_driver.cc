#include "port/memory/cuda/cuda_driver.h"

#include <array>
#include <atomic>
#include <fstream>
#include <string_view>
#include <type_traits>

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include "base/dynamic_library.h"
#include "base/log.h"

namespace brant::port::memory {
namespace {

/// Looks functions up by name and by the CUDA version in which they got the signature the header declares. Asking by
/// version keeps an old driver usable and a newer signature of the same name out.
class Symbols {
 public:
  explicit Symbols(decltype(&::cuGetProcAddress) lookup) noexcept : lookup_(lookup) {}

  /// `Expected` is the type NVIDIA gives the function at that version: a mismatch with the table is a compile-time
  /// error.
  template <typename Expected, typename Slot>
  void need(Slot& slot, const char* name, int version) noexcept {
    want<Expected>(slot, name, version);
    if (slot == nullptr && missing_ == nullptr) missing_ = name;
  }
  template <typename Expected, typename Slot>
  void want(Slot& slot, const char* name, int version) noexcept {
    static_assert(std::is_same_v<Expected, Slot>, "the function's type differs from the one of this version");
    void* found = nullptr;
    CUdriverProcAddressQueryResult outcome = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = lookup_(name, &found, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &outcome);
    if (result == CUDA_SUCCESS && outcome == CU_GET_PROC_ADDRESS_SUCCESS) slot = reinterpret_cast<Slot>(found);
  }
  [[nodiscard]] const char* missing() const noexcept { return missing_; }

 private:
  decltype(&::cuGetProcAddress) lookup_;
  const char* missing_ = nullptr;
};

void resolve_devices(Symbols& symbols, CudaDriver& driver) noexcept {
  symbols.need<PFN_cuInit_v2000>(driver.init, "cuInit", 2000);
  symbols.need<PFN_cuDriverGetVersion_v2020>(driver.driver_get_version, "cuDriverGetVersion", 2020);
  symbols.need<PFN_cuGetErrorName_v6000>(driver.get_error_name, "cuGetErrorName", 6000);
  symbols.need<PFN_cuGetErrorString_v6000>(driver.get_error_string, "cuGetErrorString", 6000);
  symbols.need<PFN_cuDeviceGetCount_v2000>(driver.device_get_count, "cuDeviceGetCount", 2000);
  symbols.need<PFN_cuDeviceGet_v2000>(driver.device_get, "cuDeviceGet", 2000);
  symbols.need<PFN_cuDeviceGetName_v2000>(driver.device_get_name, "cuDeviceGetName", 2000);
  symbols.need<PFN_cuDeviceGetUuid_v11040>(driver.device_get_uuid, "cuDeviceGetUuid", 11040);
  symbols.need<PFN_cuDeviceTotalMem_v3020>(driver.device_total_mem, "cuDeviceTotalMem", 3020);
  symbols.need<PFN_cuDeviceGetAttribute_v2000>(driver.device_get_attribute, "cuDeviceGetAttribute", 2000);
  symbols.need<PFN_cuDeviceGetPCIBusId_v4010>(driver.device_get_pci_bus_id, "cuDeviceGetPCIBusId", 4010);
  symbols.want<PFN_cuDeviceCanAccessPeer_v4000>(driver.device_can_access_peer, "cuDeviceCanAccessPeer", 4000);
  symbols.want<PFN_cuDeviceGetP2PAttribute_v8000>(driver.device_get_p2p_attribute, "cuDeviceGetP2PAttribute", 8000);
  symbols.need<PFN_cuDevicePrimaryCtxRetain_v7000>(driver.primary_context_retain, "cuDevicePrimaryCtxRetain", 7000);
  symbols.need<PFN_cuDevicePrimaryCtxRelease_v11000>(driver.primary_context_release, "cuDevicePrimaryCtxRelease",
                                                     11000);
  symbols.need<PFN_cuCtxGetCurrent_v4000>(driver.context_get_current, "cuCtxGetCurrent", 4000);
  symbols.need<PFN_cuCtxSetCurrent_v4000>(driver.context_set_current, "cuCtxSetCurrent", 4000);
  symbols.need<PFN_cuCtxPushCurrent_v4000>(driver.context_push, "cuCtxPushCurrent", 4000);
  symbols.need<PFN_cuCtxPopCurrent_v4000>(driver.context_pop, "cuCtxPopCurrent", 4000);
}

void resolve_memory(Symbols& symbols, CudaDriver& driver) noexcept {
  symbols.need<PFN_cuMemAlloc_v3020>(driver.mem_alloc, "cuMemAlloc", 3020);
  symbols.need<PFN_cuMemFree_v3020>(driver.mem_free, "cuMemFree", 3020);
  symbols.need<PFN_cuMemAllocManaged_v6000>(driver.mem_alloc_managed, "cuMemAllocManaged", 6000);
  symbols.need<PFN_cuMemHostAlloc_v2020>(driver.mem_host_alloc, "cuMemHostAlloc", 2020);
  symbols.need<PFN_cuMemFreeHost_v2000>(driver.mem_free_host, "cuMemFreeHost", 2000);
  symbols.need<PFN_cuMemHostRegister_v6050>(driver.mem_host_register, "cuMemHostRegister", 6050);
  symbols.need<PFN_cuMemHostUnregister_v4000>(driver.mem_host_unregister, "cuMemHostUnregister", 4000);
  symbols.need<PFN_cuPointerGetAttribute_v4000>(driver.pointer_get_attribute, "cuPointerGetAttribute", 4000);
  symbols.need<PFN_cuPointerGetAttributes_v7000>(driver.pointer_get_attributes, "cuPointerGetAttributes", 7000);
  symbols.need<PFN_cuIpcGetMemHandle_v4010>(driver.ipc_get_mem_handle, "cuIpcGetMemHandle", 4010);
  symbols.need<PFN_cuIpcOpenMemHandle_v11000>(driver.ipc_open_mem_handle, "cuIpcOpenMemHandle", 11000);
  symbols.need<PFN_cuIpcCloseMemHandle_v4010>(driver.ipc_close_mem_handle, "cuIpcCloseMemHandle", 4010);
}

/// Memory as files.
void resolve_files(Symbols& symbols, CudaDriver& driver) noexcept {
  symbols.need<PFN_cuMemGetAddressRange_v3020>(driver.mem_get_address_range, "cuMemGetAddressRange", 3020);
  symbols.want<PFN_cuMemGetHandleForAddressRange_v11070>(driver.mem_get_handle_for_address_range,
                                                         "cuMemGetHandleForAddressRange", 11070);
  symbols.need<PFN_cuMemRetainAllocationHandle_v11000>(driver.mem_retain_allocation_handle,
                                                       "cuMemRetainAllocationHandle", 11000);
  symbols.need<PFN_cuMemRelease_v10020>(driver.mem_release, "cuMemRelease", 10020);
  symbols.need<PFN_cuMemExportToShareableHandle_v10020>(driver.mem_export_to_shareable_handle,
                                                        "cuMemExportToShareableHandle", 10020);
  symbols.need<PFN_cuMemImportFromShareableHandle_v10020>(driver.mem_import_from_shareable_handle,
                                                          "cuMemImportFromShareableHandle", 10020);
  symbols.need<PFN_cuMemAddressReserve_v10020>(driver.mem_address_reserve, "cuMemAddressReserve", 10020);
  symbols.need<PFN_cuMemAddressFree_v10020>(driver.mem_address_free, "cuMemAddressFree", 10020);
  symbols.need<PFN_cuMemMap_v10020>(driver.mem_map, "cuMemMap", 10020);
  symbols.need<PFN_cuMemUnmap_v10020>(driver.mem_unmap, "cuMemUnmap", 10020);
  symbols.need<PFN_cuMemSetAccess_v10020>(driver.mem_set_access, "cuMemSetAccess", 10020);
  symbols.need<PFN_cuMemPoolExportToShareableHandle_v11020>(driver.mem_pool_export_to_shareable_handle,
                                                            "cuMemPoolExportToShareableHandle", 11020);
  symbols.need<PFN_cuMemPoolImportFromShareableHandle_v11020>(driver.mem_pool_import_from_shareable_handle,
                                                              "cuMemPoolImportFromShareableHandle", 11020);
  symbols.need<PFN_cuMemPoolExportPointer_v11020>(driver.mem_pool_export_pointer, "cuMemPoolExportPointer", 11020);
  symbols.need<PFN_cuMemPoolImportPointer_v11020>(driver.mem_pool_import_pointer, "cuMemPoolImportPointer", 11020);
  symbols.need<PFN_cuMemPoolSetAccess_v11020>(driver.mem_pool_set_access, "cuMemPoolSetAccess", 11020);
  symbols.need<PFN_cuMemPoolDestroy_v11020>(driver.mem_pool_destroy, "cuMemPoolDestroy", 11020);
}

void resolve_work(Symbols& symbols, CudaDriver& driver) noexcept {
  symbols.need<PFN_cuCtxGetStreamPriorityRange_v5050>(driver.stream_priority_range, "cuCtxGetStreamPriorityRange",
                                                      5050);
  symbols.need<PFN_cuStreamCreateWithPriority_v5050>(driver.stream_create, "cuStreamCreateWithPriority", 5050);
  symbols.need<PFN_cuStreamBeginCapture_v10010>(driver.stream_begin_capture, "cuStreamBeginCapture", 10010);
  symbols.need<PFN_cuStreamEndCapture_v10000>(driver.stream_end_capture, "cuStreamEndCapture", 10000);
  symbols.need<PFN_cuStreamIsCapturing_v10000>(driver.stream_is_capturing, "cuStreamIsCapturing", 10000);
  symbols.need<PFN_cuThreadExchangeStreamCaptureMode_v10010>(driver.exchange_capture_mode,
                                                             "cuThreadExchangeStreamCaptureMode", 10010);
  symbols.need<PFN_cuGraphInstantiateWithFlags_v11040>(driver.graph_instantiate, "cuGraphInstantiateWithFlags", 11040);
  symbols.need<PFN_cuGraphLaunch_v10000>(driver.graph_launch, "cuGraphLaunch", 10000);
  symbols.need<PFN_cuGraphDestroy_v10000>(driver.graph_destroy, "cuGraphDestroy", 10000);
  symbols.need<PFN_cuGraphExecDestroy_v10000>(driver.graph_exec_destroy, "cuGraphExecDestroy", 10000);
  symbols.need<PFN_cuStreamDestroy_v4000>(driver.stream_destroy, "cuStreamDestroy", 4000);
  symbols.need<PFN_cuStreamQuery_v2000>(driver.stream_query, "cuStreamQuery", 2000);
  symbols.need<PFN_cuStreamSynchronize_v2000>(driver.stream_synchronize, "cuStreamSynchronize", 2000);
  symbols.need<PFN_cuCtxSynchronize_v2000>(driver.ctx_synchronize, "cuCtxSynchronize", 2000);
  symbols.need<PFN_cuStreamWaitEvent_v3020>(driver.stream_wait_event, "cuStreamWaitEvent", 3020);
  symbols.need<PFN_cuStreamBatchMemOp_v11070>(driver.stream_batch_mem_op, "cuStreamBatchMemOp", 11070);
  symbols.need<PFN_cuLaunchHostFunc_v10000>(driver.launch_host_func, "cuLaunchHostFunc", 10000);
  symbols.need<PFN_cuMemcpyAsync_v4000>(driver.memcpy_async, "cuMemcpyAsync", 4000);
  symbols.need<PFN_cuMemsetD8Async_v3020>(driver.memset_d8_async, "cuMemsetD8Async", 3020);
  symbols.need<PFN_cuEventCreate_v2000>(driver.event_create, "cuEventCreate", 2000);
  symbols.need<PFN_cuEventDestroy_v4000>(driver.event_destroy, "cuEventDestroy", 4000);
  symbols.need<PFN_cuEventRecord_v2000>(driver.event_record, "cuEventRecord", 2000);
  symbols.need<PFN_cuEventQuery_v2000>(driver.event_query, "cuEventQuery", 2000);
  // The version of CUDA 2.0: newer ones differ in what they measure across devices, not in their type.
  symbols.need<PFN_cuEventElapsedTime_v2000>(driver.event_elapsed_time, "cuEventElapsedTime", 2000);
  symbols.need<PFN_cuModuleLoadData_v2000>(driver.module_load_data, "cuModuleLoadData", 2000);
  symbols.need<PFN_cuModuleUnload_v2000>(driver.module_unload, "cuModuleUnload", 2000);
  symbols.need<PFN_cuModuleGetFunction_v2000>(driver.module_get_function, "cuModuleGetFunction", 2000);
  symbols.want<PFN_cuModuleGetLoadingMode_v11070>(driver.module_get_loading_mode, "cuModuleGetLoadingMode", 11070);
  symbols.need<PFN_cuLaunchKernel_v4000>(driver.launch_kernel, "cuLaunchKernel", 4000);
  symbols.need<PFN_cuLaunchCooperativeKernel_v9000>(driver.launch_cooperative_kernel, "cuLaunchCooperativeKernel",
                                                    9000);
  symbols.need<PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050>(
      driver.occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050);
  symbols.want<PFN_cuFuncLoad_v12040>(driver.func_load, "cuFuncLoad", 12040);
  symbols.want<PFN_cuFuncGetParamInfo_v12040>(driver.func_get_param_info, "cuFuncGetParamInfo", 12040);
}

/// "580.159.03" from the kernel module's own words; empty where it does not say.
std::string kernel_module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return {};
  const std::string_view text = line;
  constexpr std::string_view kMarks[] = {"Kernel Module for x86_64", "Kernel Module for aarch64", "Kernel Module"};
  for (const std::string_view mark : kMarks) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = text.find_first_not_of(' ', at + mark.size());
    if (begin == std::string_view::npos) return {};
    return std::string(text.substr(begin, text.find(' ', begin) - begin));
  }
  return {};
}

std::string version_text(const CudaDriver& driver) {
  int version = 0;
  if (driver.driver_get_version(&version) != CUDA_SUCCESS) return "CUDA of unknown version";
  const std::string module = kernel_module_version();
  const std::string cuda = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  return module.empty() ? cuda : fmt::format("{} (driver {})", cuda, module);
}

std::string init_reason(const CudaDriver& driver, CUresult result) {
  const std::string text = cuda_error_text(driver, result);
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return fmt::format(
          "the driver sees no GPU: {}. CUDA_VISIBLE_DEVICES may hide it, or a container was started without it", text);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return fmt::format(
          "{}: libcuda and the kernel module are of different versions; restart after the driver's update", text);
    case CUDA_ERROR_STUB_LIBRARY:
      return fmt::format("{}: libcuda.so.1 is the toolkit's stub; put the driver's own first on the library path",
                         text);
    default: return fmt::format("cuInit failed: {}", text);
  }
}

CudaDriverState open_driver() {
  CudaDriverState state;
  const DynamicLibrary library("libcuda.so.1");
  if (!library) {
    state.reason = "no NVIDIA driver: " + library.why_not();
    return state;
  }
  decltype(&::cuGetProcAddress) lookup = nullptr;
  if (!library.find(lookup, "cuGetProcAddress_v2")) {
    state.reason =
        "the NVIDIA driver is too old: it has no cuGetProcAddress_v2. brant needs CUDA 12.0, that is driver 525 or "
        "newer";
    return state;
  }
  Symbols symbols(lookup);
  resolve_devices(symbols, state.driver);
  resolve_memory(symbols, state.driver);
  resolve_files(symbols, state.driver);
  resolve_work(symbols, state.driver);
  if (symbols.missing() != nullptr) {
    state.reason = fmt::format("the NVIDIA driver lacks {}. brant needs CUDA 12.0, that is driver 525 or newer",
                               symbols.missing());
    return state;
  }
  state.version = version_text(state.driver);
  if (const CUresult result = state.driver.init(0); result != CUDA_SUCCESS) {
    state.reason = init_reason(state.driver, result);
    return state;
  }
  state.usable = true;
  return state;
}

/// True the first time a code is seen: an error that a polling loop meets again and again is one line in the log.
bool first_time(CUresult result) noexcept {
  constexpr std::size_t kCodes = 1024;
  static std::array<std::atomic<bool>, kCodes> seen{};
  const auto index = static_cast<std::size_t>(result);
  return index >= kCodes || !seen[index].exchange(true, std::memory_order_relaxed);
}

Status meaning(CUresult result) noexcept {
  switch (result) {
    case CUDA_SUCCESS: return Status::ok;
    case CUDA_ERROR_NOT_READY: return Status::in_progress;
    case CUDA_ERROR_OUT_OF_MEMORY: return Status::no_memory;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: return Status::invalid_argument;
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: return Status::not_found;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: return Status::not_supported;
    case CUDA_ERROR_DEINITIALIZED: return Status::shutting_down;
    default: return Status::device_failed;
  }
}

}  // namespace

const CudaDriverState& cuda_driver_state() noexcept {
  // Never destroyed: destructors of static objects may still ask.
  static const CudaDriverState* state = [] {
    try {
      return new CudaDriverState(open_driver());
    } catch (...) {
      static CudaDriverState none;
      return &none;
    }
  }();
  return *state;
}

std::string cuda_error_text(const CudaDriver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return fmt::format("CUDA error {}", static_cast<int>(result));
  }
  if (driver.get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

Status cuda_status(const CudaDriver& driver, CUresult result, const char* call) noexcept {
  const Status status = meaning(result);
  if (status == Status::ok || status == Status::in_progress || status == Status::shutting_down) return status;
  try {
    const auto level = first_time(result) ? log::Level::error : log::Level::debug;
    if (log::enabled(level)) log::write(level, fmt::format("{} failed: {}", call, cuda_error_text(driver, result)));
  } catch (...) {
    return status;  // no memory for the text
  }
  return status;
}

}  // namespace brant::port::memory
