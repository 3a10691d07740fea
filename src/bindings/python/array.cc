#include "bindings/python/array.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <utility>

#include "bindings/python/dlpack.h"
#include "bindings/python/errors.h"
#include "bindings/python/process.h"
#include "bindings/python/view.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

std::size_t bytes_of(const std::vector<Py_ssize_t>& shape, std::size_t item_bytes) {
  std::size_t bytes = item_bytes;
  for (const Py_ssize_t count : shape) {
    if (count < 0) throw Error(Status::invalid_argument, "an array has no negative extent");
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(count), &bytes))
      throw Error(Status::invalid_argument, "an array of that shape is larger than any memory");
  }
  return bytes;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const Array& array = *nb::inst_ptr<Array>(self);
  if (!host_accessible(array.memory().kind)) {
    PyErr_SetString(PyExc_BufferError,
                    "this array lies in the memory of a device: DLPack or __cuda_array_interface__ shows it");
    return -1;
  }
  const bool only_plain = (flags & PyBUF_STRIDES) != PyBUF_STRIDES;
  if (array.is_fortran() && (only_plain || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)) {
    PyErr_SetString(PyExc_BufferError, "this array is in Fortran order");
    return -1;
  }
  *view = {};
  view->buf = array.memory().data;
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(array.bytes());
  view->itemsize = static_cast<Py_ssize_t>(array.item_bytes());
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(array.format().c_str()) : nullptr;
  view->ndim = static_cast<int>(array.shape().size());
  view->shape = (flags & PyBUF_ND) != 0 ? const_cast<Py_ssize_t*>(array.shape().data()) : nullptr;
  view->strides = only_plain ? nullptr : const_cast<Py_ssize_t*>(array.strides().data());
  return 0;
}

PyType_Slot array_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {0, nullptr},
};

std::int32_t dlpack_device(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::cuda: return kDlCuda;
    case MemoryKind::cuda_managed: return kDlCudaManaged;
    case MemoryKind::pinned: return kDlCudaHost;
    case MemoryKind::host: return kDlCpu;
    default:
      throw Error(Status::not_supported, "DLPack has no name for " + std::string(memory_kind_name(kind)) + " memory");
  }
}

std::int32_t ordinal_of(const Array& array) {
  return array.memory().kind == MemoryKind::cuda ? Process::get().runtime().device().info().ordinal : 0;
}

/// What a DLPack consumer gets: shape and strides beside the tensor, and a reference of the array.
struct Shown {
  DlManagedTensor managed;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  PyObject* array;

  static void destroy(DlManagedTensor* managed) {
    auto* shown = static_cast<Shown*>(managed->context);
    const nb::gil_scoped_acquire gil;
    Py_DECREF(shown->array);
    delete shown;
  }
};

void destroy_unused(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // a consumer took it
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

nb::object to_dlpack(nb::handle self) {
  const Array& array = *nb::inst_ptr<Array>(self);
  auto shown = std::make_unique<Shown>();
  DlTensor& tensor = shown->managed.tensor;
  tensor.device_type = dlpack_device(array.memory().kind);
  tensor.device = ordinal_of(array);
  if (!set_format(tensor, array.format(), array.item_bytes()))
    throw Error(Status::not_supported, "DLPack has no name for elements of '" + array.format() + "'");
  shown->shape.assign(array.shape().begin(), array.shape().end());
  for (const Py_ssize_t stride : array.strides())
    shown->strides.push_back(stride / static_cast<Py_ssize_t>(array.item_bytes()));
  tensor.data = array.memory().data;
  tensor.dims = static_cast<std::int32_t>(shown->shape.size());
  tensor.shape = shown->shape.data();
  tensor.strides = shown->strides.data();
  shown->managed.context = shown.get();
  shown->managed.deleter = &Shown::destroy;
  PyObject* capsule = PyCapsule_New(&shown->managed, "dltensor", &destroy_unused);
  if (capsule == nullptr) throw nb::python_error();
  shown.release()->array = Py_NewRef(self.ptr());
  return nb::steal(capsule);
}

/// The other side of a copy: its bytes lie together, in the order of the array.
void take_other(View& view, nb::handle other, View::Access access, const Array& array, const char* what) {
  const bool taken = view.take(other.ptr(), access);
  const bool fits = taken && view.order() != Order::strided && view.bytes() == array.bytes();
  if (!fits) throw Error(Status::invalid_argument, std::string(what) + " takes a contiguous array of as many bytes");
  const bool flat = view.shape().size() <= 1 || array.shape().size() <= 1;
  if (!flat && (view.order() == Order::fortran) != array.is_fortran())
    throw Error(Status::invalid_argument, std::string(what) +
                                              " takes an array in the order of elements of this one: "
                                              "numpy.ascontiguousarray, or numpy.asfortranarray");
}

nb::dict cuda_interface(const Array& array) {
  if (array.memory().kind != MemoryKind::cuda && array.memory().kind != MemoryKind::cuda_managed)
    throw nb::attribute_error("this array does not lie in the memory of a CUDA device");
  nb::dict description;
  description["shape"] = shape_tuple(array.shape());
  description["strides"] = shape_tuple(array.strides());
  const std::string typestr = typestr_of(array.format(), array.item_bytes());
  if (typestr.empty())
    throw nb::attribute_error("this interface has no name for the elements of this array: use DLPack");
  description["typestr"] = typestr;
  description["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.memory().data), false);
  description["version"] = 3;
  description["stream"] = nb::none();
  return description;
}

}  // namespace

MemoryKind landing_kind(MemoryKind kind) {
  return host_accessible(kind) ? MemoryKind::host : Process::get().runtime().device_kind();
}

nb::tuple shape_tuple(const std::vector<Py_ssize_t>& shape) {
  nb::list list;
  for (const Py_ssize_t count : shape) list.append(count);
  return nb::tuple(list);
}

Array::Array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, Buffer memory,
             std::shared_ptr<void> owner, bool fortran)
    : shape_(std::move(shape)),
      strides_(contiguous_strides(shape_, item_bytes, fortran)),
      format_(std::move(format)),
      item_bytes_(item_bytes),
      bytes_(bytes_of(shape_, item_bytes)),
      fortran_(fortran),
      owner_(std::move(owner)),
      memory_(memory.data, bytes_, memory.kind) {}

Array::Array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, MemoryKind kind, bool fortran)
    : Array(std::move(shape), std::move(format), item_bytes, Buffer(), nullptr, fortran) {
  auto memory = std::make_shared<Memory>(Process::get().runtime().allocate(kind, std::max<std::size_t>(bytes_, 1)));
  memory_ = Buffer(memory->data(), bytes_, memory->kind());
  owner_ = std::move(memory);
}

Array::~Array() {
  Process& process = Process::get();
  // After the end the memory goes with the runtime; in another thread it waits for the owner's next turn.
  if (process.has_ended() || !process.is_owner()) process.bury(std::move(owner_));
}

nb::object new_array(std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, MemoryKind kind,
                     bool fortran) {
  nb::object array = nb::cast(new Array(std::move(shape), std::move(format), item_bytes, kind, fortran),
                              nb::rv_policy::take_ownership);
  if (!host_accessible(kind)) return array;
  return nb::module_::import_("brant._arrays").attr("show")(array);
}

void bind_array(nb::module_& module) {
  nb::class_<Array>(module, "Array", nb::type_slots(array_slots), nb::is_weak_referenceable())
      .def_prop_ro("shape", [](const Array& self) { return shape_tuple(self.shape()); })
      .def_prop_ro("strides", [](const Array& self) { return shape_tuple(self.strides()); })
      .def_prop_ro("nbytes", &Array::bytes)
      .def_prop_ro("address", [](const Array& self) { return reinterpret_cast<std::uintptr_t>(self.memory().data); })
      .def_prop_ro("itemsize", &Array::item_bytes)
      .def_prop_ro("format", &Array::format)
      .def_prop_ro("memory", [](const Array& self) { return std::string(memory_kind_name(self.memory().kind)); })
      .def_prop_ro("__cuda_array_interface__", &cuda_interface)
      .def("__dlpack__", [](nb::handle self, const nb::kwargs&) { return to_dlpack(self); })
      .def("__dlpack_device__",
           [](const Array& self) { return std::pair(dlpack_device(self.memory().kind), ordinal_of(self)); })
      .def("copy_from",
           [](Array& self, nb::handle source) {
             View view;
             take_other(view, source, View::Access::read, self, "copy_from");
             Process::get().runtime().copy(self.memory(), view.memory());
           })
      .def("copy_to", [](const Array& self, nb::handle target) {
        View view;
        take_other(view, target, View::Access::write, self, "copy_to");
        Process::get().runtime().copy(view.memory(), self.memory());
      });
  module.def("new_array",
             [](std::vector<Py_ssize_t> shape, std::string format, std::size_t item_bytes, const std::string& memory) {
               MemoryKind kind{};
               if (!memory_kind_from_name(memory, kind) || kind == MemoryKind::detect)
                 throw Error(Status::invalid_argument,
                             "'" + memory + "' is no kind of memory: use host, pinned, cuda or emulated");
               return new_array(std::move(shape), std::move(format), item_bytes, kind);
             });
}

}  // namespace brant::python
