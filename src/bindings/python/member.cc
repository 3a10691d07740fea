#include "bindings/python/member.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>

#include "bindings/python/array.h"
#include "bindings/python/entry_run.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/signature.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

constexpr int kDimensionsMax = 6;

void destroy(ChareBase& chare) noexcept { delete static_cast<Member*>(&chare); }

/// The function of a table, called with the object and the arguments.
nb::object call_with(nb::handle function, nb::handle object, const nb::tuple& args, const nb::object& keywords) {
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args.ptr()));
  std::vector<PyObject*> all{object.ptr()};
  all.reserve(count + 1);
  for (std::size_t at = 0; at < count; ++at) all.push_back(PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(at)));
  nb::object result = nb::steal(
      PyObject_VectorcallDict(function.ptr(), all.data(), all.size(), keywords.is_none() ? nullptr : keywords.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

bool is_true(nb::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

/// The array of a data argument that lies in memory of the runtime, which it owns from here on.
nb::object landed_array(const detail::Invocation& invocation, std::size_t at, const Item& item) {
  detail::LandingBlock* block = nullptr;
  const Buffer landing = detail::landed_data(invocation, at, &block);
  std::shared_ptr<void> owner(block, [](void* last) {
    if (last != nullptr) lane::drop_landing(static_cast<detail::LandingBlock*>(last));
  });
  if (landing.bytes < item.header.bytes) throw Error(Status::truncated, "a data argument is shorter than it says");
  nb::object array = nb::cast(new Array(item.shape, std::string(item.format), item.header.item_bytes, landing,
                                        std::move(owner), item.header.order == Order::fortran),
                              nb::rv_policy::take_ownership);
  static const nb::handle show = python_function("brant._arrays", "show");
  return host_accessible(landing.kind) && item.header.kind == MemoryKind::host ? nb::object(show(array)) : array;
}

/// `construct` gives what `brant._chares.construct` has made.
template <typename Construct>
ChareBase* construct_with(Construct&& construct) {
  static const nb::handle construct_object = python_function("brant._chares", "construct");
  try {
    const detail::Birth& birth = detail::present_birth();
    const auto made = nb::cast<nb::tuple>(construct(construct_object, birth));
    detail::name_class(*birth.collection, nb::cast<std::string>(made[0].type().attr("__name__")));
    return new Member(nb::object(made[0]), nb::cast<nb::tuple>(made[1]), nb::cast<nb::tuple>(made[2]),
                      nb::cast<nb::tuple>(made[3]));
  } catch (nb::python_error& error) {
    throw Error(Status::internal, error.what());
  }
}

/// What stands in front of the arguments of a call of C++ with data arguments.
class DataInFront {
 public:
  explicit DataInFront(ReadArchive& arguments) : message_(arguments.take(sizeof header_)) {
    std::memcpy(&header_, message_, sizeof header_);
    metas_ = static_cast<const std::byte*>(arguments.take(header_.count * sizeof(detail::DataMeta)));
  }
  [[nodiscard]] const void* message() const noexcept { return message_; }
  /// A data argument of the type "x" or "Xd", as an array.
  [[nodiscard]] Item item(std::size_t at, std::string_view type) const {
    if (at >= header_.count) throw Error(Status::invalid_argument, "a call has fewer data arguments than it says");
    detail::DataMeta meta;
    std::memcpy(static_cast<void*>(&meta), metas_ + at * sizeof meta, sizeof meta);
    const char letter = type.size() > 1 ? type[1] : 'B';
    Item item;
    item.header.type = ItemType::apart;
    item.header.kind = meta.kind;
    item.header.item_bytes = bytes_of_letter(letter);
    item.header.bytes = meta.bytes;
    item.format = format_of_letter(letter);
    item.shape = {static_cast<Py_ssize_t>(meta.bytes / item.header.item_bytes)};
    item.any_type = type == "x";
    return item;
  }

 private:
  detail::DataHeader header_;
  const void* message_;
  const std::byte* metas_;
};

nb::object describe_coming(const Item& item, Rank source) {
  static const nb::handle describe = python_function("brant._entries", "Coming");
  return nb::object(describe(shape_tuple(item.shape), std::string(item.format), item.header.bytes,
                             std::string(memory_kind_name(item.header.kind)), source.value));
}

template <std::size_t... Dimensions>
std::array<detail::ClassInfo, kDimensionsMax> make_classes(std::index_sequence<Dimensions...>) {
  static constexpr std::string_view name = "brant.Chare";
  return {detail::ClassInfo{
      {detail::RegisteredKind::chare_class,
       detail::name_hash("class", name, std::string_view("123456").substr(Dimensions, 1)), name, "", ""},
      static_cast<int>(Dimensions) + 1,
      (Dimensions + 1) * sizeof(std::int32_t),
      sizeof(Member),
      &destroy}...};
}

/// Enrolled before the first Chares: the module is here by then.
struct Lines {
  std::array<detail::ClassInfo, kDimensionsMax> classes = make_classes(std::make_index_sequence<kDimensionsMax>());
  detail::ConstructorInfo constructor;
  detail::EntryInfo entry;
  detail::EntryInfo entry_with_data;
  detail::EntryInfo entry_with_post;
  detail::EntryInfo entry_from_cpp;
  detail::EntryInfo entry_from_cpp_with_data;
  detail::ConstructorInfo constructor_for_cpp;

  using Post = void(ChareBase&, ReadArchive&, const DeviceMeta*, brant::Landing*);
  using Invoke = void(ChareBase&, ReadArchive&, detail::Invocation&);
  Lines(ChareBase* (*construct)(ReadArchive&), Invoke* invoke, Invoke* invoke_with_data, Post* post)
      : constructor{{detail::RegisteredKind::constructor, detail::name_hash("constructor", "brant.Chare"),
                     "brant.Chare", "(constructor)", ""},
                    construct},
        entry{{detail::RegisteredKind::entry, detail::name_hash("entry", "brant.Chare"), "brant.Chare", "entry", ""},
              invoke},
        entry_with_data{{detail::RegisteredKind::entry, detail::name_hash("entry", "brant.Chare", "data"),
                         "brant.Chare", "entry", "with data"},
                        invoke_with_data},
        entry_with_post{{detail::RegisteredKind::entry, detail::name_hash("entry", "brant.Chare", "post"),
                         "brant.Chare", "entry", "with a post function"},
                        invoke_with_data,
                        post},
        entry_from_cpp{{detail::RegisteredKind::entry, detail::name_hash("entry", "brant.Chare", "from C++"),
                        "brant.Chare", "entry", "from C++"},
                       &Member::invoke_from_cpp},
        entry_from_cpp_with_data{
            {detail::RegisteredKind::entry, detail::name_hash("entry", "brant.Chare", "from C++, data"), "brant.Chare",
             "entry", "from C++, with data"},
            &Member::invoke_from_cpp_with_data,
            &Member::post_from_cpp},
        constructor_for_cpp{
            {detail::RegisteredKind::constructor, detail::name_hash("constructor", "brant.Chare", "from C++"),
             "brant.Chare", "(constructor)", "from C++"},
            &Member::construct_for_cpp} {
    for (detail::ClassInfo& line : classes) detail::enroll(line);
    detail::enroll(constructor);
    detail::enroll(entry);
    detail::enroll(entry_with_data);
    detail::enroll(entry_with_post);
    detail::enroll(entry_from_cpp);
    detail::enroll(entry_from_cpp_with_data);
    detail::enroll(constructor_for_cpp);
  }
};
Lines* g_lines = nullptr;
Member::WaitingList* const g_waiting = new Member::WaitingList;  // never destroyed, as Process
std::size_t g_looked_at = 0;                                     ///< How many waited at the last look.
std::size_t g_turns_without_look = 0;

}  // namespace

const detail::ClassInfo& Member::class_of(int dimensions) {
  if (dimensions < 1 || dimensions > kDimensionsMax)
    throw Error(Status::invalid_argument, "an array of chares has 1 to 6 dimensions");
  return g_lines->classes[static_cast<std::size_t>(dimensions - 1)];
}
const detail::ConstructorInfo& Member::constructor() { return g_lines->constructor; }
const detail::EntryInfo& Member::entry() { return g_lines->entry; }
const detail::EntryInfo& Member::entry_with_data() { return g_lines->entry_with_data; }
const detail::EntryInfo& Member::entry_with_post() { return g_lines->entry_with_post; }

detail::ElementKey key_of(nb::handle index, int dimensions) {
  detail::ElementKey key;
  const auto set = [&key](int at, nb::handle coordinate) {
    const long value = PyLong_AsLong(coordinate.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (value != static_cast<std::int32_t>(value))
      throw Error(Status::invalid_argument, "a coordinate of an index has 32 bits");
    key.set_coordinate(at, static_cast<std::int32_t>(value));
  };
  if (PyTuple_Check(index.ptr()) == 0) {
    if (dimensions != 1) throw Error(Status::invalid_argument, "an index is a tuple of as many numbers as dimensions");
    set(0, index);
    return key;
  }
  if (PyTuple_GET_SIZE(index.ptr()) != dimensions)
    throw Error(Status::invalid_argument, "an index is a tuple of as many numbers as dimensions");
  for (int at = 0; at < dimensions; ++at) set(at, PyTuple_GET_ITEM(index.ptr(), at));
  return key;
}

nb::object index_of(const detail::ElementKey& key, int dimensions) {
  if (dimensions == 1) return nb::int_(key.coordinate(0));
  nb::object index = nb::steal(PyTuple_New(dimensions));
  for (int at = 0; at < dimensions; ++at) PyTuple_SET_ITEM(index.ptr(), at, PyLong_FromLong(key.coordinate(at)));
  return index;
}

ChareBase* Member::construct(ReadArchive& arguments) {
  return construct_with([&](const nb::handle& construct_object, const detail::Birth& birth) {
    const CallContents call = CallContents::read(arguments);
    const Place place{{detail::view_of(*birth.collection).id, birth.key}, call.header.method};
    return nb::object(construct_object(place, call.objects[0]));
  });
}

ChareBase* Member::construct_for_cpp(ReadArchive& arguments) {
  return construct_with([&](const nb::handle& construct_object, const detail::Birth& birth) {
    static const nb::handle what_of = python_function("brant._cpp", "construction_of");
    std::string_view name, signature;
    std::int32_t dimensions = 0;
    detail::ElementKey extent;
    arguments(name, dimensions, extent, signature);
    if (dimensions < 1 || dimensions > 6) throw Error(Status::invalid_argument, "a message contradicts itself");
    const Place place{{detail::view_of(*birth.collection).id, birth.key}, dimensions};
    const nb::object shape = index_of(extent, dimensions);
    return nb::object(construct_object(place, what_of(std::string(name), shape, read_typed_all(arguments, signature))));
  });
}

void Member::invoke(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation) {
  static_cast<Member&>(target).receive(arguments, invocation, {});
}

void Member::invoke_with_data(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation) {
  auto& member = static_cast<Member&>(target);
  detail::DataHeader header;
  const void* const message = arguments.take(sizeof header);
  std::memcpy(&header, message, sizeof header);
  arguments.take(header.count * sizeof(detail::DataMeta));
  std::size_t next = 0;
  std::vector<Posted> posted = member.take_posted(message);
  const auto take = [&](const Item& item) {
    if (next >= header.count) throw Error(Status::invalid_argument, "a call has fewer data arguments than it says");
    const std::size_t at = next++;
    if (at >= posted.size() || posted[at].view == nullptr) return landed_array(invocation, at, item);
    const Buffer landing = detail::landed_data(invocation, at, nullptr);
    if (landing.bytes < item.header.bytes) throw Error(Status::truncated, "a data argument is shorter than it says");
    return std::move(posted[at].array);
  };
  member.receive(arguments, invocation, take);
}

void Member::post(ChareBase& target, ReadArchive& arguments, const DeviceMeta* metas, brant::Landing* landings) {
  detail::DataHeader header;
  const void* const message = arguments.take(sizeof header);
  std::memcpy(&header, message, sizeof header);
  arguments.take(header.count * sizeof(detail::DataMeta));
  Announced announced;
  const auto describe = [&](const Item& item) {
    if (announced.coming.size() >= header.count)
      throw Error(Status::invalid_argument, "a call has fewer data arguments than it says");
    announced.coming.push_back(item);
    return describe_coming(item, metas->source);
  };
  try {
    const CallContents call = CallContents::read(arguments, describe);
    announced.method = call.header.method;
    std::tie(announced.args, announced.keywords) = call.arguments();
    static_cast<Member&>(target).ask_post(announced, landings, message);
  } catch (nb::python_error& error) {
    throw Error(Status::invalid_argument, std::string("a post function raised an exception: ") + error.what());
  }
}

bool Member::has_post(unsigned method) const { return method < posts_.size() && !nb::object(posts_[method]).is_none(); }

void Member::ask_post(const Announced& call, brant::Landing* landings, const void* message) {
  if (!has_post(call.method)) return;
  const std::vector<Item>& coming = call.coming;
  nb::object named;
  {
    const Process::EntryScope scope;
    named = call_with(nb::object(posts_[call.method]), object_, call.args, call.keywords);
  }
  const bool several = nb::isinstance<nb::tuple>(named) || nb::isinstance<nb::list>(named);
  const nb::list arrays = several ? nb::list(named) : nb::list(nb::make_tuple(named));
  if (arrays.size() != coming.size() && !named.is_none())
    throw Error(Status::invalid_argument, "a post function names " + std::to_string(arrays.size()) + " arrays, and " +
                                              std::to_string(coming.size()) + " come: None is one for the runtime");
  std::vector<Posted> posted(coming.size());
  for (std::size_t at = 0; at < coming.size() && !named.is_none(); ++at) {
    posted[at].array = nb::object(arrays[at]);
    if (posted[at].array.is_none()) continue;
    auto view = std::make_unique<View>();
    const Item& item = coming[at];
    const bool taken = view->take(posted[at].array.ptr(), View::Access::write);
    const bool in_order = taken && (view->order() == item.header.order || item.shape.size() <= 1);
    const bool fits =
        taken && (item.any_type ? view->bytes() == item.header.bytes
                                : view->format() == item.format && std::ranges::equal(view->shape(), item.shape));
    if (!in_order || view->order() == Order::strided || !fits)
      throw Error(Status::invalid_argument, item.describe() + " comes, and its post function names " +
                                                (taken ? view->describe() : std::string("no array")) +
                                                (taken && !in_order ? " in another order of elements" : ""));
    landings[at] = view->memory();
    posted[at].view = std::move(view);
  }
  posted_.insert_or_assign(message, std::move(posted));
}

std::vector<Member::Posted> Member::take_posted(const void* message) {
  const auto found = posted_.find(message);
  if (found == posted_.end()) return {};
  std::vector<Posted> posted = std::move(found->second);
  posted_.erase(found);
  return posted;
}

void Member::receive(ReadArchive& arguments, const detail::Invocation& invocation, const TakeApart& apart) noexcept {
  unsigned method = 0xffff;
  const bool went_well = guarded(
      [&] {
        const CallContents call = CallContents::read(arguments, apart);
        method = call.header.method;
        run(call, invocation);
        return true;
      },
      false);
  if (!went_well) fail_with(invocation, object_, method);
}

void Member::run(const CallContents& call, const Invoked& invocation) {
  const unsigned method = call.header.method;
  if (method >= table_.size()) throw Error(Status::invalid_argument, "a call names an entry that its class has not");
  if ((call.header.flags & CallHeader::kException) != 0) {  // a reduction that failed, and nobody awaits
    static const nb::handle raise = python_function("brant._chares", "raise_remote");
    raise(call.objects[0]);
  }
  auto [args, keywords] = call.arguments();
  execute_or_keep(method, std::move(args), std::move(keywords), invocation);
}

void Member::execute_or_keep(unsigned method, nb::tuple args, nb::object keywords, const Invoked& invocation) {
  if (!may_run(method, args, keywords)) return keep({method, std::move(args), std::move(keywords), invocation});
  execute(method, args, keywords, invocation);
  if (waiting_hook_.linked()) look_again();
}

unsigned Member::number_of_method(std::string_view name) const {
  const auto entries = nb::cast<nb::dict>(object_.type().attr("_brant_entries"));
  const nb::str key(name.data(), name.size());
  if (!entries.contains(key))
    throw Error(Status::not_found, "C++ calls " + nb::cast<std::string>(object_.type().attr("__name__")) + "." +
                                       std::string(name) + ", and there is no such method with @brant.entry");
  return nb::cast<unsigned>(entries[key]);
}

void Member::receive_typed(ReadArchive& arguments, const detail::Invocation& invocation,
                           const LandTyped& land) noexcept {
  unsigned method = 0xffff;
  Invoked invoked(invocation);
  const bool went_well = guarded(
      [&] {
        std::string_view name, signature, answer;
        arguments(name, signature, answer);
        invoked.answer = std::make_shared<const std::string>(answer);
        method = number_of_method(name);
        execute_or_keep(method, read_typed_all(arguments, signature, land), nb::none(), invoked);
        return true;
      },
      false);
  if (!went_well) fail_with(invoked, object_, method);
}

void Member::invoke_from_cpp(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation) {
  static_cast<Member&>(target).receive_typed(arguments, invocation, {});
}

void Member::invoke_from_cpp_with_data(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation) {
  auto& member = static_cast<Member&>(target);
  const DataInFront data(arguments);
  std::vector<Posted> posted = member.take_posted(data.message());
  std::size_t next = 0;
  const auto land = [&](std::string_view type) {
    const std::size_t at = next++;
    const Item item = data.item(at, type);
    if (at >= posted.size() || posted[at].view == nullptr) return landed_array(invocation, at, item);
    static_cast<void>(detail::landed_data(invocation, at, nullptr));
    return std::move(posted[at].array);
  };
  member.receive_typed(arguments, invocation, land);
}

void Member::post_from_cpp(ChareBase& target, ReadArchive& arguments, const DeviceMeta* metas,
                           brant::Landing* landings) {
  auto& member = static_cast<Member&>(target);
  const DataInFront data(arguments);
  try {
    std::string_view name, signature, answer;
    arguments(name, signature, answer);
    Announced announced;
    announced.method = member.number_of_method(name);
    if (!member.has_post(announced.method)) return;
    const auto describe = [&](std::string_view type) {
      announced.coming.push_back(data.item(announced.coming.size(), type));
      return describe_coming(announced.coming.back(), metas->source);
    };
    announced.args = read_typed_all(arguments, signature, describe);
    announced.keywords = nb::none();
    member.ask_post(announced, landings, data.message());
  } catch (nb::python_error& error) {
    throw Error(Status::invalid_argument, std::string("a post function raised an exception: ") + error.what());
  }
}

void Member::execute(unsigned method, const nb::tuple& args, const nb::object& keywords, const Invoked& invocation) {
  const Process::EntryScope scope;
  const nb::handle function = PyTuple_GET_ITEM(table_.ptr(), method);
  nb::object result;
  if (*unbegun_ != 0) {  // calls run in their order: this one begins behind those
    static const nb::handle later = python_function("brant._asyncio", "call_later");
    result = later(function, object_, args, keywords);
  } else {
    result = call_with(function, object_, args, keywords);
  }
  if (PyCoro_CheckExact(result.ptr()) == 0) return answer_with(invocation, result);
  run_async(invocation, object_, method, result, unbegun_);
}

bool Member::may_run(unsigned method, const nb::tuple& args, const nb::object& keywords) const {
  PyObject* condition = PyTuple_GET_ITEM(conditions_.ptr(), method);
  if (condition == Py_None) return true;
  const Process::EntryScope scope;
  return is_true(call_with(condition, object_, args, keywords));
}

void Member::keep(Kept call) {
  constexpr std::size_t kKeptMax = 65536;
  if (kept_.size() >= kKeptMax)
    throw Error(Status::limit_reached, "65536 calls of a chare wait for their conditions already");
  detail::retain_message(call.invocation);
  kept_.push_back(std::move(call));
  enlist();
}

/// `runs`: its condition holds; else it has failed.
void Member::end_kept(std::size_t place, bool runs) noexcept {
  const Kept call = std::move(kept_[place]);
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(place));
  const bool went_well = !runs || guarded(
                                      [&] {
                                        execute(call.method, call.args, call.keywords, call.invocation);
                                        return true;
                                      },
                                      false);
  if (!went_well) fail_with(call.invocation, object_, call.method);
  detail::drop_message(call.invocation);
}

/// Runs the first one that may, in the order of arrival.
bool Member::look_at_kept() noexcept {
  for (std::size_t place = 0; place < kept_.size(); ++place) {
    const Kept& call = kept_[place];
    const int holds = guarded([&] { return may_run(call.method, call.args, call.keywords) ? 1 : 0; }, -1);
    if (holds == 0) continue;
    if (holds < 0) fail_with(call.invocation, object_, call.method);
    end_kept(place, holds > 0);
    return true;
  }
  return false;
}

bool Member::look_at_waits() {
  const std::size_t before = waits_.size();
  for (const nb::object& wait : std::vector<nb::object>(waits_)) nb::inst_ptr<ConditionWait>(wait)->look();
  std::erase_if(waits_, [](const nb::object& wait) { return nb::inst_ptr<ConditionWait>(wait)->has_answer(); });
  return waits_.size() != before;
}

bool Member::look_again() {
  if (looking_) return false;
  looking_ = true;
  bool any = false;
  while (look_at_kept()) any = true;
  any = look_at_waits() || any;
  looking_ = false;
  if (kept_.empty() && waits_.empty() && waiting_hook_.linked()) g_waiting->remove(*this);
  return any;
}

void Member::enlist() {
  if (!waiting_hook_.linked()) g_waiting->push_back(*this);
}

bool Member::look_at_all() {
  bool any = false;
  std::vector<Member*> all;
  for (Member* member = g_waiting->front(); member != nullptr; member = g_waiting->next(*member)) all.push_back(member);
  g_looked_at = all.size();
  for (Member* member : all) any = member->look_again() || any;  // chares go only while messages run
  return any;
}

bool Member::is_look_due() noexcept {
  if (g_waiting->empty() || ++g_turns_without_look < g_looked_at) return false;
  g_turns_without_look = 0;
  return true;
}

bool Member::any_waits() noexcept { return !g_waiting->empty(); }

nb::object Member::wait_for(nb::object condition) {
  auto [object, wait] = make<ConditionWait>(std::move(condition));
  wait->start();
  wait->look();
  if (!wait->has_answer()) {
    waits_.push_back(object);
    enlist();
  }
  return std::move(object);
}

Member::~Member() {
  if (waiting_hook_.linked()) g_waiting->remove(*this);
  for (const nb::object& wait : waits_) nb::inst_ptr<ConditionWait>(wait)->give_up(Status::canceled);
  if (!kept_.empty()) {
    static const nb::handle warn = python_function("brant._chares", "warn_of_kept");
    guarded([&] { return warn(object_, kept_.front().method, kept_.size()).is_valid(); }, false);
    if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(object_.ptr());
  }
  for (const Kept& call : kept_) {
    if (call.invocation.reply != 0) detail::fail_unanswered(call.invocation);
    detail::drop_message(call.invocation);
  }
}

void ConditionWait::end() noexcept {
  answer();
  release();
}

void ConditionWait::look() noexcept {
  if (has_answer()) return;
  const nb::object keeps = nb::borrow(self());
  const int holds = guarded([&] { return is_true(condition_()) ? 1 : 0; }, -1);
  if (holds < 0) error_ = take_exception();
  if (holds != 0) end();
}

PyObject* ConditionWait::take() {
  if (error_ == nullptr) return Py_NewRef(Py_None);
  raise_to_awaiter(error_);
  return nullptr;
}

void ConditionWait::give_up(Status status) {
  if (has_answer()) return;
  set_python_error(Error(status, "a condition was waited for"));
  error_ = take_exception();
  end();
}

void bind_members(nb::module_& module) {
  static Lines lines(&Member::construct, &Member::invoke, &Member::invoke_with_data, &Member::post);
  g_lines = &lines;
  nb::class_<Place>(module, "Place").def_prop_ro("index", [](const Place& place) {
    return index_of(place.target.key, place.dimensions);
  });
  const nb::class_<ConditionWait, Awaitable> wait(module, "ConditionWait");
  module.def("wait_for", [](const Place& place, nb::object condition) {
    ChareBase* chare = detail::local(Process::get().chares().core(), place.target);
    if (chare == nullptr) throw Error(Status::invalid_argument, "a chare waits for a condition once it has been made");
    return static_cast<Member*>(chare)->wait_for(std::move(condition));
  });
}

}  // namespace brant::python
