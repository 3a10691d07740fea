#include "bindings/python/dlpack.h"

#include <nanobind/nanobind.h>

#include <array>

#include "bindings/python/view.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

struct TypeCode {
  std::uint8_t code;
  char letter;  ///< In NumPy's array interface.
};
constexpr std::array kCodes = {TypeCode{0, 'i'}, TypeCode{1, 'u'}, TypeCode{2, 'f'}, TypeCode{5, 'c'},
                               TypeCode{6, 'b'}};

/// The struct module and NumPy have no name for these; arrays of them can only travel between devices, or into `out`.
constexpr std::uint8_t kBfloat = 4;
constexpr std::string_view kBfloat16 = "bf16";

}  // namespace

const DlTensor* tensor_of(PyObject* capsule) {
  const auto* managed = static_cast<const DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (managed == nullptr) throw nb::python_error();
  return &managed->tensor;
}

std::string format_of(const DlTensor& tensor) {
  if (tensor.lanes != 1) return {};
  if (tensor.code == kBfloat && tensor.bits == 16) return std::string(kBfloat16);
  for (const TypeCode& type : kCodes) {
    if (type.code == tensor.code)
      return format_of_typestr("|" + std::string(1, type.letter) + std::to_string(tensor.bits / 8));
  }
  return {};
}

bool set_format(DlTensor& tensor, std::string_view format, std::size_t item_bytes) noexcept {
  if (format == kBfloat16) {
    tensor.code = kBfloat;
    tensor.bits = 16;
    tensor.lanes = 1;
    return true;
  }
  const std::string typestr = typestr_of(format, item_bytes);
  if (typestr.empty()) return false;
  for (const TypeCode& type : kCodes) {
    if (type.letter != typestr[1]) continue;
    tensor.code = type.code;
    tensor.bits = static_cast<std::uint8_t>(8 * item_bytes);
    tensor.lanes = 1;
    return true;
  }
  return false;
}

}  // namespace brant::python
