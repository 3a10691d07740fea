#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/chare/element.h"
#include "brant/chare/placement.h"

namespace brant {

/// All elements of a collection. A value: copy it, keep it, send it as an argument.
template <typename C>
class Array : private detail::NotBytes {
 public:
  using IndexType = typename C::IndexType;

  Array() noexcept = default;
  Array(detail::Core& core, std::uint32_t collection, bool dense, const detail::ElementKey& extent) noexcept
      : core_(&core), collection_(collection), dense_(dense), extent_(extent) {}

  /// An element. Throws invalid_argument outside the extent of a dense array.
  Element<C> operator[](const IndexType& index) const {
    const auto key = detail::ElementKey::of(index);
    if constexpr (detail::kDimensions<IndexType> > 0) {
      if (dense_) {
        for (int i = 0; i < detail::kDimensions<IndexType>; ++i) {
          if (static_cast<std::uint32_t>(index[i]) >= static_cast<std::uint32_t>(extent_.coordinate(i))) [[unlikely]] {
            detail::throw_outside(require_core(), detail::ClassOf<C>::get(), key, extent_);
          }
        }
      }
    }
    return Element<C>(require_core(), {collection_, key});
  }

  /// The same array with other options for the next broadcast.
  [[nodiscard]] Array with(const CallOptions& options) const noexcept {
    Array other = *this;
    other.options_ = options;
    return other;
  }

  /// Invokes a method of every element, by a tree over the ranks.
  template <auto Method, typename... As>
  void call(As&&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    if constexpr (Entry::template require_fitting<As...>()) {
      detail::Core& core = require_core();
      const auto open = [&](std::size_t bytes) {
        return detail::open_broadcast(core, collection_, Entry::get(), options_, bytes);
      };
      detail::post_call<Entry>(core, open, std::forward<As>(arguments)...);
    }
  }

  /// Adds an element to a sparse array, where its placement says. Asynchronous. Throws invalid_argument on a dense one;
  /// an index that exists ends the job with an error.
  template <typename... As>
  void insert(const IndexType& index, As&&... arguments) const {
    using Constructor = detail::ConstructorOf<C, detail::Stored<As>...>;
    detail::Core& core = require_core();
    if (dense_) {
      throw Error(Status::invalid_argument,
                  "insert into a dense array: its elements exist from the start. Use create_sparse");
    }
    const auto key = detail::ElementKey::of(index);
    if constexpr (Constructor::kUsable) {
      const auto open = [&](std::size_t bytes) {
        return detail::open_insert(core, {collection_, key}, Constructor::get(), bytes);
      };
      detail::Outgoing outgoing =
          detail::PackAs<std::tuple<detail::Stored<As>...>>::pack(open, std::forward<As>(arguments)...);
      detail::post(core, outgoing);
    }
  }

  /// Destroys all elements and the array itself, on all ranks: what they hold is given back, and the array's number is
  /// free for another. Called once, on any rank (not by all); returns at once, and is ordered as a broadcast is: after
  /// the broadcasts made before from here, but not after calls of single elements: await those. Waits for data
  /// arguments that are coming into memory of an element.
  ///
  /// With the array go its sections, its reductions that are open (a future that waits for one of them fails with
  /// not_found, other callbacks are not called) and its coroutines (who awaits an answer of one gets not_found). What
  /// comes later, also by a callback or from another rank, meets no successor: an `ask` fails with not_found, a call,
  /// an insertion or another destroy ends the job with an error that names the array. Costs a message for each rank.
  void destroy() const { detail::post_destroy_all(require_core(), collection_); }

  /// Of a dense array; zeros otherwise.
  [[nodiscard]] IndexType extent() const noexcept { return extent_.template as<IndexType>(); }
  /// Its number: the same on all ranks.
  [[nodiscard]] std::uint32_t collection() const noexcept { return collection_; }
  [[nodiscard]] detail::Core& core() const { return require_core(); }

  void serialize(auto& archive) {
    archive(collection_, dense_, extent_);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) core_ = &archive.chares()->core();
  }

 protected:
  detail::Core& require_core() const {
    if (core_ == nullptr) {
      throw Error(Status::invalid_argument, "a proxy that was never assigned: take it from create_array or a message");
    }
    return *core_;
  }

 private:
  detail::Core* core_ = nullptr;
  std::uint32_t collection_ = 0;
  bool dense_ = false;
  detail::ElementKey extent_;
  CallOptions options_;
};

/// One chare per rank; `group[rank]` is the one there.
template <typename C>
class Group : public Array<C> {
 public:
  Group() noexcept = default;
  explicit Group(const Array<C>& array) noexcept : Array<C>(array) {}

  /// The member of this process, or null while its creation is under way.
  [[nodiscard]] C* local() const noexcept {
    return (*this)[detail::chares_of(this->require_core()).rank().value].local();
  }
};

namespace detail {

template <typename C, typename... As>
Array<C> create_collection(Chares& chares, CollectionShape shape, As&&... arguments) {
  Core& core = chares.core();
  std::uint32_t collection = 0;
  if constexpr ((require_travels<Stored<As>>() && ...)) {
    const auto open = [&](std::size_t bytes) { return open_create(core, shape, bytes, collection); };
    Outgoing outgoing = PackAs<std::tuple<Stored<As>...>>::pack(open, std::forward<As>(arguments)...);
    post(core, outgoing);
  }
  return Array<C>(core, collection, shape.dense, shape.extent);
}

}  // namespace detail

/// Makes a dense array: one element for every index below `extent`, each constructed with a copy of the arguments.
/// Called once, on any rank (not by all); returns at once, messages to elements wait for them. Whoever gives arguments
/// names the placement, too. Throws invalid_argument for an extent without elements, limit_reached for one that gives a
/// rank more than 2^27 elements. An exception in a constructor ends the job with an error.
template <typename C, typename... As>
Array<C> create_array(Chares& chares, const typename C::IndexType& extent,
                      const Placement& placement = Placement::block(), As&&... arguments) {
  static_assert(detail::kDimensions<typename C::IndexType> > 0,
                "brant: a dense array needs brant::Index<1..6>; use create_sparse for other index types");
  return detail::create_collection<C>(chares,
                                      {.chare_class = &detail::ClassOf<C>::get(),
                                       .constructor = &detail::ConstructorOf<C, detail::Stored<As>...>::get(),
                                       .placement = &placement,
                                       .extent = detail::ElementKey::of(extent),
                                       .dense = true},
                                      std::forward<As>(arguments)...);
}

/// Makes an array without elements: `insert` adds them, `array[index].destroy()` takes them away. A message to an
/// element that was not inserted yet waits for it.
template <typename C>
Array<C> create_sparse(Chares& chares, const Placement& placement = Placement::hashed()) {
  return detail::create_collection<C>(
      chares, {.chare_class = &detail::ClassOf<C>::get(), .placement = &placement, .extent = {}, .dense = false});
}

/// Makes one element on every rank.
template <typename C, typename... As>
Group<C> create_group(Chares& chares, As&&... arguments) {
  static_assert(std::is_same_v<typename C::IndexType, Index<1>>, "brant: the members of a group have brant::Index<1>");
  return Group<C>(create_array<C>(chares, Index<1>(chares.size()), Placement::block(), std::forward<As>(arguments)...));
}

namespace detail {
/// The array a chare belongs to, as far as the untyped side knows it.
struct CollectionView {
  std::uint32_t id;
  bool dense;
  ElementKey extent;
};
BRANT_API CollectionView view_of(const Collection& collection) noexcept;
BRANT_API const Collection& collection_of(const ChareBase& chare) noexcept;
}  // namespace detail

template <typename Derived, ElementIndex I>
Array<Derived> Chare<Derived, I>::this_array() const noexcept {
  detail::Core& core = chares().core();
  const detail::CollectionView view = detail::view_of(detail::collection_of(*this));
  return Array<Derived>(core, view.id, view.dense, view.extent);
}

}  // namespace brant
