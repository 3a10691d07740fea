// The extension module of brant.torch: a process group for each description that torch.distributed gives.
#include <torch/csrc/utils/pybind.h>

#include <cstdint>

#include "bindings/torch/backend.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create",
             [](const c10d::DistributedBackendOptions& options, int gpu) -> c10::intrusive_ptr<c10d::Backend> {
               return brant::distributed::BrantBackend::create(options, gpu);
             });
  module.def("runtime_of_default",
             [] { return reinterpret_cast<std::uintptr_t>(brant::distributed::runtime_of_default()); });
  module.def("end_all", &brant::distributed::Job::end_all, pybind11::arg("failed"),
             pybind11::call_guard<pybind11::gil_scoped_release>());
}
