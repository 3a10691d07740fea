#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "brant/base/api.h"
#include "brant/base/buffer.h"
#include "brant/chare/detail/core.h"
#include "brant/chare/index.h"
#include "brant/chare/reduce.h"
#include "brant/core/task.h"

namespace brant {

template <typename C>
class Element;
template <typename C>
class Array;
template <typename C>
class Section;
template <typename... Args>
class Callback;
template <typename C, auto Method, typename... Match>
class When;

namespace detail {

class Collection;
class Gatherings;
struct RunningTask;
struct Mail;
struct WhenWaiter;

/// Why a chare will not be here for long.
struct Leaving {
  bool destroyed = false;  ///< Its destroy waits until no data comes into its memory any more.
  bool moved = false;      ///< It goes to another rank as soon as it can.

  [[nodiscard]] bool any() const noexcept { return destroyed || moved; }
};

/// What a chare is born with; set around its constructor.
struct Birth {
  Collection* collection = nullptr;
  ElementKey key;
  std::uint32_t reductions = 0;  ///< The first that it takes part in.
};
BRANT_API const Birth& present_birth() noexcept;
/// What errors and reports of this rank call the class of an array, for bindings whose classes are all one in C++.
BRANT_API void name_class(Collection& collection, std::string_view name);

}  // namespace detail

/// The untyped part of every chare: 64 bytes. Do not name it: derive from `Chare`.
class BRANT_API ChareBase {
 public:
  ChareBase(const ChareBase&) = delete;
  ChareBase& operator=(const ChareBase&) = delete;

  /// The runtime of this process.
  [[nodiscard]] Chares& chares() const noexcept;

 protected:
  ChareBase() noexcept
      : collection_(detail::present_birth().collection),
        key_(detail::present_birth().key),
        reductions_(detail::present_birth().reductions) {}
  /// Coroutines of this chare that still wait end here. Calls that it kept and never awaited are an error.
  ~ChareBase();

  [[nodiscard]] const detail::ElementKey& key() const noexcept { return key_; }
  [[nodiscard]] std::uint32_t collection_id() const noexcept;

 private:
  friend class detail::Collection;
  friend struct detail::RunningTask;
  friend struct detail::Mail;
  friend class detail::Gatherings;

  detail::Collection* collection_;
  detail::ElementKey key_;
  detail::RunningTask* tasks_ = nullptr;  ///< Coroutines of this chare that have not ended.
  detail::Mail* mail_ = nullptr;          ///< Whens that wait, and calls that wait for one; made when needed.
  std::uint32_t slot_ = 0;                ///< In its collection's list of local elements.
  std::uint32_t reductions_;              ///< The next reduction of its collection that it contributes to.
  bool busy_ = false;                     ///< One of its entry methods is on the stack.
  detail::Leaving leaving_;
};

/// Base of every class whose public methods are invoked by messages:
///
///     class Block : public brant::Chare<Block, brant::Index<3>> {
///      public:
///       explicit Block(int cells);
///       void halo(int step, std::span<const double> face);  // an entry method: any public one
///       double norm();                                      // so is this; ask<&Block::norm>() gives a Future<double>
///       brant::Task<void> solve(int steps);                 // and this, a coroutine
///     };
///
/// Calls of one sender run in the order sent if they have equal priorities and no data arguments; a call with data runs
/// when the data has landed, so that a later call without data overtakes it (see Chares, order).
///
/// A chare belongs to one process at a time, its methods run one after another, from the scheduler, on the worker's
/// thread. A method that is a coroutine lets others run while it waits; when the chare is destroyed its waiting
/// coroutines are destroyed too. Made by `create_array`, `create_sparse`, `create_group` and `create_chare`, never by
/// hand: inside the constructor `index()`, `chares()` and the proxies work already.
///
/// `I` is what names an element: `Index<1>` to `Index<6>`, or an `ElementIndex` of the user's; `Single` for a chare
/// that stands alone.
template <typename Derived, ElementIndex I = Index<1>>
class Chare : public ChareBase {
 public:
  using IndexType = I;

  [[nodiscard]] I index() const noexcept { return key().template as<I>(); }
  /// A proxy of this element: to be sent to others.
  [[nodiscard]] Element<Derived> this_element() const noexcept;
  /// The collection it belongs to. Not for single chares.
  [[nodiscard]] Array<Derived> this_array() const noexcept;

  /// In an entry that is a coroutine: waits for a call of another entry of this chare.
  ///
  ///     auto [step, face] = co_await when<&Block::halo>(step);   // the call whose first argument equals `step`
  ///     co_await when<&Block::halo>();                           // the next one
  ///     co_await when<&Block::halo>([&](int step, const Face& face) { return step >= now; });
  ///
  /// Reference values are compared with the leading arguments; a predicate gets all of them. An entry that is named
  /// in a `when` anywhere in the program is *awaited*: its calls do not run on arrival, they are kept until a `when`
  /// takes them, in the order of arrival, each taken once, whens served in the order in which they began to wait. The
  /// body runs then, with the arguments, before the waiter resumes (so it may store a span's data, or be empty), and
  /// what it returns or throws goes to a caller who asked. What a predicate throws goes to the waiter, and the call
  /// waits for another `when`. Several at once: `when_all`.
  ///
  /// Kept calls count in the window of their sender (see Chares, bounds); 65,536 in one chare are an error. Those that
  /// are still kept when the chare is destroyed, or when the program ends, are errors that name them. A `when`
  /// allocates nothing; keeping a call does, the first times.
  template <auto Method, typename... Match>
  When<Derived, Method, std::decay_t<Match>...> when(Match&&... match);

  /// Gives this element's part of a reduction over its array (or group, or a section it is a member of). When all have
  /// given theirs, the combined value goes to `to`. Operations are in brant/chare/reduce.h:
  ///
  ///     contribute<reduce::Max>(residual, callback<&Block::check>(blocks[0]));
  ///     contribute<reduce::Sum>(std::span<const double>(histogram), to);          // element by element
  ///     contribute<reduce::Each<reduce::Sum, reduce::Min>>(std::tuple(n, t), to); // member by member
  ///
  /// The n-th contribution of each element belongs to the n-th reduction of the gathering, so that any number may be
  /// under way. All elements that exist must contribute; one that is inserted takes part in the reductions that had not
  /// begun on its rank, one that is destroyed leaves those it has not contributed to. Values are copied in the call.
  /// Local parts are combined first, then by a tree over the ranks: one message per rank and reduction.
  ///
  /// Contributions that do not fit each other (operation, type, length, callback) are an error that names two of them.
  template <typename Operation, typename T>
  void contribute(const T& value, const std::type_identity_t<Callback<ReductionResult<Operation, T>>>& to);
  template <typename Operation, typename T>
  void contribute(const Section<Derived>& section, const T& value,
                  const std::type_identity_t<Callback<ReductionResult<Operation, T>>>& to);

  /// The same with the result to every contributor: `double sum = co_await all_reduce<reduce::Sum>(local);`. A Future.
  template <typename Operation, typename T>
  auto all_reduce(const T& value);
  template <typename Operation, typename T>
  auto all_reduce(const Section<Derived>& section, const T& value);

  /// Ready when every element has called it.
  Future<> barrier();
  Future<> barrier(const Section<Derived>& section);

  /// Element by element over device memory that holds values of type T, in place: `co_await
  /// all_reduce_device<reduce::Sum, float>(sums);`. The values are staged through host memory and combined there, by
  /// asynchronous copies; await it before this element's next reduction. Throws what the device reports.
  template <typename Operation, typename T>
  Task<void> all_reduce_device(Buffer values);
  /// The same with the result, in host memory, to a callback. The memory is free when the task has ended.
  template <typename Operation, typename T>
  Task<void> contribute_device(ConstBuffer values, Callback<std::vector<T>> to);

  Chare() = default;
  ~Chare() = default;
};

}  // namespace brant
