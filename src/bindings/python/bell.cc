#include "bindings/python/bell.h"

#include <nanobind/stl/string.h>

#include <set>

#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/stream_handle.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr int kNoPeer = -1;

/// What may not be destroyed here: after the end it stays, in another thread it waits for the owner.
template <typename T>
void lay_aside(std::shared_ptr<T> thing) {
  Process& process = Process::get();
  if (process.has_ended() || !process.is_owner()) process.bury(std::move(thing));
}

bool is_device(const std::string& name, const char* what) {
  if (name != "device" && name != "host")
    throw Error(Status::invalid_argument, std::string(what) + "='" + name + "': use device or host");
  return name == "device";
}

BellOptions options_of(const std::string& rung_by, const std::string& seen_by) {
  BellOptions options;
  options.rung_by = is_device(rung_by, "rung_by") ? RungBy::device : RungBy::host;
  options.seen_by = is_device(seen_by, "seen_by") ? SeenBy::device : SeenBy::host;
  return options;
}

/// A structure of brant/device/notify.cuh, as the tuple of brant._kernels that stands for it.
nb::object for_kernels(const char* name, const notify::Word* place, notify::Word number) {
  return nb::module_::import_("brant._kernels").attr(name)(reinterpret_cast<std::uintptr_t>(place), number);
}

/// The handles of those that live. With the GIL.
std::set<std::uintptr_t>& own_streams() {
  static auto* const handles = new std::set<std::uintptr_t>;  // never destroyed, as Process
  return *handles;
}

}  // namespace

OwnStream::OwnStream() : stream_(std::make_shared<Stream>(Process::get().runtime().device().create_stream())) {
  own_streams().insert(handle());
}
OwnStream::~OwnStream() {
  own_streams().erase(handle());
  lay_aside(std::move(stream_));
}

bool OwnStream::is_one(std::uintptr_t handle) noexcept { return own_streams().contains(handle); }

void OwnStream::synchronize() {
  static_cast<void>(Process::get().runtime());
  Status status = Status::ok;
  {
    const nb::gil_scoped_release others_run;
    status = stream_->synchronize();
  }
  if (status != Status::ok) throw Error(status, "the stream reports a fault");
}

std::uintptr_t OwnStream::handle() const noexcept {
  return reinterpret_cast<std::uintptr_t>(static_cast<StreamHandle>(*stream_));
}

NotifierOfPython::NotifierOfPython(std::uint32_t bells) {
  NotifierOptions options;
  options.bells = bells;
  notifier_ = std::make_shared<Notifier>(Process::get().runtime(), options);
}
NotifierOfPython::~NotifierOfPython() { lay_aside(std::move(notifier_)); }

nb::object NotifierOfPython::fan_in(std::uint32_t arrivals) {
  static_cast<void>(Process::get().runtime());
  const notify::FanIn made = notifier_->fan_in(arrivals);
  return for_kernels("FanIn", made.counts, made.of);
}

BellOfPython::BellOfPython(Notifier& notifier, const std::string& rung_by, const std::string& seen_by) {
  static_cast<void>(Process::get().runtime());
  bell_ = std::make_shared<Bell>(notifier.make(options_of(rung_by, seen_by)));
  name_ = "bell " + std::to_string(bell_->number());
}
BellOfPython::~BellOfPython() { lay_aside(std::move(bell_)); }

void BellOfPython::check_usable() const {
  static_cast<void>(Process::get().runtime());  // this thread's
  if (!bell_->is_open()) throw Failure(Status::invalid_argument, name_ + " is closed", name_, kNoPeer);
}

void BellOfPython::require(Status status, const char* what) const {
  if (status != Status::ok) throw failure(status, name_, kNoPeer, what);
}

void BellOfPython::ring(std::uint64_t epoch) {
  check_usable();
  require(bell_->ring(epoch), "it cannot be rung here: Python rings bells with rung_by='host', with epochs that grow");
}

nb::object BellOfPython::when(std::uint64_t epoch, const nb::object& timeout) {
  check_usable();
  auto [result, ringing] = make<Ringing>(*this, nb::find(*this));
  ringing->start(epoch, timeout);
  return std::move(result);
}

void BellOfPython::enqueue_ring(nb::handle stream, std::uint64_t epoch) {
  check_usable();
  require(bell_->enqueue_ring(stream_of(stream), epoch), "a stream rings bells with rung_by='device'");
}

void BellOfPython::enqueue_wait(nb::handle stream, std::uint64_t epoch) {
  check_usable();
  require(bell_->enqueue_wait(stream_of(stream), epoch), "a stream waits for bells with seen_by='device'");
}

void BellOfPython::close() {
  if (Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  bell_->close();
}

std::uint64_t BellOfPython::epoch() const {
  check_usable();
  return bell_->epoch();
}

nb::object BellOfPython::device() const {
  check_usable();
  const notify::DeviceBell bell = bell_->device();
  return for_kernels("DeviceBell", bell.word, bell.number);
}

void Ringing::start(std::uint64_t epoch, const nb::object& timeout) {
  const double seconds = seconds_of(timeout);
  op_.delivered = {[](void* self, const OpResult& result) noexcept {
                     auto& ringing = *static_cast<Ringing*>(self);
                     ringing.outcome_ = result.status;
                     ringing.pending_ = false;
                     Process::get().ended(ringing);
                   },
                   this};
  outcome_ = bell_.bell().post_when(op_, epoch, Worker::kForever);
  if (outcome_ != Status::in_progress) return answer();
  pending_ = true;
  hold();
  if (seconds >= 0) set_deadline(seconds);
}

void Ringing::advance() {
  if (pending_ && is_overdue()) {
    give_up(Status::timed_out);
    return;
  }
  if (pending_) return;
  answer();
  release();
}

void Ringing::give_up(Status status) {
  if (has_answer()) return;
  op_.detach();
  pending_ = false;
  outcome_ = status;
  answer();
  Process::get().ended(*this);  // which lets it go
}

PyObject* Ringing::take() {
  if (outcome_ == Status::ok) return PyLong_FromUnsignedLongLong(bell_.is_open() ? bell_.bell().epoch() : 0);
  set_python_error(failure(outcome_, bell_.name(), kNoPeer, "the wait for a bell ended"));
  return nullptr;
}

void bind_bells(nb::module_& module) {
  nb::class_<OwnStream>(module, "Stream", nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("synchronize", &OwnStream::synchronize)
      .def("__cuda_stream__", [](const OwnStream& self) { return nb::make_tuple(0, self.handle()); })
      .def_prop_ro("handle", &OwnStream::handle);
  nb::class_<NotifierOfPython>(module, "Notifier", nb::is_weak_referenceable())
      .def(nb::init<std::uint32_t>(), nb::arg("bells") = 1024)
      .def("fan_in", &NotifierOfPython::fan_in, nb::arg("arrivals"));
  nb::class_<BellOfPython>(module, "Bell", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](BellOfPython* self, NotifierOfPython& notifier, const std::string& rung_by, const std::string& seen_by) {
            new (self) BellOfPython(notifier.notifier(), rung_by, seen_by);
          },
          nb::arg("notifier"), nb::arg("rung_by") = "device", nb::arg("seen_by") = "host", nb::keep_alive<1, 2>())
      .def("ring", &BellOfPython::ring, nb::arg("epoch"))
      .def("when", &BellOfPython::when, nb::arg("epoch"), nb::arg("timeout") = nb::none())
      .def("enqueue_ring", &BellOfPython::enqueue_ring, nb::arg("stream"), nb::arg("epoch"))
      .def("enqueue_wait", &BellOfPython::enqueue_wait, nb::arg("stream"), nb::arg("epoch"))
      .def("device", &BellOfPython::device)
      .def("close", &BellOfPython::close)
      .def_prop_ro("epoch", &BellOfPython::epoch)
      .def_prop_ro("is_open", &BellOfPython::is_open);
  const nb::class_<Ringing, Awaitable> ringing(module, "Ringing");
}

}  // namespace brant::python
