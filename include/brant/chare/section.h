#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "brant/chare/array.h"
#include "brant/chare/detail/gathering.h"

namespace brant {

/// Some elements of an array, which are called and reduced together. A value: copy it, keep it, send it as an argument;
/// it holds a number, the members were told to all ranks when it was made.
///
///     Section<Block> top = make_section(blocks, [](const Index<3>& at) { return at[2] == 0; });
///     top.call<&Block::radiate>(flux);                      // every member, by a tree over the ranks that have some
///     double sum = co_await all_reduce<reduce::Sum>(top, local);   // in a coroutine of each member
///
/// Members are fixed: an element that is destroyed leaves, others cannot join. Calls of one section by one sender run
/// at each member in the order sent, but for those with data arguments (see Chares, order).
template <typename C>
class Section : private detail::NotBytes {
 public:
  Section() noexcept = default;
  Section(detail::Core& core, const detail::GatheringId& gathering) noexcept : core_(&core), gathering_(gathering) {}

  [[nodiscard]] Section with(const CallOptions& options) const noexcept {
    Section other = *this;
    other.options_ = options;
    return other;
  }

  /// Invokes a method of every member. Throws as `Element::call` does. A member that was destroyed before the message
  /// arrives ends the job with an error that names it. A data argument (`device`, `no_copy`) reaches each member
  /// through its own post entry; without one the members of a process share the landing: read it only. The source is
  /// free when it has left for the ranks next in the tree and was copied for the members here.
  template <auto Method, typename... As>
  void call(As&&... arguments) const {
    using Entry = detail::EntryOf<C, Method>;
    if constexpr (Entry::template require_fitting<As...>()) {
      const auto open = [&](std::size_t bytes) {
        return detail::open_multicast(core(), gathering_, detail::number_of(Entry::get()), options_, bytes);
      };
      detail::post_call<Entry>(core(), open, std::forward<As>(arguments)...);
    }
  }

  [[nodiscard]] const detail::GatheringId& gathering() const noexcept { return gathering_; }
  [[nodiscard]] detail::Core& core() const {
    if (core_ == nullptr) {
      throw Error(Status::invalid_argument,
                  "a section that was never assigned: take it from make_section or a message");
    }
    return *core_;
  }
  bool operator==(const Section& other) const noexcept { return gathering_ == other.gathering_; }

  void serialize(auto& archive) {
    archive(gathering_);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) core_ = &archive.chares()->core();
  }

 private:
  detail::Core* core_ = nullptr;
  detail::GatheringId gathering_;
  CallOptions options_;
};

/// A section of the elements in a list. Costs one message of the whole list to every rank. Throws invalid_argument for
/// an empty list, and outside a dense array. Elements of a sparse array may be inserted later.
template <typename C>
Section<C> make_section(Chares& chares, const Array<C>& array, std::span<const typename C::IndexType> members) {
  std::vector<detail::ElementKey> keys;
  keys.reserve(members.size());
  for (const auto& index : members) {
    static_cast<void>(array[index]);  // throws outside the extent
    keys.push_back(detail::ElementKey::of(index));
  }
  detail::Core& core = detail::core_of(chares);
  return Section<C>(core, {detail::define_section(core, array.collection(), keys), array.collection(), 0});
}
template <typename C>
Section<C> make_section(Chares& chares, const Array<C>& array, const std::vector<typename C::IndexType>& members) {
  return make_section(chares, array, std::span<const typename C::IndexType>(members));
}

namespace detail {

/// Calls `visit` for every index of a box, the last coordinate fastest.
template <int N, typename Visit>
void for_each_index(const Index<N>& first, const Index<N>& end, const Index<N>& stride, Visit&& visit) {
  for (int i = 0; i < N; ++i) {
    if (first[i] >= end[i] || stride[i] < 1) return;
  }
  Index<N> at = first;
  for (;;) {
    visit(std::as_const(at));
    int place = N - 1;
    while (place >= 0 && (at[place] += stride[place]) >= end[place]) {
      at[place] = first[place];
      --place;
    }
    if (place < 0) return;
  }
}

template <int N>
Index<N> ones() noexcept {
  Index<N> index;
  index.at.fill(1);
  return index;
}

}  // namespace detail

/// The elements of a box: from `first` up to, not including, `end`, every `stride`-th.
template <typename C>
  requires(detail::kDimensions<typename C::IndexType> > 0)
Section<C> make_section(
    Chares& chares, const Array<C>& array, const typename C::IndexType& first, const typename C::IndexType& end,
    const typename C::IndexType& stride = detail::ones<detail::kDimensions<typename C::IndexType>>()) {
  std::vector<typename C::IndexType> members;
  detail::for_each_index(first, end, stride, [&](const auto& index) { members.push_back(index); });
  return make_section(chares, array, members);
}

/// The elements of a dense array for which `predicate(index)` holds; it is asked here, once for each.
template <typename C, typename Predicate>
  requires(detail::kDimensions<typename C::IndexType> > 0 &&
           std::is_invocable_r_v<bool, Predicate&, const typename C::IndexType&>)
Section<C> make_section(Chares& chares, const Array<C>& array, Predicate&& predicate) {
  using I = typename C::IndexType;
  std::vector<I> members;
  detail::for_each_index(I{}, array.extent(), detail::ones<detail::kDimensions<I>>(), [&](const I& index) {
    if (predicate(index)) members.push_back(index);
  });
  return make_section(chares, array, members);
}

}  // namespace brant
