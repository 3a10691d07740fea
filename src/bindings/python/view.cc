#include "bindings/python/view.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/bell.h"
#include "bindings/python/dlpack.h"
#include "bindings/python/errors.h"
#include "bindings/python/process.h"
#include "bindings/python/producers.h"
#include "bindings/python/stream_handle.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

struct NamedType {
  std::string_view typestr;  ///< Without the byte order.
  std::string_view format;
};
constexpr std::array kTypes = {
    NamedType{"b1", "?"}, NamedType{"i1", "b"}, NamedType{"u1", "B"},  NamedType{"i2", "h"},   NamedType{"u2", "H"},
    NamedType{"i4", "i"}, NamedType{"u4", "I"}, NamedType{"i8", "l"},  NamedType{"u8", "L"},   NamedType{"f2", "e"},
    NamedType{"f4", "f"}, NamedType{"f8", "d"}, NamedType{"c8", "Zf"}, NamedType{"c16", "Zd"},
};

bool is_contiguous(const std::vector<Py_ssize_t>& shape, const std::vector<Py_ssize_t>& strides, std::size_t item,
                   bool fortran) noexcept {
  auto expected = static_cast<Py_ssize_t>(item);
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const std::size_t dim = fortran ? at : shape.size() - 1 - at;
    if (shape[dim] == 0) return true;
    if (shape[dim] != 1 && strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

Runtime& runtime_with_device() {
  Runtime& runtime = Process::get().runtime();
  if (runtime.device_kind() != MemoryKind::cuda)
    throw Error(Status::wrong_kind,
                "an array lies in the memory of a GPU, and this process works without one: set "
                "BRANT_GPU=cuda on a machine with a GPU");
  return runtime;
}

/// What the producer of the array queued on `theirs` comes before what is done with it from here on.
void put_behind(Stream& theirs, const Behind& behind) {
  if (behind.producers != nullptr) return behind.producers->add(theirs);
  if (behind.stream == nullptr) return wait_for(theirs);
  if (theirs.native() != behind.stream->native()) put_in_order(theirs, *behind.stream);
}

/// 1 and 2 are CUDA's default streams; any number is a CUstream, but on the emulated device, whose streams are brant's.
Stream stream_of_interface(nb::handle stream) {
  const auto handle = nb::cast<std::uintptr_t>(stream);
  Runtime& runtime = OwnStream::is_one(handle) ? Process::get().runtime() : runtime_with_device();
  return runtime.device().borrow_stream(reinterpret_cast<void*>(handle));
}

/// By a stream of this process, unless it is used on one: the default one has a name alone, which means another stream
/// for each device.
nb::object capsule_in_order(nb::handle array, const Behind& behind) {
  runtime_with_device();
  Stream& stream = behind.stream != nullptr ? *behind.stream : Process::get().arrivals();
  const auto handle = reinterpret_cast<std::uintptr_t>(static_cast<StreamHandle>(stream));
  nb::object capsule = array.attr("__dlpack__")(nb::arg("stream") = handle);
  put_behind(stream, behind);
  return capsule;
}

/// NumPy's array type; null as long as nobody has imported NumPy. Borrowed, for the life of the interpreter.
PyTypeObject* numpy_array_type() {
  static PyTypeObject* type = nullptr;
  if (type != nullptr) return type;
  const nb::object name = nb::str("numpy");
  const nb::object numpy = nb::steal(PyImport_GetModule(name.ptr()));
  if (!numpy.is_valid()) return nullptr;
  type = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
  return type;
}

/// ctypes names the fields of a structure, and not the gaps between them.
bool hides_gaps(PyObject* array, std::string_view format) noexcept {
  const std::string_view kind = Py_TYPE(Py_TYPE(array))->tp_name;
  return format.starts_with("T{") && kind.starts_with("_ctypes.");
}

/// Made anew by each question, which takes CuPy some microseconds. Null: it has none. Arrays of CuPy have the buffer
/// protocol too, and refuse it: where they lie comes before what protocols they know.
nb::object cuda_interface_of(PyObject* object) noexcept {
  const bool on_host = Py_TYPE(object) == numpy_array_type() || PyBytes_CheckExact(object) != 0 ||
                       PyByteArray_CheckExact(object) != 0 || PyMemoryView_Check(object) != 0;
  if (on_host || PyType_Check(object) != 0) return {};
  nb::object interface = nb::steal(PyObject_GetAttrString(object, "__cuda_array_interface__"));
  if (!interface.is_valid()) PyErr_Clear();
  return interface;
}

}  // namespace

std::vector<Py_ssize_t> contiguous_strides(const std::vector<Py_ssize_t>& shape, std::size_t item_bytes, bool fortran) {
  std::vector<Py_ssize_t> strides(shape.size());
  auto stride = static_cast<Py_ssize_t>(item_bytes);
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const std::size_t dim = fortran ? at : shape.size() - 1 - at;
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

bool has_objects(std::string_view format) noexcept { return format.find_first_of("OP&") != std::string_view::npos; }

bool is_sent_raw(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyTypeObject* const numpy_array = numpy_array_type();
  if (type == numpy_array) return true;
  if (PyObject_CheckBuffer(object) != 0) {
    const bool of_numpy = numpy_array != nullptr && PyType_IsSubtype(type, numpy_array) != 0;
    return !of_numpy && std::string_view(type->tp_name).substr(0, 6) != "numpy.";
  }
  if (PyType_Check(object) != 0) return false;
  return nb::isinstance<Array>(object) || PyObject_HasAttrString(object, "__dlpack__") != 0 ||
         PyObject_HasAttrString(object, "__cuda_array_interface__") != 0;
}

std::string_view plain_format(std::string_view format) noexcept {
  if (format.size() > 1 && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  if (format == "q") return "l";
  if (format == "Q") return "L";
  if (format == "c") return "B";
  return format;
}

std::string typestr_of(std::string_view format, std::size_t item_bytes) {
  for (const NamedType& type : kTypes) {
    if (type.format == plain_format(format)) return (item_bytes == 1 ? "|" : "<") + std::string(type.typestr);
  }
  return {};
}

std::string format_of_typestr(std::string_view typestr) {
  if (typestr.size() < 3 || typestr[0] == '>') return {};
  for (const NamedType& type : kTypes) {
    if (type.typestr == typestr.substr(1)) return std::string(type.format);
  }
  return {};
}

void View::clear() noexcept {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  Py_XDECREF(std::exchange(owner_, nullptr));
}

bool View::take(PyObject* array, Access access, OnDevice on_device, const Behind& behind) {
  on_device_ = on_device;
  if (nb::isinstance<Array>(array)) {
    const Array& ours = *nb::inst_ptr<Array>(array);
    owner_ = Py_NewRef(array);
    data_ = ours.memory().data;
    kind_ = ours.memory().kind;
    host_ = host_accessible(kind_);
    own_format_ = ours.format();
    format_ = own_format_;
    item_bytes_ = ours.item_bytes();
    set_shape(ours.shape(), ours.strides());
    return true;
  }
  if (const nb::object interface = cuda_interface_of(array); interface.is_valid())
    return take_cuda(array, nb::cast<nb::dict>(interface), access, behind);
  if (PyObject_CheckBuffer(array) != 0) return take_buffer(array, access);
  if (PyType_Check(array) != 0) return false;
  if (PyObject_HasAttrString(array, "__dlpack__") != 0) return take_dlpack(array, behind);
  return false;
}

bool View::take_buffer(PyObject* array, Access access) {
  if (PyObject_GetBuffer(array, &buffer_, PyBUF_FULL_RO) != 0) {
    buffer_.obj = nullptr;
    if (PyErr_ExceptionMatches(PyExc_ValueError) == 0 && PyErr_ExceptionMatches(PyExc_BufferError) == 0)
      throw nb::python_error();
    PyErr_Clear();
    return false;
  }
  format_ = plain_format(buffer_.format != nullptr ? buffer_.format : "B");
  if (has_objects(format_) || hides_gaps(array, format_)) {
    clear();
    return false;
  }
  if (access == Access::write && buffer_.readonly != 0) {
    clear();
    throw Error(Status::invalid_argument, "a read-only array cannot receive");
  }
  data_ = buffer_.buf;
  bytes_ = static_cast<std::size_t>(buffer_.len);
  item_bytes_ = static_cast<std::size_t>(buffer_.itemsize);
  shape_ = buffer_.shape;
  dims_ = static_cast<std::size_t>(buffer_.ndim);
  order_ = PyBuffer_IsContiguous(&buffer_, 'C') != 0   ? Order::c
           : PyBuffer_IsContiguous(&buffer_, 'F') != 0 ? Order::fortran
                                                       : Order::strided;
  return true;
}

bool View::take_cuda(PyObject* array, const nb::dict& description, Access access, const Behind& behind) {
  const auto typestr = nb::cast<std::string>(description["typestr"]);
  own_format_ = format_of_typestr(typestr);
  const nb::tuple data = nb::cast<nb::tuple>(description["data"]);
  if (access == Access::write && nb::cast<bool>(data[1]))
    throw Error(Status::invalid_argument, "a read-only array cannot receive");
  if (description.contains("mask") && !description["mask"].is_none())
    throw Error(Status::not_supported, "an array with a mask cannot be sent: send its data and its mask");
  // Before version 3 the interface says nothing of streams (PyTorch, JAX), and it has no name for bfloat16.
  const bool is_ordered = description.contains("version") && nb::cast<int>(description["version"]) >= 3;
  if ((!is_ordered || own_format_.empty()) && PyObject_HasAttrString(array, "__dlpack__") != 0)
    return take_dlpack(array, behind);
  if (own_format_.empty())
    throw Error(Status::not_supported, "arrays of the type '" + typestr + "' cannot be sent from a GPU");
  if (description.contains("stream") && !description["stream"].is_none()) {
    Stream theirs = stream_of_interface(description["stream"]);
    put_behind(theirs, behind);
  }
  owner_ = Py_NewRef(array);
  data_ = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
  format_ = own_format_;
  item_bytes_ = static_cast<std::size_t>(std::stoul(typestr.substr(2)));
  kind_ = MemoryKind::detect;
  host_ = false;
  std::vector<Py_ssize_t> strides;
  if (description.contains("strides") && !description["strides"].is_none())
    strides = nb::cast<std::vector<Py_ssize_t>>(description["strides"]);
  set_shape(nb::cast<std::vector<Py_ssize_t>>(description["shape"]), std::move(strides));
  return true;
}

bool View::take_dlpack(PyObject* array, const Behind& behind) {
  const auto device = nb::cast<std::pair<int, int>>(nb::handle(array).attr("__dlpack_device__")());
  const bool on_gpu = device.first == kDlCuda || device.first == kDlCudaManaged;
  if (!on_gpu && device.first != kDlCpu && device.first != kDlCudaHost)
    throw Error(Status::not_supported, "an array lies on a device that brant does not know (DLPack device type " +
                                           std::to_string(device.first) + ")");
  nb::object capsule = on_gpu ? capsule_in_order(array, behind) : nb::handle(array).attr("__dlpack__")();
  const DlTensor* tensor = tensor_of(capsule.ptr());
  own_format_ = format_of(*tensor);
  if (own_format_.empty())
    throw Error(Status::not_supported, "brant does not know the element type of an array that came by DLPack");
  owner_ = capsule.release().ptr();
  format_ = own_format_;
  data_ = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  item_bytes_ = (static_cast<std::size_t>(tensor->bits) * tensor->lanes + 7) / 8;
  host_ = !on_gpu;
  const auto dims = static_cast<std::size_t>(tensor->dims);
  std::vector<Py_ssize_t> shape(tensor->shape, tensor->shape + dims);
  std::vector<Py_ssize_t> strides;
  if (tensor->strides != nullptr) strides.assign(tensor->strides, tensor->strides + dims);
  for (Py_ssize_t& stride : strides) stride *= static_cast<Py_ssize_t>(item_bytes_);
  set_shape(std::move(shape), std::move(strides));
  return true;
}

void View::set_shape(std::vector<Py_ssize_t> shape, std::vector<Py_ssize_t> strides) {
  own_shape_ = std::move(shape);
  own_strides_ = std::move(strides);
  shape_ = own_shape_.data();
  dims_ = own_shape_.size();
  bytes_ = item_bytes_;
  for (const Py_ssize_t count : own_shape_) bytes_ *= static_cast<std::size_t>(count);
  if (own_strides_.size() != dims_) own_strides_ = contiguous_strides(own_shape_, item_bytes_, false);
  const auto lies = [&](bool fortran) { return is_contiguous(own_shape_, own_strides_, item_bytes_, fortran); };
  order_ = lies(false) ? Order::c : lies(true) ? Order::fortran : Order::strided;
  auto* const first = static_cast<std::byte*>(data_);
  std::ptrdiff_t below = 0, above = 0;
  for (std::size_t dim = 0; dim < dims_ && bytes_ != 0; ++dim) {
    const std::ptrdiff_t reach = (own_shape_[dim] - 1) * own_strides_[dim];
    (reach < 0 ? below : above) += reach;
  }
  lowest_ = first + below;
  extent_bytes_ = bytes_ == 0 ? 0 : static_cast<std::size_t>(above - below) + item_bytes_;
  if (order_ == Order::strided && !host_ && on_device_ == OnDevice::together)
    throw Error(
        Status::not_supported,
        "an array in device memory whose elements do not lie together cannot be used here, but by channels: make "
        "it contiguous first (cupy.ascontiguousarray, tensor.contiguous())");
  if (!host_) return;
  buffer_.buf = data_;
  buffer_.len = static_cast<Py_ssize_t>(bytes_);
  buffer_.itemsize = static_cast<Py_ssize_t>(item_bytes_);
  buffer_.ndim = static_cast<int>(dims_);
  buffer_.shape = own_shape_.data();
  buffer_.strides = own_strides_.data();
}

Shape View::shape_in(Order order) const {
  std::vector<ShapeDim> dims;  // innermost first
  for (std::size_t at = 0; at < dims_; ++at) {
    const std::size_t dim = order == Order::fortran ? at : dims_ - 1 - at;
    dims.push_back({static_cast<std::size_t>(own_shape_[dim]), own_strides_[dim]});
  }
  const auto first = static_cast<std::size_t>(static_cast<std::byte*>(data_) - lowest_);
  const Result<Shape> shape = Shape::strided(first, item_bytes_, dims);
  if (!shape.ok())
    throw Error(Status::not_supported,
                "an array in device memory has too many dimensions whose elements lie apart: make it contiguous first");
  return *shape;
}

std::string View::describe() const {
  std::string text = "an array of " + std::string(format_) + " of shape (";
  for (std::size_t dim = 0; dim < dims_; ++dim) text += (dim == 0 ? "" : ", ") + std::to_string(shape_[dim]);
  return text + ")";
}

void View::pack(std::byte* packed, Order order) const {
  auto* const view = const_cast<Py_buffer*>(&buffer_);  // as below; const in Python 3.11 and later
  if (PyBuffer_ToContiguous(packed, view, static_cast<Py_ssize_t>(bytes_), order == Order::fortran ? 'F' : 'C') != 0)
    throw nb::python_error();
}

void View::unpack(const std::byte* packed, Order order) const {
  // The buffer is only read but for what it points to; CPython's declaration is older than const.
  if (PyBuffer_FromContiguous(const_cast<Py_buffer*>(&buffer_), const_cast<std::byte*>(packed),
                              static_cast<Py_ssize_t>(bytes_), order == Order::fortran ? 'F' : 'C') != 0)
    throw nb::python_error();
}

}  // namespace brant::python
