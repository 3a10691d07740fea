#include "bindings/python/segment.h"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "bindings/python/array.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// What may not be destroyed here: after the end it stays, in another thread it waits for the owner.
template <typename T>
void lay_aside(std::shared_ptr<T> thing) {
  Process& process = Process::get();
  if (process.has_ended() || !process.is_owner()) process.bury(std::move(thing));
}

/// Of an array: its shape, the format and the bytes of an element, whether its elements lie together in C order, and
/// whether the CPU may look at them.
nb::tuple layout_of(nb::handle array) {
  View view;
  if (!view.take(array.ptr(), View::Access::read))
    throw Error(Status::wrong_kind,
                "an object of type " + std::string(nb::type_name(array.type()).c_str()) + " is no array");
  const std::vector<Py_ssize_t> shape(view.shape().begin(), view.shape().end());
  const std::string format(view.format());
  return nb::make_tuple(shape_tuple(shape), format, view.item_bytes(), view.order() == Order::c, view.is_host());
}

}  // namespace

ExposedArray::ExposedArray(nb::handle array) {
  Runtime& runtime = Process::get().runtime();
  View& view = held_->view;
  if (!view.take(array.ptr(), View::Access::write))
    throw Error(Status::wrong_kind, "brant.expose takes an array, and no object of type " +
                                        std::string(nb::type_name(array.type()).c_str()));
  if (view.order() == Order::strided)
    throw Error(Status::invalid_argument,
                "brant.expose takes an array whose elements lie together: make it contiguous first");
  held_->segment = expose(runtime, view.memory());
}

ExposedArray::~ExposedArray() { lay_aside(std::move(held_)); }

void ExposedArray::close() {
  if (Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  held_->segment.close();
  held_->view.clear();
}

nb::bytes ExposedArray::ticket() const {
  if (!is_open()) throw Error(Status::invalid_argument, "the segment is closed");
  const SegmentTicket ticket = held_->segment.ticket();
  return nb::bytes(ticket.bytes().data(), ticket.bytes().size());
}

RemoteArray::RemoteArray(int peer, const nb::bytes& ticket)
    : peer_(peer), name_("a segment of rank " + std::to_string(peer)) {
  Runtime& runtime = Process::get().runtime();
  const SegmentTicket packed(std::span(reinterpret_cast<const std::byte*>(ticket.c_str()), ticket.size()));
  try {
    segment_ = std::make_shared<RemoteSegment>(runtime, Rank{peer}, packed);
  } catch (const Error& error) {
    throw Failure(error.status(), error.what(), name_, peer_);
  }
}

RemoteArray::~RemoteArray() { lay_aside(std::move(segment_)); }

void RemoteArray::check_usable() const {
  static_cast<void>(Process::get().runtime());
  if (!segment_->is_open()) throw Failure(Status::invalid_argument, name_ + " is closed here", name_, peer_);
}

nb::object RemoteArray::put(nb::handle array, std::uint64_t offset, const nb::object& timeout) {
  check_usable();
  auto [result, transferring] = make<Transferring>(*this, nb::find(*this), RmaDirection::put);
  transferring->start(array, offset, timeout);
  return std::move(result);
}

nb::object RemoteArray::get(nb::handle out, std::uint64_t offset, const nb::object& timeout) {
  check_usable();
  auto [result, transferring] = make<Transferring>(*this, nb::find(*this), RmaDirection::get);
  transferring->start(out, offset, timeout);
  return std::move(result);
}

void RemoteArray::close() {
  if (Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  segment_->close();
}

void Transferring::start(nb::handle array, std::uint64_t offset, const nb::object& timeout) {
  const double seconds = seconds_of(timeout);
  const bool puts = direction_ == RmaDirection::put;
  if (!view_.take(array.ptr(), puts ? View::Access::read : View::Access::write))
    throw Failure(Status::wrong_kind,
                  target_.name() + ": an object of type " + nb::type_name(array.type()).c_str() + " is no array",
                  target_.name(), target_.peer());
  RemoteSegment& segment = target_.segment();
  const std::size_t bytes = view_.bytes();
  if (offset > segment.size() || bytes > segment.size() - offset)
    throw Failure(Status::invalid_argument,
                  target_.name() + " has " + std::to_string(segment.size()) + " bytes, and " + std::to_string(bytes) +
                      " at offset " + std::to_string(offset) + " do not lie inside it",
                  target_.name(), target_.peer());
  array_ = nb::borrow(array);
  Buffer memory = view_.memory();
  if (view_.order() == Order::strided) {
    packed_ = std::make_unique_for_overwrite<std::byte[]>(view_.bytes());
    memory = {packed_.get(), view_.bytes(), MemoryKind::host};
    if (puts) view_.pack(packed_.get());
  }
  start_by([&](Op& op) { return puts ? segment.post_put(offset, memory, op) : segment.post_get(offset, memory, op); },
           seconds);
}

void Transferring::finish() {
  if (direction_ == RmaDirection::get && outcome().ok() && packed_ != nullptr) view_.unpack(packed_.get(), Order::c);
  view_.clear();
  packed_.reset();
}

PyObject* Transferring::take() {
  if (status() == Status::ok) return Py_NewRef(direction_ == RmaDirection::get ? array_.ptr() : Py_None);
  const char* what = direction_ == RmaDirection::put ? "a put failed" : "a get failed";
  set_python_error(failure(status(), target_.name(), target_.peer(), what));
  return nullptr;
}

void bind_segments(nb::module_& module) {
  nb::class_<ExposedArray>(module, "Segment", nb::is_weak_referenceable())
      .def(nb::init<nb::handle>(), nb::arg("array"))
      .def("ticket", &ExposedArray::ticket, "What another process needs to reach the array: bytes.")
      .def("close", &ExposedArray::close)
      .def_prop_ro("nbytes", &ExposedArray::bytes)
      .def_prop_ro("is_open", &ExposedArray::is_open);
  nb::class_<RemoteArray>(module, "RemoteSegment", nb::is_weak_referenceable())
      .def(nb::init<int, const nb::bytes&>(), nb::arg("peer"), nb::arg("ticket"))
      .def("put", &RemoteArray::put, nb::arg("array"), nb::arg("offset") = 0, nb::kw_only(),
           nb::arg("timeout") = nb::none(), "Writes an array at so many bytes into the segment.")
      .def("get", &RemoteArray::get, nb::arg("out"), nb::arg("offset") = 0, nb::kw_only(),
           nb::arg("timeout") = nb::none(), "Reads into an array from so many bytes on.")
      .def("close", &RemoteArray::close)
      .def_prop_ro("peer", &RemoteArray::peer)
      .def_prop_ro("nbytes", &RemoteArray::bytes);
  module.def("layout_of", &layout_of);
  const nb::class_<Transferring, Awaitable> transferring(module, "Transferring");
}

}  // namespace brant::python
