#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace brant::python {

/// DLPack's tensors as other libraries hand them over: the layout is that standard's
/// (https://dmlc.github.io/dlpack/latest/c_api.html, before version 1).
struct DlTensor {
  void* data = nullptr;
  std::int32_t device_type = 0;
  std::int32_t device = 0;
  std::int32_t dims = 0;
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< In elements; null: C order.
  std::uint64_t byte_offset = 0;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context = nullptr;
  void (*deleter)(DlManagedTensor* self) = nullptr;
};

inline constexpr std::int32_t kDlCpu = 1;
inline constexpr std::int32_t kDlCuda = 2;
inline constexpr std::int32_t kDlCudaHost = 3;
inline constexpr std::int32_t kDlCudaManaged = 13;

/// Of a capsule that `__dlpack__` returned, which keeps it. Throws what Python says of one that is none.
const DlTensor* tensor_of(PyObject* capsule);

/// The element type in the language of the struct module, empty where it has no name; and the other way, false there.
std::string format_of(const DlTensor& tensor);
bool set_format(DlTensor& tensor, std::string_view format, std::size_t item_bytes) noexcept;

}  // namespace brant::python
