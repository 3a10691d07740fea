#include "bindings/python/segment.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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
  if (!view.take(array.ptr(), View::Access::read, View::OnDevice::apart))
    throw Error(Status::wrong_kind,
                "an object of type " + std::string(nb::type_name(array.type()).c_str()) + " is no array");
  const std::vector<Py_ssize_t> shape(view.shape().begin(), view.shape().end());
  const std::string format(view.format());
  return nb::make_tuple(shape_tuple(shape), format, view.item_bytes(), view.order() == Order::c, view.is_host());
}

}  // namespace

ExposedArray::ExposedArray(nb::handle array, bool read_only) {
  Runtime& runtime = Process::get().runtime();
  View& view = held_->view;
  if (!view.take(array.ptr(), read_only ? View::Access::read : View::Access::write))
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

nb::object RemoteArray::put(nb::handle array, std::uint64_t offset, const nb::object& timeout, const Layout& layout) {
  check_usable();
  auto [result, transferring] = make<Transferring>(*this, nb::find(*this), RmaDirection::put);
  transferring->start(array, offset, timeout, layout);
  return std::move(result);
}

nb::object RemoteArray::get(nb::handle out, std::uint64_t offset, const nb::object& timeout, const Layout& layout) {
  check_usable();
  auto [result, transferring] = make<Transferring>(*this, nb::find(*this), RmaDirection::get);
  transferring->start(out, offset, timeout, layout);
  return std::move(result);
}

bool RemoteArray::is_mapped() const {
  check_usable();
  return segment_->host_pointer() != nullptr || segment_->device_pointer(0) != nullptr;
}

void RemoteArray::close() {
  if (Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  segment_->close();
}

void Transferring::refuse(const std::string& why) const {
  throw Failure(Status::invalid_argument, target_.name() + ": " + why, target_.name(), target_.peer());
}

Buffer Transferring::memory_for(const Layout& layout) {
  Buffer memory = view_.memory();
  if (layout.part) {
    const auto [begin, bytes] = *layout.part;
    if (view_.order() != Order::c || begin > view_.bytes() || bytes > view_.bytes() - begin)
      refuse("a part of an array that is not inside it, or not in C order");
    return {static_cast<std::byte*>(memory.data) + begin, bytes, memory.kind};
  }
  if (!layout.steps) return memory;
  std::vector<ShapeDim> dims;
  for (const auto& [count, stride] : layout.steps->second) dims.push_back({count, stride});
  const Result<Shape> there = Shape::strided(0, layout.steps->first, dims);
  if (!there || there->bytes() != view_.bytes()) refuse("the steps are none of a shape of as many bytes as the array");
  const Shape here = view_.order() == Order::c ? Shape::contiguous(view_.bytes()) : view_.shape_in(Order::c);
  const bool puts = direction_ == RmaDirection::put;
  shapes_ = TransferShapes{puts ? here : *there, puts ? *there : here};
  return view_.order() == Order::c ? memory : view_.extent();
}

void Transferring::start(nb::handle array, std::uint64_t offset, const nb::object& timeout, const Layout& layout) {
  const double seconds = seconds_of(timeout);
  const bool puts = direction_ == RmaDirection::put;
  const View::OnDevice on_device = layout.steps ? View::OnDevice::apart : View::OnDevice::together;
  if (!view_.take(array.ptr(), puts ? View::Access::read : View::Access::write, on_device))
    throw Failure(Status::wrong_kind,
                  target_.name() + ": an object of type " + nb::type_name(array.type()).c_str() + " is no array",
                  target_.name(), target_.peer());
  if (layout.steps && view_.is_host() && view_.order() != Order::c)
    refuse("an array of the host in C order takes steps");
  RemoteSegment& segment = target_.segment();
  Buffer memory = memory_for(layout);
  const std::size_t bytes = shapes_ ? (puts ? shapes_->to : shapes_->from).end() : memory.bytes;
  if (offset > segment.size() || bytes > segment.size() - offset)
    throw Failure(Status::invalid_argument,
                  target_.name() + " has " + std::to_string(segment.size()) + " bytes, and " + std::to_string(bytes) +
                      " at offset " + std::to_string(offset) + " do not lie inside it",
                  target_.name(), target_.peer());
  array_ = nb::borrow(array);
  if (view_.order() == Order::strided && !shapes_) {
    packed_ = std::make_unique_for_overwrite<std::byte[]>(view_.bytes());
    memory = {packed_.get(), view_.bytes(), MemoryKind::host};
    if (puts) view_.pack(packed_.get());
  }
  const RmaOptions options{.shapes = shapes_ ? &*shapes_ : nullptr};
  start_by(
      [&](Op& op) {
        return puts ? segment.post_put(offset, memory, op, options) : segment.post_get(offset, memory, op, options);
      },
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
      .def(nb::init<nb::handle, bool>(), nb::arg("array"), nb::arg("read_only") = false)
      .def("ticket", &ExposedArray::ticket, "What another process needs to reach the array: bytes.")
      .def("close", &ExposedArray::close)
      .def_prop_ro("nbytes", &ExposedArray::bytes)
      .def_prop_ro("is_open", &ExposedArray::is_open);
  nb::class_<RemoteArray>(module, "RemoteSegment", nb::is_weak_referenceable())
      .def(nb::init<int, const nb::bytes&>(), nb::arg("peer"), nb::arg("ticket"))
      .def(
          "put",
          [](RemoteArray& self, nb::handle array, std::uint64_t offset, const nb::object& timeout,
             decltype(Layout::steps) steps,
             decltype(Layout::part) part) { return self.put(array, offset, timeout, {std::move(steps), part}); },
          nb::arg("array"), nb::arg("offset") = 0, nb::kw_only(), nb::arg("timeout") = nb::none(),
          nb::arg("steps") = nb::none(), nb::arg("part") = nb::none(),
          "Writes an array at so many bytes into the segment.")
      .def(
          "get",
          [](RemoteArray& self, nb::handle out, std::uint64_t offset, const nb::object& timeout,
             decltype(Layout::steps) steps,
             decltype(Layout::part) part) { return self.get(out, offset, timeout, {std::move(steps), part}); },
          nb::arg("out"), nb::arg("offset") = 0, nb::kw_only(), nb::arg("timeout") = nb::none(),
          nb::arg("steps") = nb::none(), nb::arg("part") = nb::none(), "Reads into an array from so many bytes on.")
      .def_prop_ro("is_mapped", &RemoteArray::is_mapped)
      .def("close", &RemoteArray::close)
      .def_prop_ro("peer", &RemoteArray::peer)
      .def_prop_ro("nbytes", &RemoteArray::bytes);
  module.def("layout_of", &layout_of);
  const nb::class_<Transferring, Awaitable> transferring(module, "Transferring");
}

}  // namespace brant::python
