#include "bindings/python/foreign.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/calling.h"
#include "bindings/python/lending.h"
#include "bindings/python/make.h"
#include "bindings/python/member.h"
#include "bindings/python/process.h"
#include "bindings/python/typed_call.h"
#include "brant/chare.h"
#include "brant/chare/expose.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

using detail::CallbackKind;
using detail::ExposedClass;
using detail::ExposedEntry;

/// Opens the message of a call, to whomever `address` names.
struct Opening {
  detail::Core& core;
  const detail::CallbackTarget& target;
  CallOptions options;
  std::uint32_t reply = 0;

  detail::Outgoing operator()(const detail::EntryInfo& entry, std::size_t bytes) const {
    if (target.kind == CallbackKind::element)
      return detail::open_call(core, {target.collection, target.key}, entry, options, reply, bytes);
    if (target.kind == CallbackKind::array)
      return detail::open_broadcast(core, target.collection, entry, options, bytes);
    return detail::open_multicast(core, {target.section, target.collection, 0}, detail::number_of(entry), options,
                                  bytes);
  }
};

void post(TypedCall call, const detail::EntryInfo& entry, const Opening& open) {
  if (!call.data().empty()) {
    auto [object, lending] = make<Lending>(std::move(call), entry);
    return lending->post(open.core, open);
  }
  detail::Outgoing outgoing = open(entry, call.bytes_behind(0));
  call.write_behind(0, outgoing.args);
  detail::post(open.core, outgoing);
}

TypedCall packed(const ExposedClass& of, const ExposedEntry& entry, nb::handle args) {
  TypedCall call(of.name + "." + entry.name);
  call.add_arguments(entry.arguments, args);
  return call;
}

CallOptions options_of(int priority) noexcept {
  CallOptions options;
  options.priority = priority;
  return options;
}

void call_cpp(const ExposedClass& of, std::size_t number, const Address& address, const nb::tuple& args, int priority) {
  const ExposedEntry& entry = of.entries.at(number);
  detail::Core& core = core_of(address);
  post(packed(of, entry, args), *entry.entry, Opening{core, address.target, options_of(priority)});
}

nb::object ask_cpp(const ExposedClass& of, std::size_t number, const Address& address, const nb::tuple& args,
                   int priority) {
  const ExposedEntry& entry = of.entries.at(number);
  detail::Core& core = core_of(address);
  TypedCall call = packed(of, entry, args);
  static_cast<void>(detail::number_of(*entry.entry));  // throws before anybody waits
  auto [result, reply] = make<Reply>(std::string_view(entry.answer));
  const detail::Target target{address.target.collection, address.target.key};
  const std::uint32_t expected = detail::expect_reply(core, reply->expect(), target, *entry.entry);
  post(std::move(call), *entry.entry, Opening{core, address.target, options_of(priority), expected});
  return std::move(result);
}

Address create_cpp(const ExposedClass& of, const nb::tuple& shape, nb::handle placement, const nb::tuple& args) {
  const Placement where = placement_of(placement);
  if (of.constructor == nullptr)
    throw Error(Status::invalid_argument,
                of.name + " has no constructor for Python: expose one, .constructor<...>(), or let C++ make the array");
  TypedCall call(of.name + ".array");
  call.add_arguments(of.constructor_arguments, args);
  detail::CollectionShape made;
  made.chare_class = of.info;
  made.constructor = of.constructor;
  made.placement = &where;
  made.extent = key_of(shape, of.info->dimensions);
  made.dense = true;
  Address address;
  address.target.kind = CallbackKind::array;
  detail::Core& core = Process::get().chares().core();
  detail::Outgoing outgoing = detail::open_create(core, made, call.bytes_behind(0), address.target.collection);
  call.write_behind(0, outgoing.args);
  detail::post(core, outgoing);
  return address;
}

}  // namespace

void bind_foreign(nb::module_& module) {
  nb::class_<ExposedClass>(module, "CppLine")
      .def_ro("name", &ExposedClass::name)
      .def_prop_ro("type_name", [](const ExposedClass& self) { return std::string(self.info->owner); })
      .def_prop_ro("dimensions", [](const ExposedClass& self) { return self.info->dimensions; })
      .def_prop_ro("entries", [](const ExposedClass& self) {
        std::vector<std::string> names;
        names.reserve(self.entries.size());
        for (const ExposedEntry& entry : self.entries) names.push_back(entry.name);
        return names;
      });
  module.def("exposed", [](const std::string& name) {
    const ExposedClass* found = detail::find_exposed(name);
    return found == nullptr ? nb::object(nb::none()) : nb::cast(found, nb::rv_policy::reference);
  });
  module.def("exposed_names", &detail::exposed_names);
  module.def("create_cpp", &create_cpp);
  module.def("call_cpp", &call_cpp);
  module.def("ask_cpp", &ask_cpp);
}

}  // namespace brant::python
