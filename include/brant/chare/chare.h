#pragma once

#include <cstddef>
#include <cstdint>

#include "brant/chare/detail/core.h"
#include "brant/chare/index.h"

namespace brant {

template <typename C>
class Element;
template <typename C>
class Array;

namespace detail {

class Collection;
struct RunningTask;

/// What a chare is born with; set around its constructor.
struct Birth {
  Collection* collection = nullptr;
  ElementKey key;
};
const Birth& present_birth() noexcept;

}  // namespace detail

/// The untyped part of every chare: 56 bytes. Do not name it: derive from `Chare`.
class ChareBase {
 public:
  ChareBase(const ChareBase&) = delete;
  ChareBase& operator=(const ChareBase&) = delete;

  /// The runtime of this process.
  [[nodiscard]] Chares& chares() const noexcept;

 protected:
  ChareBase() noexcept : collection_(detail::present_birth().collection), key_(detail::present_birth().key) {}
  /// Coroutines of this chare that still wait end here.
  ~ChareBase();

  [[nodiscard]] const detail::ElementKey& key() const noexcept { return key_; }
  [[nodiscard]] std::uint32_t collection_id() const noexcept;

 private:
  friend class detail::Collection;
  friend class detail::Core;
  friend struct detail::RunningTask;

  detail::Collection* collection_;
  detail::ElementKey key_;
  detail::RunningTask* tasks_ = nullptr;  ///< Coroutines of this chare that have not ended.
  std::uint32_t slot_ = 0;                ///< In its collection's list of local elements.
  bool busy_ = false;                     ///< One of its entry methods is on the stack.
  bool leaving_ = false;                  ///< Its destroy waits until no data comes into its memory any more.
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

 protected:
  Chare() = default;
  ~Chare() = default;
};

}  // namespace brant
