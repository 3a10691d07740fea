#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/awaitable.h"
#include "bindings/python/call.h"
#include "bindings/python/invoked.h"
#include "bindings/python/typed_read.h"
#include "bindings/python/view.h"
#include "brant/base/intrusive_list.h"
#include "brant/chare.h"

namespace brant::python {

/// An element of an array of chares: what stands for an object of Python among the chares of C++, with everything that
/// those have. All of them are of one class, with one entry that carries the number of the method.
class Member final : public ChareBase {
 public:
  /// Of arrays of so many dimensions, 1 to 6.
  static const detail::ClassInfo& class_of(int dimensions);
  static const detail::ConstructorInfo& constructor();
  static const detail::EntryInfo& entry();
  /// The same with arguments that travel beside the message.
  static const detail::EntryInfo& entry_with_data();
  /// And of a method with a post function, which says where they land.
  static const detail::EntryInfo& entry_with_post();

  /// `table`: the functions of the entries, by their numbers; `conditions`: what they wait for, `posts`: what says
  /// where their arrays land; None: nothing.
  Member(nanobind::object object, nanobind::tuple table, nanobind::tuple conditions, nanobind::tuple posts) noexcept
      : object_(std::move(object)),
        table_(std::move(table)),
        conditions_(std::move(conditions)),
        posts_(std::move(posts)) {}
  ~Member();

  /// An awaitable that has its answer when `condition` gives true: looked at when an entry of this chare has run.
  [[nodiscard]] nanobind::object wait_for(nanobind::object condition);

  /// Looks at all conditions of all chares that wait for one: a coroutine of theirs may have gone on. True if anything
  /// went on by that.
  static bool look_at_all();
  [[nodiscard]] static bool any_waits() noexcept;
  /// Whether so many turns have gone by as there are chares that wait: a turn costs one look on the average then,
  /// however many there are. Entries of the chare itself have it looked at anyway.
  [[nodiscard]] static bool is_look_due() noexcept;

  // What stands in the list of classes and entries.
  static void invoke(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation);
  static void invoke_with_data(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation);
  static void invoke_from_cpp(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation);
  static void invoke_from_cpp_with_data(ChareBase& target, ReadArchive& arguments, detail::Invocation& invocation);
  static void post(ChareBase& target, ReadArchive& arguments, const DeviceMeta* metas, brant::Landing* landings);
  static void post_from_cpp(ChareBase& target, ReadArchive& arguments, const DeviceMeta* metas,
                            brant::Landing* landings);
  static ChareBase* construct(ReadArchive& arguments);
  static ChareBase* construct_for_cpp(ReadArchive& arguments);

 private:
  void receive(ReadArchive& arguments, const detail::Invocation& invocation, const TakeApart& apart) noexcept;
  /// A call whose condition does not hold yet. It holds the message, and so room in the window of its sender.
  struct Kept {
    unsigned method;
    nanobind::tuple args;
    nanobind::object keywords;
    Invoked invocation;
  };

  /// Where an array of a call lands, as the post function has said; without one the runtime finds memory.
  struct Posted {
    nanobind::object array;
    std::unique_ptr<View> view;
  };
  /// A call whose arrays have not come, with a Coming in place of each.
  struct Announced {
    unsigned method;
    nanobind::tuple args;
    nanobind::object keywords;
    std::vector<Item> coming;
  };
  void ask_post(const Announced& call, brant::Landing* landings, const void* message);
  [[nodiscard]] std::vector<Posted> take_posted(const void* message);

  void run(const CallContents& call, const Invoked& invocation);
  void receive_typed(ReadArchive& arguments, const detail::Invocation& invocation, const LandTyped& land) noexcept;
  [[nodiscard]] unsigned number_of_method(std::string_view name) const;
  [[nodiscard]] bool has_post(unsigned method) const;
  void execute_or_keep(unsigned method, nanobind::tuple args, nanobind::object keywords, const Invoked& invocation);
  void execute(unsigned method, const nanobind::tuple& args, const nanobind::object& keywords,
               const Invoked& invocation);
  [[nodiscard]] bool may_run(unsigned method, const nanobind::tuple& args, const nanobind::object& keywords) const;
  void keep(Kept call);
  void end_kept(std::size_t place, bool runs) noexcept;
  bool look_again();
  bool look_at_kept() noexcept;
  bool look_at_waits();
  void enlist();

  nanobind::object object_;
  nanobind::tuple table_;
  nanobind::tuple conditions_;
  nanobind::tuple posts_;
  std::map<const void*, std::vector<Posted>> posted_;  ///< By the message, until its call runs.
  std::deque<Kept> kept_;
  std::vector<nanobind::object> waits_;  ///< Of type ConditionWait.
  bool looking_ = false;
  std::shared_ptr<unsigned> unbegun_ = std::make_shared<unsigned>(0);  ///< Async entries that asyncio has not begun.
  ListHook<Member> waiting_hook_;                                      ///< Among those with kept calls or waits.

 public:
  using WaitingList = IntrusiveList<Member, &Member::waiting_hook_>;
};

/// `await self.wait(condition)`.
class ConditionWait final : public Awaitable {
 public:
  explicit ConditionWait(nanobind::object condition) noexcept : condition_(std::move(condition)) {}
  ~ConditionWait() override { Py_XDECREF(error_); }

  void start() noexcept { hold(); }
  /// Answers if it holds, or raises.
  void look() noexcept;
  PyObject* take() override;
  void advance() override {}
  void give_up(Status status) override;

 private:
  void end() noexcept;

  nanobind::object condition_;
  PyObject* error_ = nullptr;
};

/// Where an element is: what its object of Python keeps, which must not know where it lies.
struct Place {
  detail::Target target;
  int dimensions = 1;
};

/// A tuple of coordinates and a key, in both directions. Throws InvalidArgument for what is no index.
detail::ElementKey key_of(nanobind::handle index, int dimensions);
nanobind::object index_of(const detail::ElementKey& key, int dimensions);

void bind_members(nanobind::module_& module);

}  // namespace brant::python
