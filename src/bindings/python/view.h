#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brant/brant.h"
#include "brant/core/stream.h"

namespace brant::python {

class Producers;

/// What comes after an array has been computed. Nothing named: the call that takes it, which waits for that.
struct Behind {
  Stream* stream = nullptr;        ///< What that stream does from here on.
  Producers* producers = nullptr;  ///< What whoever asks them does then.
};

enum class Order : std::uint8_t { c, fortran, strided };

/// An array of Python as brant sees it: where it lies, what its elements are, in what order. Taken from the buffer
/// protocol, `__cuda_array_interface__` or DLPack; holds the array until it goes. Stays where it is, since a Py_buffer
/// may point into itself.
class View {
 public:
  enum class Access : std::uint8_t { read, write };
  /// Whether elements in memory of a device may lie apart.
  enum class OnDevice : std::uint8_t { together, apart };

  View() noexcept = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { clear(); }

  /// False, without an exception: it is no array whose bytes could travel as they are (objects, datetime64). Throws
  /// InvalidArgument for what is an array and cannot be used: read-only to be written, strided device memory where it
  /// must lie together. What computes it comes first, as `behind` says.
  bool take(PyObject* array, Access access, OnDevice on_device = OnDevice::together, const Behind& behind = {});
  void clear() noexcept;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view format() const noexcept { return format_; }
  [[nodiscard]] std::size_t item_bytes() const noexcept { return item_bytes_; }
  [[nodiscard]] std::span<const Py_ssize_t> shape() const noexcept { return {shape_, dims_}; }
  [[nodiscard]] Order order() const noexcept { return order_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_host() const noexcept { return host_; }
  [[nodiscard]] std::string describe() const;

  /// Where its bytes are, if they lie together.
  [[nodiscard]] Buffer memory() const noexcept { return {data_, bytes_, kind_}; }

  /// For what moves shapes: memory in which all elements are, and how they lie there if they are taken in an order (c
  /// or fortran). Throws not_supported for more dimensions than a shape has.
  [[nodiscard]] Buffer extent() const noexcept { return {lowest_, extent_bytes_, kind_}; }
  [[nodiscard]] Shape shape_in(Order order) const;

  /// The one place that deals with strides of host memory: all its bytes in an order (c or fortran) into `packed`,
  /// and back. Host memory only.
  void pack(std::byte* packed, Order order = Order::c) const;
  void unpack(const std::byte* packed, Order order) const;

 private:
  bool take_buffer(PyObject* array, Access access);
  bool take_cuda(PyObject* array, const nanobind::dict& description, Access access, const Behind& behind);
  bool take_dlpack(PyObject* array, const Behind& behind);
  /// Of what did not come by the buffer protocol; strides in bytes, none: C order.
  void set_shape(std::vector<Py_ssize_t> shape, std::vector<Py_ssize_t> strides);

  Py_buffer buffer_{};  ///< Of the protocol; of other host memory what `pack` and `unpack` look at.
  PyObject* owner_ = nullptr;
  void* data_ = nullptr;
  std::byte* lowest_ = nullptr;  ///< Of memory that did not come by the buffer protocol, as what follows.
  std::size_t extent_bytes_ = 0;
  OnDevice on_device_ = OnDevice::together;
  std::size_t bytes_ = 0;
  std::size_t item_bytes_ = 1;
  std::string_view format_ = "B";
  std::string own_format_;
  std::vector<Py_ssize_t> own_shape_;
  std::vector<Py_ssize_t> own_strides_;
  const Py_ssize_t* shape_ = nullptr;
  std::size_t dims_ = 0;
  Order order_ = Order::c;
  MemoryKind kind_ = MemoryKind::detect;
  bool host_ = true;
};

/// Whether an object travels as an array; everything else is pickled: what keeps more than elements (scalars and
/// subclasses of NumPy's arrays) or has none.
bool is_sent_raw(PyObject* object);

/// Pointers to objects of a process, which must not travel.
bool has_objects(std::string_view format) noexcept;

/// In bytes, of elements that lie together.
std::vector<Py_ssize_t> contiguous_strides(const std::vector<Py_ssize_t>& shape, std::size_t item_bytes, bool fortran);

/// The same element type may have several names in the struct module's language ("<q" and "l"): one of them.
std::string_view plain_format(std::string_view format) noexcept;

/// The name in NumPy's array interface ("<f8") of a format, and the other way; empty where there is none.
std::string typestr_of(std::string_view format, std::size_t item_bytes);
std::string format_of_typestr(std::string_view typestr);

}  // namespace brant::python
