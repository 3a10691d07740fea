#pragma once

#include <string>

#include <cuda.h>

#include "brant/base/status.h"

/// The NVIDIA driver, opened when the program runs. Nothing of CUDA is linked: the same program starts on a machine
/// without a GPU.
namespace brant::port::memory {

inline CUdeviceptr address(const void* pointer) noexcept { return reinterpret_cast<CUdeviceptr>(pointer); }

/// The driver's functions, in the versions that the header's types describe (cuda_driver.cc checks that they agree).
/// Members marked optional are null in older drivers.
struct CudaDriver {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDriverGetVersion) driver_get_version = nullptr;
  decltype(&::cuGetErrorName) get_error_name = nullptr;
  decltype(&::cuGetErrorString) get_error_string = nullptr;

  decltype(&::cuDeviceGetCount) device_get_count = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetName) device_get_name = nullptr;
  decltype(&::cuDeviceGetUuid) device_get_uuid = nullptr;
  decltype(&::cuDeviceTotalMem) device_total_mem = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDeviceGetPCIBusId) device_get_pci_bus_id = nullptr;
  decltype(&::cuDeviceCanAccessPeer) device_can_access_peer = nullptr;      ///< Optional: for reports only.
  decltype(&::cuDeviceGetP2PAttribute) device_get_p2p_attribute = nullptr;  ///< Optional: for reports only.

  decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) primary_context_release = nullptr;
  decltype(&::cuCtxGetCurrent) context_get_current = nullptr;
  decltype(&::cuCtxSetCurrent) context_set_current = nullptr;
  decltype(&::cuCtxPushCurrent) context_push = nullptr;
  decltype(&::cuCtxPopCurrent) context_pop = nullptr;

  decltype(&::cuMemAlloc) mem_alloc = nullptr;
  decltype(&::cuMemFree) mem_free = nullptr;
  decltype(&::cuMemAllocManaged) mem_alloc_managed = nullptr;
  decltype(&::cuMemHostAlloc) mem_host_alloc = nullptr;
  decltype(&::cuMemFreeHost) mem_free_host = nullptr;
  decltype(&::cuMemHostRegister) mem_host_register = nullptr;
  decltype(&::cuMemHostUnregister) mem_host_unregister = nullptr;
  decltype(&::cuPointerGetAttribute) pointer_get_attribute = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_get_attributes = nullptr;

  decltype(&::cuIpcGetMemHandle) ipc_get_mem_handle = nullptr;
  decltype(&::cuIpcOpenMemHandle) ipc_open_mem_handle = nullptr;
  decltype(&::cuIpcCloseMemHandle) ipc_close_mem_handle = nullptr;

  decltype(&::cuMemGetAddressRange) mem_get_address_range = nullptr;
  decltype(&::cuMemGetHandleForAddressRange) mem_get_handle_for_address_range = nullptr;  ///< Optional: CUDA 11.7.
  decltype(&::cuMemRetainAllocationHandle) mem_retain_allocation_handle = nullptr;
  decltype(&::cuMemRelease) mem_release = nullptr;
  decltype(&::cuMemExportToShareableHandle) mem_export_to_shareable_handle = nullptr;
  decltype(&::cuMemImportFromShareableHandle) mem_import_from_shareable_handle = nullptr;
  decltype(&::cuMemAddressReserve) mem_address_reserve = nullptr;
  decltype(&::cuMemAddressFree) mem_address_free = nullptr;
  decltype(&::cuMemMap) mem_map = nullptr;
  decltype(&::cuMemUnmap) mem_unmap = nullptr;
  decltype(&::cuMemSetAccess) mem_set_access = nullptr;
  decltype(&::cuMemPoolExportToShareableHandle) mem_pool_export_to_shareable_handle = nullptr;
  decltype(&::cuMemPoolImportFromShareableHandle) mem_pool_import_from_shareable_handle = nullptr;
  decltype(&::cuMemPoolExportPointer) mem_pool_export_pointer = nullptr;
  decltype(&::cuMemPoolImportPointer) mem_pool_import_pointer = nullptr;
  decltype(&::cuMemPoolSetAccess) mem_pool_set_access = nullptr;
  decltype(&::cuMemPoolDestroy) mem_pool_destroy = nullptr;

  decltype(&::cuCtxGetStreamPriorityRange) stream_priority_range = nullptr;
  decltype(&::cuStreamCreateWithPriority) stream_create = nullptr;
  decltype(&::cuStreamBeginCapture) stream_begin_capture = nullptr;
  decltype(&::cuStreamEndCapture) stream_end_capture = nullptr;
  decltype(&::cuStreamIsCapturing) stream_is_capturing = nullptr;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) graph_instantiate = nullptr;
  decltype(&::cuGraphLaunch) graph_launch = nullptr;
  decltype(&::cuGraphDestroy) graph_destroy = nullptr;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&::cuStreamDestroy) stream_destroy = nullptr;
  decltype(&::cuStreamQuery) stream_query = nullptr;
  decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cuCtxSynchronize) ctx_synchronize = nullptr;
  decltype(&::cuStreamWaitEvent) stream_wait_event = nullptr;
  decltype(&::cuStreamBatchMemOp) stream_batch_mem_op = nullptr;
  decltype(&::cuLaunchHostFunc) launch_host_func = nullptr;
  decltype(&::cuMemcpyAsync) memcpy_async = nullptr;
  decltype(&::cuMemsetD8Async) memset_d8_async = nullptr;

  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventQuery) event_query = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;

  decltype(&::cuModuleLoadData) module_load_data = nullptr;
  decltype(&::cuModuleUnload) module_unload = nullptr;
  decltype(&::cuModuleGetFunction) module_get_function = nullptr;
  decltype(&::cuModuleGetLoadingMode) module_get_loading_mode = nullptr;  ///< Optional: CUDA 11.7.
  decltype(&::cuLaunchKernel) launch_kernel = nullptr;
  decltype(&::cuLaunchCooperativeKernel) launch_cooperative_kernel = nullptr;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy_max_active_blocks = nullptr;
  decltype(&::cuFuncLoad) func_load = nullptr;                    ///< Optional: CUDA 12.4.
  decltype(&::cuFuncGetParamInfo) func_get_param_info = nullptr;  ///< Optional: CUDA 12.4.
};

/// The driver, or why there is none.
struct CudaDriverState {
  CudaDriver driver;
  bool usable = false;  ///< The functions are there and cuInit succeeded.
  std::string reason;   ///< In words, if not usable.
  std::string version;  ///< "CUDA 13.0 (driver 580.159)"; empty where no driver was found.
};

/// Opens and initialises the driver at the first call; the outcome is kept for the life of the process. Any thread.
const CudaDriverState& cuda_driver_state() noexcept;

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string cuda_error_text(const CudaDriver& driver, CUresult result);

/// The status that `result` of `call` means. A failure is written to the log by name, the first time that code is seen;
/// not ready is in_progress, and a driver that is shutting down (process exit) is silent.
Status cuda_status(const CudaDriver& driver, CUresult result, const char* call) noexcept;

}  // namespace brant::port::memory
