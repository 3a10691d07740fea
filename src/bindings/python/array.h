#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "brant/brant.h"

namespace brant::python {

/// An array in memory that brant allocated. Host memory is shown by the buffer protocol (NumPy's views of it keep it
/// alive), memory of a device by DLPack and `__cuda_array_interface__`.
class Array {
 public:
  Array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, MemoryKind kind, bool fortran);
  /// Over memory that `owner` keeps.
  Array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, Buffer memory,
        std::shared_ptr<void> owner, bool fortran);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  [[nodiscard]] Buffer memory() const noexcept { return memory_; }
  [[nodiscard]] const std::vector<Py_ssize_t>& shape() const noexcept { return shape_; }
  [[nodiscard]] const std::vector<Py_ssize_t>& strides() const noexcept { return strides_; }
  [[nodiscard]] const std::string& format() const noexcept { return format_; }
  [[nodiscard]] std::size_t item_bytes() const noexcept { return item_bytes_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_fortran() const noexcept { return fortran_; }

 private:
  std::vector<Py_ssize_t> shape_;
  std::vector<Py_ssize_t> strides_;
  std::string format_;
  std::size_t item_bytes_;
  std::size_t bytes_;
  bool fortran_;
  std::shared_ptr<void> owner_;
  Buffer memory_;
};

/// A new one as Python sees it: of host memory a NumPy array, where there is NumPy.
nanobind::object new_array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, MemoryKind kind,
                           bool fortran = false);

/// Where what lies in `kind` at the sender lands: in host memory, or in that of this process's device, if it has one.
MemoryKind landing_kind(MemoryKind kind);

nanobind::tuple shape_tuple(const std::vector<Py_ssize_t>& shape);

void bind_array(nanobind::module_& module);

}  // namespace brant::python
