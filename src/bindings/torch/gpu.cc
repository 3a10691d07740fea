#include "bindings/torch/gpu.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdint>

namespace brant::distributed {
namespace {

constexpr std::uintptr_t kDefaultStream = 1;  // CU_STREAM_LEGACY: brant takes no null

/// Of a PyTorch that does not say: 2.11 is one. The driver is loaded where there are tensors on GPUs.
bool is_captured_by_driver(StreamHandle stream) {
  using IsCapturing = int (*)(void* stream, int* status);
  static const auto is_capturing = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver != nullptr ? reinterpret_cast<IsCapturing>(::dlsym(driver, "cuStreamIsCapturing")) : nullptr;
  }();
  int status = 0;
  return is_capturing != nullptr && is_capturing(stream, &status) == 0 && status != 0;
}

c10::impl::VirtualGuardImpl cuda() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

}  // namespace

c10::Device Gpu::device() const { return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(ordinal_)); }
c10::Stream Gpu::current() const { return cuda().getStream(device()); }
c10::Stream Gpu::another() const { return cuda().getStreamFromGlobalPool(device(), true); }

void Gpu::require(const at::Tensor& tensor, const char* what) const {
  TORCH_CHECK(tensor.layout() == at::kStrided, "brant: ", what, " takes dense tensors: use tensor.to_dense()");
  if (tensor.device().is_cpu()) return;
  TORCH_CHECK(tensor.is_cuda(), "brant: ", what, " of a tensor on ", tensor.device(), ": move it to the CPU or a GPU");
  TORCH_CHECK(ordinal_ >= 0, "brant: ", what, " of a tensor on ", tensor.device(),
              ", and the process group was made without a GPU: call torch.cuda.set_device(...) before "
              "init_process_group, or pass it device_id, and do not set BRANT_GPU=none");
  TORCH_CHECK(tensor.device().index() == ordinal_, "brant: ", what, " of a tensor on ", tensor.device(),
              ", and the process group works with cuda:", ordinal_,
              ": each process has one GPU, that of torch.cuda.set_device(...) before init_process_group, or of its "
              "device_id");
}

StreamHandle handle_of(const c10::Stream& stream) {
  return [](const auto& any) -> StreamHandle {
    if constexpr (requires { any.native_handle(); }) {
      void* const handle = any.native_handle();
      return reinterpret_cast<StreamHandle>(handle == nullptr ? reinterpret_cast<void*>(kDefaultStream) : handle);
    } else {
      TORCH_CHECK(false, "brant: tensors on GPUs need PyTorch 2.11 or newer");
    }
  }(stream);
}

bool is_captured(const c10::Stream& stream) {
  return [](const auto& any) {
    if constexpr (requires { any.is_capturing(); }) {
      return static_cast<bool>(any.is_capturing());
    } else {
      return is_captured_by_driver(handle_of(any));
    }
  }(stream);
}

void note_use(const at::Tensor& tensor, const c10::Stream& stream) {
  if (tensor.is_cuda()) cuda().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

void put_in_order(const c10::Stream& first, const c10::Stream& second) {
  if (first == second) return;
  c10::Event here(first.device_type());
  here.record(first);
  here.block(second);
}

}  // namespace brant::distributed
