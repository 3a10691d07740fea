#include "bindings/python/calling.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/lending.h"
#include "bindings/python/make.h"
#include "bindings/python/member.h"
#include "bindings/python/process.h"
#include "bindings/python/typed_read.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

using detail::CallbackKind;

detail::Core& core() { return Process::get().chares().core(); }

/// Packs nothing that could fail between the opening of a message and its post.
template <typename Open>
void post(detail::Core& to, CallPacker& packer, Open&& open) {
  detail::Outgoing outgoing = open(packer.finish());
  if (outgoing.message == nullptr) return;
  packer.write(outgoing.args);
  detail::post(to, outgoing);
}

/// A call of an entry: `open` is told which one, since arrays in memory of a device travel beside the message. To a
/// method with a post function (`posted`) all do.
template <typename Open>
void post_call(detail::Core& to, CallPacker& packer, bool posted, Open&& open) {
  if (!packer.set_apart(posted)) {
    return post(to, packer, [&](std::size_t bytes) { return open(Member::entry(), bytes); });
  }
  auto [object, lending] =
      make<Lending>(std::move(packer), posted ? Member::entry_with_post() : Member::entry_with_data());
  lending->post(to, open);
}

CallOptions options_of(int priority) noexcept {
  CallOptions options;
  options.priority = priority;
  return options;
}

void call(const Address& address, std::uint16_t method, const nb::tuple& args, const nb::object& kwargs, int priority,
          bool posted) {
  detail::Core& to = core_of(address);
  const detail::CallbackTarget& target = address.target;
  CallPacker packer(method);
  packer.add_arguments(args, kwargs);
  if (target.kind != CallbackKind::element && target.kind != CallbackKind::array &&
      target.kind != CallbackKind::section)
    throw Error(Status::invalid_argument, "only chares can be called");
  post_call(to, packer, posted, [&](const detail::EntryInfo& entry, std::size_t bytes) {
    if (target.kind == CallbackKind::element)
      return detail::open_call(to, {target.collection, target.key}, entry, options_of(priority), 0, bytes);
    if (target.kind == CallbackKind::array)
      return detail::open_broadcast(to, target.collection, entry, options_of(priority), bytes);
    return detail::open_multicast(to, {target.section, target.collection, 0}, detail::number_of(entry),
                                  options_of(priority), bytes);
  });
}

nb::object ask(const Address& address, std::uint16_t method, const nb::tuple& args, const nb::object& kwargs,
               int priority, bool posted) {
  detail::Core& to = core_of(address);
  if (address.target.kind != CallbackKind::element)
    throw Error(Status::invalid_argument, "only one element at a time can be asked for a reply");
  const detail::Target target{address.target.collection, address.target.key};
  CallPacker packer(method);
  packer.add_arguments(args, kwargs);
  auto [result, reply] = make<Reply>();
  const std::uint32_t number = detail::expect_reply(to, reply->expect(), target, Member::entry());
  post_call(to, packer, posted, [&](const detail::EntryInfo& entry, std::size_t bytes) {
    return detail::open_call(to, target, entry, options_of(priority), number, bytes);
  });
  return std::move(result);
}

/// The value of a future, or an exception as `Reply` reads it.
void fulfil(const Address& address, nb::handle value, bool failed) {
  detail::Core& to = core_of(address);
  CallPacker packer(0, failed ? CallHeader::kException : std::uint16_t{0});
  packer.add(value);
  post(to, packer, [&](std::size_t bytes) { return detail::open_callback(to, address.target, bytes); });
}

nb::tuple new_future() {
  auto [result, reply] = make<Reply>();
  Address address;
  address.target.kind = CallbackKind::future;
  address.target.rank = Process::get().runtime().rank().value;
  address.target.number = detail::expect_callback(core(), reply->expect());
  return nb::make_tuple(result, address);
}

nb::object quiescence() {
  auto [result, reply] = make<Reply>(false);
  detail::CallbackTarget target;
  target.kind = CallbackKind::future;
  target.rank = Process::get().runtime().rank().value;
  target.number = detail::expect_callback(core(), reply->expect());
  Process::get().chares().on_quiescence(Callback<>(&core(), target));
  return std::move(result);
}

Address create(const nb::tuple& shape, nb::handle placement, nb::handle what) {
  const auto dimensions = static_cast<int>(shape.size());
  const Placement where = placement_of(placement);
  detail::CollectionShape made;
  made.chare_class = &Member::class_of(dimensions);
  made.constructor = &Member::constructor();
  made.placement = &where;
  made.extent = key_of(shape, dimensions);
  made.dense = true;
  CallPacker packer(static_cast<std::uint16_t>(dimensions));
  packer.add(what);
  Address address;
  address.target.kind = CallbackKind::array;
  detail::Core& to = core();
  post(to, packer, [&](std::size_t bytes) { return detail::open_create(to, made, bytes, address.target.collection); });
  return address;
}

Address element(const Address& array, nb::handle index, int dimensions) {
  Address address;
  address.program = array.program;
  address.target.kind = CallbackKind::element;
  address.target.collection = array.target.collection;
  address.target.key = key_of(index, dimensions);
  return address;
}

Address section(const Address& array, const nb::list& indices, int dimensions) {
  std::vector<detail::ElementKey> keys;
  keys.reserve(indices.size());
  for (const nb::handle index : indices) keys.push_back(key_of(index, dimensions));
  Address address;
  address.target.kind = CallbackKind::section;
  address.target.collection = array.target.collection;
  address.target.section = detail::define_section(core_of(array), array.target.collection, keys);
  return address;
}

void destroy(const Address& address) {
  if (address.target.kind == CallbackKind::element) {
    detail::post_destroy(core_of(address), {address.target.collection, address.target.key});
  } else if (address.target.kind == CallbackKind::array) {
    detail::post_destroy_all(core_of(address), address.target.collection);
  } else {
    throw Error(Status::invalid_argument, "only an array or one of its elements can be destroyed");
  }
}

Address array_of(const Place& place) {
  Address address;
  address.target.kind = CallbackKind::array;
  address.target.collection = place.target.collection;
  return address;
}

constexpr std::size_t kTargetBytes = sizeof(detail::CallbackTarget), kProgramBytes = sizeof(std::uint32_t);

nb::bytes bytes_of(const Address& address) {
  std::array<char, kTargetBytes + kProgramBytes> bytes = {};
  std::memcpy(bytes.data(), &address.target, kTargetBytes);
  std::memcpy(bytes.data() + kTargetBytes, &address.program, kProgramBytes);
  return nb::bytes(bytes.data(), bytes.size());
}

Address address_of(const nb::bytes& bytes) {
  Address address;
  if (bytes.size() != kTargetBytes + kProgramBytes) throw Error(Status::invalid_argument, "these bytes are no address");
  std::memcpy(&address.target, bytes.c_str(), kTargetBytes);
  std::memcpy(&address.program, bytes.c_str() + kTargetBytes, kProgramBytes);
  return address;
}

}  // namespace

detail::Core& core_of(const Address& address) {
  detail::Core& running = core();
  if (address.program != Process::get().program_number())
    throw Error(Status::invalid_argument, "this proxy or future is of a program of chares that has ended");
  return running;
}

Placement placement_of(nb::handle placement) {
  if (PyBytes_Check(placement.ptr()) != 0) {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(PyBytes_GET_SIZE(placement.ptr())) / sizeof(std::int32_t));
    if (!ranks.empty())
      std::memcpy(ranks.data(), PyBytes_AS_STRING(placement.ptr()), ranks.size() * sizeof(std::int32_t));
    return Placement::listed(std::move(ranks));
  }
  const auto name = PyUnicode_Check(placement.ptr()) != 0 ? nb::cast<std::string>(placement) : std::string();
  if (name == "block") return Placement::block();
  if (name == "round_robin") return Placement::round_robin();
  if (name == "hashed") return Placement::hashed();
  throw Error(Status::invalid_argument, "placement " + nb::cast<std::string>(nb::repr(placement)) +
                                            ": use block, round_robin, hashed or a function");
}

Address::Address() noexcept : program(Process::get().program_number()) {}

Reply::~Reply() {
  if (unheard_) {
    const KeptException of_others;  // of whoever lets go of it
    guarded(
        [&] {
          static const nb::handle warn = python_function("brant._chares", "warn_of_unheard");
          return warn(nb::handle(error_)).is_valid();
        },
        false);
    if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
  }
  Py_XDECREF(value_);
  Py_XDECREF(error_);
}

detail::Waiting Reply::expect() noexcept {
  hold();
  detail::Waiting waiting;
  Reply* self = this;
  std::memcpy(waiting.storage, &self, sizeof self);
  waiting.deliver = [](void* storage, ReadArchive* answer, std::exception_ptr failure) noexcept {
    Reply* told = nullptr;
    std::memcpy(&told, storage, sizeof told);
    told->deliver(answer, failure);
  };
  return waiting;
}

void Reply::deliver(ReadArchive* answer_archive, const std::exception_ptr& failure) noexcept {
  const bool read = guarded(
      [&] {
        if (failure) std::rethrow_exception(failure);
        if (has_answer()) return true;  // nobody waits any more
        if (!type_.empty()) {
          value_ = read_typed(*answer_archive, type_).release().ptr();
          return true;
        }
        CallContents contents;
        if (has_value_) contents = CallContents::read(*answer_archive);
        if (contents.objects.size() == 0) {
          value_ = Py_NewRef(Py_None);
        } else if ((contents.header.flags & CallHeader::kException) != 0) {
          static const nb::handle remote = python_function("brant._chares", "remote_exception");
          error_ = remote(contents.objects[0]).release().ptr();
          unheard_ = true;
        } else {
          value_ = nb::object(contents.objects[0]).release().ptr();
        }
        return true;
      },
      false);
  if (!read) error_ = take_exception();
  answer();
  release();
}

void Reply::give_up(Status status) {
  if (has_answer()) return;
  set_python_error(Error(status, "a reply that was waited for"));
  error_ = take_exception();
  answer();
}

PyObject* Reply::take() {
  unheard_ = false;
  if (error_ == nullptr) return Py_NewRef(value_);
  raise_to_awaiter(error_);
  return nullptr;
}

void bind_calling(nb::module_& module) {
  nb::class_<Address>(module, "Address")
      .def("__eq__", [](const Address& self, const Address& other) { return self == other; })
      .def("__hash__", [](const Address& self) { return PyObject_Hash(bytes_of(self).ptr()); })
      .def("__bytes__", &bytes_of)
      .def_static("of", &address_of);
  const nb::class_<Reply, Awaitable> reply(module, "Reply");
  const nb::class_<Lending, Awaitable> lending(module, "Lending");
  module.def("create", &create);
  module.def("element", &element);
  module.def("section", &section);
  module.def("array_of", &array_of);
  module.def("call", &call, nb::arg("address"), nb::arg("method"), nb::arg("args"), nb::arg("kwargs").none(),
             nb::arg("priority"), nb::arg("posted"));
  module.def("ask", &ask, nb::arg("address"), nb::arg("method"), nb::arg("args"), nb::arg("kwargs").none(),
             nb::arg("priority"), nb::arg("posted"));
  module.def("fulfil", &fulfil, nb::arg("address"), nb::arg("value").none(), nb::arg("failed"));
  module.def("new_future", &new_future);
  module.def("quiescence", &quiescence);
  module.def("destroy", &destroy);
}

}  // namespace brant::python
