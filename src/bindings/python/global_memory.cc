#include "bindings/python/global_memory.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// Elements of a segment begin at multiples of this: a line of the cache.
constexpr std::size_t kAlignment = 64;

/// Of this process; there is one at a time.
std::unique_ptr<GlobalSpace>& the_space() {
  static auto* const only = new std::unique_ptr<GlobalSpace>;  // never destroyed, as Process
  return *only;
}

GlobalSpace& space() {
  static_cast<void>(Process::get().runtime());  // this thread's
  if (the_space() == nullptr)
    throw Error(Status::invalid_argument, "no global space is open in this process: make one, brant.GlobalSpace()");
  return *the_space();
}

void open_space() {
  Runtime& runtime = Process::get().runtime();
  if (the_space() != nullptr)
    throw Error(Status::invalid_argument, "this process has a global space already: use that, or close it before");
  the_space() = std::make_unique<GlobalSpace>(runtime);
}

MemoryKind kind_of(const std::string& name) {
  MemoryKind kind{};
  if (!memory_kind_from_name(name, kind))
    throw Error(Status::invalid_argument, "'" + name + "' is no kind of memory: use host, pinned, cuda or emulated");
  return kind;
}

std::string name_of(const GlobalPlace& place) {
  const auto& [rank, segment, offset, kind, device] = place;
  if (segment == 0) return "a null pointer";
  return "rank " + std::to_string(rank) + ", segment " + std::to_string(segment) + ", offset " +
         std::to_string(offset) + " (" + kind + ")";
}

GlobalPtr<std::byte> pointer_of(const GlobalPlace& place) {
  const auto& [rank, segment, offset, kind, device] = place;
  // A global pointer has no more bits for them.
  if (offset >> GlobalPtr<std::byte>::kOffsetBits != 0 || device > 0xff) {
    throw Error(Status::invalid_argument, name_of(place) + ", device " + std::to_string(device) +
                                              ": offsets of global pointers are below 2^48, devices below 256");
  }
  return {rank, segment, offset, static_cast<unsigned>(kind_of(kind)), device};
}

GlobalPlace place_of(GlobalPtr<std::byte> at) {
  return {at.rank(), at.segment(), at.offset(), std::string(memory_kind_name(at.kind())), at.device()};
}

/// Memory as an array; `owner` keeps it.
nb::object array_over(void* data, MemoryKind kind, const Target& target, std::vector<Py_ssize_t> shape,
                      std::shared_ptr<void> owner) {
  nb::object array = nb::cast(new Array(std::move(shape), target.format, target.item_bytes,
                                        Buffer(data, target.bytes(), kind), std::move(owner), false),
                              nb::rv_policy::take_ownership);
  static const nb::handle show = python_function("brant._arrays", "show");
  return host_accessible(kind) ? nb::object(show(array)) : array;
}

/// Where both ends of what lies there can be reached by `local`, the address of its beginning.
template <typename Local>
std::byte* whole(const Target& target, Local&& local) {
  const GlobalPtr<std::byte> at = target.at();
  if (target.bytes() == 0) return nullptr;
  std::byte* begin = local(at);
  return begin != nullptr && local(at + static_cast<std::ptrdiff_t>(target.bytes() - 1)) != nullptr ? begin : nullptr;
}

/// Of the host's memory that is mapped here; None: it is not.
nb::object local_array(const Target& target, const std::vector<Py_ssize_t>& shape) {
  GlobalSpace& in = space();
  std::byte* data = whole(target, [&](GlobalPtr<std::byte> at) { return in.local(at); });
  return data == nullptr ? nb::none() : array_over(data, MemoryKind::host, target, shape, nullptr);
}

Target target_of(const nb::tuple& parts) {
  return {nb::cast<GlobalPlace>(parts[0]), nb::cast<std::uint64_t>(parts[1]), nb::cast<std::string>(parts[2]),
          nb::cast<std::size_t>(parts[3])};
}

template <typename Start>
nb::object start_copy(const Target& target, const char* what, Start&& start) {
  static_cast<void>(space());
  auto [result, copying] = make<Copying>(target.name(), target.rank(), what);
  start(*copying);
  return std::move(result);
}

CopyOptions options_of(const nb::object& flag) {
  CopyOptions options;
  if (!flag.is_none()) {
    const auto [place, value, behind_all, adds] = nb::cast<std::tuple<GlobalPlace, std::uint64_t, bool, bool>>(flag);
    const GlobalPtr<std::uint64_t> word = pointer_of(place).as<std::uint64_t>();
    AtTarget set = adds ? AtTarget::add(word, value) : AtTarget::set(word, value);
    options.at_target = behind_all ? std::move(set).behind_all() : std::move(set);
  }
  return options;
}

}  // namespace

GlobalPtr<std::byte> Target::at() const { return pointer_of(place); }
std::string Target::name() const { return name_of(place); }

OwnSegment::OwnSegment(std::uint64_t bytes, const std::string& memory) : bytes_(bytes) {
  GlobalSpace& in = space();
  if (bytes == 0) throw Error(Status::invalid_argument, "a segment has at least a byte");
  held_->memory = std::make_shared<Memory>(in.runtime().allocate(kind_of(memory), bytes));
  held_->segment = in.adopt(Buffer(held_->memory->data(), bytes, held_->memory->kind()));
}

OwnSegment::OwnSegment(nb::handle array) {
  GlobalSpace& in = space();
  View& view = held_->view;
  if (!view.take(array.ptr(), View::Access::write))
    throw Error(Status::wrong_kind, "a segment is made around an array, and around no object of type " +
                                        std::string(nb::type_name(array.type()).c_str()));
  if (view.order() == Order::strided)
    throw Error(Status::invalid_argument,
                "a segment is made around an array whose elements lie together: make it contiguous first");
  bytes_ = view.bytes();
  held_->segment = in.adopt(view.memory());
}

OwnSegment::~OwnSegment() {
  Process& process = Process::get();
  if (held_ == nullptr) return;
  if (process.has_ended() || !process.is_owner()) {
    process.bury(std::move(held_));
    return;
  }
  if (!is_open()) return;
  const KeptException of_others;  // of whoever lets go of it
  guarded([&] { return retire().is_valid(); }, false);
  if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
}

GlobalSegment& OwnSegment::require_open() const {
  static_cast<void>(space());
  if (!is_open()) throw Error(Status::invalid_argument, "this segment is retired: make another one");
  return held_->segment;
}

GlobalPlace OwnSegment::begin() const { return place_of(require_open().begin()); }

GlobalPlace OwnSegment::allocate(std::uint64_t bytes) {
  return place_of(require_open().allocate<std::byte>(bytes, kAlignment));
}

void OwnSegment::deallocate(const GlobalPlace& place) { require_open().deallocate(pointer_of(place)); }

nb::object OwnSegment::array(const Target& target, const std::vector<Py_ssize_t>& shape) const {
  const GlobalSegment& segment = require_open();
  std::byte* data = whole(target, [&](GlobalPtr<std::byte> at) { return segment.local(at); });
  if (data == nullptr)
    throw Failure(Status::invalid_argument,
                  target.name() + " does not lie in this segment, which is segment " +
                      std::to_string(segment.begin().segment()) + " of rank " + std::to_string(segment.begin().rank()),
                  target.name());
  return array_over(data, segment.memory().kind, target, shape, held_);
}

void OwnSegment::publish(const nb::object& ranks) {
  GlobalSegment& segment = require_open();
  Status status = Status::ok;
  if (ranks.is_none()) {
    status = segment.publish_to_all();
  } else {
    std::vector<Rank> to;
    for (const int rank : nb::cast<std::vector<int>>(ranks)) to.push_back(Rank{rank});
    status = segment.publish(to);
  }
  const std::string name = name_of(place_of(segment.begin()));
  if (status != Status::ok) throw failure(status, name, -1, "it was not published to all of these ranks");
}

nb::object OwnSegment::retire() {
  static_cast<void>(require_open());
  auto [result, retiring] = make<Retiring>(held_);
  retiring->start();
  held_.reset();
  return std::move(result);
}

std::size_t OwnSegment::bytes_used() const noexcept { return held_ == nullptr ? 0 : held_->segment.bytes_used(); }

void Retiring::start() {
  done_.emplace(held_->segment.retire());
  hold();
  done_->notify(
      {[](void* self, const OpResult&) noexcept { Process::get().ended(*static_cast<Retiring*>(self)); }, this});
}

void Retiring::advance() {
  held_.reset();
  answer();
  release();
}

void Retiring::give_up(Status status) {
  if (has_answer()) return;
  given_up_ = status;
  answer();
}

PyObject* Retiring::take() {
  return guarded(
      [&] {
        if (given_up_ != Status::ok)
          throw Error(given_up_, "nobody waits any more until a segment is reached by nobody");
        done_->get();
        return Py_NewRef(Py_None);
      },
      static_cast<PyObject*>(nullptr));
}

Copying::~Copying() {
  if (error_ == nullptr) return;
  if (!heard_) {
    const KeptException of_others;  // of whoever lets go of it
    raise_to_awaiter(error_);
    PyErr_WriteUnraisable(nullptr);
  }
  Py_DECREF(error_);
}

Buffer Copying::take_array(const Target& target, nb::handle array, View::Access access) {
  if (target.at().is_null()) throw Failure(Status::invalid_argument, "this global pointer is null", subject_);
  if (!view_.take(array.ptr(), access))
    throw Failure(Status::wrong_kind,
                  subject_ + ": an object of type " + nb::type_name(array.type()).c_str() + " is no array", subject_,
                  peer_);
  // A pointer to unsigned bytes takes all that has its size.
  const bool same =
      (target.format == "B" && target.item_bytes == 1) ||
      (view_.item_bytes() == target.item_bytes && plain_format(view_.format()) == plain_format(target.format));
  if (!same || view_.bytes() != target.bytes())
    throw Failure(Status::invalid_argument,
                  subject_ + " has " + std::to_string(target.items) + " elements of " + target.format +
                      ", and this is " + view_.describe() + ": nothing was copied",
                  subject_, peer_);
  array_ = nb::borrow(array);
  if (view_.order() == Order::c) return view_.memory();
  if (!view_.is_host())
    throw Failure(Status::not_supported, subject_ + ": an array of a device is copied in C order", subject_, peer_);
  packed_ = std::make_unique_for_overwrite<std::byte[]>(view_.bytes());
  return {packed_.get(), view_.bytes(), MemoryKind::host};
}

void Copying::put(const Target& to, nb::handle array, const nb::object& flag, const nb::object& then, double seconds) {
  const Buffer memory = take_array(to, array, View::Access::read);
  if (packed_ != nullptr) view_.pack(packed_.get());
  CopyOptions options = options_of(flag);
  then_ = then;
  start_by([&](Op& op) { return space().post_put(to.at(), memory, op, std::move(options)); }, seconds);
}

void Copying::get(const Target& from, nb::handle out, double seconds) {
  gets_ = true;
  const Buffer memory = take_array(from, out, View::Access::write);
  start_by([&](Op& op) { return space().post_get(from.at(), memory, op); }, seconds);
}

void Copying::copy(const Target& from, const Target& to, const nb::object& flag, const nb::object& then,
                   double seconds) {
  CopyOptions options = options_of(flag);
  then_ = then;
  start_by([&](Op& op) { return space().post_copy(from.at(), to.at(), from.bytes(), op, std::move(options)); },
           seconds);
}

void Copying::fence(Rank rank, double seconds) {
  start_by([&](Op& op) { return space().post_fence(rank, op); }, seconds);
}

void Copying::reach(const Target& at, double seconds) {
  start_by([&](Op& op) { return space().post_reach(at.at(), op); }, seconds);
}

void Copying::finish() {
  if (gets_ && outcome().ok() && packed_ != nullptr) view_.unpack(packed_.get(), Order::c);
  view_.clear();
  packed_.reset();
  const nb::object then = std::exchange(then_, nb::object());
  if (!then.is_valid() || then.is_none() || !outcome().ok()) return;
  const Process::EntryScope scope;
  PyObject* result = PyObject_CallNoArgs(then.ptr());
  if (result == nullptr) error_ = take_exception();
  Py_XDECREF(result);
}

PyObject* Copying::take() {
  if (error_ != nullptr && !was_given_up()) {
    heard_ = true;
    raise_to_awaiter(error_);
    return nullptr;
  }
  if (status() == Status::ok) return Py_NewRef(gets_ ? array_.ptr() : Py_None);
  set_python_error(failure(status(), subject_, peer_, what_));
  return nullptr;
}

namespace {

constexpr std::pair<const char*, AtomicOp> kAtomicNames[] = {
    {"load", AtomicOp::load}, {"store", AtomicOp::store},
    {"swap", AtomicOp::swap}, {"compare_swap", AtomicOp::compare_swap},
    {"add", AtomicOp::add},   {"min", AtomicOp::min},
    {"max", AtomicOp::max},   {"and", AtomicOp::bit_and},
    {"or", AtomicOp::bit_or}, {"xor", AtomicOp::bit_xor}};

/// By the letter that the module `struct` gives it.
AtomicType atomic_type(char letter) {
  switch (letter) {
    case 'i': return AtomicType::i32;
    case 'I': return AtomicType::u32;
    case 'q': return AtomicType::i64;
    case 'Q': return AtomicType::u64;
    case 'f': return AtomicType::f32;
    default: return AtomicType::f64;
  }
}

Atomic atomic_of(const std::string& name, char letter, std::uint64_t operand, std::uint64_t expected) {
  for (const auto& [known, operation] : kAtomicNames) {
    if (known != name) continue;
    const Atomic atomic{operation, atomic_type(letter), operand, expected};
    if (atomic.exists()) return atomic;
    throw Error(Status::invalid_argument, "there is no '" + name + "' of floating numbers");
  }
  throw Error(Status::invalid_argument, "'" + name +
                                            "' is no atomic: use load, store, swap, compare_swap, add, min, max, and, "
                                            "or, xor");
}

template <typename T>
T value_of(const std::array<std::byte, 8>& bytes) noexcept {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

PyObject* number_of(AtomicType type, const std::array<std::byte, 8>& bytes) {
  switch (type) {
    case AtomicType::i32: return PyLong_FromLong(value_of<std::int32_t>(bytes));
    case AtomicType::u32: return PyLong_FromUnsignedLong(value_of<std::uint32_t>(bytes));
    case AtomicType::i64: return PyLong_FromLongLong(value_of<std::int64_t>(bytes));
    case AtomicType::u64: return PyLong_FromUnsignedLongLong(value_of<std::uint64_t>(bytes));
    case AtomicType::f32: return PyFloat_FromDouble(value_of<float>(bytes));
    case AtomicType::f64: break;
  }
  return PyFloat_FromDouble(value_of<double>(bytes));
}

}  // namespace

void Fetching::start(const Target& at, double seconds) {
  void* const before = atomic_.operation == AtomicOp::store ? nullptr : before_.data();
  start_by([&](Op& op) { return space().post_atomic(at.at(), atomic_, op, before); }, seconds);
}

PyObject* Fetching::take() {
  if (status() != Status::ok) {
    set_python_error(failure(status(), subject_, peer_, "an atomic failed"));
    return nullptr;
  }
  return atomic_.operation == AtomicOp::store ? Py_NewRef(Py_None) : number_of(atomic_.type, before_);
}

void close_space() noexcept {
  if (the_space() == nullptr) return;
  const nb::gil_scoped_release others_run;
  the_space().reset();
}

void bind_global_memory(nb::module_& module) {
  nb::class_<OwnSegment>(module, "OwnSegment", nb::is_weak_referenceable())
      .def(nb::init<std::uint64_t, const std::string&>(), nb::arg("nbytes"), nb::arg("memory"))
      .def(nb::init<nb::handle>(), nb::arg("array"))
      .def("begin", &OwnSegment::begin)
      .def("allocate", &OwnSegment::allocate, nb::arg("nbytes"))
      .def("deallocate", &OwnSegment::deallocate, nb::arg("place"))
      .def("array", [](const OwnSegment& self, const nb::tuple& target,
                       const std::vector<Py_ssize_t>& shape) { return self.array(target_of(target), shape); })
      .def("publish", &OwnSegment::publish, nb::arg("ranks").none())
      .def("retire", &OwnSegment::retire)
      .def_prop_ro("nbytes", &OwnSegment::bytes)
      .def_prop_ro("nbytes_used", &OwnSegment::bytes_used)
      .def_prop_ro("is_open", &OwnSegment::is_open);
  const nb::class_<Retiring, Awaitable> retiring_type(module, "Retiring");
  const nb::class_<Copying, Awaitable> copying_type(module, "Copying");
  const nb::class_<Fetching, Awaitable> fetching_type(module, "Fetching");
  module.def("open_space", &open_space);
  module.def("close_space", [] {
    if (Process::get().has_ended()) return;
    static_cast<void>(Process::get().runtime());
    close_space();
  });
  module.def("local_array", [](const nb::tuple& target, const std::vector<Py_ssize_t>& shape) {
    return local_array(target_of(target), shape);
  });
  module.def(
      "put",
      [](const nb::tuple& to, nb::handle array, const nb::object& flag, const nb::object& then,
         const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        const Target target = target_of(to);
        return start_copy(target, "a put failed",
                          [&](Copying& copying) { copying.put(target, array, flag, then, seconds); });
      },
      nb::arg("to"), nb::arg("array"), nb::arg("flag").none(), nb::arg("then").none(), nb::arg("timeout").none());
  module.def(
      "get",
      [](const nb::tuple& from, nb::handle out, const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        const Target target = target_of(from);
        return start_copy(target, "a get failed", [&](Copying& copying) { copying.get(target, out, seconds); });
      },
      nb::arg("from_"), nb::arg("out"), nb::arg("timeout").none());
  module.def(
      "copy",
      [](const nb::tuple& from, const nb::tuple& to, const nb::object& flag, const nb::object& then,
         const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        const Target source = target_of(from), target = target_of(to);
        return start_copy(target, "a copy failed",
                          [&](Copying& copying) { copying.copy(source, target, flag, then, seconds); });
      },
      nb::arg("from_"), nb::arg("to"), nb::arg("flag").none(), nb::arg("then").none(), nb::arg("timeout").none());
  module.def(
      "atomic",
      [](const nb::tuple& at, const std::string& name, char letter, std::uint64_t operand, std::uint64_t expected,
         const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        const Target target = target_of(at);
        static_cast<void>(space());
        auto [result, fetching] =
            make<Fetching>(target.name(), target.rank(), atomic_of(name, letter, operand, expected));
        fetching->start(target, seconds);
        return nb::object(std::move(result));
      },
      nb::arg("at"), nb::arg("name"), nb::arg("letter"), nb::arg("operand"), nb::arg("expected"),
      nb::arg("timeout").none());
  module.def(
      "fence",
      [](int rank, const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        static_cast<void>(space());
        auto [result, copying] = make<Copying>("the puts to rank " + std::to_string(rank), rank, "a fence failed");
        copying->fence(Rank{rank}, seconds);
        return nb::object(std::move(result));
      },
      nb::arg("rank"), nb::arg("timeout").none());
  module.def(
      "reach",
      [](const nb::tuple& at, const nb::object& timeout) {
        const double seconds = seconds_of(timeout);
        const Target target = target_of(at);
        return start_copy(target, "it cannot be reached", [&](Copying& copying) { copying.reach(target, seconds); });
      },
      nb::arg("at"), nb::arg("timeout").none());
}

}  // namespace brant::python
