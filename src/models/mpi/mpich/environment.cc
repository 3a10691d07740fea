#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "brant/mpi/runtime.h"
#include "models/mpi/mpich/arguments.h"
#include "models/mpi/mpich/own_calls.h"
#include "mpi_generated/api.h"

namespace brant::mpi::mpich {

namespace {

/// MPIX_GPU_SUPPORT_CUDA, _ZE and _HIP.
constexpr int kCuda = 0;
constexpr int kGpuMax = 2;

}  // namespace

namespace own {

/// As MPICH answers where the ABI is its own.
int abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = *abi_minor = -1;
  return MPI_SUCCESS;
}

int get_library_version(char* version, int* resultlen) {
  constexpr std::string_view kText = "brant, MPI 5.0 by the ABI of MPICH";
  static_assert(kText.size() < MPI_MAX_LIBRARY_VERSION_STRING);
  std::memcpy(version, kText.data(), kText.size());
  version[kText.size()] = '\0';
  *resultlen = static_cast<int>(kText.size());
  return MPI_SUCCESS;
}

int get_processor_name(char* name, int* resultlen) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> whole{};
  int length = 0;
  const int outcome = api::get_processor_name(whole.data(), &length);
  if (outcome == MPI_SUCCESS) {
    length = std::min(length, kMaxProcessorName - 1);
    std::memcpy(name, whole.data(), static_cast<std::size_t>(length));
    name[length] = '\0';
    *resultlen = length;
  }
  return code_to_mpich(outcome);
}

/// There are no events, so nothing is told of one.
int t_event_get_info(int event_index, char* name, int* name_len, int* verbosity, int /*datatypes*/[],
                     MPI_Aint /*displacements*/[], int* num_elements, MPI_T_enum* enumtype, int* info, char* desc,
                     int* desc_len, int* bind) {
  return code_to_mpich(api::t_event_get_info(event_index, name, name_len, verbosity, nullptr, nullptr, num_elements,
                                             enumtype, Made<MPI_Info>(info), desc, desc_len, bind));
}

int x_query_cuda_support() {
  int is_running = 0;
  int is_over = 0;
  static_cast<void>(api::initialized(&is_running));
  static_cast<void>(api::finalized(&is_over));
  if (is_running == 0 || is_over != 0) return 0;
  return runtime().device_kind() == MemoryKind::cuda ? 1 : 0;
}
int x_query_hip_support() { return 0; }
int x_query_ze_support() { return 0; }

int x_gpu_query_support(int gpu_type, int* is_supported) {
  if (gpu_type < 0 || gpu_type > kGpuMax || is_supported == nullptr) return code_to_mpich(MPI_ERR_ARG);
  *is_supported = gpu_type == kCuda ? x_query_cuda_support() : 0;
  return MPI_SUCCESS;
}

}  // namespace own
}  // namespace brant::mpi::mpich
