#include "bindings/python/reducing.h"

#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/python/call.h"
#include "bindings/python/calling.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/member.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

/// What one element gives.
struct Given {
  nb::handle value;
  nb::handle operation;
  nb::handle index;
  std::uint16_t method = 0;  ///< Of the entry that gets the result.
};

/// What of it has been combined on this rank. The result looks like a call with one argument, so that it may go to an
/// entry, a future or every contributor. If a part of it raised an exception that is the result: the others who take
/// part are told, and the next reduction is a new one.
class ObjectPartial final : public detail::Partial {
 public:
  void add(const void* value, const detail::ElementKey&) override {
    const auto& given = *static_cast<const Given*>(value);
    static const nb::handle begin = python_function("brant._reducing", "begin");
    attempt([&] {
      agree(given.operation, given.method);
      take(begin(given.operation, given.value, given.index));
    });
  }

  void merge(ReadArchive& other) override {
    attempt([&] {
      const CallContents contents = CallContents::read(other);
      if ((contents.header.flags & CallHeader::kException) != 0) return fail_as(contents.objects[0]);
      agree(contents.objects[0], contents.header.method);
      take(contents.objects[1]);
    });
  }

  void measure(SizeArchive& archive, bool result) override {
    attempt([&] { pack(result); });
    if (failure_.is_valid()) pack_failure();
    archive.bytes(packed_.data(), packed_.size());
  }
  void write(WriteArchive& archive, bool) override { archive.bytes(packed_.data(), packed_.size()); }

 private:
  template <typename Body>
  void attempt(Body&& body) {
    const bool went_well = guarded([&] { return body(), true; }, false);
    if (went_well) return;
    const nb::object error = nb::steal(take_exception());
    try {
      static const nb::handle describe = python_function("brant._reducing", "describe_failure");
      fail_as(describe(error));
    } catch (nb::python_error& trouble) {
      throw Error(Status::internal, std::string("a reduction raised an exception: ") + trouble.what());
    }
  }

  /// The first exception counts.
  void fail_as(nb::object described) {
    if (!failure_.is_valid()) failure_ = std::move(described);
  }

  void agree(nb::handle operation, std::uint16_t method) {
    if (!operation_.is_valid()) {
      operation_ = nb::borrow(operation);
      method_ = method;
    } else if (!operation_.equal(operation) || method_ != method) {
      throw Error(
          Status::invalid_argument,
          "the n-th contributions of all elements belong to one reduction, and name one operation and one entry");
    }
  }

  void take(nb::object value) {
    static const nb::handle combine = python_function("brant._reducing", "combine");
    value_ = value_.is_valid() ? combine(operation_, value_, value) : std::move(value);
  }

  void pack(bool result) {
    if (failure_.is_valid()) return;
    CallPacker packer(method_);
    if (result) {
      static const nb::handle end = python_function("brant._reducing", "end");
      packer.add(end(operation_, value_));
    } else {
      packer.add(operation_);
      packer.add(value_);
    }
    write_packed(packer);
  }

  void pack_failure() {
    CallPacker packer(method_, CallHeader::kException);
    packer.add(failure_);
    write_packed(packer);
  }

  void write_packed(CallPacker& packer) {
    packed_.resize(packer.finish());
    packer.write(packed_.data());
  }

  nb::object value_;
  nb::object operation_;
  nb::object failure_;  ///< As `Reply` reads it.
  std::uint16_t method_ = 0;
  std::vector<std::byte> packed_;
};

/// Enrolled before the first Chares: the module is here by then.
detail::ReducerInfo& reducer() {
  static detail::ReducerInfo info{
      {detail::RegisteredKind::reducer, detail::name_hash("reducer", "brant.Chare"), "an operation of Python", "",
       "objects"},
      []() -> std::unique_ptr<detail::Partial> { return std::make_unique<ObjectPartial>(); }};
  return info;
}

/// With `to` None the result goes to every contributor: the awaitable that is returned.
nb::object contribute(const Place& place, const nb::object& section, nb::handle value, nb::handle operation,
                      const nb::object& to, std::uint16_t method) {
  detail::Core& core = Process::get().chares().core();
  ChareBase* chare = detail::local(core, place.target);
  if (chare == nullptr) throw Error(Status::not_found, "a chare that was destroyed contributes to a reduction");
  const nb::object index = index_of(place.target.key, place.dimensions);
  const Given given{value, operation, index, method};
  detail::CallbackTarget target;
  target.kind = detail::CallbackKind::everyone;
  detail::Contribution contribution{chare, {0, place.target.collection, 0}, &reducer(), &given, &target, nullptr};
  if (!section.is_none()) contribution.gathering.section = nb::cast<const Address&>(section).target.section;
  if (!to.is_none()) {
    target = nb::cast<const Address&>(to).target;
    if (target.kind != detail::CallbackKind::future) target.entry = detail::number_of(Member::entry());
    detail::contribute(core, contribution);
    return nb::none();
  }
  auto [result, reply] = make<Reply>();
  detail::Waiting waiting = reply->expect();
  contribution.waiting = &waiting;
  try {
    detail::contribute(core, contribution);
  } catch (...) {
    waiting.deliver(waiting.storage, nullptr, std::current_exception());
    throw;
  }
  return std::move(result);
}

}  // namespace

void bind_reducing(nb::module_& module) {
  detail::enroll(reducer());
  module.def("contribute", &contribute, nb::arg("place"), nb::arg("section").none(), nb::arg("value").none(),
             nb::arg("operation"), nb::arg("to").none(), nb::arg("method"));
}

}  // namespace brant::python
